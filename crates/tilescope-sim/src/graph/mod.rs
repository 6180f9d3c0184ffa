//! The typed graph of a model: tensors, operations, and the training graph derived from them.

mod builder;
mod dtype;
mod shard;
mod train;

pub use builder::{GraphBuilder, GraphError};
pub use dtype::DType;
pub use train::{Backward, Training};

use crate::ops::Operator;
use std::fmt;
use std::sync::Arc;
use tilescope_report::Pass;

/// Index of a tensor in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// Index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub usize);

/// Index of a block in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub usize);

/// Shape and element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Sizes of the dimensions, outermost first; empty for a scalar.
    pub shape: Vec<u64>,
    pub dtype: DType,
}

impl TensorType {
    /// The type of a tensor with this shape.
    pub fn new(shape: impl Into<Vec<u64>>, dtype: DType) -> Self {
        Self { shape: shape.into(), dtype }
    }

    /// Number of elements: the product of the shape.
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
    Parameter,
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

/// An operation of the graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// Path of names: `layer1/conv`.
    pub name: String,
    pub operator: Arc<dyn Operator>,
    pub inputs: Vec<TensorId>,
    pub outputs: Vec<TensorId>,
    /// Forward, backward or update.
    pub pass: Pass,
    /// Block it belongs to.
    pub block: BlockId,
}

/// A model, or its training graph. Nodes are in an order in which they can run.
#[derive(Clone, Debug)]
pub struct Graph {
    pub tensors: Vec<Tensor>,
    pub nodes: Vec<Node>,
    /// Names of the blocks, in the order of the forward pass.
    pub blocks: Vec<String>,
    /// Tensors sent to the host for each micro-batch.
    pub outputs: Vec<TensorId>,
    /// Losses; their sum is what training makes small.
    pub losses: Vec<TensorId>,
}

impl Graph {
    /// The tensor with this id.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// Types of several tensors.
    pub(crate) fn types(&self, ids: &[TensorId]) -> Vec<TensorType> {
        ids.iter().map(|id| self.tensor(*id).ty.clone()).collect()
    }

    /// Tensors of one role.
    pub(crate) fn with_role(&self, role: Role) -> impl Iterator<Item = TensorId> {
        let all = self.tensors.iter().enumerate();
        all.filter(move |(_, tensor)| tensor.role == role).map(|(i, _)| TensorId(i))
    }

    /// Number of trainable values.
    pub fn parameter_count(&self) -> u64 {
        self.with_role(Role::Parameter).map(|id| self.tensor(id).ty.elements()).sum()
    }

    /// Floating point operations of one node.
    pub fn node_flops(&self, node: &Node) -> u64 {
        node.operator.flops(&self.types(&node.inputs), &self.types(&node.outputs))
    }
}
