//! Order of the elements of a tensor in the memory of its tiles.
//!
//! An element is identified by its flat index, the index in the row-major order of the tensor's
//! shape. A reshape changes no flat index, so an order is valid for every shape of the tensor.
//! Queries on a view therefore use the order of the memory behind it, as in Poplar.

use super::shaped_memory::ShapedMemory;
use crate::shape::gcd;
use std::sync::Arc;

/// Dimension of memory: `size` elements whose flat indices are `step` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoryDim {
    pub(super) step: u64,
    pub(super) size: u64,
}

/// Known dimensions of memory.
pub(super) struct OrderedMemory {
    /// Dimensions, outermost first.
    pub dims: Vec<MemoryDim>,
    /// The groups, if the last one is short.
    pub short: Option<ShortGroup>,
}

/// Groups of the innermost dimension whose last one is short.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortGroup {
    /// Index of the dimension that counts groups.
    pub groups: usize,
    /// Elements of the short group.
    pub rest: u64,
}

impl OrderedMemory {
    /// The axis with a short group as one dimension.
    pub(super) fn short_axis(&self) -> Option<MemoryDim> {
        let size = self.whole_elements() + self.short?.rest;
        Some(MemoryDim { step: self.dims.last()?.step, size })
    }

    /// Elements of the axis in whole groups.
    pub(super) fn whole_elements(&self) -> u64 {
        match (self.short, self.dims.last()) {
            (Some(short), Some(group)) => (self.dims[short.groups].size - 1) * group.size,
            _ => 0,
        }
    }

    /// The dimensions whose groups are all whole, with their indices.
    pub(super) fn dims_of_whole_groups(&self) -> impl Iterator<Item = (usize, MemoryDim)> {
        let dims = self.dims.iter().copied().enumerate();
        dims.filter(|(at, _)| match self.short {
            Some(short) => *at != short.groups && at + 1 != self.dims.len(),
            None => true,
        })
    }

    /// The dimensions, with those of groups joined to their axis if a group is short.
    pub(super) fn whole_dims(&self) -> impl Iterator<Item = MemoryDim> {
        self.dims_of_whole_groups().map(|(_, dim)| dim).chain(self.short_axis())
    }
}

/// Part of one axis of a shape that a dimension of memory covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisDim {
    pub axis: usize,
    /// Number of elements of this part.
    pub size: u64,
    /// Distance between its elements along the axis.
    pub(super) step: u64,
}

/// Dimensions of memory, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryDims {
    dims: Arc<[MemoryDim]>,
    grouping: Grouping,
}

/// Grouping of an axis in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grouping {
    /// Elements of a group that stays whole on its tile, or 1 if there are no such groups.
    pub group: u64,
    /// Elements of the last group of an axis that is not a multiple of the group, or 0 if it is.
    pub rest: u64,
    /// True if the short group is the only one of its axis.
    pub is_only: bool,
    /// True if tiles begin and end at group borders, with short groups counted as short. Otherwise
    /// groups are distributed evenly, with short groups counted as whole.
    pub on_borders: bool,
}

impl Grouping {
    pub(super) const NONE: Self = Self { group: 1, rest: 0, is_only: false, on_borders: false };
}

/// Order of elements within the tiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ElementOrder {
    /// Row-major order of the shape, innermost dimension contiguous.
    Linear,
    /// Another known order.
    Dims(MemoryDims),
    /// Unknown order: no elements are guaranteed to be adjacent.
    Unknown,
}

/// Distances in flat indices between adjacent elements of each axis of `shape`.
fn steps(shape: &[u64]) -> Vec<u64> {
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis];
    }
    steps
}

/// Distance in flat indices between adjacent elements of an axis of `shape`.
pub(crate) fn axis_step(shape: &[u64], axis: usize) -> u64 {
    shape[axis + 1..].iter().product()
}

impl MemoryDim {
    /// Returns the parts of axes of `shape` that the dimension covers, outermost first, or `None`
    /// if it begins or ends inside an element of an axis.
    pub(super) fn parts_of_axes(self, shape: &[u64]) -> Option<Vec<AxisDim>> {
        self.along(shape, &steps(shape), Padding::None)
    }

    /// Returns the parts of axes of `shape` that the dimension covers, outermost first, or `None`
    /// if it begins or ends inside an element of an axis. A `padded` dimension may be longer than
    /// its axis.
    fn along(self, shape: &[u64], steps: &[u64], padded: Padding) -> Option<Vec<AxisDim>> {
        let mut found = Vec::new();
        let mut left = self;
        while left.size > 1 {
            let axis = (0..shape.len()).rev().find(|&axis| {
                shape[axis] > 1 && left.step < steps[axis].saturating_mul(shape[axis])
            })?;
            if !left.step.is_multiple_of(steps[axis]) {
                return None;
            }
            let size = shape[axis];
            let step = left.step / steps[axis];
            let ends_axis = match padded {
                Padding::None => false,
                Padding::OnlyGroup(rest) => step == 1 && size == rest,
                Padding::Groups => size.div_ceil(step) == left.size,
            };
            if step * left.size <= size || ends_axis {
                found.push(AxisDim { axis, size: left.size, step });
                break;
            }
            let inside = size / step;
            if !size.is_multiple_of(step) || !left.size.is_multiple_of(inside) {
                return None;
            }
            found.push(AxisDim { axis, size: inside, step });
            left = Self { step: steps[axis] * size, size: left.size / inside };
        }
        found.reverse();
        Some(found)
    }
}

/// Elements that a dimension of memory counts but that do not exist.
#[derive(Clone, Copy, Debug)]
enum Padding {
    None,
    /// All elements after the given number, in the only group of its axis.
    OnlyGroup(u64),
    /// Elements of the last group, in a dimension that counts groups.
    Groups,
}

impl MemoryDims {
    fn along(&self, shape: &[u64]) -> Option<Vec<AxisDim>> {
        let steps = steps(shape);
        let Grouping { rest, is_only, .. } = self.grouping;
        let groups = self.short_groups();
        let mut found = Vec::new();
        for (at, dim) in self.dims.iter().enumerate() {
            let padded = if Some(at) == groups {
                Padding::Groups
            } else if is_only && at + 1 == self.dims.len() {
                Padding::OnlyGroup(rest)
            } else {
                Padding::None
            };
            found.extend(dim.along(shape, &steps, padded)?);
        }
        Some(found)
    }

    /// Index of the dimension that counts groups if the last group is short.
    fn short_groups(&self) -> Option<usize> {
        let Grouping { rest, is_only, .. } = self.grouping;
        let group = self.dims.last().filter(|_| rest > 0 && !is_only)?;
        self.dims.iter().position(|dim| dim.step == group.step * group.size)
    }

    /// Returns the same order without the groups of its innermost axis, which becomes contiguous.
    fn ungrouped(&self) -> ElementOrder {
        let Some((group, outer)) = self.dims.split_last() else { return ElementOrder::Linear };
        let Grouping { rest, is_only, .. } = self.grouping;
        let is_axis = |dim: &&MemoryDim| !is_only && dim.step == group.step * group.size;
        let groups = outer.iter().find(is_axis).map_or(1, |dim| dim.size);
        let short = if rest > 0 { group.size - rest } else { 0 };
        let axis = MemoryDim { step: group.step, size: groups * group.size - short };
        let others = outer.iter().filter(|dim| !is_axis(dim)).copied();
        Self::order(others.chain([axis]), Grouping::NONE)
    }

    /// Creates an order from dimensions, joining adjacent ones that are contiguous. The only group
    /// of an axis is longer than the axis, so it continues no other dimension.
    fn order(dims: impl IntoIterator<Item = MemoryDim>, grouping: Grouping) -> ElementOrder {
        let dims: Vec<MemoryDim> = dims.into_iter().filter(|dim| dim.size > 1).collect();
        let only_group = dims.len().checked_sub(1).filter(|_| grouping.is_only);
        let mut joined: Vec<MemoryDim> = Vec::new();
        for (at, dim) in dims.into_iter().enumerate() {
            match joined.last_mut() {
                Some(outer) if outer.step == dim.step * dim.size && only_group != Some(at) => {
                    *outer = MemoryDim { step: dim.step, size: outer.size * dim.size };
                }
                _ => joined.push(dim),
            }
        }
        match joined[..] {
            [] | [MemoryDim { step: 1, .. }] => ElementOrder::Linear,
            _ => ElementOrder::Dims(Self { dims: joined.into(), grouping }),
        }
    }
}

impl ElementOrder {
    /// Order with contiguous groups of `axis`, as planned operations read and write them. The
    /// groups of other axes are in row-major order. The last group of the axis may be short.
    pub(crate) fn grouped(shape: &[u64], axis: usize, group: u64) -> Self {
        let step = axis_step(shape, axis);
        let outer: u64 = shape[..axis].iter().product();
        let size = shape[axis].max(1);
        let group = if size > 1 { group.max(1) } else { 1 };
        let dims = [
            MemoryDim { step: step * group, size: size.div_ceil(group) },
            MemoryDim { step: step * size, size: outer },
            MemoryDim { step: 1, size: step },
            MemoryDim { step, size: group },
        ];
        let grouping =
            Grouping { group, rest: size % group, is_only: size < group, on_borders: false };
        MemoryDims::order(dims, grouping)
    }

    /// As [`Self::grouped`], with tiles that begin and end at group borders.
    pub(crate) fn grouped_by_tile(shape: &[u64], axis: usize, group: u64) -> Self {
        match Self::grouped(shape, axis, group) {
            Self::Dims(MemoryDims { dims, grouping }) => {
                Self::Dims(MemoryDims { dims, grouping: Grouping { on_borders: true, ..grouping } })
            }
            order => order,
        }
    }

    /// Order with contiguous groups of the axis of `shape` whose elements are `step` apart.
    pub(crate) fn grouped_at(shape: &[u64], Innermost { step, group }: Innermost) -> Self {
        for axis in 0..shape.len() {
            if shape[axis] > 1 && Some(axis_step(shape, axis)) == step {
                return Self::grouped(shape, axis, group);
            }
        }
        Self::Unknown
    }

    /// Dimensions of memory of a tensor of `shape`, outermost first, as parts of axes. A short
    /// group counts as a whole one. If groups end inside the axes of the shape, their axis counts
    /// as contiguous. If the order is unknown, the result is that of the shape.
    pub(crate) fn axis_dims(&self, shape: &[u64]) -> Vec<AxisDim> {
        let known = self.known_axis_dims(shape);
        let known = known.or_else(|| self.ungrouped().known_axis_dims(shape));
        known.unwrap_or_else(|| axes_of(shape).collect())
    }

    /// Returns the same order without the groups of its innermost axis, which becomes contiguous.
    pub(crate) fn ungrouped(&self) -> Self {
        match self {
            Self::Dims(memory) => memory.ungrouped(),
            Self::Linear | Self::Unknown => self.clone(),
        }
    }

    fn known_axis_dims(&self, shape: &[u64]) -> Option<Vec<AxisDim>> {
        match self {
            Self::Linear => Some(axes_of(shape).collect()),
            Self::Unknown => None,
            Self::Dims(memory) => memory.along(shape),
        }
    }

    /// Innermost run of contiguous elements: that of an axis of `shape`, or of memory itself if no
    /// axis is innermost.
    pub(crate) fn innermost(&self, shape: &[u64]) -> Innermost {
        if let Some(AxisDim { axis, size, step }) =
            self.known_axis_dims(shape).and_then(|dims| dims.last().copied())
        {
            return Innermost { step: Some(step * axis_step(shape, axis)), group: size };
        }
        match self {
            Self::Dims(memory) => {
                let last = memory.dims.last();
                Innermost { step: last.map(|dim| dim.step), group: last.map_or(1, |dim| dim.size) }
            }
            Self::Linear => Innermost { step: Some(1), group: 1 },
            Self::Unknown => Innermost { step: None, group: 1 },
        }
    }

    /// Number of contiguous elements along `axis` if it is innermost, otherwise 1.
    pub(crate) fn group_along(&self, shape: &[u64], axis: usize) -> u64 {
        let Innermost { step, group } = self.innermost(shape);
        if step == Some(axis_step(shape, axis)) { self.whole(group) } else { 1 }
    }

    /// Largest size that divides both `group` and the short group at the end of its axis.
    pub(crate) fn whole(&self, group: u64) -> u64 {
        match self {
            Self::Dims(MemoryDims { grouping, .. }) => gcd(group, grouping.rest),
            _ => group,
        }
    }

    /// Returns the same order after permuting axes: axis `i` is the former axis `permutation[i]`.
    pub(crate) fn permuted(&self, shape: &[u64], permutation: &[usize]) -> Self {
        let Some(ShapedMemory { dims: old, grouping }) = self.known_memory(shape) else {
            return Self::Unknown;
        };
        let turned: Vec<u64> = permutation.iter().map(|axis| shape[*axis]).collect();
        let new_steps = steps(&turned);
        let mut step_of = vec![1; shape.len()];
        for (new, old) in permutation.iter().enumerate() {
            step_of[*old] = new_steps[new];
        }
        let dims =
            old.iter().map(|dim| MemoryDim { step: dim.step * step_of[dim.axis], size: dim.size });
        MemoryDims::order(dims, grouping)
    }

    fn grouping(&self) -> Grouping {
        match self {
            Self::Dims(MemoryDims { grouping, .. }) => *grouping,
            Self::Linear | Self::Unknown => Grouping::NONE,
        }
    }

    /// Returns the same order with the axes of `shape` resized to `resized`, for a part of a tensor
    /// or for a tensor that contains it.
    pub(crate) fn resized(&self, shape: &[u64], resized: &[u64]) -> Self {
        if *self == Self::Linear || shape == resized {
            return self.clone();
        }
        let Some(mut memory) = self.known_memory(shape) else { return Self::Unknown };
        for axis in (0..shape.len()).filter(|axis| shape[*axis] != resized[*axis]) {
            memory.resize(axis, resized[axis]);
        }
        let new_steps = steps(resized);
        let dims = memory.dims.iter();
        let dims =
            dims.map(|dim| MemoryDim { step: dim.step * new_steps[dim.axis], size: dim.size });
        MemoryDims::order(dims, memory.grouping)
    }

    /// Dimensions of memory of a tensor of `shape`, outermost first, or `None` if they are unknown.
    fn memory_dims(&self, shape: &[u64]) -> Option<Vec<MemoryDim>> {
        match self {
            Self::Linear => {
                Some(vec![MemoryDim { step: 1, size: shape.iter().product::<u64>().max(1) }])
            }
            Self::Dims(memory) => Some(memory.dims.to_vec()),
            Self::Unknown => None,
        }
    }

    /// Memory of a tensor of `shape` with its groups, or `None` if the order is unknown.
    pub(super) fn memory(&self, shape: &[u64]) -> Option<OrderedMemory> {
        let mut dims = self.memory_dims(shape)?;
        let Self::Dims(memory) = self else { return Some(OrderedMemory { dims, short: None }) };
        let Grouping { rest, is_only, .. } = memory.grouping;
        if is_only && let Some(group) = dims.last_mut() {
            group.size = rest;
        }
        let short = memory.short_groups().map(|groups| ShortGroup { groups, rest });
        // Groups that are not counted by a dimension of their own have no known place.
        if rest > 0 && !is_only && short.is_none() {
            return None;
        }
        Some(OrderedMemory { dims, short })
    }

    /// Number of elements that stay adjacent between two orders of a tensor of `shape`.
    pub(crate) fn common_run(&self, other: &Self, shape: &[u64]) -> u64 {
        let dims = (self.memory_dims(shape), other.memory_dims(shape));
        let (Some(mut one), Some(mut two)) = dims else { return 1 };
        let mut run = 1;
        while let (Some(a), Some(b)) = (one.last_mut(), two.last_mut()) {
            if a.step != b.step {
                break;
            }
            let same = gcd(a.size, b.size);
            run *= same;
            if same < a.size && same < b.size {
                break;
            }
            for (dim, dims) in [(*a, &mut one), (*b, &mut two)] {
                dims.pop();
                if dim.size > same {
                    dims.push(MemoryDim { step: dim.step * same, size: dim.size / same });
                }
            }
        }
        // Rows of linear memory end inside groups that do not divide them.
        let is_linear = *self == Self::Linear || *other == Self::Linear;
        if is_linear { self.whole(other.whole(run)) } else { run }
    }

    /// Number of contiguous elements in a tensor of `shape` that is concatenated from, or cut into,
    /// multiples of `size` along `axis`.
    pub(crate) fn run_along(&self, shape: &[u64], axis: usize, size: u64) -> u64 {
        let Some(dims) = self.known_axis_dims(shape) else { return 1 };
        let mut run = 1;
        for dim in dims.iter().rev() {
            if dim.axis != axis || size.is_multiple_of(dim.step * dim.size) {
                run *= dim.size;
                continue;
            }
            run *= gcd(dim.size, (size / dim.step).max(1));
            break;
        }
        self.whole(run).max(1)
    }

    /// Dimensions of memory as in [`Self::axis_dims`], with their groups.
    pub(super) fn shaped(&self, shape: &[u64]) -> ShapedMemory {
        // If groups end inside the axes of the shape, none of its dimensions are groups.
        self.known_memory(shape).unwrap_or_else(|| ShapedMemory {
            dims: self.ungrouped().axis_dims(shape),
            grouping: Grouping::NONE,
        })
    }

    /// Dimensions of memory with their groups, or `None` if they are unknown or if the short group
    /// is not at the end of an axis of the shape.
    fn known_memory(&self, shape: &[u64]) -> Option<ShapedMemory> {
        let memory = ShapedMemory { dims: self.known_axis_dims(shape)?, grouping: self.grouping() };
        let Self::Dims(MemoryDims { dims, grouping }) = self else { return Some(memory) };
        let is_whole = memory.dims.last().map(|dim| dim.size) == dims.last().map(|dim| dim.size);
        let has_groups = grouping.is_only || memory.short_groups().is_some();
        if grouping.rest == 0 || (is_whole && has_groups) { Some(memory) } else { None }
    }

    /// Number and grouping of the groups that stay whole, with short ones counted as whole. `None`
    /// if there are no groups.
    pub(crate) fn groups(&self) -> Option<(u64, Grouping)> {
        let Self::Dims(MemoryDims { dims, grouping }) = self else { return None };
        if grouping.group <= 1 {
            return None;
        }
        let all: u64 = dims.iter().map(|dim| dim.size).product();
        Some((all / grouping.group, *grouping))
    }
}

#[cfg(test)]
impl ElementOrder {
    /// Returns true if every dimension of memory covers parts of single axes of the shape.
    pub(super) fn is_along(&self, shape: &[u64]) -> bool {
        self.known_memory(shape).is_some()
    }

    /// Flat indices of all elements in memory order, or `None` if the order is unknown.
    pub(crate) fn flat_indices(&self, shape: &[u64]) -> Option<Vec<u64>> {
        let dims = self.memory_dims(shape)?;
        let Grouping { rest, is_only, .. } = self.grouping();
        let groups = match self {
            Self::Dims(memory) => memory.short_groups(),
            _ => None,
        };
        // Flat index, and a flag for being in the last group.
        let mut found = vec![(0, is_only)];
        for (at, dim) in dims.iter().enumerate() {
            let is_group = at + 1 == dims.len();
            found = found
                .into_iter()
                .flat_map(|(before, is_last)| {
                    let size = if is_group && is_last { rest } else { dim.size };
                    (0..size).map(move |digit| {
                        let ends = groups == Some(at) && digit + 1 == dim.size;
                        (before + digit * dim.step, is_last || ends)
                    })
                })
                .collect();
        }
        Some(found.into_iter().map(|(index, _)| index).collect())
    }
}

/// Innermost run of contiguous elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Innermost {
    /// Distance in flat indices between its elements, or `None` if the order is unknown.
    pub step: Option<u64>,
    /// Number of contiguous elements.
    pub group: u64,
}

/// Returns the axes of `shape` as dimensions of linear memory.
fn axes_of(shape: &[u64]) -> impl Iterator<Item = AxisDim> {
    let axes = shape.iter().enumerate().filter(|(_, size)| **size != 1);
    axes.map(|(axis, size)| AxisDim { axis, size: *size, step: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    #[test]
    fn groups_stay_together_in_views() {
        let innermost = |order: &ElementOrder, shape: &[u64]| {
            let Innermost { step, group } = order.innermost(shape);
            (step, group)
        };
        // Heads cut the channels of a layer into pieces of 64.
        let channels = ElementOrder::grouped(&[1024, 1024], 1, 16);
        let heads = [8, 128, 16, 64];
        assert_eq!(innermost(&channels, &heads), (Some(1), 16));
        let by_head = channels.permuted(&heads, &[0, 2, 1, 3]);
        assert_eq!(innermost(&by_head, &[8, 16, 128, 64]), (Some(1), 16));
        let turned = channels.permuted(&heads, &[0, 2, 3, 1]);
        assert_eq!(innermost(&turned, &[8, 16, 64, 128]), (Some(128), 16));
        // Channels cut into groups of 4: every second pair of a run of 8 belongs to another group.
        let channels = ElementOrder::grouped(&[16, 12, 59, 59], 1, 8);
        assert_eq!(channels.run_along(&[16, 3, 4, 59, 59], 1, 1), 4);
        // Rows in groups of 16 keep them if a view cuts them into batches of 197.
        let rows = ElementOrder::grouped(&[3152, 768], 0, 16);
        assert_eq!(innermost(&rows, &[16, 197, 768]), (Some(768), 16));
        // Groups of 8 of 130 columns end in one of 2.
        let columns = ElementOrder::grouped(&[96, 130, 130], 1, 8);
        assert_eq!(columns.group_along(&[8, 12, 130, 130], 2), 2);
    }

    #[test]
    fn parts_keep_their_groups() {
        let order = ElementOrder::grouped(&[30, 64], 1, 16);
        assert_eq!(order.resized(&[30, 64], &[30, 192]), ElementOrder::grouped(&[30, 192], 1, 16));
        assert_eq!(order.resized(&[30, 64], &[7, 64]), ElementOrder::grouped(&[7, 64], 1, 16));
        assert_eq!(order.resized(&[30, 64], &[30, 40]), ElementOrder::grouped(&[30, 40], 1, 16));
        assert_eq!(order.resized(&[30, 64], &[30, 12]), ElementOrder::Linear);
        // Channels that are contiguous as a whole become one group of the concatenated channels.
        let whole = ElementOrder::grouped(&[4, 8, 9], 1, 8);
        assert_eq!(
            whole.resized(&[4, 8, 9], &[4, 24, 9]),
            ElementOrder::grouped(&[4, 24, 9], 1, 8)
        );
    }

    #[test]
    fn orders_are_compared_from_the_inside() {
        let shape = [6304, 768];
        let grouped = |axis, group| ElementOrder::grouped(&shape, axis, group);
        let run = |one: &ElementOrder, two: &ElementOrder| one.common_run(two, &shape);
        assert_eq!(run(&ElementOrder::Linear, &ElementOrder::Linear), 6304 * 768);
        assert_eq!(run(&ElementOrder::Linear, &grouped(1, 16)), 16);
        assert_eq!(run(&grouped(1, 48), &grouped(1, 32)), 16);
        assert_eq!(run(&grouped(0, 16), &grouped(1, 16)), 1);
        assert_eq!(run(&grouped(0, 16), &ElementOrder::Unknown), 1);
        let short = ElementOrder::grouped(&[30, 50], 1, 16);
        assert_eq!(short.common_run(&ElementOrder::Linear, &[30, 50]), 2);
    }

    fn order_of() -> impl Strategy<Value = (Vec<u64>, ElementOrder)> {
        (prop::collection::vec(1u64..70, 1..5), 0usize..5, 1u64..20).prop_map(
            |(shape, axis, group)| {
                let order = ElementOrder::grouped(&shape, axis % shape.len(), group);
                (shape, order)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn memory_holds_every_element((shape, order) in order_of()) {
            let elements: u64 = shape.iter().product();
            let held: u64 = order.axis_dims(&shape).iter().map(|dim| dim.size).product();
            let padded = order.groups().map_or(elements, |(count, of)| count * of.group);
            prop_assert_eq!(held, padded);
        }

        #[test]
        fn permuting_there_and_back_changes_nothing(
            (shape, order) in order_of(),
            turns in 0usize..5,
        ) {
            let there: Vec<usize> = (0..shape.len()).map(|axis| (axis + turns) % shape.len()).collect();
            let mut back = vec![0; shape.len()];
            for (new, old) in there.iter().enumerate() {
                back[*old] = new;
            }
            let turned: Vec<u64> = there.iter().map(|axis| shape[*axis]).collect();
            let there_order = order.permuted(&shape, &there);
            let found = there_order.permuted(&turned, &back);
            if there_order == ElementOrder::Linear {
                // Linear tensors have no groups, so a group that holds a whole axis is lost.
                prop_assert_eq!(found.ungrouped(), order.ungrouped());
            } else {
                prop_assert_eq!(found, order);
            }
            let linear = ElementOrder::Linear.permuted(&shape, &there).permuted(&turned, &back);
            prop_assert_eq!(linear, ElementOrder::Linear);
        }
    }
}
