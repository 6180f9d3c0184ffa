//! Where elements of one tensor lie in another.

use crate::constant::ConstantData;

/// Elements from one index of each axis to the next.
pub(super) fn strides(dims: &[u64]) -> Vec<usize> {
    let mut strides = vec![1_usize; dims.len()];
    for axis in (1..dims.len()).rev() {
        let size = usize::try_from(dims[axis]).unwrap_or(0).max(1);
        // Only a tensor without elements has strides that large.
        strides[axis - 1] = strides[axis].saturating_mul(size);
    }
    strides
}

/// For every element of a tensor of shape `dims`, in row-major order, what `of` makes of its
/// indices.
pub(super) fn each<T>(dims: &[u64], mut of: impl FnMut(&[usize]) -> T) -> Vec<T> {
    let count = dims.iter().product::<u64>();
    let mut indices = vec![0; dims.len()];
    let mut results = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for _ in 0..count {
        results.push(of(&indices));
        for axis in (0..dims.len()).rev() {
            indices[axis] += 1;
            if (indices[axis] as u64) < dims[axis] {
                break;
            }
            indices[axis] = 0;
        }
    }
    results
}

/// For every element of a tensor of shape `output`, its position in an operand that repeats to it.
pub(super) fn repeated(operand: &[u64], output: &[u64]) -> Vec<usize> {
    let strides = strides(operand);
    let skipped = output.len().saturating_sub(operand.len());
    each(output, |indices| {
        let own = indices.iter().skip(skipped).zip(operand).zip(&strides);
        own.map(|((index, dim), stride)| if *dim == 1 { 0 } else { index * stride }).sum()
    })
}

/// The values at these positions; none if one is not there.
pub(super) fn take(data: &ConstantData, positions: &[usize]) -> Option<ConstantData> {
    fn chosen<T: Copy>(values: &[T], positions: &[usize]) -> Option<Vec<T>> {
        positions.iter().map(|position| values.get(*position).copied()).collect()
    }
    Some(match data {
        ConstantData::Ints(values) => ConstantData::Ints(chosen(values, positions)?),
        ConstantData::Bools(values) => ConstantData::Bools(chosen(values, positions)?),
        ConstantData::Floats(values) => ConstantData::Floats(chosen(values, positions)?),
    })
}

/// The values of both, one after the other; none if they differ in type.
pub(super) fn joined(mut left: ConstantData, right: &ConstantData) -> Option<ConstantData> {
    match (&mut left, right) {
        (ConstantData::Ints(left), ConstantData::Ints(right)) => left.extend(right),
        (ConstantData::Bools(left), ConstantData::Bools(right)) => left.extend(right),
        (ConstantData::Floats(left), ConstantData::Floats(right)) => left.extend(right),
        _ => return None,
    }
    Some(left)
}

/// An index from 0, of one that may count from the end.
pub(super) fn from_start(index: i64, size: u64) -> Option<usize> {
    let size = i64::try_from(size).ok()?;
    let index = if index < 0 { index.checked_add(size)? } else { index };
    if index < size { usize::try_from(index).ok() } else { None }
}
