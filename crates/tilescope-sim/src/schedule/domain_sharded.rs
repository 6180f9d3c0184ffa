//! Domain sharding: all IPUs work on the same step of the same micro-batch.

use super::{PipelinePhase, ScheduleSlot, StageTurn};
use tilescope_report::TrainingPass;

/// One slot per step, in which every IPU has a stage of its own.
pub(crate) fn domain_sharded_slots(
    stages: usize,
    shards: usize,
    micro_batches: u64,
) -> Vec<ScheduleSlot> {
    let steps = stages / shards.max(1);
    let slot = |micro_batch: u64, step: usize| {
        let stages = step * shards..(step + 1) * shards;
        let turn = |stage| StageTurn { stage, pass: TrainingPass::Forward, micro_batch };
        ScheduleSlot {
            phase: PipelinePhase::Main,
            turns: stages.map(turn).collect(),
            stage_copies_follow: step + 1 < steps,
        }
    };
    (0..micro_batches)
        .flat_map(|batch| (0..steps).map(move |step| (batch, step)))
        .map(|(batch, step)| slot(batch, step))
        .collect()
}
