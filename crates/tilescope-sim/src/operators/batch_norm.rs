//! Batch norm of a trained model: each channel gets mean 0 and deviation 1 over the batch, then
//! scale and shift.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, SumsOverRows, expect_operands,
};
use super::{distributed_norm, norm};
use crate::popnn::norm::NormKind;
use crate::shape::{TensorId, TensorInfo};

/// Batch norm of `[batch, channels, height, width]`. Operands: `x`, scale, shift, running mean
/// and running variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchNormOp;

impl Operator for BatchNormOp {
    fn kind(&self) -> &'static str {
        norm::forward_kind(NormKind::Batch)
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 5)?;
        let channels = inputs[0].shape.get(1).copied();
        let channels =
            channels.ok_or_else(|| ShapeError(format!("{} has no channels", inputs[0])))?;
        norm::expect_channels(inputs, channels)?;
        Ok(NormKind::Batch.axes(&inputs[0]).outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        norm::FORWARD_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradients = norm::gradients(NormKind::Batch, backward)?;
        Ok(gradients.into_iter().map(Some).chain([None, None]).collect())
    }

    fn sums_over_rows(&self, inputs: &[TensorInfo]) -> Option<SumsOverRows> {
        distributed_norm::over_rows(NormKind::Batch, inputs)
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let mut work = norm::lower_forward(NormKind::Batch, lowering, node)?;
        norm::update_running(lowering, node, &mut work);
        Ok(work.into())
    }
}
