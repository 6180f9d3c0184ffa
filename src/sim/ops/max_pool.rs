//! Max pooling over square windows.

use super::{Operator, expect_operands, expect_same};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::pool::{self, Pooling};
use crate::sim::lower::{LowerError, Lowering, work::Work};

/// The largest value of each window of a `[batch, channels, height, width]` tensor.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool {
    /// Side of a window.
    pub kernel: u64,
    /// Distance of neighbouring windows.
    pub stride: u64,
}

impl MaxPool {
    /// Windows along an axis of `size`.
    fn windows(&self, size: u64) -> Option<u64> {
        if self.stride == 0 || self.kernel == 0 {
            return None;
        }
        size.checked_sub(self.kernel).map(|room| room / self.stride + 1)
    }

    fn pooling(&self, input: &TensorType, backward: bool) -> Pooling {
        Pooling {
            batch: input.shape[0],
            channels: input.shape[1],
            output: [self.windows(input.shape[2]), self.windows(input.shape[3])]
                .map(|size| size.unwrap_or(1)),
            input: [input.shape[2], input.shape[3]],
            kernel: self.kernel,
            stride: self.stride,
            dtype: input.dtype,
            backward,
        }
    }
}

impl Operator for MaxPool {
    fn kind(&self) -> &'static str {
        "max_pool"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let [batch, channels, height, width] = inputs[0].shape[..] else {
            return Err(format!("[batch, channels, height, width] is expected, not {}", inputs[0]));
        };
        match (self.windows(height), self.windows(width)) {
            (Some(height), Some(width)) => {
                Ok(vec![TensorType::new([batch, channels, height, width], inputs[0].dtype)])
            }
            _ => Err(format!("a window of {} does not fit into {}", self.kernel, inputs[0])),
        }
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements() * self.kernel * self.kernel
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let (input, output) = (backward.node.inputs[0], backward.node.outputs[0]);
        let operands = [input, output, gradient];
        Ok(vec![Some(backward.apply("grad", MaxPoolGradient { pool: *self }, &operands)?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let input = lowering.ty(node.inputs[0]).clone();
        let pooling = self.pooling(&input, false);
        let sources = [lowering.layout_or_linear(node.inputs[0]).bytes(input.dtype.bytes())];
        let (work, layout) = pool::lower(lowering, &pooling, &sources);
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}

/// Gradient of max pooling from its input, output and the gradient of the output.
#[derive(Clone, Copy, Debug)]
struct MaxPoolGradient {
    pool: MaxPool,
}

impl Operator for MaxPoolGradient {
    fn kind(&self) -> &'static str {
        "max_pool_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 3)?;
        expect_same(&inputs[1], &inputs[2])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[0].elements() * self.pool.kernel * self.pool.kernel
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let input = lowering.ty(node.inputs[0]).clone();
        let pooling = self.pool.pooling(&input, true);
        let sources: Vec<_> = node
            .inputs
            .iter()
            .map(|tensor| lowering.layout_or_linear(*tensor).bytes(input.dtype.bytes()))
            .collect();
        let (work, layout) = pool::lower(lowering, &pooling, &sources);
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
