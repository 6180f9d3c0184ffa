//! The grouped pipeline schedule, in PopART's form.
//!
//! `S` forward stages on `S` IPUs make `P = 2S - 1` pipeline stages when trained: the backward
//! pass of forward stage `s` is pipeline stage `2(S-1) - s` on the same IPU, and the last one
//! holds forward, loss and backward. Pipeline stage `p` works in slot `c` on micro-batch `c - p`:
//!
//! ```text
//!  slot   0   1   2   3      4      5      6      7
//!  IPU0   F0  F1  F2  F3     F4     F5     F6 B0  F7 B1
//!  IPU1       F0  F1  F2     F3     F4 B0  F5 B1  F6 B2
//!  IPU2           F0  F1     F2 B0  F3 B1  F4 B2  F5 B3
//!  IPU3               F0 B0  F1 B1  F2 B2  F3 B3  F4 B4
//! ```
//!
//! Source: popart willow/src/transforms/pipeline.cpp and docs/notes/transforms/pipelining.md.

use super::{Phase, Slot, Turn};
use crate::report::Pass;

/// Pipeline stages of `stages` forward stages: how many micro-batches are in flight.
pub fn pipeline_stages(stages: usize, training: bool) -> u64 {
    if training { 2 * stages as u64 - 1 } else { stages as u64 }
}

/// Slots of one iteration over `micro_batches`: ramp-up, main and ramp-down.
pub fn pipeline_slots(stages: usize, micro_batches: u64, training: bool) -> Vec<Slot> {
    let depth = pipeline_stages(stages, training);
    let slot = |cycle: u64| {
        // Pipeline stage p works on the micro-batch that entered p slots ago, if there was one.
        let batch = |p: u64| cycle.checked_sub(p).filter(|batch| *batch < micro_batches);
        let mut turns = Vec::new();
        for stage in 0..stages {
            let forward = batch(stage as u64);
            let backward = batch(2 * (stages - 1) as u64 - stage as u64).filter(|_| training);
            let turn = |pass, micro_batch| Turn { stage, pass, micro_batch };
            turns.extend(forward.map(|micro_batch| turn(Pass::Forward, micro_batch)));
            turns.extend(backward.map(|micro_batch| turn(Pass::Backward, micro_batch)));
        }
        let phase = if cycle + 1 < depth {
            Phase::RampUp
        } else if cycle < micro_batches {
            Phase::Main
        } else {
            Phase::RampDown
        };
        Slot { phase, turns, copies: true }
    };
    (0..micro_batches + depth - 1).map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slot in which a stage makes a pass for a micro-batch.
    fn when(slots: &[Slot], stage: usize, pass: Pass, micro_batch: u64) -> usize {
        let wanted = Turn { stage, pass, micro_batch };
        slots.iter().position(|slot| slot.turns.contains(&wanted)).expect("every turn is taken")
    }

    #[test]
    fn each_micro_batch_goes_up_and_down_the_stages() {
        for stages in [1, 2, 3, 4, 8] {
            let slots = pipeline_slots(stages, 20, true);
            assert_eq!(slots.len(), 20 + 2 * stages - 2);
            for micro_batch in 0..20 {
                for stage in 1..stages {
                    let at = |stage, pass| when(&slots, stage, pass, micro_batch);
                    assert_eq!(at(stage, Pass::Forward), at(stage - 1, Pass::Forward) + 1);
                    assert_eq!(at(stage - 1, Pass::Backward), at(stage, Pass::Backward) + 1);
                }
            }
        }
    }

    #[test]
    fn all_stages_are_busy_exactly_in_the_main_phase() {
        for stages in [2usize, 4, 8] {
            for slot in pipeline_slots(stages, 30, true) {
                let full = slot.turns.len() == 2 * stages;
                assert_eq!(full, slot.phase == Phase::Main);
            }
        }
    }
}
