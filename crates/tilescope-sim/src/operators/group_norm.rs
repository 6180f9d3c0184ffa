//! Group norm: the channels of a sample in groups, each with mean 0 and deviation 1, then scale
//! and shift per channel.

use super::norm::{self, NormAffineTensors, NormAxes};
use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, expect_operands,
};
use crate::shape::{TensorId, TensorInfo};

/// Group norm of `[batch, channels, height, width]`. Operands: `x`, scale, shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GroupNormOp {
    pub groups: u64,
}

impl GroupNormOp {
    fn norm_axes(self, x: &TensorInfo) -> NormAxes {
        let [batch, channels] = [x.shape[0], x.shape[1]];
        let field = x.shape[2..].iter().product();
        NormAxes {
            shape: vec![batch, self.groups, channels / self.groups, field],
            statistics_axes: vec![2, 3],
            channel_axes: vec![0, 3],
        }
    }
}

impl Operator for GroupNormOp {
    fn kind(&self) -> &'static str {
        "group_norm"
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
        Ok(self.norm_axes(&inputs[0]).outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        norm::FORWARD_FLOPS_PER_ELEMENT * inputs[0].elements()
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let (inputs, outputs) = (&backward.node.inputs, &backward.node.outputs);
        let operands = [inputs[0], inputs[1], outputs[1], outputs[2], backward.gradient()?];
        let gradients = backward.apply_all("grad", GroupNormGradOp(*self), &operands)?;
        Ok(gradients.into_iter().map(Some).collect())
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let affine = NormAffineTensors { scale: node.inputs[1], shift: node.inputs[2] };
        self.norm_axes(lowering.tensor_type(node.inputs[0])).forward(lowering, node, affine)
    }
}

/// Gradients of input, scale and shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GroupNormGradOp(GroupNormOp);

impl Operator for GroupNormGradOp {
    fn kind(&self) -> &'static str {
        "group_norm_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 5)?;
        Ok(vec![inputs[0].clone(), inputs[1].clone(), inputs[1].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        norm::GRADIENT_FLOPS_PER_ELEMENT * inputs[0].elements()
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        self.0.norm_axes(lowering.tensor_type(node.inputs[0])).backward(lowering, node)
    }
}
