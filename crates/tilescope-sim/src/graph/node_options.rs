//! Options that annotations of a model set for single operations.

use crate::poplin::planner::OperationPlanning;

/// Options of one operation, which override those of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeOptions {
    /// Planning of the operation.
    pub planning: OperationPlanning,
    /// Recomputation of its results in the backward pass.
    pub recomputation: Option<NodeRecomputation>,
    /// Location of its results until the backward pass.
    pub output_location: Option<OutputLocation>,
}

/// Choice between keeping a result for the backward pass and computing it again (popart
/// willow/include/popart/names.hpp, RecomputeType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeRecomputation {
    /// The result is kept.
    Checkpoint,
    /// The result is computed again.
    Recompute,
}

/// Location of a result until the backward pass (popart willow/include/popart/tensorlocation.hpp).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputLocation {
    /// True for tile memory, false for streaming memory.
    pub on_chip: bool,
    /// True if the I/O tiles move it.
    pub use_io_tiles: bool,
}

/// Transfer settings of one input, which override those of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputSettings {
    /// `Some(true)` if the I/O tiles bring the input in.
    pub io_tiles: Option<bool>,
    pub exchange: Option<InputExchange>,
}

/// Time at which an input is transferred (popart willow/include/popart/names.hpp,
/// ExchangeStrategy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputExchange {
    /// At the time it is needed.
    JustInTime,
    /// During the compute of the previous micro-batch, within a weight update.
    OverlapInnerLoop,
    /// As [`Self::OverlapInnerLoop`], and across weight updates.
    OverlapLoops,
    /// As [`Self::OverlapInnerLoop`], and across host calls.
    OverlapStep,
}

impl InputExchange {
    /// Returns the strategy with PopART's number.
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
