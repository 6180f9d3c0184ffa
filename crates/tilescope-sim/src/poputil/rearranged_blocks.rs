//! Positions of the elements of a tensor in two layouts, as blocks.

use super::element_order::{AxisDim, ElementOrder, MemoryDim, OrderedMemory, axis_step};
use super::tensor_layout::TensorLayout;
use crate::poplar::routes::WorkRoute;
use crate::shape::TensorInfo;
use std::ops::Range;
use tilescope_report::{Rearrangement, RouteBlock, RouteBytes, RouteDim, RoutePattern};

/// Returns the position of every element of a tensor of type `ty` in both layouts. Positions follow
/// the memory of tiles, in tile order. `None` if an order is unknown, if the layouts contain
/// padding, or if groups of both orders overlap without dividing each other.
pub(crate) fn rearrangement(
    ty: &TensorInfo,
    from: &TensorLayout,
    to: &TensorLayout,
) -> Option<Rearrangement> {
    let elements = ty.elements();
    if from.elements.total() != elements || to.elements.total() != elements {
        return None;
    }
    let blocks = blocks(&ty.shape, [&from.order, &to.order])?;
    Some(Rearrangement { unit: ty.dtype.bytes(), blocks, memory: None })
}

/// Returns the route of a tensor of type `ty` from one layout to another, or `None` if elements of
/// either have no known place.
pub(crate) fn route_between(
    ty: &TensorInfo,
    from: &TensorLayout,
    to: &TensorLayout,
) -> Option<WorkRoute> {
    let order = rearrangement(ty, from, to)?;
    let pattern = if from.order == to.order {
        RoutePattern::InOrder
    } else {
        RoutePattern::Rearranged(order)
    };
    let bytes = ty.dtype.bytes();
    Some(WorkRoute { tiles: RouteBytes::of(&from.bytes(bytes), &to.bytes(bytes)), pattern })
}

/// Part of an axis whose last group is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupKind {
    /// All groups but the last one.
    Whole,
    /// The last group.
    Short,
}

/// Elements whose flat indices are `step` apart, and that both orders keep in one dimension.
#[derive(Clone, Copy, Debug)]
struct FlatDigit {
    step: u64,
    size: u64,
}

/// Position in memory as a function of the digits of the flat index, in one part of the tensor.
struct MemorySteps<'a> {
    memory: &'a OrderedMemory,
    kind: Option<GroupKind>,
    /// Distance in memory of adjacent elements of each dimension.
    steps: Vec<u64>,
    /// Position of the first element.
    first: u64,
}

impl<'a> MemorySteps<'a> {
    /// The parts of a tensor: one, or whole and short groups apart.
    fn parts(memory: &'a OrderedMemory) -> Vec<Self> {
        match memory.short {
            Some(_) => [GroupKind::Whole, GroupKind::Short]
                .map(|kind| Self::new(memory, Some(kind)))
                .into(),
            None => vec![Self::new(memory, None)],
        }
    }

    fn new(memory: &'a OrderedMemory, kind: Option<GroupKind>) -> Self {
        let dims = &memory.dims;
        let mut steps = vec![1; dims.len()];
        let mut inside = 1;
        let mut first = 0;
        for at in (0..dims.len()).rev() {
            steps[at] = inside;
            let size = dims[at].size;
            match memory.short {
                Some(short) if at + 1 == dims.len() => {
                    inside = if kind == Some(GroupKind::Short) { short.rest } else { size };
                }
                Some(short) if at == short.groups => {
                    // The last group is short for all of its inner dimensions.
                    let group = dims[dims.len() - 1].size;
                    let members: u64 =
                        dims[at + 1..dims.len() - 1].iter().map(|dim| dim.size).product();
                    steps[at] = members * group;
                    if kind == Some(GroupKind::Short) {
                        first = (size - 1) * members * group;
                    }
                    inside = members * ((size - 1) * group + short.rest);
                }
                _ => inside *= size,
            }
        }
        Self { memory, kind, steps, first }
    }

    /// The part of a digit along which the last group is short, or `None` if it is another digit.
    fn part_of(&self, digit: FlatDigit) -> Option<Range<u64>> {
        let axis = self.memory.short_axis()?;
        if axis.step != digit.step {
            return None;
        }
        let whole = self.memory.whole_elements();
        match self.kind? {
            GroupKind::Whole => Some(0..whole),
            GroupKind::Short => Some(whole..digit.size),
        }
    }

    /// Sizes of the whole groups of a digit, smallest first.
    fn groups_of(&self, digit: FlatDigit) -> Vec<u64> {
        if self.part_of(digit).is_some() {
            let group = self.memory.dims.last().filter(|_| self.kind == Some(GroupKind::Whole));
            return group.map(|group| group.size).into_iter().collect();
        }
        let mut groups = Vec::new();
        for (_, dim) in self.memory.dims_of_whole_groups() {
            if digit.step < dim.step && dim.step < digit.step * digit.size {
                groups.push(dim.step / digit.step);
            }
        }
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Distance in memory of elements that are `unit` apart along a digit. `None` if no dimension
    /// contains both.
    fn step(&self, digit: FlatDigit, unit: u64) -> Option<u64> {
        if self.part_of(digit).is_some() {
            let last = self.steps.last()?;
            return match (self.groups_of(digit).first(), self.memory.short) {
                (Some(group), Some(short)) if unit >= *group => {
                    Some(self.steps[short.groups] * (unit / group))
                }
                _ => Some(last * unit),
            };
        }
        let flat = digit.step * unit;
        for (at, dim) in self.memory.dims_of_whole_groups() {
            if dim.step <= flat && flat < dim.step * dim.size {
                return Some(self.steps[at] * (flat / dim.step));
            }
        }
        None
    }

    /// Position of an element of a digit relative to the first element of its part.
    fn position(&self, digit: FlatDigit, at: u64) -> Option<u64> {
        let mut rest = at - self.part_of(digit).map_or(0, |part| part.start);
        let mut position = 0;
        for group in self.groups_of(digit).into_iter().rev() {
            position += self.step(digit, group)? * (rest / group);
            rest %= group;
        }
        Some(position + self.step(digit, 1)? * rest)
    }
}

/// Elements of one axis that are in a dimension of memory of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisDigit {
    /// Distance of the elements along the axis.
    pub step: u64,
    pub size: u64,
    /// Their distance in memory.
    pub memory: u64,
}

/// Positions of the elements of a part of one axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct AxisMemory {
    /// The part of the axis, from whose start on digits count.
    pub part: Range<u64>,
    /// Digits of an index, the least significant first.
    pub digits: Vec<AxisDigit>,
}

/// Positions of the elements of a part of a tensor, axis by axis.
#[derive(Clone, Debug)]
pub(crate) struct PartMemory {
    /// Position of the first element.
    pub first: u64,
    pub axes: Vec<AxisMemory>,
}

/// Returns the parts of a tensor of `shape` in which the position of an element is a sum over its
/// axes: two if a group is short. `None` if a dimension of memory is not along axes of the shape.
pub(crate) fn memory_by_axis(order: &ElementOrder, shape: &[u64]) -> Option<Vec<PartMemory>> {
    let memory = order.memory(shape)?;
    MemorySteps::parts(&memory).iter().map(|part| part_memory(part, shape)).collect()
}

fn part_memory(steps: &MemorySteps, shape: &[u64]) -> Option<PartMemory> {
    let memory = steps.memory;
    let mut axes: Vec<AxisMemory> =
        shape.iter().map(|size| AxisMemory { part: 0..*size, digits: Vec::new() }).collect();
    let groups = memory.short.map(|short| (short.groups, short.rest));
    for (at, dim) in memory.dims.iter().enumerate() {
        let is_group = groups.is_some() && at + 1 == memory.dims.len();
        let size = match (groups, steps.kind) {
            (Some((groups, _)), Some(GroupKind::Whole)) if groups == at => dim.size - 1,
            (Some((groups, _)), Some(GroupKind::Short)) if groups == at => 1,
            (Some((_, rest)), Some(GroupKind::Short)) if is_group => rest,
            _ => dim.size,
        };
        let mut inside = steps.steps[at];
        let parts = MemoryDim { step: dim.step, size }.parts_of_axes(shape)?;
        for AxisDim { axis, size, step } in parts.into_iter().rev() {
            axes[axis].digits.push(AxisDigit { step, size, memory: inside });
            inside *= size;
        }
    }
    for (axis, memory_of_axis) in axes.iter_mut().enumerate() {
        let digit = FlatDigit { step: axis_step(shape, axis), size: shape[axis] };
        if shape[axis] > 1 {
            memory_of_axis.part = steps.part_of(digit).unwrap_or(0..shape[axis]);
        }
        let part = &memory_of_axis.part;
        memory_of_axis.digits.sort_unstable_by_key(|digit| digit.step);
        let mut below = 1;
        for digit in &memory_of_axis.digits {
            if digit.step != below {
                return None;
            }
            below *= digit.size;
        }
        if below != (part.end - part.start).max(1) {
            return None;
        }
    }
    Some(PartMemory { first: steps.first, axes })
}

/// Blocks of elements at regular distances in both orders of a tensor of `shape`.
fn blocks(shape: &[u64], orders: [&ElementOrder; 2]) -> Option<Vec<RouteBlock>> {
    let memories = [orders[0].memory(shape)?, orders[1].memory(shape)?];
    let digits = common_digits(&memories)?;
    // Short groups of both orders may be of axes that contain each other, after a reshape.
    for axis in memories.iter().filter_map(OrderedMemory::short_axis) {
        if !digits.iter().any(|digit| digit.step == axis.step && digit.size == axis.size) {
            return None;
        }
    }
    let [from, to] = memories.each_ref().map(MemorySteps::parts);
    let mut blocks = Vec::new();
    for from in &from {
        for to in &to {
            blocks.extend(block(&digits, [from, to])?);
        }
    }
    debug_assert_eq!(
        blocks.iter().map(RouteBlock::units).sum::<u64>(),
        shape.iter().product::<u64>(),
        "every element is in one block"
    );
    Some(blocks)
}

/// The digits of flat indices that no dimension of either order cuts, innermost first. An axis with
/// a short group is one digit. `None` if dimensions overlap without dividing each other.
fn common_digits(memories: &[OrderedMemory; 2]) -> Option<Vec<FlatDigit>> {
    let mut borders = Vec::new();
    for memory in memories {
        for dim in memory.whole_dims() {
            borders.extend([dim.step, dim.step * dim.size]);
        }
    }
    borders.push(1);
    borders.sort_unstable();
    borders.dedup();
    if borders.windows(2).any(|pair| !pair[1].is_multiple_of(pair[0])) {
        return None;
    }
    // Groups of the other order may divide an axis that has a short group in this one.
    for axis in memories.iter().filter_map(OrderedMemory::short_axis) {
        borders.retain(|border| *border <= axis.step || axis.step * axis.size <= *border);
    }
    let mut digits = Vec::new();
    for pair in borders.windows(2) {
        digits.push(FlatDigit { step: pair[0], size: pair[1] / pair[0] });
    }
    Some(digits)
}

/// The block of the elements in the given parts of both orders: none if the parts do not overlap.
fn block(digits: &[FlatDigit], sides: [&MemorySteps; 2]) -> Option<Vec<RouteBlock>> {
    let mut dims: Vec<RouteDim> = Vec::new();
    let mut first = [sides[0].first, sides[1].first];
    for digit in digits {
        let mut part = 0..digit.size;
        let mut groups = Vec::new();
        for side in sides {
            if let Some(own) = side.part_of(*digit) {
                part = part.start.max(own.start)..part.end.min(own.end);
            }
            groups.extend(side.groups_of(*digit));
        }
        if part.is_empty() {
            return Some(Vec::new());
        }
        groups.sort_unstable();
        groups.dedup();
        for (first, side) in first.iter_mut().zip(sides) {
            *first += side.position(*digit, part.start)?;
        }
        let mut unit = 1;
        let length = part.end - part.start;
        for end in groups.into_iter().chain([length]) {
            let largest = end.min(length);
            // A part begins at a group, or is inside one.
            let before = part.start % end;
            let is_length = end == length;
            if !largest.is_multiple_of(unit) || (!is_length && before > 0 && before + length > end)
            {
                return None;
            }
            push_dim(
                &mut dims,
                RouteDim {
                    count: largest / unit,
                    sent_step: sides[0].step(*digit, unit)?,
                    received_step: sides[1].step(*digit, unit)?,
                },
            );
            unit = largest;
        }
    }
    dims.reverse();
    Some(vec![RouteBlock { sent_at: first[0], received_at: first[1], dims }])
}

/// Appends a dimension outside the others, joined with the last one if it continues it.
fn push_dim(dims: &mut Vec<RouteDim>, dim: RouteDim) {
    if dim.count == 1 {
        return;
    }
    match dims.last_mut() {
        Some(last)
            if last.sent_step * last.count == dim.sent_step
                && last.received_step * last.count == dim.received_step =>
        {
            last.count *= dim.count;
        }
        _ => dims.push(dim),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseResult;
    use tilescope_report::TileEnds;
    use tilescope_report::units::TileId;
    use tilescope_test_tiers::cases;

    /// Positions of all units on both sides.
    pub(crate) fn positions(blocks: &[RouteBlock]) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        for block in blocks {
            let mut found = vec![(block.sent_at, block.received_at)];
            for dim in &block.dims {
                let mut longer = Vec::new();
                for (sent, received) in found {
                    for at in 0..dim.count {
                        longer.push((sent + at * dim.sent_step, received + at * dim.received_step));
                    }
                }
                found = longer;
            }
            all.extend(found);
        }
        all.sort_unstable();
        all
    }

    /// The tile of each position in the memory of one side.
    pub(crate) fn owners(ends: &TileEnds, unit: u64) -> Vec<TileId> {
        let mut owners = Vec::new();
        for (tile, end) in ends {
            owners.resize(usize::try_from(end / unit).unwrap(), *tile);
        }
        owners
    }

    fn order(shape: &[u64], axis: usize, group: u64, turns: usize) -> ElementOrder {
        // A view with its axes in another order keeps the memory of the original.
        let turned: Vec<usize> = (0..shape.len()).map(|at| (at + turns) % shape.len()).collect();
        let mut there = vec![0; shape.len()];
        for (new, old) in turned.iter().enumerate() {
            there[*old] = shape[new];
        }
        ElementOrder::grouped(&there, axis % shape.len(), group).permuted(&there, &turned)
    }

    /// Compares the blocks between two orders of `shape` with the positions of all its elements.
    fn check(shape: &[u64], orders: &[ElementOrder; 2], groups: [u64; 2]) -> TestCaseResult {
        let found = blocks(shape, [&orders[0], &orders[1]]);
        let flat = orders.each_ref().map(|order| order.flat_indices(shape));
        let [Some(sent), Some(received)] = flat else {
            prop_assert!(found.is_none());
            return Ok(());
        };
        let [one, other] = groups;
        let divides = one.is_multiple_of(other) || other.is_multiple_of(one);
        // Only groups of one axis that do not divide each other have no blocks.
        let Some(found) = found else {
            prop_assert!(!divides, "{orders:?}");
            return Ok(());
        };
        let mut place = vec![0; received.len()];
        for (at, flat) in (0u64..).zip(&received) {
            place[usize::try_from(*flat).unwrap()] = at;
        }
        let sent = (0u64..).zip(&sent);
        let wanted: Vec<(u64, u64)> =
            sent.map(|(at, flat)| (at, place[usize::try_from(*flat).unwrap()])).collect();
        prop_assert_eq!(positions(&found), wanted, "{:?}", orders);
        Ok(())
    }

    /// Every pair of groups of one axis, whole and short.
    #[test]
    fn groups_of_one_axis_in_both_orders_have_blocks() {
        for size in 1..24 {
            for groups in (1..10).flat_map(|one| (1..10).map(move |other| [one, other])) {
                for turns in [[0, 0], [0, 1], [1, 0], [1, 1]] {
                    // The axis of `size` is grouped in both orders, wherever the view has it.
                    let shape = [size, 2];
                    let orders = [0, 1].map(|at| order(&shape, turns[at], groups[at], turns[at]));
                    check(&shape, &orders, groups).unwrap();
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(500)))]
        #[test]
        fn blocks_are_the_positions_of_all_elements(
            shape in prop::collection::vec(1u64..24, 1..4),
            axes in [0usize..3, 0..3],
            groups in [1u64..10, 1..10],
            turns in [0usize..3, 0..3],
        ) {
            let orders = [0, 1].map(|side| order(&shape, axes[side], groups[side], turns[side]));
            check(&shape, &orders, groups)?;
        }
    }
}
