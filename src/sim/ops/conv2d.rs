//! Two-dimensional convolutions, and the two convolutions of their gradient.

use super::{Operator, expect_operands};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::{LowerError, Lowering, layout::Layout, work::Work};

/// A convolution of `[batch, in, height, width]` with `[out, in / groups, kernel, kernel]` weights.
/// With as many groups as channels it is depthwise.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    /// Distance of neighbouring outputs.
    pub stride: u64,
    /// Zeros around the input.
    pub padding: u64,
    /// Distance of neighbouring kernel elements.
    pub dilation: u64,
    /// Groups of channels that do not see each other.
    pub groups: u64,
}

impl Default for Conv2d {
    fn default() -> Self {
        Self { stride: 1, padding: 0, dilation: 1, groups: 1 }
    }
}

impl Conv2d {
    fn outputs_along(&self, size: u64, kernel: u64) -> Option<u64> {
        if self.stride == 0 || self.dilation == 0 || kernel == 0 {
            return None;
        }
        let reach = (kernel - 1).checked_mul(self.dilation)?.checked_add(1)?;
        let padded = self.padding.checked_mul(2)?.checked_add(size)?;
        padded.checked_sub(reach).map(|room| room / self.stride + 1)
    }

    /// Multiply-accumulates times two.
    fn layer_flops(&self, x: &TensorType, w: &TensorType) -> u64 {
        let along = |axis: usize| self.outputs_along(x.shape[axis], w.shape[axis]).unwrap_or(0);
        2 * x.shape[0] * along(2) * along(3) * w.elements()
    }
}

impl Operator for Conv2d {
    fn kind(&self) -> &'static str {
        "conv2d"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        let (x, w) = (&inputs[0], &inputs[1]);
        let ([batch, channels, height, width], [out, in_channels, kernel_height, kernel_width]) =
            (&x.shape[..], &w.shape[..])
        else {
            return Err(format!(
                "[batch, in, height, width] and [out, in / groups, kernel, kernel] are expected, \
                 not {x} and {w}"
            ));
        };
        let grouped = self.groups > 0 && in_channels.checked_mul(self.groups) == Some(*channels);
        if !grouped || !out.is_multiple_of(self.groups) || x.dtype != w.dtype {
            return Err(format!("weights {w} do not fit input {x}"));
        }
        match (
            self.outputs_along(*height, *kernel_height),
            self.outputs_along(*width, *kernel_width),
        ) {
            (Some(height), Some(width)) => {
                Ok(vec![TensorType::new([*batch, *out, height, width], x.dtype)])
            }
            _ => Err(format!("a kernel of {w} does not fit into {x}")),
        }
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        self.layer_flops(&inputs[0], &inputs[1])
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let (x, w) = (backward.node.inputs[0], backward.node.inputs[1]);
        let (x_type, w_type) = (backward.input_type(0), backward.input_type(1));
        let mut gradients = vec![None, None];
        // Weights first, as a scheduler that minimises what is alive does (PopART's): `x` may go
        // before its gradient comes.
        if backward.wants(1) {
            let operator = Conv2dWeightGradient { conv: *self, w: w_type };
            gradients[1] = Some(backward.apply("wu", operator, &[x, gradient])?);
        }
        if backward.wants(0) {
            let operator = Conv2dInputGradient { conv: *self, x: x_type.clone() };
            gradients[0] = Some(backward.apply("bwd", operator, &[gradient, w])?);
        }
        Ok(gradients)
    }

    fn is_planned(&self) -> bool {
        true
    }

    fn plan_ahead(&self, lowering: &Lowering, node: &Node) -> Option<Layout> {
        lowering.plan_conv(node, self)
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        lowering.conv_forward(node, self)
    }
}

/// Gradient of the input from the gradient of the output and the weights.
#[derive(Clone, Debug)]
struct Conv2dInputGradient {
    conv: Conv2d,
    x: TensorType,
}

impl Operator for Conv2dInputGradient {
    fn kind(&self) -> &'static str {
        "conv2d_grad_input"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        Ok(vec![self.x.clone()])
    }

    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> u64 {
        self.conv.layer_flops(&outputs[0], &inputs[1])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        lowering.conv_input_gradient(node, &self.conv)
    }
}

/// Gradient of the weights from the input and the gradient of the output.
#[derive(Clone, Debug)]
struct Conv2dWeightGradient {
    conv: Conv2d,
    w: TensorType,
}

impl Operator for Conv2dWeightGradient {
    fn kind(&self) -> &'static str {
        "conv2d_grad_weight"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        Ok(vec![self.w.clone()])
    }

    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> u64 {
        self.conv.layer_flops(&inputs[0], &outputs[0])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        lowering.conv_weight_gradient(node, &self.conv)
    }
}
