//! Reductions over axes, and the largest of them.

use super::{NodeView, ShapeRule, TensorType};
use crate::element::ElementKind;
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax"
        | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" => reduce,
        "ArgMax" | "ArgMin" => arg_max,
        "TopK" => top_k,
        "Det" => |view| {
            let mut output = view.like(0)?;
            let rank = output.dims.len();
            if rank < 2 {
                return Err(view.error(format!("{:?} is not the shape of matrices", output.dims)));
            }
            output.dims.truncate(rank - 2);
            Ok(vec![output])
        },
        _ => return None,
    })
}

/// Axes of a reduction, in ascending order, and true if they stay as ones. They became an input at
/// version 13 for sums and at 18 for the others.
pub(crate) fn reduced_axes(view: &NodeView) -> Result<(Vec<usize>, bool), OnnxError> {
    let rank = view.input(0)?.dims.len();
    let since = if view.op == "ReduceSum" { 13 } else { 18 };
    let axes = view.ints_since(since, 1, "axes")?.unwrap_or_default();
    let is_noop = view.int_or("noop_with_empty_axes", 0)? != 0;
    let axes = match axes.as_slice() {
        [] if is_noop => Vec::new(),
        [] => (0..rank).collect(),
        axes => view.axes(axes, rank)?,
    };
    Ok((axes, view.int_or("keepdims", 1)? != 0))
}

/// A shape without these axes, or with ones in their place.
fn without(dims: &[u64], axes: &[usize], keeps: bool) -> Vec<u64> {
    let left = dims.iter().enumerate().filter_map(|(axis, dim)| {
        if !axes.contains(&axis) {
            Some(*dim)
        } else if keeps {
            Some(1)
        } else {
            None
        }
    });
    left.collect()
}

fn reduce(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let (axes, keeps) = reduced_axes(view)?;
    Ok(vec![TensorType { element: data.element, dims: without(&data.dims, &axes, keeps) }])
}

fn arg_max(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let axis = view.axis(view.int_or("axis", 0)?, dims.len())?;
    let dims = without(dims, &[axis], view.int_or("keepdims", 1)? != 0);
    Ok(vec![TensorType { element: ElementKind::Int64, dims }])
}

fn top_k(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let mut values = view.like(0)?;
    let axis = view.axis(view.int_or("axis", -1)?, values.dims.len())?;
    let count = if view.opset >= 10 {
        view.known_ints(1)?.and_then(|count| count.first().copied())
    } else {
        view.attributes.int("k")?
    };
    let count = count.ok_or_else(|| view.error("the number of values is missing"))?;
    let count = view.size(count.into())?;
    if count > values.dims[axis] {
        return Err(view.error(format!("the {count} largest of {}", values.dims[axis])));
    }
    values.dims[axis] = count;
    let indices = TensorType { element: ElementKind::Int64, ..values.clone() };
    Ok(vec![values, indices])
}
