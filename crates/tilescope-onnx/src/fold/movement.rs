//! Operators that move elements.

use super::{content, index};
use crate::constant::{ConstantData, ConstantTensor};
use crate::shape::{self, NodeView, TensorType};
use ndarray::{ArrayD, Axis, concatenate};

/// The values of an operator that moves elements; `None` for other operators.
pub(super) fn evaluate(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let positions = match view.op {
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => {
            return Some(data.data.clone());
        }
        "Concat" => return concat(view, output),
        "Pad" => return pad(view, data, output),
        "Transpose" => {
            index::positions(&data.dims)?.permuted_axes(shape::transpose_order(view).ok()?)
        }
        "Slice" => slice(view, data, output)?,
        "Expand" => index::repeated(&data.dims, &output.dims)?,
        "Tile" => tile(data, output)?,
        _ => return None,
    };
    index::take(&data.data, &positions)
}

fn slice(view: &NodeView, data: &ConstantTensor, output: &TensorType) -> Option<ArrayD<usize>> {
    let mut positions = index::positions(&data.dims)?;
    for (axis, range) in shape::slice_ranges(view).ok()?.iter().enumerate() {
        let count = i64::try_from(output.dims[axis]).ok()?;
        positions = index::select(
            &positions,
            axis,
            (0..count).map(|index| {
                usize::try_from(range.start.checked_add(index.checked_mul(range.step)?)?).ok()
            }),
        )?;
    }
    Some(positions)
}

fn tile(data: &ConstantTensor, output: &TensorType) -> Option<ArrayD<usize>> {
    let mut positions = index::positions(&data.dims)?;
    for (axis, dim) in data.dims.iter().enumerate() {
        positions = index::select(
            &positions,
            axis,
            (0..output.dims[axis]).map(|index| usize::try_from(index.checked_rem(*dim)?).ok()),
        )?;
    }
    Some(positions)
}

fn concat(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let axis = view.axis(view.int_or("axis", 0).ok()?, output.dims.len()).ok()?;
    // All values in sequence, and the positions of each operand among them.
    let mut values: Option<ConstantData> = None;
    let mut parts = Vec::new();
    let mut total = 0;
    for at in 0..view.inputs.len() {
        let operand = content(view, at)?;
        parts.push(index::positions(&operand.dims)? + total);
        total += operand.len();
        values = Some(match values {
            Some(values) => index::joined(values, &operand.data)?,
            None => operand.data.clone(),
        });
    }
    let parts: Vec<_> = parts.iter().map(|part| part.view()).collect();
    index::take(&values?, &concatenate(Axis(axis), &parts).ok()?)
}

/// `Pad` with a constant.
fn pad(view: &NodeView, data: &ConstantTensor, output: &TensorType) -> Option<ConstantData> {
    if !matches!(view.attributes.text("mode").ok()?, None | Some("constant")) {
        return None;
    }
    let amounts = shape::pad_amounts(view).ok()?;
    let fill = match (view.optional(2), &data.data) {
        (Some(_), _) => content(view, 2)?.data.clone(),
        (None, ConstantData::Ints(_)) => ConstantData::Ints(vec![0]),
        (None, ConstantData::Bools(_)) => ConstantData::Bools(vec![false]),
        (None, ConstantData::Floats(_)) => {
            ConstantData::Floats(vec![view.attributes.float("value").ok()?.unwrap_or(0.0)])
        }
    };
    // The padding value comes after the data.
    let values = index::joined(data.data.clone(), &fill)?;
    let known = index::positions(&data.dims)?;
    let positions = ArrayD::from_shape_fn(index::shape(&output.dims)?, |mut place| {
        for (axis, (before, _)) in amounts.iter().enumerate() {
            // A negative index becomes one that no tensor has.
            place[axis] = i64::try_from(place[axis])
                .ok()
                .and_then(|index| usize::try_from(index.checked_sub(*before)?).ok())
                .unwrap_or(usize::MAX);
        }
        known.get(place).copied().unwrap_or(data.len())
    });
    index::take(&values, &positions)
}

/// The values of all parts of a `Split`.
pub(super) fn split(view: &NodeView, types: &[TensorType]) -> Option<Vec<ConstantData>> {
    let data = content(view, 0)?;
    let axis = view.axis(view.int_or("axis", 0).ok()?, data.dims.len()).ok()?;
    let positions = index::positions(&data.dims)?;
    let mut start = 0;
    let mut parts = Vec::new();
    for part in types {
        let size = usize::try_from(part.dims[axis]).ok()?;
        let own = index::select(&positions, axis, (start..start + size).map(Some))?;
        parts.push(index::take(&data.data, &own)?);
        start += size;
    }
    Some(parts)
}
