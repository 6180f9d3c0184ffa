//! Positions of elements of one tensor in another, as arrays of positions: moving positions works
//! for elements of every type.

use crate::constant::ConstantData;
use ndarray::{Array1, ArrayD, Axis, IxDyn};

/// A shape for `ndarray`; `None` if it does not fit into memory.
pub(super) fn shape(dims: &[u64]) -> Option<IxDyn> {
    let dims: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    dims.map(|dims| IxDyn(&dims))
}

/// The positions of all elements of a tensor, in its shape.
pub(super) fn positions(dims: &[u64]) -> Option<ArrayD<usize>> {
    let count = usize::try_from(dims.iter().product::<u64>()).ok()?;
    Array1::from_iter(0..count).into_shape_with_order(shape(dims)?).ok()
}

/// For every element of a tensor of shape `output`, its position in an operand that is broadcast to
/// it.
pub(super) fn repeated(operand: &[u64], output: &[u64]) -> Option<ArrayD<usize>> {
    Some(positions(operand)?.broadcast(shape(output)?)?.to_owned())
}

/// The elements at these indices of an axis; `None` if one does not exist.
pub(super) fn select(
    positions: &ArrayD<usize>,
    axis: usize,
    indices: impl IntoIterator<Item = Option<usize>>,
) -> Option<ArrayD<usize>> {
    let size = positions.len_of(Axis(axis));
    let indices: Option<Vec<usize>> =
        indices.into_iter().map(|index| index.filter(|index| *index < size)).collect();
    Some(positions.select(Axis(axis), &indices?))
}

/// The values at these positions, in row-major order; `None` if one does not exist.
pub(super) fn take<'p>(
    data: &ConstantData,
    positions: impl IntoIterator<Item = &'p usize>,
) -> Option<ConstantData> {
    fn chosen<'p, T: Copy>(
        values: &[T],
        positions: impl IntoIterator<Item = &'p usize>,
    ) -> Option<Vec<T>> {
        positions.into_iter().map(|position| values.get(*position).copied()).collect()
    }
    Some(match data {
        ConstantData::Ints(values) => ConstantData::Ints(chosen(values, positions)?),
        ConstantData::Bools(values) => ConstantData::Bools(chosen(values, positions)?),
        ConstantData::Floats(values) => ConstantData::Floats(chosen(values, positions)?),
    })
}

/// The values of both, one after the other; `None` if their types differ.
pub(super) fn joined(mut left: ConstantData, right: &ConstantData) -> Option<ConstantData> {
    match (&mut left, right) {
        (ConstantData::Ints(left), ConstantData::Ints(right)) => left.extend(right),
        (ConstantData::Bools(left), ConstantData::Bools(right)) => left.extend(right),
        (ConstantData::Floats(left), ConstantData::Floats(right)) => left.extend(right),
        _ => return None,
    }
    Some(left)
}

/// An index from 0, for one that may count from the end.
pub(super) fn from_start(index: i64, size: u64) -> Option<usize> {
    let size = i64::try_from(size).ok()?;
    let index = if index < 0 { index.checked_add(size)? } else { index };
    if index < size { usize::try_from(index).ok() } else { None }
}
