//! The time at which each stage works on each micro-batch, with one file per scheme.

mod annotation;
mod balance;
mod merged;
mod phased;
mod pipeline;
mod placement;
mod sharded;
mod sync;

pub(crate) use annotation::{divide_blocks, is_named};
pub(crate) use balance::split_balanced;
pub(crate) use merged::{merge_note, merged_stages};
pub(crate) use pipeline::PipelineTiming;
pub(crate) use placement::{StagePlacement, split_evenly, stages_of_blocks, stages_of_split};
pub(crate) use sharded::sharded_slots;
use sharded::slots_of_phases;
pub(crate) use sync::SyncGroups;

use crate::specification::{self, ExecutionStrategy, SpecOptions};
use std::ops::Range;
use tilescope_report::TrainingPass;

/// The part of a pipeline run that a slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipelinePhase {
    /// The pipeline fills: not all stages have work.
    RampUp,
    Main,
    RampDown,
}

impl PipelinePhase {
    /// The name in texts for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::RampUp => "ramp-up",
            Self::Main => "main",
            Self::RampDown => "ramp-down",
        }
    }
}

/// One pass of one stage for one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTurn {
    pub stage: usize,
    pub pass: TrainingPass,
    /// The micro-batch within the iteration.
    pub micro_batch: u64,
}

/// The turns between two exchanges of activations. Each IPU takes its turns in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleSlot {
    /// Ramp-up, main or ramp-down.
    pub phase: PipelinePhase,
    /// Turns in program order: forward before backward on one IPU.
    pub turns: Vec<StageTurn>,
    /// True if activations move to other IPUs after the slot.
    pub stage_copies_follow: bool,
}

impl ScheduleSlot {
    /// True if a stage works in both slots.
    pub(crate) fn shares_stage(&self, other: &Self) -> bool {
        self.turns.iter().any(|turn| other.turns.iter().any(|of| of.stage == turn.stage))
    }
}

/// The order of all work in one host call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionSchedule {
    /// The number of times that the slots run.
    pub iterations: u64,
    /// Slots of one iteration.
    pub slots: Vec<ScheduleSlot>,
    /// Micro-batches of one iteration.
    pub micro_batches: u64,
    /// The time of weight updates.
    pub update: WeightUpdateTiming,
    /// The time of copies between stages.
    pub copying: StageCopyTiming,
    /// The number of micro-batches that each stage keeps for its backward pass.
    pub stash_depths: Vec<u64>,
    /// True if weights come from streaming memory, with those of the next stage loaded during this
    /// one.
    pub phased: bool,
    /// For phased execution, the slots of each pass of a phase, one for each of its steps.
    pub phase_slots: Vec<Range<usize>>,
    /// True if one stage works on one micro-batch at a time, without a pipeline.
    pub one_by_one: bool,
}

/// The time of weight updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightUpdateTiming {
    Never,
    /// Once, after all slots of an iteration.
    PerIteration,
    /// After each backward pass of each stage, with stale weights.
    PerMicroBatch,
    /// After the backward pass of each phase, while its weights are on the chip.
    PerPhase,
}

/// The time of copies between stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageCopyTiming {
    /// All copies together after each slot.
    EverySlot,
    /// Together after each slot, for the stages that worked in it. Every other slot has the same
    /// copies.
    EveryOtherSlot,
    /// The copies of a stage after its pass.
    AfterEachPass,
    /// The copies of `stages` stages, which work at once, after all of their passes.
    AfterEachStep { stages: usize },
}

impl StageCopyTiming {
    /// True if stages work on different micro-batches, so that data wait in each of them.
    pub(crate) fn is_pipelined(self) -> bool {
        matches!(self, Self::EverySlot | Self::EveryOtherSlot)
    }
}

impl ExecutionSchedule {
    /// The slots of the phase pass that a slot belongs to, and those of the next one. `None`
    /// without phased execution.
    pub(crate) fn phases_at(&self, slot: usize) -> Option<(Range<usize>, Option<Range<usize>>)> {
        let at = self.phase_slots.partition_point(|slots| slots.end <= slot);
        let this = self.phase_slots.get(at)?;
        Some((this.clone(), self.phase_slots.get(at + 1).cloned()))
    }

    /// The stages whose weights are updated after a slot, because their phase ends with it.
    pub(crate) fn updates_behind(&self, slot: usize) -> Vec<usize> {
        let this = match self.phases_at(slot) {
            Some((this, _)) if self.update == WeightUpdateTiming::PerPhase => this,
            _ => return Vec::new(),
        };
        if this.end != slot + 1 {
            return Vec::new();
        }
        let turns = self.slots[this].iter().flat_map(|slot| &slot.turns);
        turns.filter(|turn| turn.pass == TrainingPass::Backward).map(|turn| turn.stage).collect()
    }

    /// The number of stages that work at once if IPUs share the rows of fields.
    pub(crate) fn parallel_stages(&self) -> Option<usize> {
        match self.copying {
            StageCopyTiming::AfterEachStep { stages } => Some(stages),
            _ => None,
        }
    }

    /// Makes the schedule of a program whose IPUs share the rows of fields. Stages are grouped in
    /// steps, each with one stage for every IPU.
    pub(crate) fn domain_sharded(
        options: &SpecOptions,
        placement: &StagePlacement,
        shards: usize,
        training: bool,
    ) -> Self {
        let micro_batches = options.gradient_accumulation;
        Self {
            iterations: options.device_iterations,
            slots: sharded_slots(placement.together(), micro_batches, training),
            micro_batches,
            update: if training {
                WeightUpdateTiming::PerIteration
            } else {
                WeightUpdateTiming::Never
            },
            copying: StageCopyTiming::AfterEachStep { stages: shards },
            stash_depths: vec![1; placement.stages.len()],
            phased: false,
            phase_slots: Vec::new(),
            one_by_one: true,
        }
    }

    /// Makes the schedule of a program with these stages.
    ///
    /// A pipeline without gradient accumulation continues over all device iterations, as does an
    /// inference pipeline: it fills only once.
    pub(crate) fn new(options: &SpecOptions, placement: &StagePlacement, training: bool) -> Self {
        let stages = placement.stages.len();
        let accumulation = options.gradient_accumulation;
        let iterations = options.device_iterations;
        let pipelined = options.execution == ExecutionStrategy::Pipelined && stages > 1;
        let schedule = options.pipeline_schedule;
        let overlapping = pipelined && schedule != specification::PipelineSchedule::Sequential;
        let continuous = overlapping && (!training || accumulation == 1);
        let (iterations, micro_batches) =
            if continuous { (1, accumulation * iterations) } else { (iterations, accumulation) };
        let form = PipelineTiming::new(stages, schedule, options.stash_convention, training);
        let slots = if pipelined {
            form.slots(micro_batches)
        } else {
            sharded_slots(placement.together(), micro_batches, training)
        };
        let phased = options.execution == ExecutionStrategy::Phased;
        let phase_slots = if phased {
            slots_of_phases(placement.phases(), slots.len(), training)
        } else {
            Vec::new()
        };
        let update = if !training {
            WeightUpdateTiming::Never
        } else if continuous {
            WeightUpdateTiming::PerMicroBatch
        } else if phased && accumulation == 1 {
            WeightUpdateTiming::PerPhase
        } else {
            WeightUpdateTiming::PerIteration
        };
        let copying = match (pipelined, schedule) {
            (true, specification::PipelineSchedule::Grouped) => StageCopyTiming::EverySlot,
            (true, specification::PipelineSchedule::Interleaved) if training => {
                StageCopyTiming::EveryOtherSlot
            }
            (true, specification::PipelineSchedule::Interleaved) => StageCopyTiming::EverySlot,
            _ => StageCopyTiming::AfterEachPass,
        };
        Self {
            iterations,
            slots,
            micro_batches,
            update,
            copying,
            stash_depths: (0..stages)
                .map(|stage| if pipelined { form.stash_depth(stage) } else { 1 })
                .collect(),
            phased,
            phase_slots,
            one_by_one: !pipelined,
        }
    }
}
