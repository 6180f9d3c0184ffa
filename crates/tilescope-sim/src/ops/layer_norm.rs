//! Layer norm: each row of channels gets mean 0 and deviation 1, then scale and shift.

use super::norm::{self, Affine, Norm};
use super::{Operator, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::{LowerError, Lowering, work::Work};

/// Layer norm over the last axis. Operands: `x`, scale, shift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerNorm;

fn seen(x: &TensorType) -> Norm {
    let channels = x.shape.last().copied().unwrap_or(1);
    let rows = x.elements() / channels.max(1);
    Norm { shape: vec![rows, channels], statistics: vec![1], channels: vec![0] }
}

impl Operator for LayerNorm {
    fn kind(&self) -> &'static str {
        "layer_norm"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 3)?;
        let norm = seen(&inputs[0]);
        norm::expect_channels(inputs, norm.channel_count())?;
        Ok(norm.outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        norm::FLOPS * inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let (inputs, outputs) = (&backward.node.inputs, &backward.node.outputs);
        let operands = [inputs[0], inputs[1], outputs[1], outputs[2], backward.gradient()?];
        let gradients = backward.apply_all("grad", LayerNormGradient, &operands)?;
        Ok(gradients.into_iter().map(Some).collect())
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let affine = Affine { scale: node.inputs[1], shift: node.inputs[2] };
        seen(lowering.ty(node.inputs[0])).forward(lowering, node, affine)
    }
}

/// Gradients of input, scale and shift.
#[derive(Clone, Copy, Debug)]
struct LayerNormGradient;

impl Operator for LayerNormGradient {
    fn kind(&self) -> &'static str {
        "layer_norm_grad"
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
