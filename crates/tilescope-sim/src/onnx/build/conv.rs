//! Convolutions.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{AddBiasOp, ConvDimTransforms, ConvOp, ImportProblem};
use crate::poplin::params::{OperandTransform, OutputTransform};
use crate::shape::{TensorId, TensorInfo};

pub(super) const OPS: &[OpBuilder] =
    &[modelled("Conv", conv), composed("ConvTranspose", conv_transpose)];

/// The windows along one dimension of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub kernel: u64,
    pub stride: u64,
    pub dilation: u64,
    /// Zeros before and after the field.
    pub padding: [u64; 2],
}

impl Window {
    /// The number of elements that the kernel spans.
    fn span(self) -> u64 {
        (self.kernel.max(1) - 1) * self.dilation + 1
    }
}

/// The windows of a node over a field. `kernel` is the kernel of its weights.
pub(super) fn windows(
    node: &NodeImport,
    field: &[u64],
    kernel: &[u64],
) -> Result<Vec<Window>, GraphError> {
    let count = field.len();
    let strides = node.sizes("strides", count, 1)?;
    let dilations = node.sizes("dilations", count, 1)?;
    let pads = node.sizes("pads", 2 * count, 0)?;
    let auto_pad = node.text("auto_pad", "NOTSET")?;
    let mut windows = Vec::new();
    for axis in 0..count {
        let mut window = Window {
            kernel: kernel[axis],
            stride: strides[axis].max(1),
            dilation: dilations[axis].max(1),
            padding: [pads[axis], pads[count + axis]],
        };
        match auto_pad.as_str() {
            "VALID" => window.padding = [0, 0],
            // The number of windows is the field divided by the stride, rounded up. The odd zero
            // goes to one end.
            "SAME_UPPER" | "SAME_LOWER" => {
                let results = field[axis].div_ceil(window.stride);
                let covered = (results.max(1) - 1) * window.stride + window.span();
                let zeros = covered.saturating_sub(field[axis]);
                let less = zeros / 2;
                let upper = auto_pad == "SAME_UPPER";
                window.padding = if upper { [less, zeros - less] } else { [zeros - less, less] };
            }
            _ => {}
        }
        windows.push(window);
    }
    Ok(windows)
}

fn transforms(window: &Window) -> ConvDimTransforms {
    let [padding_lower, padding_upper] = window.padding;
    ConvDimTransforms {
        input: OperandTransform { padding_lower, padding_upper, ..OperandTransform::NONE },
        kernel: OperandTransform { dilation: window.dilation, ..OperandTransform::NONE },
        output: OutputTransform { stride: window.stride, ..OutputTransform::NONE },
    }
}

fn conv(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let w = node.input(1)?;
    let field = node.shape(x);
    let kernel = node.shape(w);
    if field.len() < 3 || kernel.len() != field.len() {
        return Err(node.refuse(ImportProblem::ConvOperands { field, kernel }));
    }
    let windows = windows(node, &field[2..], &kernel[2..])?;
    let groups = node.count("group")?;
    let dim_transforms = windows.iter().map(transforms).collect();
    let conv = ConvOp { groups, dim_transforms, output: None };
    let y = node.apply("", conv, &[x, w])?;
    let y = add_bias(node, y)?;
    node.set(0, y)
}

/// Adds one value per channel if the node has a bias.
fn add_bias(node: &mut NodeImport, y: TensorId) -> Result<TensorId, GraphError> {
    let Some(bias) = node.optional(2)? else { return Ok(y) };
    node.apply("bias", AddBiasOp { axis: 1 }, &[y, bias])
}

/// Builds a transposed convolution as the gradient of a convolution towards its input, as popart
/// lowers it. The field that the convolution would have read is the result.
fn conv_transpose(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let w = node.input(1)?;
    let of_x = node.shape(x);
    let of_w = node.shape(w);
    let dims = node.output_dims(0)?;
    if of_x.len() < 3 || of_w.len() != of_x.len() || dims.len() != of_x.len() {
        return Err(node.refuse(ImportProblem::Operand("[batch, channels, field..]")));
    }
    let mut windows = windows(node, &dims[2..], &of_w[2..])?;
    for (axis, window) in windows.iter_mut().enumerate() {
        // Zeros at the end are the rest of the field. Its size already includes `output_padding`
        // and `output_shape`.
        let covered = (of_x[2 + axis].max(1) - 1) * window.stride + window.span();
        window.padding[1] = (covered).saturating_sub(dims[2 + axis] + window.padding[0]);
    }
    let groups = node.count("group")?;
    let dim_transforms = windows.iter().map(transforms).collect();
    let conv = ConvOp { groups, dim_transforms, output: None };
    let field = TensorInfo::new(dims, node.ty(x).dtype);
    let y = node.apply("", conv.input_gradient(field), &[x, w])?;
    let y = add_bias(node, y)?;
    node.set(0, y)
}
