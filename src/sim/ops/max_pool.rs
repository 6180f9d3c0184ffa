//! Max pooling over square windows.

use super::{Operator, expect_operands, expect_same};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::layout::{Layout, Order};
use crate::sim::lower::pool::{self, Axis, Kind, Pass, Pooling};
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

    fn pooling(&self, input: &TensorType, operands: &[Layout], backward: bool) -> Pooling {
        let group = |layout: &Layout| match layout.order {
            Order::Grouped { axis: 1, group } => group,
            _ => 1,
        };
        let axis = |elements: u64| Axis {
            elements,
            kernel: self.kernel,
            stride: self.stride,
            before: 0,
            behind: 0,
        };
        Pooling {
            pass: Pass { kind: Kind::Max, backward },
            dtype: input.dtype,
            batch: input.shape[0],
            channels: input.shape[1],
            axes: [axis(input.shape[2]), axis(input.shape[3])],
            grouping: operands.last().map_or(1, group),
            forward_grouping: operands.first().map_or(1, group),
        }
    }

    /// The phases of one direction.
    fn lower(
        &self,
        lowering: &mut Lowering,
        node: &Node,
        backward: bool,
    ) -> Result<Work, LowerError> {
        let input = lowering.ty(node.inputs[0]).clone();
        let operands: Vec<_> =
            node.inputs.iter().map(|tensor| lowering.layout_or_linear(*tensor)).collect();
        let pooling = self.pooling(&input, &operands, backward);
        let pooled = pool::lower(lowering, &pooling, &operands).ok_or_else(|| LowerError {
            operation: node.name.clone(),
            problem: format!("a window of {} does not fit into {input}", self.kernel),
        })?;
        lowering.lay_out(node.outputs[0], pooled.1);
        Ok(pooled.0)
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
        MaxPool::lower(self, lowering, node, false)
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
        MaxPool::lower(&self.pool, lowering, node, true)
    }
}
