//! Layer norm: each row of channels gets mean 0 and deviation 1, then scale and shift.

use super::norm::{self, NormAffineTensors, NormAxes};
use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, expect_operands,
};
use crate::shape::{TensorId, TensorInfo};

/// Layer norm over the last axis. Operands: `x`, scale, shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LayerNormOp;

fn norm_axes(x: &TensorInfo) -> NormAxes {
    let channels = x.shape.last().copied().unwrap_or(1);
    let rows = x.elements() / channels.max(1);
    NormAxes { shape: vec![rows, channels], statistics_axes: vec![1], channel_axes: vec![0] }
}

impl Operator for LayerNormOp {
    fn kind(&self) -> &'static str {
        "layer_norm"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 3)?;
        let norm = norm_axes(&inputs[0]);
        norm::expect_channels(inputs, norm.channel_count())?;
        Ok(norm.outputs(&inputs[0]))
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
        let gradients = backward.apply_all("grad", LayerNormGradOp, &operands)?;
        Ok(gradients.into_iter().map(Some).collect())
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let affine = NormAffineTensors { scale: node.inputs[1], shift: node.inputs[2] };
        norm_axes(lowering.tensor_type(node.inputs[0])).forward(lowering, node, affine)
    }
}

/// Gradients of input, scale and shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LayerNormGradOp;

impl Operator for LayerNormGradOp {
    fn kind(&self) -> &'static str {
        "layer_norm_grad"
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
        norm_axes(lowering.tensor_type(node.inputs[0])).backward(lowering, node)
    }
}
