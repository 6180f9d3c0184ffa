//! Batch norm of a trained model: each channel gets mean 0 and deviation 1 over the batch, then
//! scale and shift.

use super::norm::{self, NormAffineTensors, NormAxes};
use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, expect_operands,
};
use crate::popops::elementwise;
use crate::shape::{TensorId, TensorInfo};

/// Batch norm of `[batch, channels, height, width]`. Operands: `x`, scale, shift, running mean
/// and running variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchNormOp;

fn norm_axes(x: &TensorInfo) -> NormAxes {
    let others: Vec<usize> = (0..x.shape.len()).filter(|axis| *axis != 1).collect();
    NormAxes { shape: x.shape.clone(), statistics_axes: others.clone(), channel_axes: others }
}

impl Operator for BatchNormOp {
    fn kind(&self) -> &'static str {
        "batch_norm"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 5)?;
        let channels = inputs[0].shape.get(1).copied();
        let channels =
            channels.ok_or_else(|| ShapeError(format!("{} has no channels", inputs[0])))?;
        norm::expect_channels(inputs, channels)?;
        Ok(norm_axes(&inputs[0]).outputs(&inputs[0]))
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
        let gradients = backward.apply_all("grad", BatchNormGradOp, &operands)?;
        Ok(gradients.into_iter().map(Some).chain([None, None]).collect())
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let affine = NormAffineTensors { scale: node.inputs[1], shift: node.inputs[2] };
        let norm = norm_axes(lowering.tensor_type(node.inputs[0]));
        let mut work = norm.forward_by_channel(lowering, node, affine)?;
        for (running, statistics) in [(3, 1), (4, 2)] {
            let dtype = lowering.tensor_type(node.inputs[running]).dtype;
            let layout = lowering.layout_or_linear(node.outputs[statistics]);
            work.append(lowering.relayout_tensor(node.inputs[running], &layout, "running"));
            work.push(elementwise::axpby("running/axpby", dtype, &layout.elements));
        }
        Ok(work.into())
    }
}

/// Gradients of input, scale and shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BatchNormGradOp;

impl Operator for BatchNormGradOp {
    fn kind(&self) -> &'static str {
        "batch_norm_grad"
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
