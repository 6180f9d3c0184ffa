//! Tensor parallelism: operators at the edges of a linear layer that is split over IPUs.
//!
//! Each IPU holds some columns of the weights. Its input is the whole activation, whose gradient is
//! the sum of all IPUs' gradients; its output is a part that is gathered (Megatron-LM, arXiv
//! 1909.08053, section 3). What crosses between IPUs is put down by the compiler: it knows the
//! links.

use super::{
    Backward, GraphError, LowerError, Lowered, Lowering, NodeOperands, Operator, Reuse,
    expect_operands,
};
use crate::poputil::layout::Layout;
use crate::shape::{TensorId, TensorType};

/// What happens at an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Edge {
    /// The whole activation goes in.
    Enter,
    /// Gradients of all IPUs are added up.
    Sum,
    /// Parts of all IPUs are put together.
    Gather,
    /// An IPU takes its part.
    Take,
}

/// What crosses between the IPUs that a layer is split over, at one of its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardCrossing {
    /// Nothing does.
    Nothing,
    /// Gradients, which are added up.
    Sum,
    /// Parts, which are put together.
    Gather,
}

/// An operator at the edge of a layer that is split over so many IPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shard {
    edge: Edge,
    parts: u64,
}

impl Shard {
    /// Where a whole activation enters the layer.
    pub(crate) fn enter(parts: u64) -> Self {
        Self { edge: Edge::Enter, parts }
    }

    /// Where the parts of its result are put together.
    pub(crate) fn gather(parts: u64) -> Self {
        Self { edge: Edge::Gather, parts }
    }
}

impl Operator for Shard {
    fn kind(&self) -> &'static str {
        match self.edge {
            Edge::Enter => "enter_shard",
            Edge::Sum => "all_reduce",
            Edge::Gather => "all_gather",
            Edge::Take => "take_shard",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let mut ty = inputs[0].clone();
        let last = ty.shape.last_mut().ok_or("a scalar cannot be split")?;
        match self.edge {
            Edge::Enter | Edge::Sum => {}
            Edge::Gather => *last *= self.parts,
            Edge::Take if last.is_multiple_of(self.parts) => *last /= self.parts,
            Edge::Take => return Err(format!("{last} cannot be split into {} parts", self.parts)),
        }
        Ok(vec![ty])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        if self.edge == Edge::Sum { (self.parts - 1) * inputs[0].elements() } else { 0 }
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let edge = match self.edge {
            Edge::Enter if backward.wants(0) => Edge::Sum,
            Edge::Enter => return Ok(vec![None]),
            Edge::Gather => Edge::Take,
            Edge::Take => Edge::Gather,
            Edge::Sum => return Ok(vec![Some(gradient)]),
        };
        let operator = Self { edge, parts: self.parts };
        Ok(vec![Some(backward.apply(operator.kind(), operator, &[gradient])?)])
    }

    fn shard_crossing(&self) -> ShardCrossing {
        match self.edge {
            Edge::Sum => ShardCrossing::Sum,
            Edge::Gather => ShardCrossing::Gather,
            Edge::Enter | Edge::Take => ShardCrossing::Nothing,
        }
    }

    fn lower(&self, lowering: &mut Lowering, node: &NodeOperands) -> Result<Lowered, LowerError> {
        let [from, to] = [node.inputs[0], node.outputs[0]];
        let layout = match self.edge {
            Edge::Enter | Edge::Sum => lowering.layout_or_linear(from),
            Edge::Gather | Edge::Take => {
                let ty = lowering.ty(to);
                Layout::linear(ty.elements(), ty.dtype.bytes(), lowering.tiles)
            }
        };
        lowering.lay_out(to, layout);
        Ok(Lowered::default())
    }

    fn reuses(&self) -> Reuse {
        match self.edge {
            Edge::Enter | Edge::Sum => Reuse::View(0),
            Edge::Gather | Edge::Take => Reuse::Nothing,
        }
    }
}
