//! Sharded and phased execution, and domain sharding: one micro-batch at a time, and one stage,
//! phase or step at a time.

use super::{PipelinePhase, ScheduleSlot, StageTurn};
use std::ops::Range;
use tilescope_report::TrainingPass;

/// Returns one slot per turn: forward through the stages, then backward in training. Stages that
/// work `together` take their turns in one slot.
pub(crate) fn sharded_slots(
    together: &[Range<usize>],
    micro_batches: u64,
    training: bool,
) -> Vec<ScheduleSlot> {
    let up = together.iter().map(|stages| (stages, TrainingPass::Forward));
    let mut order: Vec<(&Range<usize>, TrainingPass)> = up.collect();
    if training {
        order.extend(together.iter().rev().map(|stages| (stages, TrainingPass::Backward)));
    }
    let mut slots = Vec::new();
    for micro_batch in 0..micro_batches {
        for (at, (stages, pass)) in order.iter().enumerate() {
            let pass = *pass;
            let next = order.get(at + 1);
            let turns = (*stages).clone();
            slots.push(ScheduleSlot {
                phase: PipelinePhase::Main,
                turns: turns.map(|stage| StageTurn { stage, pass, micro_batch }).collect(),
                stage_copies_follow: next.is_some_and(|(next, _)| next != stages),
            });
        }
    }
    slots
}

/// Returns the slots of each pass of a phase, of `slots` slots in all. `phases` are ranges of
/// steps. Each step has one slot in [`sharded_slots`]. The passes go forward through the
/// phases, and in training backward again.
pub(super) fn slots_of_phases(
    phases: &[Range<usize>],
    slots: usize,
    training: bool,
) -> Vec<Range<usize>> {
    let steps = phases.last().map_or(1, |last| last.end);
    (0..slots / steps)
        .flat_map(|pass| {
            let first = pass * steps;
            let down = training && pass % 2 == 1;
            (0..phases.len()).map(move |at| {
                let Range { start, end } = phases[if down { phases.len() - 1 - at } else { at }];
                let steps_before = if down { steps - end } else { start };
                first + steps_before..first + steps_before + (end - start)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_passed_up_and_down() {
        // The second phase has two steps.
        let phases = [0..1, 1..3, 3..4];
        let trained = slots_of_phases(&phases, 8, true);
        assert_eq!(trained, [0..1, 1..3, 3..4, 4..5, 5..7, 7..8]);
        let phases = [0..2, 2..3];
        assert_eq!(slots_of_phases(&phases, 6, true), [0..2, 2..3, 3..4, 4..6]);
        assert_eq!(slots_of_phases(&phases, 6, false), [0..2, 2..3, 3..5, 5..6]);
    }
}
