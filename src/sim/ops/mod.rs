//! The operators: one file each with shapes, gradient, and what it does on the tiles.

mod accumulate;
mod add;
mod bias_add;
mod conv2d;
mod cross_entropy;
mod matmul;
mod max_pool;
mod optimizer;
mod parts;
mod relu;
mod reshape;
mod shard;

pub use accumulate::Accumulate;
pub use add::Add;
pub use bias_add::BiasAdd;
pub use conv2d::Conv2d;
pub use cross_entropy::CrossEntropy;
pub use matmul::{MatMul, Product};
pub use max_pool::MaxPool;
pub use optimizer::Optimizer;
pub use relu::Relu;
pub use reshape::Reshape;
pub use shard::Shard;

use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::{LowerError, Lowering, work::Work};
use std::fmt::Debug;

/// What an operation computes, and how.
pub trait Operator: Debug + Send + Sync {
    /// Name of the operator: `conv2d`.
    fn kind(&self) -> &'static str;

    /// Types of the outputs for these inputs.
    ///
    /// # Errors
    /// Says which operands do not fit together.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String>;

    /// Floating point operations; a multiply-accumulate counts as two.
    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> u64;

    /// Adds the gradient operations; returns the gradient of each input that has one.
    ///
    /// # Errors
    /// Where the operator has no gradient.
    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let problem = format!("{} has no gradient", self.kind());
        Err(GraphError { node: backward.node.name.clone(), problem })
    }

    /// What the tiles do; lays out the outputs, and inputs that nobody has placed yet.
    ///
    /// # Errors
    /// Where no plan exists.
    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError>;

    /// The input whose memory the output takes over: always for views, and for operators that can
    /// work in place where nobody else reads that input.
    fn reuses(&self) -> Reuse {
        Reuse::Nothing
    }
}

/// Whether an output needs memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It does.
    Nothing,
    /// It is another view of this input.
    View(usize),
    /// It may overwrite this input.
    InPlace(usize),
}

/// Checks the number of operands.
fn expect_operands(inputs: &[TensorType], count: usize) -> Result<(), String> {
    if inputs.len() == count {
        Ok(())
    } else {
        Err(format!("{count} operands are expected, not {}", inputs.len()))
    }
}

/// Checks that two types are equal.
fn expect_same(a: &TensorType, b: &TensorType) -> Result<(), String> {
    if a == b { Ok(()) } else { Err(format!("operands differ: {a} and {b}")) }
}
