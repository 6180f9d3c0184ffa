//! The operators: one file each with shapes, gradient, and what it does on the tiles.

mod accumulate;
mod activation;
mod batch_norm;
mod bias_add;
mod binary;
mod cast;
mod concat;
mod convolution;
mod cross_entropy;
mod dropout;
mod embedding;
mod group_norm;
mod layer_norm;
mod mat_vec;
mod matmul;
mod nll;
mod norm;
mod optimizer;
mod parts;
mod pool;
mod recurrent;
mod reduce;
mod repeat;
mod reshape;
mod scale;
mod shard;
mod slice;
mod softmax;
mod split;
mod stencil;
mod transpose;
mod unary;

pub(crate) use accumulate::Accumulate;
pub(crate) use activation::Activation;
pub(crate) use batch_norm::BatchNorm;
pub(crate) use bias_add::BiasAdd;
pub(crate) use binary::BinaryOp;
pub(crate) use cast::Cast;
pub(crate) use concat::Concat;
pub use convolution::{Convolution, Window};
pub use cross_entropy::CrossEntropy;
pub(crate) use dropout::Dropout;
pub use embedding::{Embedding, MultiUpdateAdd};
pub(crate) use group_norm::GroupNorm;
pub(crate) use layer_norm::LayerNorm;
pub use mat_vec::MatVec;
pub use matmul::{MatMul, Product, Sizes};
pub(crate) use nll::NegativeLogLikelihood;
pub use optimizer::Optimizer;
pub use pool::{Pool, PoolWindow};
pub use recurrent::Recurrent;
pub use reduce::Reduce;
pub(crate) use repeat::Repeat;
pub use reshape::Reshape;
pub(crate) use scale::Scale;
pub(crate) use shard::Shard;
pub(crate) use slice::Slice;
pub(crate) use softmax::Softmax;
pub(crate) use split::Split;
pub use stencil::Stencil;
pub(crate) use transpose::Transpose;
pub(crate) use unary::UnaryOp;

use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::{LowerError, Lowering, layout::Layout, work::Work};
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
        Err(backward.no_gradient())
    }

    /// Whether the planner decides how it is split over the tiles.
    fn is_planned(&self) -> bool {
        false
    }

    /// Has the planner make the plans of [`Operator::lower`], if it is planned. Returns how its
    /// weights, the second operand, will have to lie.
    fn plan_ahead(&self, _: &Lowering, _: &Node) -> Option<Layout> {
        None
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
    Nothing,
    /// All outputs are other views of this input.
    View(usize),
    /// The first output may overwrite this input.
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
