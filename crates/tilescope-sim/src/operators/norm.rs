//! Layer, group and batch norm: values get mean 0 and deviation 1, then a scale and a shift per
//! channel.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError, SumsOverRows, distributed_norm, expect_operands, norm_passes,
};
use crate::popnn::norm::NormKind;
use crate::shape::TensorInfo;

/// The norm of the rows that share statistics. Operands: `x`, scale and shift, and for batch norm
/// the running mean and the running variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NormOp(NormKind);

impl NormOp {
    /// The batch norm of a trained model. `x` is `[batch, channels, height, width]`.
    pub(crate) const BATCH: Self = Self(NormKind::Batch);
    /// The layer norm over the last axis.
    pub const LAYER: Self = Self(NormKind::Layer);

    /// Makes a group norm of `[batch, channels, height, width]`: the channels of a sample in
    /// groups.
    pub(crate) fn of_groups(groups: u64) -> Self {
        Self(NormKind::Group { groups })
    }
}

impl Operator for NormOp {
    fn kind(&self) -> &'static str {
        norm_passes::forward_kind(self.0)
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, if self.0 == NormKind::Batch { 5 } else { 3 })?;
        let x = &inputs[0];
        let channels = x.shape.get(1).copied().unwrap_or(0);
        match self.0 {
            NormKind::Batch if x.shape.len() < 2 => {
                return Err(ShapeError::NoChannels(x.clone()));
            }
            NormKind::Group { groups }
                if groups == 0 || channels == 0 || !channels.is_multiple_of(groups) =>
            {
                return Err(ShapeError::Groups { groups, ty: x.clone() });
            }
            _ => {}
        }
        let axes = self.0.axes(x);
        let channels = if self.0 == NormKind::Layer { axes.channel_count() } else { channels };
        norm_passes::expect_channels(inputs, channels)?;
        Ok(axes.outputs(x))
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        norm_passes::FORWARD_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let made = norm_passes::gradients(self.0, backward)?;
        let mut all = vec![None; backward.node.inputs.len()];
        for (gradient, made) in all.iter_mut().zip(made) {
            *gradient = Some(made);
        }
        Ok(all)
    }

    fn sums_over_rows(&self, inputs: &[TensorInfo]) -> Option<SumsOverRows> {
        match self.0 {
            NormKind::Layer => None,
            kind => distributed_norm::over_rows(kind, inputs),
        }
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let mut work = norm_passes::lower_forward(self.0, lowering, node)?;
        if self.0 == NormKind::Batch {
            norm_passes::update_running(lowering, node, &mut work);
        }
        Ok(work.into())
    }
}
