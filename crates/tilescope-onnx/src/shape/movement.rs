//! Operators that only move elements, or reinterpret their positions.

use super::{NodeView, ShapeRule, TensorType, broadcast};
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "Reshape" => reshape,
        "Flatten" => flatten,
        "Transpose" => transpose,
        "Squeeze" => squeeze,
        "Unsqueeze" => unsqueeze,
        "Concat" => concat,
        "Split" => split,
        "Expand" => expand,
        "Tile" => tile,
        "Pad" => pad,
        "DepthToSpace" => depth_to_space,
        "SpaceToDepth" => space_to_depth,
        _ => return None,
    })
}

fn with_dims(view: &NodeView, dims: Vec<u64>) -> Result<Vec<TensorType>, OnnxError> {
    Ok(vec![TensorType { element: view.input(0)?.element, dims }])
}

/// The product of some sizes, which cannot overflow for those of one tensor.
fn product(dims: &[u64]) -> u64 {
    dims.iter().fold(1, |product: u64, dim| product.saturating_mul(*dim))
}

fn reshape(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let shape = view.known_ints(1)?.ok_or_else(|| view.error("its shape is missing"))?;
    let keeps_zero = view.int_or("allowzero", 0)? != 0;
    let mut dims = Vec::new();
    let mut open = None;
    for (axis, size) in shape.iter().enumerate() {
        dims.push(match *size {
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            0 if !keeps_zero => {
                let copied = data.dims.get(axis).copied();
                copied.ok_or_else(|| {
                    view.error(format!("it copies dimension {axis}, which does not exist"))
                })?
            }
            size => view.size(size.into())?,
        });
    }
    let given = product(&dims);
    if let Some(axis) = open
        && given > 0
    {
        dims[axis] = data.elements() / given;
    }
    if product(&dims) != data.elements() {
        let problem = format!("{:?} cannot be reshaped to {shape:?}", data.dims);
        return Err(view.error(problem));
    }
    with_dims(view, dims)
}

fn flatten(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let axis = view.int_or("axis", 1)?;
    // The axis may be one past the last.
    let axis = if axis == i64::try_from(dims.len()).unwrap_or(i64::MAX) {
        dims.len()
    } else {
        view.axis(axis, dims.len())?
    };
    let (rows, columns) = dims.split_at(axis);
    with_dims(view, vec![product(rows), product(columns)])
}

fn transpose(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let order = transpose_order(view)?;
    with_dims(view, order.iter().map(|axis| dims[*axis]).collect())
}

/// The axis of the operand for each axis of the output; by default the order is reversed.
pub(crate) fn transpose_order(view: &NodeView) -> Result<Vec<usize>, OnnxError> {
    let rank = view.input(0)?.dims.len();
    let Some(order) = view.attributes.ints("perm")? else { return Ok((0..rank).rev().collect()) };
    if view.axes(order, rank)?.len() != rank {
        return Err(view.error(format!("perm = {order:?} for {rank} dimensions")));
    }
    order.iter().map(|axis| view.axis(*axis, rank)).collect()
}

fn squeeze(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let axes = view.ints_since(13, 1, "axes")?;
    let axes = match axes {
        Some(axes) => view.axes(&axes, dims.len())?,
        None => (0..dims.len()).filter(|axis| dims[*axis] == 1).collect(),
    };
    if let Some(axis) = axes.iter().find(|axis| dims[**axis] != 1) {
        return Err(view.error(format!("axis {axis} has {} elements, not one", dims[*axis])));
    }
    let left = dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
    with_dims(view, left.map(|(_, dim)| *dim).collect())
}

fn unsqueeze(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let axes = view.ints_since(13, 1, "axes")?.ok_or_else(|| view.error("its axes are missing"))?;
    let rank = dims.len() + axes.len();
    let axes = view.axes(&axes, rank)?;
    let mut old = dims.iter();
    with_dims(
        view,
        (0..rank)
            .filter_map(|axis| if axes.contains(&axis) { Some(1) } else { old.next().copied() })
            .collect(),
    )
}

fn concat(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let mut dims = view.input(0)?.dims.clone();
    let axis = view.axis(view.int_or("axis", 0)?, dims.len())?;
    for operand in view.inputs.iter().skip(1).flatten() {
        let other = &operand.dims;
        let fits = other.len() == dims.len()
            && (0..dims.len()).all(|at| at == axis || other[at] == dims[at]);
        if !fits {
            return Err(
                view.error(format!("{dims:?} and {other:?} differ in axes other than {axis}"))
            );
        }
        dims[axis] = dims[axis].saturating_add(other[axis]);
    }
    with_dims(view, dims)
}

fn split(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let sizes = split_sizes(view)?;
    let axis = view.axis(view.int_or("axis", 0)?, data.dims.len())?;
    Ok(sizes
        .into_iter()
        .map(|size| {
            let mut dims = data.dims.clone();
            dims[axis] = size;
            TensorType { element: data.element, dims }
        })
        .collect())
}

/// Length of each part of a `Split`: given, or as equal as possible.
pub(crate) fn split_sizes(view: &NodeView) -> Result<Vec<u64>, OnnxError> {
    let data = view.input(0)?;
    let axis = view.axis(view.int_or("axis", 0)?, data.dims.len())?;
    let length = data.dims[axis];
    if let Some(sizes) = view.ints_since(13, 1, "split")? {
        let sizes: Vec<u64> =
            sizes.iter().map(|size| view.size((*size).into())).collect::<Result<_, _>>()?;
        let total = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
        if total != length || sizes.len() < view.outputs {
            return Err(view.error(format!("{length} elements cannot be split into {sizes:?}")));
        }
        return Ok(sizes);
    }
    let parts = match view.attributes.int("num_outputs")? {
        Some(parts) => view.size(parts.into())?,
        None => view.outputs as u64,
    };
    if parts == 0 || parts != view.outputs as u64 {
        return Err(view.error(format!("{parts} parts for {} outputs", view.outputs)));
    }
    // The last part is shorter if they cannot be equal (version 18).
    let part = length.div_ceil(parts);
    let find_start = |at: u64| part.saturating_mul(at).min(length);
    Ok((0..parts).map(|at| find_start(at + 1) - find_start(at)).collect())
}

fn expand(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let shape = view.known_ints(1)?.ok_or_else(|| view.error("its shape is missing"))?;
    // PyTorch writes -1 for an unchanged size.
    let shape: Vec<u64> = shape
        .iter()
        .map(|size| if *size == -1 { Ok(1) } else { view.size((*size).into()) })
        .collect::<Result<_, _>>()?;
    with_dims(
        view,
        broadcast(dims, &shape)
            .ok_or_else(|| view.error(format!("{dims:?} cannot be expanded to {shape:?}")))?,
    )
}

fn tile(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let repeats = view.known_ints(1)?.unwrap_or_default();
    if repeats.len() != dims.len() {
        return Err(view.error(format!("{} repeats for {dims:?}", repeats.len())));
    }
    let dims = dims
        .iter()
        .zip(&repeats)
        .map(|(dim, repeat)| view.size(i128::from(*dim) * i128::from(*repeat)))
        .collect::<Result<_, _>>()?;
    with_dims(view, dims)
}

fn pad(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let padding = pad_amounts(view)?;
    let dims = dims
        .iter()
        .zip(&padding)
        .map(|(dim, (before, after))| {
            view.size(i128::from(*dim) + i128::from(*before) + i128::from(*after))
        })
        .collect::<Result<_, _>>()?;
    with_dims(view, dims)
}

/// Elements that a `Pad` adds before and after each dimension.
pub(crate) fn pad_amounts(view: &NodeView) -> Result<Vec<(i64, i64)>, OnnxError> {
    let rank = view.input(0)?.dims.len();
    let pads = view.ints_since(11, 1, "pads")?.ok_or_else(|| view.error("its pads are missing"))?;
    let axes = match view.known_ints(3)? {
        Some(axes) => axes.iter().map(|axis| view.axis(*axis, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect::<Vec<_>>(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(view.error(format!("{} pads for {} axes", pads.len(), axes.len())));
    }
    let mut amounts = vec![(0, 0); rank];
    for (at, axis) in axes.iter().enumerate() {
        amounts[*axis] = (pads[at], pads[at + axes.len()]);
    }
    Ok(amounts)
}

/// Batch, channels, height, width, and the block size.
fn image(view: &NodeView) -> Result<([u64; 4], u64), OnnxError> {
    let data = view.input(0)?;
    let dims: Result<[u64; 4], _> = data.dims.as_slice().try_into();
    let dims =
        dims.map_err(|_| view.error(format!("{:?} is not the shape of images", data.dims)))?;
    let block = view.size(view.int_or("blocksize", 0)?.into())?;
    if (1..=1 << 20).contains(&block) {
        Ok((dims, block))
    } else {
        Err(view.error("its block size is missing"))
    }
}

fn depth_to_space(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let ([batch, channels, height, width], block) = image(view)?;
    if channels % (block * block) != 0 {
        return Err(view.error(format!("{channels} channels in blocks of {block} by {block}")));
    }
    let scale = |size: u64| size.saturating_mul(block);
    with_dims(view, vec![batch, channels / (block * block), scale(height), scale(width)])
}

fn space_to_depth(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let ([batch, channels, height, width], block) = image(view)?;
    if height % block != 0 || width % block != 0 {
        return Err(view.error(format!("{height} by {width} in blocks of {block}")));
    }
    let channels = channels.saturating_mul(block * block);
    with_dims(view, vec![batch, channels, height / block, width / block])
}
