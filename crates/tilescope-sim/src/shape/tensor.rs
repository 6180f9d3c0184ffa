//! Tensors: shape, element type and role in the program.

use super::DType;
use std::fmt;
use tilescope_report::units::Elements;

/// Index of a tensor in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// Index of a block in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub usize);

/// Shape and element type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorInfo {
    /// Sizes of the dimensions, outermost first; empty for a scalar.
    pub shape: Vec<u64>,
    /// Type of one element.
    pub dtype: DType,
}

impl TensorInfo {
    /// Creates a tensor type from its shape and element type.
    pub fn new(shape: impl Into<Vec<u64>>, dtype: DType) -> Self {
        Self { shape: shape.into(), dtype }
    }

    /// Number of elements.
    pub fn elements(&self) -> Elements {
        Elements(self.shape.iter().product())
    }
}

impl fmt::Display for TensorInfo {
    /// Formats as `float32[40,1,28,28]`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.dtype.name(), ShapeDisplay(&self.shape))
    }
}

/// Prints a shape as `[40,1,28,28]`.
pub(crate) struct ShapeDisplay<'a>(pub &'a [u64]);

impl fmt::Display for ShapeDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(u64::to_string).collect();
        write!(f, "[{}]", sizes.join(","))
    }
}

/// Role of a tensor in the program, which determines where it is stored and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorRole {
    /// Streamed from the host for each micro-batch.
    Input,
    /// On the device from the start.
    Resident,
    /// On the device from the start like [`Self::Resident`], but always laid out linearly,
    /// regardless of the layout its readers prefer.
    Mapped,
    /// Weights that training updates.
    Parameter,
    /// State that the optimiser keeps between updates.
    OptimizerState,
    /// Sum of gradients over the micro-batches of a weight update.
    Accumulator,
    /// Result of an operation.
    Activation,
}

impl TensorRole {
    /// Returns true if the tensor keeps its value between micro-batches.
    pub(crate) fn is_persistent(self) -> bool {
        matches!(
            self,
            Self::Resident
                | Self::Mapped
                | Self::Parameter
                | Self::OptimizerState
                | Self::Accumulator
        )
    }
}

/// Tensor of a graph.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Name that is unique in the graph.
    pub name: String,
    /// Shape and element type.
    pub ty: TensorInfo,
    /// Role in the program.
    pub role: TensorRole,
    /// Block whose IPU holds it.
    pub block: BlockId,
}
