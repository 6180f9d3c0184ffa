//! Counts of kept elements among the first elements of a tensor's memory. An element is kept
//! depending on its index along an axis.

use super::element_order::{AxisDim, ElementOrder};
use super::list_length;
use super::shaped_memory::ShapedMemory;

/// Content of one element of a dimension of memory.
#[derive(Clone, Copy, Debug)]
struct Inside {
    elements: u64,
    /// Number of elements for each index along the axis.
    of_index: u64,
}

impl Inside {
    const ONE: Self = Self { elements: 1, of_index: 1 };

    fn times(self, size: u64, is_axis: bool) -> Self {
        let of_index = if is_axis { self.of_index } else { self.of_index * size };
        Self { elements: self.elements * size, of_index }
    }
}

/// Dimension of memory with the content of its elements.
#[derive(Clone, Copy, Debug)]
struct CountedDim {
    /// Number of elements with equal content: all, except the last one if it is a short group.
    alike: u64,
    is_axis: bool,
    inside: Inside,
    /// Content of an element in a short group.
    inside_short: Inside,
    /// Number of positions of the axis inside, in memory order: its indices, and the padding of a
    /// short group.
    places: u64,
}

/// Counts elements by their index along an axis of their shape.
pub(super) struct IndexCounts<F> {
    /// Returns the number of kept elements with an index below the given one.
    kept_below: F,
    /// Length of the axis.
    size: u64,
    /// Number of kept elements before each position, if positions are not in the order of indices.
    kept_before: Option<Vec<u64>>,
    /// Dimensions, outermost first.
    dims: Vec<CountedDim>,
    /// Index of the dimension that counts groups if the last group is short.
    groups: Option<usize>,
}

impl<F: Fn(u64) -> u64> IndexCounts<F> {
    /// Creates the counts of a tensor of `shape` in the given order.
    pub(super) fn new(order: &ElementOrder, shape: &[u64], axis: usize, kept_below: F) -> Self {
        let mut memory = order.shaped(shape);
        let groups = memory.short_groups();
        let rest = memory.grouping.rest;
        if let Some(group) = memory.dims.last_mut().filter(|_| memory.grouping.is_only) {
            group.size = rest;
        }
        let mut dims = Vec::new();
        let [mut inside, mut inside_short] = [Inside::ONE; 2];
        let mut places = 1;
        for (at, dim) in memory.dims.iter().enumerate().rev() {
            let is_axis = dim.axis == axis;
            let counts_groups = groups == Some(at);
            let alike = if counts_groups { dim.size - 1 } else { dim.size };
            dims.push(CountedDim { alike, is_axis, inside, inside_short, places });
            let is_group = at + 1 == memory.dims.len() && groups.is_some();
            let all = inside.times(alike, is_axis);
            if counts_groups {
                inside.elements = all.elements + inside_short.elements;
                if !is_axis {
                    inside.of_index = all.of_index + inside_short.of_index;
                }
                inside_short = inside;
            } else {
                inside_short = inside_short.times(if is_group { rest } else { dim.size }, is_axis);
                inside = all;
            }
            if is_axis {
                places *= dim.size;
            }
        }
        dims.reverse();
        let kept_before = kept_in_places(&memory, axis, shape[axis], &kept_below);
        Self { kept_below, size: shape[axis], kept_before, dims, groups }
    }

    /// Number of kept elements among the first `elements` of memory.
    pub(super) fn kept_of_first(&self, elements: u64) -> u64 {
        let mut left = elements;
        let [mut kept, mut place] = [0; 2];
        let mut in_short = false;
        for (at, dim) in self.dims.iter().enumerate() {
            let inside = if in_short { dim.inside_short } else { dim.inside };
            let mut before = left / inside.elements;
            if self.groups == Some(at) && before >= dim.alike {
                before = dim.alike;
                in_short = true;
            }
            left -= before * inside.elements;
            if dim.is_axis {
                kept += inside.of_index * self.kept(place, before * dim.places);
                place += before * dim.places;
            } else {
                kept += before * inside.of_index * self.kept(place, dim.places);
            }
            if left == 0 {
                return kept;
            }
        }
        kept + if left > 0 { self.kept(place, 1) } else { 0 }
    }

    /// Number of kept elements in `places` positions from `place` on, per element of a position.
    fn kept(&self, place: u64, places: u64) -> u64 {
        match &self.kept_before {
            Some(before) => before[list_length(place + places)] - before[list_length(place)],
            None => {
                let [from, to] = [place, place + places].map(|place| place.min(self.size));
                (self.kept_below)(to) - (self.kept_below)(from)
            }
        }
    }
}

/// Number of kept elements before each position of an axis, or `None` if positions are in the order
/// of indices.
fn kept_in_places(
    memory: &ShapedMemory,
    axis: usize,
    size: u64,
    kept_below: impl Fn(u64) -> u64,
) -> Option<Vec<u64>> {
    let parts: Vec<AxisDim> = memory.dims.iter().filter(|dim| dim.axis == axis).copied().collect();
    let mut inside = 1;
    let mut in_order = true;
    for part in parts.iter().rev() {
        in_order &= part.step == inside;
        inside *= part.size;
    }
    if in_order {
        return None;
    }
    let short = memory.short_groups().filter(|at| memory.dims[*at].axis == axis);
    let groups_step = short.map(|at| memory.dims[at].step);
    let group_step = memory.dims.last().filter(|_| short.is_some()).map(|group| group.step);
    let mut before = vec![0];
    let mut kept = 0;
    for place in 0..inside {
        let mut rest = place;
        let mut index = 0;
        let mut in_last_group = false;
        let mut in_group = 0;
        for part in parts.iter().rev() {
            let digit = rest % part.size;
            rest /= part.size;
            index += digit * part.step;
            if Some(part.step) == groups_step {
                in_last_group = digit + 1 == part.size;
            } else if Some(part.step) == group_step {
                in_group = digit;
            }
        }
        let is_padding = in_last_group && in_group >= memory.grouping.rest;
        if !is_padding && index < size {
            kept += kept_below(index + 1) - kept_below(index);
        }
        before.push(kept);
    }
    Some(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// View of a view.
    #[derive(Clone, Copy, Debug)]
    enum View {
        /// Splits an axis into `parts`, which become a separate axis.
        Split { axis: usize, parts: u64 },
        /// Merges an axis with the next one.
        Merge { axis: usize },
        /// Rotates the axes.
        Turn { by: usize },
        /// Keeps the first elements of an axis.
        Cut { axis: usize, to: u64 },
        /// Repeats the tensor `times` times along an axis.
        Grow { axis: usize, times: u64 },
    }

    fn views() -> impl Strategy<Value = Vec<View>> {
        let axis = || 0usize..5;
        prop::collection::vec(
            prop_oneof![
                (axis(), 2u64..6).prop_map(|(axis, parts)| View::Split { axis, parts }),
                axis().prop_map(|axis| View::Merge { axis }),
                axis().prop_map(|by| View::Turn { by }),
                (axis(), 1u64..40).prop_map(|(axis, to)| View::Cut { axis, to }),
                (axis(), 2u64..4).prop_map(|(axis, times)| View::Grow { axis, times }),
            ],
            0..6,
        )
    }

    impl View {
        /// Returns the shape of the view and the order behind it, or `None` if the view is
        /// impossible.
        fn of(self, shape: &[u64], order: &ElementOrder) -> Option<(Vec<u64>, ElementOrder)> {
            let mut seen = shape.to_vec();
            let axes = shape.len();
            match self {
                Self::Split { axis, parts } => {
                    let axis = axis % axes;
                    if !shape[axis].is_multiple_of(parts) || axes > 4 {
                        return None;
                    }
                    seen[axis] /= parts;
                    seen.insert(axis, parts);
                    Some((seen, order.clone()))
                }
                Self::Merge { axis } => {
                    let axis = axis % axes;
                    let next = *shape.get(axis + 1)?;
                    seen[axis] *= next;
                    seen.remove(axis + 1);
                    Some((seen, order.clone()))
                }
                Self::Turn { by } => {
                    let turned: Vec<usize> = (0..axes).map(|at| (at + by) % axes).collect();
                    let seen = turned.iter().map(|axis| shape[*axis]).collect();
                    Some((seen, order.permuted(shape, &turned)))
                }
                Self::Cut { axis, to } => {
                    let axis = axis % axes;
                    seen[axis] = to.min(shape[axis]);
                    let order = order.resized(shape, &seen);
                    Some((seen, order))
                }
                Self::Grow { axis, times } => {
                    let axis = axis % axes;
                    seen[axis] *= times;
                    let order = order.resized(shape, &seen);
                    if seen.iter().product::<u64>() < 20_000 { Some((seen, order)) } else { None }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        /// For every chain of views, memory contains each element once, and the counts for slices
        /// of any stretch equal those found element by element. A channel shuffle is a split, a
        /// rotation and a merge.
        #[test]
        fn memory_of_views_has_every_element_once(
            shape in prop::collection::vec(1u64..24, 1..4),
            [axis, along] in [0usize..4, 0usize..4],
            group in 1u64..12,
            views in views(),
            range in [0u64..40, 0u64..40],
            ends in prop::collection::vec(0u64..20_000, 4),
        ) {
            let order = ElementOrder::grouped(&shape, axis % shape.len(), group);
            let mut seen = (shape, order);
            for view in views {
                seen = view.of(&seen.0, &seen.1).unwrap_or(seen);
            }
            let (shape, order) = seen;
            let all: u64 = shape.iter().product();
            let axis = along % shape.len();
            let [one, two] = range.map(|index| index % (shape[axis] + 1));
            let range = one.min(two)..one.max(two);
            let below = |index: u64| index.clamp(range.start, range.end) - range.start;
            let counts = IndexCounts::new(&order, &shape, axis, below);
            let part = all / shape[axis] * (range.end - range.start);
            prop_assert_eq!(counts.kept_of_first(all), part, "{:?} {:?}", order, shape);
            let Some(indices) = order.flat_indices(&shape) else { return Ok(()) };
            let mut sorted = indices.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..all).collect::<Vec<_>>(), "{:?} {:?}", order, shape);
            if !order.is_along(&shape) {
                return Ok(());
            }
            let step: u64 = shape[axis + 1..].iter().product();
            for end in ends {
                let end = end % (all + 1);
                let first = indices[..list_length(end)].iter();
                let counted = first.filter(|index| range.contains(&(*index / step % shape[axis])));
                prop_assert_eq!(counts.kept_of_first(end), counted.count() as u64);
            }
        }
    }
}
