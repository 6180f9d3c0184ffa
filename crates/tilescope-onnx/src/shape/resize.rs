//! Resizing of images.

use super::{NodeView, ShapeRule, TensorType};
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "Resize" => resize,
        "Upsample" => |view| {
            let scales = match view.opset {
                9.. => view.known_floats(1)?,
                _ => view.attributes.floats("scales")?.map(<[f64]>::to_vec),
            };
            let scales = scales.ok_or_else(|| view.error("its scales are missing"))?;
            let rank = view.input(0)?.dims.len();
            scaled(view, &scales, &(0..rank).collect::<Vec<_>>())
        },
        "GridSample" => grid_sample,
        "AffineGrid" => affine_grid,
        _ => return None,
    })
}

/// Every dimension times its factor, rounded down.
fn scaled(view: &NodeView, scales: &[f64], axes: &[usize]) -> Result<Vec<TensorType>, OnnxError> {
    let mut output = view.like(0)?;
    if scales.len() != axes.len() {
        return Err(view.error(format!("{} scales for {:?}", scales.len(), output.dims)));
    }
    for (scale, axis) in scales.iter().zip(axes) {
        #[expect(clippy::cast_precision_loss, reason = "no dimension has 2^53 elements")]
        let size = (output.dims[*axis] as f64 * scale).floor();
        if !(0.0..1e12).contains(&size) {
            return Err(view.error(format!("its scales are {scales:?}")));
        }
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        let size = size as i128;
        output.dims[*axis] = view.size(size)?;
    }
    Ok(vec![output])
}

fn resize(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    // Version 10 has only scales, as its second operand.
    let (scales, sizes) = if view.opset >= 11 { (2, 3) } else { (1, usize::MAX) };
    let axes = match view.attributes.ints("axes")? {
        Some(axes) => {
            axes.iter().map(|axis| view.axis(*axis, data.dims.len())).collect::<Result<_, _>>()?
        }
        None => (0..data.dims.len()).collect::<Vec<_>>(),
    };
    let is_given = |at: usize| view.optional(at).filter(|value| value.elements() > 0).is_some();
    if is_given(sizes) {
        return resized_to(view, &view.known_ints(sizes)?.unwrap_or_default(), &axes);
    }
    if !is_given(scales) {
        return Err(view.error("neither its scales nor its sizes are given"));
    }
    scaled(view, &view.known_floats(scales)?.unwrap_or_default(), &axes)
}

fn resized_to(
    view: &NodeView,
    sizes: &[i64],
    axes: &[usize],
) -> Result<Vec<TensorType>, OnnxError> {
    let mut output = view.like(0)?;
    if sizes.len() != axes.len() {
        return Err(view.error(format!("{} sizes for {:?}", sizes.len(), output.dims)));
    }
    #[expect(clippy::cast_precision_loss, reason = "no dimension has 2^53 elements")]
    let ratios =
        sizes.iter().zip(axes).map(|(size, axis)| *size as f64 / output.dims[*axis] as f64);
    // Version 18: one factor for all axes, the smallest or the largest that the sizes need.
    let one = match view.attributes.text("keep_aspect_ratio_policy")? {
        Some("not_larger") => Some(ratios.fold(f64::INFINITY, f64::min)),
        Some("not_smaller") => Some(ratios.fold(0.0, f64::max)),
        _ => None,
    };
    for (size, axis) in sizes.iter().zip(axes) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "a float beyond the range becomes its end, which is refused as a size"
        )]
        let wanted = one.map_or(i128::from(*size), |factor| {
            (output.dims[*axis] as f64 * factor).round() as i128
        });
        output.dims[*axis] = view.size(wanted)?;
    }
    Ok(vec![output])
}

fn grid_sample(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let grid = view.input(1)?;
    let (Some(image), Some((_, places))) = (data.dims.get(..2), grid.dims.split_last()) else {
        return Err(view.error(format!("a grid of {:?} for {:?}", grid.dims, data.dims)));
    };
    let dims = [image, places.get(1..).unwrap_or_default()].concat();
    Ok(vec![TensorType { element: data.element, dims }])
}

fn affine_grid(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let to_error = || view.error("its size is missing");
    let size = view.known_ints(1)?.ok_or_else(to_error)?;
    let mut dims: Vec<u64> =
        size.iter().map(|size| view.size((*size).into())).collect::<Result<_, _>>()?;
    if dims.len() < 3 {
        return Err(to_error());
    }
    dims.remove(1);
    dims.push(dims.len() as u64 - 1);
    Ok(vec![TensorType { element: view.input(0)?.element, dims }])
}
