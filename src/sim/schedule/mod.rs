//! When each stage works on which micro-batch: one file per scheme.

mod pipeline;
mod placement;
mod sharded;

pub use pipeline::pipeline_slots;
pub use placement::{PlacedStage, Placement};
pub use sharded::sharded_slots;

use crate::report::Pass;
use crate::sim::spec::{Execution, Options};

/// Part of a pipeline's life a slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The pipeline fills: not all stages have work.
    RampUp,
    /// All stages work.
    Main,
    /// The pipeline empties.
    RampDown,
}

impl Phase {
    /// Words for people.
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
    /// The stage.
    pub stage: usize,
    /// Forward or backward.
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
}

/// When weights are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Never: inference.
    Never,
    /// Once, after all slots of an iteration.
    PerIteration,
    /// By each stage after each of its backward passes: weights are stale.
    PerMicroBatch,
}

impl Schedule {
    /// The schedule of a program with `stages` stages.
    ///
    /// A pipeline that does not accumulate gradients runs on over all device iterations, as does
    /// an inference pipeline: it fills once.
    pub fn new(options: &Options, stages: usize, training: bool) -> Self {
        let (accumulation, iterations) = (options.gradient_accumulation, options.device_iterations);
        let pipelined = options.execution == Execution::Pipelined && stages > 1;
        let continuous = pipelined && (!training || accumulation == 1);
        let (iterations, micro_batches) =
            if continuous { (1, accumulation * iterations) } else { (iterations, accumulation) };
        let slots = if pipelined {
            pipeline_slots(stages, micro_batches, training)
        } else {
            sharded_slots(stages, micro_batches, training)
        };
        let update = match (training, continuous) {
            (false, _) => Update::Never,
            (true, false) => Update::PerIteration,
            (true, true) => Update::PerMicroBatch,
        };
        Self { iterations, slots, micro_batches, update }
    }
}
