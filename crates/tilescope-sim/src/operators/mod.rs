//! The operators, one file each, with their shapes, gradient and work on the tiles.

mod accumulate;
mod activation;
mod arg_extrema;
mod bias_add;
mod binary;
mod broadcast;
mod cast;
mod clamp;
pub mod composed;
mod concat;
mod constant_value;
mod context;
mod convolution;
mod cross_entropy;
mod distributed_norm;
mod dropout;
mod embedding;
mod error;
mod gradient;
mod import_problem;
mod key;
pub(crate) mod linear_index;
mod mat_vec;
mod matmul;
mod nll;
mod norm;
mod norm_passes;
mod one_hot;
mod optimizer;
mod pad;
mod planned_cost;
mod planned_products;
mod pointwise;
mod pool;
mod random;
mod reduce;
mod repeat;
mod repeat_parts;
mod reshape;
mod rnn;
mod rows;
mod scalar;
mod scale;
mod scatter;
mod select;
mod serialized_matmul;
mod slice;
mod softmax;
mod split;
mod stencil;
mod straight_through;
mod take;
mod tensor_parallel;
#[cfg(test)]
mod tests;
mod top_k;
mod transpose;
mod unary;
mod unknown;
mod unwinding;

pub use crate::poplin::matmul::MatMulPhase;
pub(crate) use accumulate::AccumulateOp;
pub use activation::ActivationOp;
pub use arg_extrema::ArgExtremaOp;
pub use bias_add::AddBiasOp;
pub use binary::BinaryOp;
pub(crate) use cast::CastOp;
pub use clamp::ClampOp;
pub(crate) use concat::ConcatOp;
pub(crate) use constant_value::ConstantValue;
pub use context::{LoweredOperation, LoweringContext, NodeOperands, ReplicaSum};
pub use convolution::{ConvDimTransforms, ConvOp};
pub use cross_entropy::CrossEntropyOp;
pub(crate) use dropout::DropoutOp;
pub use embedding::{EmbeddingGoal, EmbeddingOp, MultiUpdateAddOp};
pub use error::{GraphError, GraphProblem, LoweringError, LoweringProblem, ShapeError};
pub use gradient::{GradientBuilder, OperationSink};
pub use import_problem::ImportProblem;
pub use key::OperatorIdentity;
pub(crate) use key::OperatorKey;
pub use mat_vec::MatVecOp;
pub use matmul::MatMulOp;
pub(crate) use nll::NllOp;
pub use norm::NormOp;
pub use one_hot::OneHotOp;
pub use optimizer::Optimizer;
pub(crate) use optimizer::UpdateForm;
pub use pad::PadOp;
pub use planned_cost::{PlannedCost, PlannedSizes};
pub use pointwise::Pointwise;
pub use pool::{PoolOp, PoolWindow};
pub use random::{RandomDistribution, RandomOp};
pub use reduce::ReduceOp;
pub(crate) use repeat::RepeatOp;
pub use repeat_parts::RepeatPartOp;
pub use reshape::ReshapeOp;
pub use rnn::RnnOp;
pub use rows::{FieldEdges, RowWindow};
pub(crate) use rows::{GatherRowsOp, HaloRowsOp, JoinedRowsOp};
pub use scalar::ScalarOp;
pub(crate) use scale::ScaleOp;
pub use scatter::{ScatterOp, ScatterUpdate};
pub use select::SelectOp;
pub(crate) use slice::SliceOp;
pub use softmax::SoftmaxOp;
pub(crate) use split::SplitOp;
pub use stencil::StencilOp;
pub(crate) use straight_through::StraightThroughOp;
pub use take::TakeOp;
pub use tensor_parallel::ShardCrossing;
pub(crate) use tensor_parallel::TensorParallelOp;
#[cfg(test)]
pub(crate) use tests::check_lowering;
pub use top_k::TopKOp;
pub use transpose::TransposeOp;
pub(crate) use unary::UnaryOp;
pub(crate) use unknown::UnknownOp;
pub use unwinding::Unwinding;

use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{TensorId, TensorInfo};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// The gradient of each input that has one, or the reason why there is none.
pub type GradientResult = Result<Vec<Option<TensorId>>, GraphError>;

/// The work that an operation lowers to, or the reason why it cannot be lowered.
pub type LoweringResult = Result<LoweredOperation, LoweringError>;

/// An operation of a graph: the function that it computes, and its work on the tiles.
pub trait Operator: Debug + OperatorIdentity + Send + Sync {
    /// The name of the operator, such as `conv2d`.
    fn kind(&self) -> &'static str;

    /// Returns the types of the outputs for these inputs.
    ///
    /// # Errors
    /// Returns an error if operands do not fit together.
    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError>;

    /// Floating point operations. A multiply-accumulate counts as two. Zero for an operator that
    /// only moves elements.
    fn flops(&self, _: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        0
    }

    /// Adds the gradient operations. Returns the gradient of each input that has one.
    ///
    /// # Errors
    /// Returns an error if the operator has no gradient.
    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        Err(backward.no_gradient_error(self.kind()))
    }

    /// True if it is a loss, whose gradient needs no gradient of its result. Without a loss, the
    /// backward pass begins with a constant.
    fn is_loss(&self) -> bool {
        false
    }

    /// True if it is the forward product of a linear layer, whose second operand holds the weights.
    fn is_linear_layer(&self) -> bool {
        false
    }

    /// The data that cross between the IPUs that a layer is split over.
    fn shard_crossing(&self) -> ShardCrossing {
        ShardCrossing::Nothing
    }

    /// The rows of its operands that determine a row of its result. `None` if it needs all rows.
    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        None
    }

    /// The operator on a part of a field, if it differs from that on the whole.
    fn on_rows(&self, _: FieldEdges) -> Option<Arc<dyn Operator>> {
        None
    }

    /// The operator that takes the rows of an operand that other IPUs need.
    fn halo_rows(&self, axis: usize, rows: Range<u64>) -> Arc<dyn Operator> {
        Arc::new(HaloRowsOp { rows: SliceOp { axis, range: rows } })
    }

    /// True if it reads rows of other IPUs as separate operands after its own rows. Otherwise it
    /// reads all rows as if they were one tensor.
    fn takes_halo_apart(&self) -> bool {
        false
    }

    /// The operators on parts of a field that several IPUs hold, if its results follow from each
    /// part and from sums over all parts.
    fn sums_over_rows(&self, _: &[TensorInfo]) -> Option<SumsOverRows> {
        None
    }

    /// The operator that adds the gradient of its result to that of other readers of its operand,
    /// if that is less work than making a gradient with the operand's size and adding the two.
    fn gradient_addition(&self) -> Option<Arc<dyn Operator>> {
        None
    }

    /// True if the planner decides how it is split over the tiles.
    fn is_planned(&self) -> bool {
        false
    }

    /// The layouts in which it creates its operands, in order. `None` for operands that may have
    /// any layout. A planned operator makes the plans of [`Operator::lower`] here.
    fn create_operands(&self, _: &LoweringContext, _: &NodeOperands) -> Vec<Option<TensorLayout>> {
        Vec::new()
    }

    /// True if other readers of its operands create them before it does.
    fn creates_last(&self) -> bool {
        false
    }

    /// True if the readers of its result create it, like a tensor that no operation makes.
    fn readers_create_result(&self) -> bool {
        false
    }

    /// The position of the elements of operand `input` in the first result.
    fn unwinding(&self, _: &[TensorInfo], _input: usize) -> Unwinding {
        Unwinding::DeadEnd
    }

    /// The costs that the planner expects of its plans for these sizes, if it is planned and a plan
    /// exists.
    fn planned_cost(
        &self,
        _: &LoweringContext,
        _: &NodeOperands,
        _: PlannedSizes,
    ) -> Option<PlannedCost> {
        None
    }

    /// The number of parts of a linear layer that are computed one after the other.
    fn serial_parts(&self, _: &LoweringContext, _: &NodeOperands) -> u64 {
        1
    }

    /// Returns the work of the tiles, the plan, and the times at which operands and results exist.
    /// Sets the layouts of the outputs, and of inputs without a layout.
    ///
    /// # Errors
    /// Returns an error if no plan exists.
    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult;

    /// The operand that the result is a copy of. Nothing is left to do if both share memory.
    fn copied_operand(&self) -> Option<usize> {
        None
    }

    /// The operand that the operator writes and does not read.
    fn overwritten_operand(&self) -> Option<usize> {
        None
    }

    /// The operator whose result is a view of all operands, if there is one.
    fn view_of_parts(&self) -> Option<Arc<dyn Operator>> {
        None
    }

    /// The input whose memory the output uses: always for views, and for operators that can work in
    /// place if nothing else reads that input.
    fn output_alias(&self) -> OutputAlias {
        OutputAlias::NoAlias
    }
}

/// The memory of the outputs of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputAlias {
    /// The outputs have separate memory.
    NoAlias,
    /// All outputs are views of this input.
    View(usize),
    /// The output is a view of this input if both have the same layout. Nothing writes to it.
    ViewIfAlike(usize),
    /// The output is a view of all inputs.
    ViewOfAll,
    /// One of the outputs is a view of a part of an input. The others have separate memory.
    PartView { input: usize, output: usize },
    /// The first output may overwrite this input.
    InPlace(usize),
    /// The first output may overwrite the input with the same layout.
    InPlaceOfAny,
}

impl OutputAlias {
    /// The inputs of a node that outputs can share memory with, those outputs, and a flag. The flag
    /// is true if they always share it, as views do. Results in place share it only if nothing else
    /// reads that input.
    pub(crate) fn shared_memory<'a>(
        self,
        node: &NodeOperands<'a>,
    ) -> Option<(&'a [TensorId], &'a [TensorId], bool)> {
        let inputs = node.inputs;
        let outputs = node.outputs;
        match self {
            Self::NoAlias => None,
            Self::View(input) => Some((&inputs[input..=input], outputs, true)),
            Self::ViewOfAll => Some((inputs, outputs, true)),
            Self::PartView { input, output } => {
                Some((&inputs[input..=input], &outputs[output..=output], true))
            }
            Self::InPlace(input) | Self::ViewIfAlike(input) => {
                Some((&inputs[input..=input], &outputs[..1], false))
            }
            Self::InPlaceOfAny => Some((inputs, &outputs[..1], false)),
        }
    }
}

/// An operator on the parts of a field, in two steps between which IPUs exchange their sums.
#[derive(Clone, Debug)]
pub struct SumsOverRows {
    /// The operator that makes the sums of a part of the first operand.
    pub sums: Arc<dyn Operator>,
    /// The operator that makes the results of a part, from its operands followed by the sums of all
    /// parts.
    pub results: Arc<dyn Operator>,
    /// The row axis of the first operand and the first result.
    pub axis: usize,
}

/// Checks the number of operands.
fn expect_operands(inputs: &[TensorInfo], count: usize) -> Result<(), ShapeError> {
    if inputs.len() == count {
        Ok(())
    } else {
        Err(ShapeError::OperandCount { expected: count, found: inputs.len() })
    }
}

/// Checks that two types are equal.
fn expect_same(a: &TensorInfo, b: &TensorInfo) -> Result<(), ShapeError> {
    if a == b { Ok(()) } else { Err(ShapeError::OperandsDiffer(a.clone(), b.clone())) }
}
