//! Tensors: shape, element type, and what they are to the program.

use super::DType;
use std::fmt;

/// Index of a tensor in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// Index of a block in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub usize);

/// Shape and element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Sizes of the dimensions, outermost first; empty for a scalar.
    pub shape: Vec<u64>,
    /// Element type.
    pub dtype: DType,
}

impl TensorType {
    /// A tensor type.
    pub fn new(shape: impl Into<Vec<u64>>, dtype: DType) -> Self {
        Self { shape: shape.into(), dtype }
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

impl fmt::Display for TensorType {
    /// `float32[40,1,28,28]`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.dtype.name(), Shape(&self.shape))
    }
}

/// Prints a shape as `[40,1,28,28]`.
pub(crate) struct Shape<'a>(pub &'a [u64]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(u64::to_string).collect();
        write!(f, "[{}]", sizes.join(","))
    }
}

/// What a tensor is to the program, which decides where it lives and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Streamed from the host for each micro-batch.
    Input,
    /// On the device from the start, laid out linearly by the program.
    Resident,
    /// Weights.
    Parameter,
    /// Optimiser state.
    State,
    /// Sum of gradients over the micro-batches of a weight update.
    Accumulator,
    /// Made by an operation.
    Activation,
}

impl Role {
    /// Whether the tensor keeps its value between micro-batches.
    pub(crate) fn is_persistent(self) -> bool {
        matches!(self, Self::Resident | Self::Parameter | Self::State | Self::Accumulator)
    }
}

/// A tensor of the graph.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Name, unique in the graph.
    pub name: String,
    /// Shape and element type.
    pub ty: TensorType,
    /// What it is to the program.
    pub role: Role,
    /// Block whose IPU holds it.
    pub block: BlockId,
}
