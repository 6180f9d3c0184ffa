//! Group norm: the channels of a sample in groups, each with mean 0 and deviation 1, then scale
//! and shift per channel.

use super::norm::{self, Affine, Norm};
use super::{Operator, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::{LowerError, Lowering, work::Work};

/// Group norm of `[batch, channels, height, width]`. Operands: `x`, scale, shift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupNorm {
    pub groups: u64,
}

impl GroupNorm {
    fn seen(self, x: &TensorType) -> Norm {
        let [batch, channels] = [x.shape[0], x.shape[1]];
        let field = x.shape[2..].iter().product();
        Norm {
            shape: vec![batch, self.groups, channels / self.groups, field],
            statistics: vec![2, 3],
            channels: vec![0, 3],
        }
    }
}

impl Operator for GroupNorm {
    fn kind(&self) -> &'static str {
        "group_norm"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 3)?;
        let channels = inputs[0].shape.get(1).copied().unwrap_or(0);
        if self.groups == 0 || channels == 0 || !channels.is_multiple_of(self.groups) {
            return Err(format!(
                "{} groups do not divide the channels of {}",
                self.groups, inputs[0]
            ));
        }
        norm::expect_channels(inputs, channels)?;
        Ok(self.seen(&inputs[0]).outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        norm::FLOPS * inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let (inputs, outputs) = (&backward.node.inputs, &backward.node.outputs);
        let operands = [inputs[0], inputs[1], outputs[1], outputs[2], backward.gradient()?];
        let gradients = backward.apply_all("grad", GroupNormGradient(*self), &operands)?;
        Ok(gradients.into_iter().map(Some).collect())
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let affine = Affine { scale: node.inputs[1], shift: node.inputs[2] };
        self.seen(lowering.ty(node.inputs[0])).forward(lowering, node, affine)
    }
}

/// Gradients of input, scale and shift.
#[derive(Clone, Copy, Debug)]
struct GroupNormGradient(GroupNorm);

impl Operator for GroupNormGradient {
    fn kind(&self) -> &'static str {
        "group_norm_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 5)?;
        Ok(vec![inputs[0].clone(), inputs[1].clone(), inputs[1].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        norm::GRADIENT_FLOPS * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        self.0.seen(lowering.ty(node.inputs[0])).backward(lowering, node)
    }
}
