//! Pooling over windows: the largest or the mean of each.

use super::{Operator, expect_operands, expect_same};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::layout::{Layout, Order};
use crate::sim::lower::pool::{self, Axis, Kind, Pass, Pooling};
use crate::sim::lower::{LowerError, Lowering, work::Work};

/// One value for each window of a `[batch, channels, height, width]` tensor.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// What is made of a window.
    pub kind: Kind,
    /// Height and width of a window.
    pub kernel: [u64; 2],
    /// Distance of neighbouring windows.
    pub stride: u64,
    /// Elements around the input that no window counts.
    pub padding: u64,
}

impl Pool {
    /// The largest of each square window.
    pub fn max(kernel: u64, stride: u64, padding: u64) -> Self {
        Self { kind: Kind::Max, kernel: [kernel; 2], stride, padding }
    }

    /// The mean of each square window.
    pub fn average(kernel: u64, stride: u64) -> Self {
        Self { kind: Kind::Average, kernel: [kernel; 2], stride, padding: 0 }
    }

    /// The mean of all `height` x `width` elements of a channel.
    pub fn global_average(height: u64, width: u64) -> Self {
        Self { kind: Kind::Average, kernel: [height, width], stride: 1, padding: 0 }
    }

    /// Height (0) or width (1) of `input`.
    fn axis(&self, input: &TensorType, axis: usize) -> Axis {
        Axis {
            elements: input.shape[2 + axis],
            kernel: self.kernel[axis],
            stride: self.stride,
            before: self.padding,
            behind: self.padding,
        }
    }

    fn window_elements(&self) -> u64 {
        self.kernel[0].saturating_mul(self.kernel[1])
    }

    fn refuse(&self, input: &TensorType) -> String {
        format!("a window of {}x{} does not fit into {input}", self.kernel[0], self.kernel[1])
    }

    /// The phases of one direction; `input` is what the forward pass pools.
    fn lower(
        &self,
        lowering: &mut Lowering,
        node: &Node,
        input: &TensorType,
        backward: bool,
    ) -> Result<Work, LowerError> {
        let operands: Vec<_> =
            node.inputs.iter().map(|tensor| lowering.layout_or_linear(*tensor)).collect();
        let group = |layout: &Layout| match layout.order {
            Order::Grouped { axis: 1, group } => group,
            _ => 1,
        };
        let pooling = Pooling {
            pass: Pass { kind: self.kind, backward },
            dtype: input.dtype,
            batch: input.shape[0],
            channels: input.shape[1],
            axes: [Axis::NONE, self.axis(input, 0), self.axis(input, 1)],
            grouping: operands.last().map_or(1, group),
            forward_grouping: operands.first().map_or(1, group),
        };
        let pooled = pool::lower(lowering, &pooling, &operands).ok_or_else(|| LowerError {
            operation: node.name.clone(),
            problem: self.refuse(input),
        })?;
        lowering.lay_out(node.outputs[0], pooled.1);
        Ok(pooled.0)
    }
}

impl Operator for Pool {
    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Max => "max_pool",
            Kind::Average => "average_pool",
            Kind::Sum => "sum_pool",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let [batch, channels, _, _] = inputs[0].shape[..] else {
            return Err(format!("[batch, channels, height, width] is expected, not {}", inputs[0]));
        };
        let along = |axis| self.axis(&inputs[0], axis).windows();
        match (along(0), along(1)) {
            (Some(height), Some(width)) => {
                Ok(vec![TensorType::new([batch, channels, height, width], inputs[0].dtype)])
            }
            _ => Err(self.refuse(&inputs[0])),
        }
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements() * self.window_elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let (input, output) = (backward.node.inputs[0], backward.node.outputs[0]);
        let operator = PoolGradient { pool: *self, input: backward.input_type(0) };
        // Only a maximum has to know where it came from.
        let operands = match self.kind {
            Kind::Max => vec![input, output, gradient],
            Kind::Average | Kind::Sum => vec![gradient],
        };
        Ok(vec![Some(backward.apply("grad", operator, &operands)?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let input = lowering.ty(node.inputs[0]).clone();
        Pool::lower(self, lowering, node, &input, false)
    }
}

/// Gradient of a pooling: of its input, output and the gradient of the output, or of that alone.
#[derive(Clone, Debug)]
struct PoolGradient {
    pool: Pool,
    input: TensorType,
}

impl Operator for PoolGradient {
    fn kind(&self) -> &'static str {
        match self.pool.kind {
            Kind::Max => "max_pool_grad",
            Kind::Average => "average_pool_grad",
            Kind::Sum => "sum_pool_grad",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        if self.pool.kind == Kind::Max {
            expect_operands(inputs, 3)?;
            expect_same(&inputs[1], &inputs[2])?;
        } else {
            expect_operands(inputs, 1)?;
        }
        Ok(vec![self.input.clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements() * self.pool.window_elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        self.pool.lower(lowering, node, &self.input, true)
    }
}
