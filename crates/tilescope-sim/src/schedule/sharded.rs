//! Sharded and phased execution: one micro-batch at a time, one stage at a time.

use super::{PipelinePhase, ScheduleSlot, StageTurn};
use tilescope_report::TrainingPass;

/// One slot per turn: up the stages, then down again when training.
pub(crate) fn sharded_slots(
    stages: usize,
    micro_batches: u64,
    training: bool,
) -> Vec<ScheduleSlot> {
    let up = (0..stages).map(|stage| (stage, TrainingPass::Forward));
    let down = (0..stages).rev().map(|stage| (stage, TrainingPass::Backward)).filter(|_| training);
    let order: Vec<(usize, TrainingPass)> = up.chain(down).collect();
    let slot = |micro_batch: u64, at: usize| {
        let (stage, pass) = order[at];
        let next = order.get(at + 1);
        ScheduleSlot {
            phase: PipelinePhase::Main,
            turns: vec![StageTurn { stage, pass, micro_batch }],
            stage_copies_follow: next.is_some_and(|(next, _)| *next != stage),
        }
    };
    let turns = order.len();
    (0..micro_batches)
        .flat_map(|batch| (0..turns).map(move |at| (batch, at)))
        .map(|(batch, at)| slot(batch, at))
        .collect()
}
