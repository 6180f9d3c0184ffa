//! Layer norm: each row of channels gets mean 0 and deviation 1, then scale and shift.

use super::norm;
use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, expect_operands,
};
use crate::popnn::norm::NormKind;
use crate::shape::{TensorId, TensorInfo};

/// Layer norm over the last axis. Operands: `x`, scale, shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayerNormOp;

impl Operator for LayerNormOp {
    fn kind(&self) -> &'static str {
        norm::forward_kind(NormKind::Layer)
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 3)?;
        let norm = NormKind::Layer.axes(&inputs[0]);
        norm::expect_channels(inputs, norm.channel_count())?;
        Ok(norm.outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        norm::FORWARD_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradients = norm::gradients(NormKind::Layer, backward)?;
        Ok(gradients.into_iter().map(Some).collect())
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        norm::lower_forward(NormKind::Layer, lowering, node).map(LoweredOperation::from)
    }
}
