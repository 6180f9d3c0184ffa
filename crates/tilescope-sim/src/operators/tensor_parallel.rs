//! Tensor parallelism: operators at the edges of a linear layer that is split over IPUs.
//!
//! Each IPU holds some columns of the weights. Its input is the whole activation, whose gradient is
//! the sum of all IPUs' gradients. Its output is a part that is gathered (Megatron-LM, arXiv
//! 1909.08053, section 3). The compiler adds the transfers between IPUs, because it knows the
//! links.

use super::{
    GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, ShapeError, Unwinding, expect_operands,
};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorInfo;

/// The operation at an edge of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TensorParallelEdge {
    /// The whole activation enters the layer.
    Enter,
    /// Gradients of all IPUs are added up.
    AllReduce,
    /// Parts of all IPUs are joined.
    AllGather,
    /// Each IPU takes its part.
    Take,
}

/// The data that cross between the IPUs that a layer is split over, at one of its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardCrossing {
    /// No data cross.
    Nothing,
    /// Gradients cross and are added up.
    AllReduce,
    /// Parts cross and are joined.
    AllGather,
}

/// An operator at the edge of a layer that is split over `parts` IPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TensorParallelOp {
    edge: TensorParallelEdge,
    parts: u64,
}

impl TensorParallelOp {
    /// The edge at which a whole activation enters the layer.
    pub(crate) fn enter(parts: u64) -> Self {
        Self { edge: TensorParallelEdge::Enter, parts }
    }

    /// The edge at which the parts of the result are joined.
    pub(crate) fn gather(parts: u64) -> Self {
        Self { edge: TensorParallelEdge::AllGather, parts }
    }
}

impl Operator for TensorParallelOp {
    fn kind(&self) -> &'static str {
        match self.edge {
            TensorParallelEdge::Enter => "enter_shard",
            TensorParallelEdge::AllReduce => "all_reduce",
            TensorParallelEdge::AllGather => "all_gather",
            TensorParallelEdge::Take => "take_shard",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let mut ty = inputs[0].clone();
        let last = ty.shape.last_mut().ok_or(ShapeError::Scalar)?;
        match self.edge {
            TensorParallelEdge::Enter | TensorParallelEdge::AllReduce => {}
            TensorParallelEdge::AllGather => *last *= self.parts,
            TensorParallelEdge::Take if last.is_multiple_of(self.parts) => *last /= self.parts,
            TensorParallelEdge::Take => {
                return Err(ShapeError::Shards { size: *last, parts: self.parts });
            }
        }
        Ok(vec![ty])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        if self.edge == TensorParallelEdge::AllReduce {
            (self.parts - 1) * inputs[0].elements().0
        } else {
            0
        }
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let edge = match self.edge {
            TensorParallelEdge::Enter if backward.needs_input_gradient(0) => {
                TensorParallelEdge::AllReduce
            }
            TensorParallelEdge::Enter => return Ok(vec![None]),
            TensorParallelEdge::AllGather => TensorParallelEdge::Take,
            TensorParallelEdge::Take => TensorParallelEdge::AllGather,
            TensorParallelEdge::AllReduce => return Ok(vec![Some(gradient)]),
        };
        let operator = Self { edge, parts: self.parts };
        Ok(vec![Some(backward.apply(operator.kind(), operator, &[gradient])?)])
    }

    fn shard_crossing(&self) -> ShardCrossing {
        match self.edge {
            TensorParallelEdge::AllReduce => ShardCrossing::AllReduce,
            TensorParallelEdge::AllGather => ShardCrossing::AllGather,
            TensorParallelEdge::Enter | TensorParallelEdge::Take => ShardCrossing::Nothing,
        }
    }

    fn unwinding(&self, _: &[TensorInfo], _: usize) -> Unwinding {
        if self.edge == TensorParallelEdge::Enter { Unwinding::InOrder } else { Unwinding::DeadEnd }
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let [from, to] = [node.inputs[0], node.outputs[0]];
        let layout = match self.edge {
            TensorParallelEdge::Enter | TensorParallelEdge::AllReduce => {
                lowering.layout_or_linear(from)
            }
            TensorParallelEdge::Take => {
                let shape = &lowering.tensor_type(from).shape;
                let axis = shape.len().saturating_sub(1);
                let part = shape.last().copied().unwrap_or(0) / self.parts;
                lowering.layout_or_linear(from).slice(shape, axis, 0..part)
            }
            TensorParallelEdge::AllGather => {
                let ty = lowering.tensor_type(to);
                TensorLayout::linear(ty.elements(), ty.dtype.bytes(), lowering.tiles)
            }
        };
        lowering.set_layout(to, layout);
        Ok(LoweredOperation::default())
    }

    fn output_alias(&self) -> OutputAlias {
        match self.edge {
            TensorParallelEdge::Enter
            | TensorParallelEdge::AllReduce
            | TensorParallelEdge::Take => OutputAlias::View(0),
            TensorParallelEdge::AllGather => OutputAlias::NoAlias,
        }
    }
}
