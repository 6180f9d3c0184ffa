//! When each stage works on which micro-batch: one file per scheme.

mod balance;
mod pipeline;
mod placement;
mod sharded;
mod sync;

pub(crate) use balance::balanced;
pub(crate) use pipeline::PipelineForm;
pub(crate) use placement::Placement;
pub(crate) use sharded::sharded_slots;
pub(crate) use sync::SyncGroups;

use crate::spec::{self, Execution, Options};
use tilescope_report::Pass;

/// Part of a pipeline's life a slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The pipeline fills: not all stages have work.
    RampUp,
    Main,
    RampDown,
}

impl Phase {
    /// The name as users read it.
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
pub struct Turn {
    pub stage: usize,
    pub pass: Pass,
    /// Micro-batch of the iteration.
    pub micro_batch: u64,
}

/// What happens between two exchanges of activations: each IPU takes its turns in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Ramp-up, main or ramp-down.
    pub phase: Phase,
    /// Turns in program order: forward before backward on one IPU.
    pub turns: Vec<Turn>,
    /// Whether activations move to other IPUs afterwards.
    pub copies: bool,
}

/// When everything happens in one host call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Times the slots are run through.
    pub iterations: u64,
    /// Slots of one iteration.
    pub slots: Vec<Slot>,
    /// Micro-batches of one iteration.
    pub micro_batches: u64,
    /// When weights are updated.
    pub update: Update,
    /// When copies between stages are made.
    pub copying: Copying,
    /// Micro-batches each stage keeps for its backward pass.
    pub stash_depths: Vec<u64>,
    /// Whether weights come from streaming memory, those of the next stage while this one works.
    pub phased: bool,
}

/// When weights are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    Never,
    /// Once, after all slots of an iteration.
    PerIteration,
    /// By each stage after each of its backward passes: weights are stale.
    PerMicroBatch,
}

/// When copies between stages are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// All together after each slot.
    EverySlot,
    /// Together after each slot, those of the stages that worked in it; every other slot is alike.
    EveryOtherSlot,
    /// Those of a stage after its pass.
    AfterEachPass,
}

impl Schedule {
    /// The schedule of a program with `stages` stages.
    ///
    /// A pipeline that does not accumulate gradients runs on over all device iterations, as does
    /// an inference pipeline: it fills once.
    pub(crate) fn new(options: &Options, stages: usize, training: bool) -> Self {
        let (accumulation, iterations) = (options.gradient_accumulation, options.device_iterations);
        let pipelined = options.execution == Execution::Pipelined && stages > 1;
        let schedule = options.pipeline_schedule;
        let overlapping = pipelined && schedule != spec::Schedule::Sequential;
        let continuous = overlapping && (!training || accumulation == 1);
        let (iterations, micro_batches) =
            if continuous { (1, accumulation * iterations) } else { (iterations, accumulation) };
        let form = PipelineForm::new(stages, schedule, options.stash_convention, training);
        let slots = if pipelined {
            form.slots(micro_batches)
        } else {
            sharded_slots(stages, micro_batches, training)
        };
        let update = match (training, continuous) {
            (false, _) => Update::Never,
            (true, false) => Update::PerIteration,
            (true, true) => Update::PerMicroBatch,
        };
        let copying = match (pipelined, schedule) {
            (true, spec::Schedule::Grouped) => Copying::EverySlot,
            (true, spec::Schedule::Interleaved) if training => Copying::EveryOtherSlot,
            (true, spec::Schedule::Interleaved) => Copying::EverySlot,
            _ => Copying::AfterEachPass,
        };
        let depth = |stage| if pipelined { form.stash_depth(stage) } else { 1 };
        Self {
            iterations,
            slots,
            micro_batches,
            update,
            copying,
            stash_depths: (0..stages).map(depth).collect(),
            phased: options.execution == Execution::Phased,
        }
    }
}
