//! Group norm: the channels of a sample in groups, each with mean 0 and deviation 1, then scale
//! and shift per channel.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, SumsOverRows, expect_operands,
};
use super::{distributed_norm, norm};
use crate::popnn::norm::NormKind;
use crate::shape::{TensorId, TensorInfo};

/// Group norm of `[batch, channels, height, width]`. Operands: `x`, scale, shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GroupNormOp {
    pub groups: u64,
}

impl Operator for GroupNormOp {
    fn kind(&self) -> &'static str {
        norm::forward_kind(NormKind::Group { groups: self.groups })
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 3)?;
        let channels = inputs[0].shape.get(1).copied().unwrap_or(0);
        if self.groups == 0 || channels == 0 || !channels.is_multiple_of(self.groups) {
            return Err(ShapeError(format!(
                "{} groups do not divide the channels of {}",
                self.groups, inputs[0]
            )));
        }
        norm::expect_channels(inputs, channels)?;
        Ok(NormKind::Group { groups: self.groups }.axes(&inputs[0]).outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        norm::FORWARD_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradients = norm::gradients(NormKind::Group { groups: self.groups }, backward)?;
        Ok(gradients.into_iter().map(Some).collect())
    }

    fn sums_over_rows(&self, inputs: &[TensorInfo]) -> Option<SumsOverRows> {
        distributed_norm::over_rows(NormKind::Group { groups: self.groups }, inputs)
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        norm::lower_forward(NormKind::Group { groups: self.groups }, lowering, node)
            .map(LoweredOperation::from)
    }
}
