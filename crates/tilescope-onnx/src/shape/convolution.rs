//! Convolutions and pooling: windows that slide over images.

use super::{NodeView, ShapeRule, TensorType};
use crate::element::ElementKind;
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "Conv" | "DeformConv" => convolution,
        "ConvTranspose" => conv_transpose,
        "AveragePool" | "LpPool" | "MaxPool" => pool,
        "GlobalAveragePool" | "GlobalLpPool" | "GlobalMaxPool" => global_pool,
        "MaxUnpool" => max_unpool,
        "MaxRoiPool" => max_roi_pool,
        "RoiAlign" => roi_align,
        "Col2Im" => col2im,
        _ => return None,
    })
}

/// The movement of a kernel along one dimension of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelWindow {
    kernel: u64,
    stride: u64,
    dilation: u64,
    /// Sum of the padding before and after.
    padding: i128,
}

/// The source of the padding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AutoPad {
    /// The attribute `pads`.
    Given,
    /// Enough to keep the size, divided by the stride.
    Same,
    /// No padding.
    Valid,
}

/// The largest stride or dilation.
const MAX_STEP: i64 = 1 << 24;

fn auto_pad(view: &NodeView) -> Result<AutoPad, OnnxError> {
    match view.attributes.text("auto_pad")? {
        None | Some("NOTSET" | "") => Ok(AutoPad::Given),
        Some("SAME_UPPER" | "SAME_LOWER") => Ok(AutoPad::Same),
        Some("VALID") => Ok(AutoPad::Valid),
        Some(other) => Err(view.error(format!("auto_pad = {other:?}"))),
    }
}

/// One number for each dimension of the image; 1 if the attribute is absent.
fn steps(view: &NodeView, name: &str, rank: usize) -> Result<Vec<u64>, OnnxError> {
    let Some(steps) = view.attributes.ints(name)? else { return Ok(vec![1; rank]) };
    if steps.len() != rank {
        return Err(view.error(format!("{} {name} for {rank} dimensions", steps.len())));
    }
    steps
        .iter()
        .map(|step| {
            let in_range = (1..=MAX_STEP).contains(step);
            let step = u64::try_from(*step).ok().filter(|_| in_range);
            step.ok_or_else(|| view.error(format!("{name} = {steps:?}")))
        })
        .collect()
}

/// Windows of all dimensions of an image; `kernel` is that of the weights, if there are any.
fn windows(
    view: &NodeView,
    rank: usize,
    kernel: Option<&[u64]>,
) -> Result<Vec<KernelWindow>, OnnxError> {
    let own = match (view.attributes.ints("kernel_shape")?, kernel) {
        (Some(_), _) => steps(view, "kernel_shape", rank)?,
        (None, Some(kernel)) => kernel.to_vec(),
        (None, None) => return Err(view.error("its kernel_shape is missing")),
    };
    if let Some(kernel) = kernel.filter(|kernel| **kernel != *own) {
        return Err(view.error(format!("kernel_shape = {own:?}, but its weights have {kernel:?}")));
    }
    let strides = steps(view, "strides", rank)?;
    let dilations = steps(view, "dilations", rank)?;
    let pads = match view.attributes.ints("pads")? {
        Some(pads) if pads.len() == 2 * rank => pads.to_vec(),
        Some(pads) => return Err(view.error(format!("{} pads for {rank} dimensions", pads.len()))),
        None => vec![0; 2 * rank],
    };
    let is_given = auto_pad(view)? == AutoPad::Given;
    Ok((0..rank)
        .map(|at| KernelWindow {
            kernel: own[at],
            stride: strides[at],
            dilation: dilations[at],
            padding: if is_given { i128::from(pads[at]) + i128::from(pads[at + rank]) } else { 0 },
        })
        .collect())
}

impl KernelWindow {
    /// Number of elements that the kernel spans.
    fn span(&self) -> i128 {
        i128::from(self.dilation) * (i128::from(self.kernel) - 1) + 1
    }

    /// Positions of the kernel in `size` elements. `ceil` also counts a last one that is cut, if it
    /// begins before the padding at the end.
    fn positions(&self, size: u64, pad: AutoPad, ceil: Option<i64>) -> i128 {
        let size = i128::from(size);
        let stride = i128::from(self.stride);
        if pad == AutoPad::Same {
            return (size + stride - 1).div_euclid(stride);
        }
        let room = size + self.padding - self.span();
        let Some(pad_before) = ceil else { return room.div_euclid(stride) + 1 };
        let positions = (room + stride - 1).div_euclid(stride) + 1;
        let is_past_end = (positions - 1) * stride >= size + i128::from(pad_before);
        if is_past_end { positions - 1 } else { positions }
    }
}

/// Batch, channels and the image's dimensions of an operand.
fn image<'a>(view: &NodeView, dims: &'a [u64]) -> Result<(u64, u64, &'a [u64]), OnnxError> {
    match dims {
        [batch, channels, image @ ..] if !image.is_empty() => Ok((*batch, *channels, image)),
        other => Err(view.error(format!(
            "{other:?} is not the shape of images; expected [batch, channels, sizes..]"
        ))),
    }
}

fn convolution(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let element = view.input(0)?.element;
    let (batch, channels, sizes) = image(view, &view.input(0)?.dims)?;
    let (outputs, group_channels, kernel) = image(view, &view.input(1)?.dims)?;
    let groups = view.size(view.int_or("group", 1)?.into())?;
    if groups == 0 || group_channels.saturating_mul(groups) != channels || outputs % groups != 0 {
        let problem = format!(
            "{channels} channels for {outputs} filters of {group_channels} in {groups} groups"
        );
        return Err(view.error(problem));
    }
    if kernel.len() != sizes.len() {
        return Err(view.error(format!("a kernel of {kernel:?} for images of {sizes:?}")));
    }
    let windows = windows(view, sizes.len(), Some(kernel))?;
    let pad = auto_pad(view)?;
    let mut dims = vec![batch, outputs];
    for (window, size) in windows.iter().zip(sizes) {
        dims.push(view.size(window.positions(*size, pad, None))?);
    }
    Ok(vec![TensorType { element, dims }])
}

fn conv_transpose(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let (batch, channels, sizes) = image(view, &data.dims)?;
    let (inputs, group_outputs, kernel) = image(view, &view.input(1)?.dims)?;
    let groups = view.size(view.int_or("group", 1)?.into())?;
    if inputs != channels || kernel.len() != sizes.len() {
        let problem = format!("filters of {inputs} channels for images of {channels}");
        return Err(view.error(problem));
    }
    let rank = sizes.len();
    let windows = windows(view, rank, Some(kernel))?;
    let pad = auto_pad(view)?;
    let extra = view.attributes.ints("output_padding")?;
    let given = view.attributes.ints("output_shape")?;
    let mut dims = vec![batch, group_outputs.saturating_mul(groups)];
    for (at, (window, size)) in windows.iter().zip(sizes).enumerate() {
        // The output may be given completely, or for the image's dimensions only.
        let given = given.and_then(|given| given.get(given.len().checked_sub(rank)? + at));
        let extra = extra.and_then(|extra| extra.get(at)).copied().unwrap_or(0);
        let stride = i128::from(window.stride);
        dims.push(view.size(match (given, pad) {
            (Some(given), _) => (*given).into(),
            (None, AutoPad::Same) => i128::from(*size) * stride,
            (None, _) => {
                stride * (i128::from(*size) - 1) + i128::from(extra) + window.span()
                    - window.padding
            }
        })?);
    }
    Ok(vec![TensorType { element: data.element, dims }])
}

fn pool(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let (batch, channels, sizes) = image(view, &data.dims)?;
    let windows = windows(view, sizes.len(), None)?;
    let pad = auto_pad(view)?;
    let rounds_up = view.int_or("ceil_mode", 0)? != 0;
    let pads = view.attributes.ints("pads")?.unwrap_or_default();
    let mut dims = vec![batch, channels];
    for (at, (window, size)) in windows.iter().zip(sizes).enumerate() {
        let before = pads.get(at).copied().unwrap_or(0);
        let ceil = if rounds_up { Some(before) } else { None };
        dims.push(view.size(window.positions(*size, pad, ceil))?);
    }
    let output = TensorType { element: data.element, dims };
    let indices = TensorType { element: ElementKind::Int64, ..output.clone() };
    Ok(vec![output, indices])
}

fn global_pool(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let (batch, channels, sizes) = image(view, &data.dims)?;
    let dims = [batch, channels].into_iter().chain(sizes.iter().map(|_| 1)).collect();
    Ok(vec![TensorType { element: data.element, dims }])
}

fn max_unpool(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let (batch, channels, sizes) = image(view, &data.dims)?;
    let dims = match view.known_ints(2)? {
        Some(shape) => {
            shape.iter().map(|size| view.size((*size).into())).collect::<Result<_, _>>()?
        }
        None => {
            let mut dims = vec![batch, channels];
            for (window, size) in windows(view, sizes.len(), None)?.iter().zip(sizes) {
                let end = i128::from(window.stride) * (i128::from(*size) - 1) + window.span();
                dims.push(view.size(end - window.padding)?);
            }
            dims
        }
    };
    Ok(vec![TensorType { element: data.element, dims }])
}

fn max_roi_pool(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let (_, channels, _) = image(view, &data.dims)?;
    let regions = view.input(1)?.dims.first().copied().unwrap_or(0);
    let shape = view.attributes.ints("pooled_shape")?.unwrap_or_default();
    let mut dims = vec![regions, channels];
    for size in shape {
        dims.push(view.size((*size).into())?);
    }
    Ok(vec![TensorType { element: data.element, dims }])
}

fn roi_align(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let (_, channels, _) = image(view, &data.dims)?;
    let regions = view.input(1)?.dims.first().copied().unwrap_or(0);
    let height = view.size(view.int_or("output_height", 1)?.into())?;
    let width = view.size(view.int_or("output_width", 1)?.into())?;
    Ok(vec![TensorType { element: data.element, dims: vec![regions, channels, height, width] }])
}

fn col2im(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let to_error = || view.error("sizes of image and block are missing");
    let sizes = view.known_ints(1)?.ok_or_else(to_error)?;
    let block = view.known_ints(2)?.ok_or_else(to_error)?;
    let block = block.iter().fold(1_i64, |product, size| product.saturating_mul(*size));
    let [batch, columns, _] = data.dims.as_slice() else {
        return Err(view.error(format!("{:?} is not a shape of image columns", data.dims)));
    };
    let block = u64::try_from(block).ok().filter(|block| *block > 0).ok_or_else(to_error)?;
    let mut dims = vec![*batch, columns / block];
    for size in sizes {
        dims.push(view.size(size.into())?);
    }
    Ok(vec![TensorType { element: data.element, dims }])
}
