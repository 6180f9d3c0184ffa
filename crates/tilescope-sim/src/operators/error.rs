//! Errors for invalid operands, graphs and lowerings: a variant for each kind of failure, with its
//! message.

use super::{ImportProblem, NodeOperands};
use crate::poplin::PlanError;
use crate::popops::reduce::ReduceError;
use crate::shape::{ShapeDisplay, TensorInfo};
use std::ops::Range;
use tilescope_report::units::{Bytes, binary_bytes, grouped};

/// The error of operands that do not fit together, or do not fit their operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("expected {expected} operands, found {found}")]
    OperandCount { expected: usize, found: usize },
    #[error("expected {0} pieces")]
    PieceCount(usize),
    #[error("operands differ: {0} and {1}")]
    OperandsDiffer(TensorInfo, TensorInfo),
    #[error("expected {expected}, found {found}")]
    Operand { expected: &'static str, found: TensorInfo },
    #[error("expected {expected}, found {}", listed(found))]
    Operands { expected: &'static str, found: Vec<TensorInfo> },
    #[error("expected [batch, channels, field..] of {dimensions} dimensions, found {found}")]
    PooledField { dimensions: usize, found: TensorInfo },
    #[error(
        "expected [batch, in, field..] and [out, in / groups, kernel..] of {dimensions} \
         dimensions, found {x} and {w}"
    )]
    ConvOperands { dimensions: usize, x: TensorInfo, w: TensorInfo },
    #[error("{ty} has no axis {axis}")]
    NoAxis { ty: TensorInfo, axis: usize },
    #[error("{0} has no channels")]
    NoChannels(TensorInfo),
    #[error("indices must be integers, not {0}")]
    Indices(TensorInfo),
    #[error("{ty} cannot be split into {parts} equal parts")]
    Parts { ty: TensorInfo, parts: u64 },
    #[error("{size} is not divisible by {parts}")]
    Shards { size: u64, parts: u64 },
    #[error("the channels of {ty} are not divisible into {groups} groups")]
    Groups { groups: u64, ty: TensorInfo },
    #[error("a scalar cannot be split")]
    Scalar,
    #[error("weights {w} do not fit input {x}")]
    Weights { x: TensorInfo, w: TensorInfo },
    #[error("{x} with weights {w}: {problem}")]
    Conv { x: TensorInfo, w: TensorInfo, problem: Box<PlanError> },
    #[error("{0} and {1} cannot be multiplied")]
    Product(TensorInfo, TensorInfo),
    #[error("windows of more than {0} elements are not supported")]
    WindowTooLarge(u64),
    #[error("a window of {} does not fit into {field}", kernel.join("x"))]
    Window { kernel: Vec<String>, field: TensorInfo },
    #[error("{row} is not a row of {field}")]
    Row { row: TensorInfo, field: TensorInfo },
    #[error("{operand} does not fit parameter {parameter}")]
    Parameter { operand: TensorInfo, parameter: TensorInfo },
    #[error("a bias of {bias} does not fit axis {axis} of {ty}")]
    Bias { bias: TensorInfo, axis: usize, ty: TensorInfo },
    #[error("expected {channels} values, found {ty}")]
    ChannelValues { ty: TensorInfo, channels: u64 },
    #[error("the partial sums are missing")]
    NoSums,
    #[error("{operand} cannot be broadcast to {}", ShapeDisplay(shape))]
    Broadcast { operand: TensorInfo, shape: Vec<u64> },
    #[error("{from} cannot be expanded to {to}")]
    Repeat { from: TensorInfo, to: TensorInfo },
    #[error("{from} cannot be reshaped to {to}")]
    Reshape { from: TensorInfo, to: TensorInfo },
    #[error("{permutation:?} is not a permutation of the axes of {ty}")]
    Order { permutation: Vec<usize>, ty: TensorInfo },
    #[error("this padding is not valid for {0}")]
    Padding(TensorInfo),
    #[error("split sizes {sizes:?} do not add up to axis {axis} of {ty}")]
    SplitSizes { sizes: Vec<u64>, axis: usize, ty: TensorInfo },
    #[error("{range:?} is outside axis {axis} of {ty}")]
    Slice { range: Range<u64>, axis: usize, ty: TensorInfo },
    #[error("axis {axis} of {ty} has fewer than {count} elements")]
    TooFewElements { axis: usize, ty: TensorInfo, count: u64 },
    #[error("some indices are outside axis {axis} of {ty}")]
    Taken { axis: usize, ty: TensorInfo },
    #[error("no tensors to concatenate along axis {0}")]
    NothingToJoin(usize),
    #[error("{first} and {part} differ in axes other than {axis}")]
    Join { first: TensorInfo, part: TensorInfo, axis: usize },
    #[error("the result is too large")]
    TooLarge,
    #[error("{} and {} are incompatible with {}", .0[0], .0[1], .0[2])]
    StraightThrough(Box<[TensorInfo; 3]>),
}

/// Formats types as a list in a sentence.
fn listed(types: &[TensorInfo]) -> String {
    let words: Vec<String> = types.iter().map(TensorInfo::to_string).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The error of an operation that a graph cannot have.
#[derive(Debug, thiserror::Error)]
#[error("{node}: {problem}")]
pub struct GraphError {
    /// The name of the node.
    pub node: String,
    pub problem: GraphProblem,
}

impl GraphError {
    pub(crate) fn new(node: impl Into<String>, problem: impl Into<GraphProblem>) -> Self {
        Self { node: node.into(), problem: problem.into() }
    }
}

/// The reason why a graph cannot have an operation.
#[derive(Debug, thiserror::Error)]
pub enum GraphProblem {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("the result has no elements: {0}")]
    Empty(TensorInfo),
    #[error("the result is too large: {0}")]
    TooLarge(TensorInfo),
    #[error(
        "{ty} takes {}, {} times the memory of all IPUs of a replica: reduce model.batch_size or \
         another size of the model",
        binary_bytes(bytes.0), grouped(*times)
    )]
    FarTooLarge { ty: TensorInfo, bytes: Bytes, times: u64 },
    #[error("{size} is not a multiple of model.{part} = {of}")]
    NotMultiple { size: u64, part: String, of: u64 },
    #[error("{size} is more than model.{bound} = {most}")]
    MoreThan { size: u64, bound: String, most: u64 },
    #[error("{indices} does not index axis {axis} of {ty}")]
    IndicesOfAxis { indices: TensorInfo, axis: usize, ty: TensorInfo },
    #[error("{indices} does not index {ty}")]
    Indices { indices: TensorInfo, ty: TensorInfo },
    #[error("{0} does not match the indexed elements")]
    Updates(TensorInfo),
    #[error("expected a matrix, found a scalar")]
    ScalarProduct,
    #[error("equation {0:?} is not supported")]
    Equation(String),
    #[error("no operands to multiply")]
    NoFactor,
    #[error("an axis of the result is in no operand")]
    NoAxisOfResult,
    #[error("the model has no loss, so it cannot be trained")]
    NoLoss,
    #[error("this loss does not depend on any trained weight")]
    NothingTrained,
    #[error("the loss does not depend on this operation")]
    OutsideLoss,
    /// An operator without a gradient. For an operator of a file, the message includes advice.
    #[error("{operator} has no gradient{}", if *of_file { UNTRAINED } else { "" })]
    NoGradient { operator: &'static str, of_file: bool },
    #[error("the layer does not store the tensors that its gradient needs")]
    NothingKept,
    #[error("only its first operand can have a halo")]
    Halo,
    #[error("rows of several IPUs can only be the first operand")]
    JoinedOperand,
    #[error(transparent)]
    Import(#[from] ImportProblem),
}

/// Advice for simulating an imported model that has no gradient.
const UNTRAINED: &str = "; freeze the weights before it with model.frozen, choose an output that \
does not depend on it with model.loss_output, or set model.training = false";

/// The error of an operation that cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {problem}")]
pub struct LoweringError {
    pub operation: String,
    pub problem: LoweringProblem,
}

/// The reason why an operation cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoweringProblem {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    #[error("expected a matrix")]
    NoMatrix,
    #[error("its operands are not matrices")]
    NoMatrices,
    #[error("its rows cannot be concatenated")]
    NotJoined,
}

impl NodeOperands<'_> {
    /// Makes the error of this node for a problem.
    pub(crate) fn error(&self, problem: impl Into<LoweringProblem>) -> LoweringError {
        LoweringError { operation: self.name.to_string(), problem: problem.into() }
    }
}
