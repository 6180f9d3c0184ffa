//! What annotations of a model say of single operations.

use crate::poplin::planner::OperationPlanning;

/// What is said of one operation, in the place of what the program says of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeOptions {
    /// How it is planned.
    pub planning: OperationPlanning,
    /// Whether the backward pass computes its results again.
    pub recomputation: Option<NodeRecomputation>,
    /// Where its results wait for the backward pass.
    pub output_location: Option<OutputLocation>,
}

/// Whether the backward pass finds a result, or computes it again (popart
/// willow/include/popart/names.hpp, RecomputeType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeRecomputation {
    /// It is kept.
    Checkpoint,
    /// It is computed again.
    Recompute,
}

/// Where a result waits for the backward pass (popart willow/include/popart/tensorlocation.hpp).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputLocation {
    /// In tile memory, not in streaming memory.
    pub on_chip: bool,
    /// Whether the I/O tiles move it.
    pub use_io_tiles: bool,
}

/// What the model says of how one input comes from the host, in the place of what the program says
/// of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputSettings {
    /// Whether the I/O tiles bring it in.
    pub io_tiles: Option<bool>,
    pub exchange: Option<InputExchange>,
}

/// When an input comes (popart willow/include/popart/names.hpp, ExchangeStrategy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputExchange {
    /// When it is needed.
    JustInTime,
    /// Beside the compute of the micro-batch before, within a weight update.
    OverlapInnerLoop,
    /// The same across weight updates.
    OverlapLoops,
    /// The same across host calls.
    OverlapStep,
}

impl InputExchange {
    /// PopART's number of it.
    pub(crate) fn of_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::JustInTime),
            1 => Some(Self::OverlapInnerLoop),
            2 => Some(Self::OverlapLoops),
            3 => Some(Self::OverlapStep),
            _ => None,
        }
    }
}
