//! Tensor parallelism: operators at the edges of a linear layer that is split over IPUs.
//!
//! Each IPU holds some columns of the weights. Its input is the whole activation, whose gradient is
//! the sum of all IPUs' gradients; its output is a part that is gathered (Megatron-LM, arXiv
//! 1909.08053, section 3). What crosses between IPUs is put down by the compiler: it knows the
//! links.

use super::{Operator, Reuse, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::layout::Layout;
use crate::lower::{LowerError, Lowering, work::Work};

/// What happens at an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// An operator at the edge of a layer that is split over so many IPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    edge: Edge,
    parts: u64,
}

impl Shard {
    /// Name of the operator that adds up gradients.
    pub(crate) const SUM: &str = "all_reduce";
    /// Name of the operator that puts parts together.
    pub(crate) const GATHER: &str = "all_gather";

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
            Edge::Sum => Self::SUM,
            Edge::Gather => Self::GATHER,
            Edge::Take => "take_shard",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 1)?;
        let mut ty = inputs[0].clone();
        let last =
            ty.shape.last_mut().ok_or_else(|| ShapeError("a scalar cannot be split".to_owned()))?;
        match self.edge {
            Edge::Enter | Edge::Sum => {}
            Edge::Gather => *last *= self.parts,
            Edge::Take if last.is_multiple_of(self.parts) => *last /= self.parts,
            Edge::Take => {
                return Err(ShapeError(format!(
                    "{last} cannot be split into {} parts",
                    self.parts
                )));
            }
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

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let [from, to] = [node.inputs[0], node.outputs[0]];
        let layout = match self.edge {
            Edge::Enter | Edge::Sum => lowering.layout_or_linear(from),
            Edge::Gather | Edge::Take => {
                let ty = lowering.ty(to);
                Layout::linear(ty.elements(), ty.dtype.bytes(), lowering.tiles)
            }
        };
        lowering.lay_out(to, layout);
        Ok(Work::default())
    }

    fn reuses(&self) -> Reuse {
        match self.edge {
            Edge::Enter | Edge::Sum => Reuse::View(0),
            Edge::Gather | Edge::Take => Reuse::Nothing,
        }
    }
}
