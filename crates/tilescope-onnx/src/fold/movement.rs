//! Operators that move elements.

use super::{content, index};
use crate::constant::{ConstantData, ConstantTensor};
use crate::shape::{self, NodeView, TensorType};

/// The values of an operator that moves elements; none if it is no such operator.
pub(super) fn evaluate(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let positions = match view.op {
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => {
            return Some(data.data.clone());
        }
        "Concat" => return concat(view, output),
        "Pad" => return pad(view, data, output),
        "Transpose" => transpose(view, data, output)?,
        "Slice" => slice(view, data, output)?,
        "Expand" => index::repeated(&data.dims, &output.dims),
        "Tile" => tile(data, output),
        _ => return None,
    };
    index::take(&data.data, &positions)
}

fn transpose(view: &NodeView, data: &ConstantTensor, output: &TensorType) -> Option<Vec<usize>> {
    let order = shape::transpose_order(view).ok()?;
    let strides = index::strides(&data.dims);
    Some(index::each(&output.dims, |indices| {
        indices.iter().zip(&order).map(|(index, axis)| index * strides[*axis]).sum()
    }))
}

fn slice(view: &NodeView, data: &ConstantTensor, output: &TensorType) -> Option<Vec<usize>> {
    let ranges = shape::slice_ranges(view).ok()?;
    let strides = index::strides(&data.dims);
    let place = |index: usize, range: &shape::SliceRange| {
        let index = i64::try_from(index).ok()?;
        usize::try_from(range.start.checked_add(index.checked_mul(range.step)?)?).ok()
    };
    let positions = index::each(&output.dims, |indices| {
        let places = indices.iter().zip(&ranges).zip(&strides);
        places.map(|((index, range), stride)| Some(place(*index, range)? * stride)).sum()
    });
    positions.into_iter().collect()
}

fn tile(data: &ConstantTensor, output: &TensorType) -> Vec<usize> {
    let strides = index::strides(&data.dims);
    index::each(&output.dims, |indices| {
        let places = indices.iter().zip(&data.dims).zip(&strides);
        places
            .map(|((index, dim), stride)| {
                (*index).checked_rem(usize::try_from(*dim).unwrap_or(0)).unwrap_or(0) * stride
            })
            .sum()
    })
}

fn concat(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let axis = view.axis(view.int_or("axis", 0).ok()?, output.dims.len()).ok()?;
    let operands: Option<Vec<&ConstantTensor>> =
        (0..view.inputs.len()).map(|at| content(view, at)).collect();
    let operands = operands?;
    // All values one after the other, then each element of the output finds its own.
    let mut starts = Vec::new();
    let (mut values, mut length) = (operands.first()?.data.clone(), 0);
    let mut total = 0;
    for (at, operand) in operands.iter().enumerate() {
        if at > 0 {
            values = index::joined(values, &operand.data)?;
        }
        let size = usize::try_from(*operand.dims.get(axis)?).ok()?;
        starts.push((length, total, index::strides(&operand.dims)));
        length += size;
        total += operand.len();
    }
    let positions = index::each(&output.dims, |indices| {
        // The last operand that begins at or before this index; empty ones begin where the next does.
        let which = starts.partition_point(|(first, ..)| *first <= indices[axis]) - 1;
        let (first, offset, strides) = &starts[which];
        let own = indices.iter().zip(strides).map(|(index, stride)| index * stride).sum::<usize>();
        offset + own - first * strides[axis]
    });
    index::take(&values, &positions)
}

/// `Pad` with a constant.
fn pad(view: &NodeView, data: &ConstantTensor, output: &TensorType) -> Option<ConstantData> {
    if !matches!(view.attributes.text("mode").ok()?, None | Some("constant")) {
        return None;
    }
    let amounts = shape::pad_amounts(view).ok()?;
    let strides = index::strides(&data.dims);
    let inside = |index: usize, before: i64, dim: u64| {
        let place = i64::try_from(index).ok()?.checked_sub(before)?;
        usize::try_from(place).ok().filter(|place| (*place as u64) < dim)
    };
    let fill = match (view.optional(2), &data.data) {
        (Some(_), _) => content(view, 2)?.data.clone(),
        (None, ConstantData::Ints(_)) => ConstantData::Ints(vec![0]),
        (None, ConstantData::Bools(_)) => ConstantData::Bools(vec![false]),
        (None, ConstantData::Floats(_)) => {
            ConstantData::Floats(vec![view.attributes.float("value").ok()?.unwrap_or(0.0)])
        }
    };
    // The value to pad with stands after the data.
    let values = index::joined(data.data.clone(), &fill)?;
    let positions = index::each(&output.dims, |indices| {
        let places = indices.iter().zip(&amounts).zip(&data.dims).zip(&strides);
        let place: Option<usize> = places
            .map(|(((index, (before, _)), dim), stride)| {
                Some(inside(*index, *before, *dim)? * stride)
            })
            .sum();
        place.unwrap_or(data.len())
    });
    index::take(&values, &positions)
}

/// The values of all parts of a `Split`.
pub(super) fn split(view: &NodeView, types: &[TensorType]) -> Option<Vec<ConstantData>> {
    let data = content(view, 0)?;
    let axis = view.axis(view.int_or("axis", 0).ok()?, data.dims.len()).ok()?;
    let strides = index::strides(&data.dims);
    let mut start = 0;
    let mut parts = Vec::new();
    for part in types {
        let positions = index::each(&part.dims, |indices| {
            let own = indices.iter().zip(&strides).map(|(index, stride)| index * stride);
            own.sum::<usize>() + start * strides[axis]
        });
        parts.push(index::take(&data.data, &positions)?);
        start += usize::try_from(part.dims[axis]).ok()?;
    }
    Some(parts)
}
