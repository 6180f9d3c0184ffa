//! `Slice`: every n-th element of a range, along some axes.

use super::{NodeView, ShapeRule, TensorType};
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "Slice" => slice,
        _ => return None,
    })
}

/// The slice of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SliceRange {
    /// Index of the first element.
    pub start: i64,
    pub step: i64,
    pub count: u64,
}

impl SliceRange {
    /// The range of a dimension of `size` elements, cut as in numpy: negative indices count from
    /// the end, and ranges stop at the ends.
    fn new(start: i64, end: i64, step: i64, size: u64) -> Self {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let count_from_start =
            |index: i64| if index < 0 { index.saturating_add(size) } else { index };
        let start = count_from_start(start);
        let end = count_from_start(end);
        let (start, end) = if step > 0 {
            (start.clamp(0, size), end.clamp(0, size))
        } else {
            (start.clamp(-1, size - 1), end.clamp(-1, size - 1))
        };
        let distance = if step > 0 { end - start } else { start - end };
        let count = u64::try_from(distance).unwrap_or(0).div_ceil(step.unsigned_abs().max(1));
        Self { start, step, count }
    }
}

/// The slice of each dimension. Bounds were attributes before version 10.
pub(crate) fn slice_ranges(view: &NodeView) -> Result<Vec<SliceRange>, OnnxError> {
    let dims = &view.input(0)?.dims;
    let to_error = |name: &str| view.error(format!("its {name} are missing"));
    let starts = view.ints_since(10, 1, "starts")?.ok_or_else(|| to_error("starts"))?;
    let ends = view.ints_since(10, 2, "ends")?.ok_or_else(|| to_error("ends"))?;
    let axes = view.ints_since(10, 3, "axes")?;
    let steps = if view.opset >= 10 { view.known_ints(4)? } else { None };
    let mut ranges: Vec<SliceRange> =
        dims.iter().map(|size| SliceRange { start: 0, step: 1, count: *size }).collect();
    let count = starts.len();
    let fits = |list: &Option<Vec<i64>>| list.as_ref().is_none_or(|list| list.len() == count);
    if ends.len() != count || !fits(&axes) || !fits(&steps) {
        return Err(view.error("its starts, ends, axes and steps have different lengths"));
    }
    for at in 0..count {
        let axis = match &axes {
            Some(axes) => view.axis(axes[at], dims.len())?,
            None => view.axis(i64::try_from(at).unwrap_or(i64::MAX), dims.len())?,
        };
        let step = steps.as_ref().map_or(1, |steps| steps[at]);
        if step == 0 {
            return Err(view.error("its step is 0"));
        }
        ranges[axis] = SliceRange::new(starts[at], ends[at], step, dims[axis]);
    }
    Ok(ranges)
}

fn slice(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let dims = slice_ranges(view)?.iter().map(|range| range.count).collect();
    Ok(vec![TensorType { element: view.input(0)?.element, dims }])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with Python's `len(range(size)[start:end:step])`.
    #[test]
    fn ranges_are_cut_as_python_cuts_them() {
        for (start, end, step, size, first, count) in [
            (0, i64::MAX, 1, 5, 0, 5),
            (-3, -1, 1, 5, 2, 2),
            (1, 100, 2, 6, 1, 3),
            (-1, i64::MIN, -1, 4, 3, 4),
            (3, 0, -2, 4, 3, 2),
            (4, 2, 1, 5, 4, 0),
            (0, 5, 1, 0, 0, 0),
            (i64::MIN, i64::MAX, i64::MAX, 7, 0, 1),
        ] {
            let range = SliceRange::new(start, end, step, size);
            assert_eq!(
                (range.start, range.count),
                (first, count),
                "{start}:{end}:{step} of {size}"
            );
        }
    }
}
