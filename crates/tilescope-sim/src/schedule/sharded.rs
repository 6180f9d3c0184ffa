//! Sharded and phased execution, and domain sharding: one micro-batch at a time, one stage, phase or
//! step at a time.

use super::{PipelinePhase, ScheduleSlot, StageTurn};
use std::ops::Range;
use tilescope_report::TrainingPass;

/// One slot per turn: up the stages, then down again when training. Stages that work `together` take
/// their turns in one slot.
pub(crate) fn sharded_slots(
    together: &[Range<usize>],
    micro_batches: u64,
    training: bool,
) -> Vec<ScheduleSlot> {
    let up = together.iter().map(|stages| (stages, TrainingPass::Forward));
    let down =
        together.iter().rev().map(|stages| (stages, TrainingPass::Backward)).filter(|_| training);
    let order: Vec<(&Range<usize>, TrainingPass)> = up.chain(down).collect();
    let slot = |micro_batch: u64, at: usize| {
        let (stages, pass) = order[at];
        let next = order.get(at + 1);
        ScheduleSlot {
            phase: PipelinePhase::Main,
            turns: stages.clone().map(|stage| StageTurn { stage, pass, micro_batch }).collect(),
            stage_copies_follow: next.is_some_and(|(next, _)| *next != stages),
        }
    };
    let turns = order.len();
    (0..micro_batches)
        .flat_map(|batch| (0..turns).map(move |at| (batch, at)))
        .map(|(batch, at)| slot(batch, at))
        .collect()
}
