//! Batch norm of a trained model: each channel gets mean 0 and deviation 1 over the batch, then
//! scale and shift.

use super::norm::{self, Affine, Norm};
use super::{Operator, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise;
use crate::lower::{LowerError, Lowering, work::Work};

/// Batch norm of `[batch, channels, height, width]`. Operands: `x`, scale, shift, running mean
/// and running variance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchNorm;

fn seen(x: &TensorType) -> Norm {
    let others: Vec<usize> = (0..x.shape.len()).filter(|axis| *axis != 1).collect();
    Norm { shape: x.shape.clone(), statistics: others.clone(), channels: others }
}

impl Operator for BatchNorm {
    fn kind(&self) -> &'static str {
        "batch_norm"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 5)?;
        let channels = inputs[0].shape.get(1).copied();
        let channels =
            channels.ok_or_else(|| ShapeError(format!("{} has no channels", inputs[0])))?;
        norm::expect_channels(inputs, channels)?;
        Ok(seen(&inputs[0]).outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        norm::FLOPS * inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let (inputs, outputs) = (&backward.node.inputs, &backward.node.outputs);
        let operands = [inputs[0], inputs[1], outputs[1], outputs[2], backward.gradient()?];
        let gradients = backward.apply_all("grad", BatchNormGradient, &operands)?;
        Ok(gradients.into_iter().map(Some).chain([None, None]).collect())
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let affine = Affine { scale: node.inputs[1], shift: node.inputs[2] };
        let norm = seen(lowering.ty(node.inputs[0]));
        let mut work = norm.forward_by_channel(lowering, node, affine)?;
        for (running, statistics) in [(3, 1), (4, 2)] {
            let dtype = lowering.ty(node.inputs[running]).dtype;
            let layout = lowering.layout_or_linear(node.outputs[statistics]);
            work.append(lowering.bring(node.inputs[running], &layout, "running"));
            work.push(elementwise::axpby("running/axpby", dtype, &layout.elements));
        }
        Ok(work)
    }
}

/// Gradients of input, scale and shift.
#[derive(Clone, Copy, Debug)]
struct BatchNormGradient;

impl Operator for BatchNormGradient {
    fn kind(&self) -> &'static str {
        "batch_norm_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 5)?;
        Ok(vec![inputs[0].clone(), inputs[1].clone(), inputs[1].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        norm::GRADIENT_FLOPS * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        seen(lowering.ty(node.inputs[0])).backward(lowering, node)
    }
}
