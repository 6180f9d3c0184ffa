//! Senders and receivers of the operands of a pooling.

use crate::poplar::routes::{WorkRoute, WorkRoutes, unrouted};
use crate::poputil::axis_pieces::{
    AxisIndices, AxisPiece, MAX_BLOCKS, axis_pieces, combined, joined_at,
};
use crate::poputil::rearranged_blocks::memory_by_axis;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorInfo;
use std::ops::Range;
use tilescope_report::units::{TileId, TileRange, TileRuns};
use tilescope_report::{Rearrangement, RouteBlock, RouteBytes, RouteMemory, TileTraffic};

/// An operand of a pooling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolOperand<'a> {
    pub ty: &'a TensorInfo,
    pub layout: &'a TensorLayout,
    /// True if a result reads only the element at its own place.
    pub is_like_result: bool,
}

/// Parts of an operand that the tiles read: a range of each axis, for tiles from 0 on.
pub(super) struct OperandBoxes {
    pub ranges: Vec<Vec<Range<u64>>>,
    /// Numbers of parts whose product is the number of tiles, outermost first.
    pub parts: Vec<u64>,
}

/// The route of an operand from its layout to the tiles that read it. `None` if it has no simple
/// form.
pub(super) fn route_to_boxes(
    ty: &TensorInfo,
    layout: &TensorLayout,
    boxes: &OperandBoxes,
) -> Option<WorkRoute> {
    if layout.elements.total() != ty.elements() {
        return None;
    }
    let element = ty.dtype.bytes();
    let mut received = TileRuns::empty();
    let mut pieces = Vec::new();
    let parts = memory_by_axis(&layout.order, &ty.shape)?;
    let mut before = 0;
    for (tile, ranges) in TileId(0).onwards().zip(&boxes.ranges) {
        let sizes = ranges.iter().map(|range| range.end - range.start);
        let elements: u64 = sizes.product();
        received.push(TileRange::single(tile), elements * element);
        let mut of_tile = Vec::new();
        for part in &parts {
            let first = AxisPiece { sent_at: part.first, received_at: before, dims: Vec::new() };
            let mut found = vec![first];
            let mut received_step = elements;
            for (memory, range) in part.axes.iter().zip(ranges) {
                let count = range.end - range.start;
                received_step /= count.max(1);
                let first = range.start;
                let indices = AxisIndices { first, count, step: 1, received_at: 0, received_step };
                found = combined(&found, &axis_pieces(memory, indices)?);
            }
            of_tile.extend(found);
        }
        if of_tile.len() > MAX_BLOCKS {
            return None;
        }
        pieces.push(of_tile);
        before += elements;
    }
    for count in boxes.parts.iter().rev() {
        let chunks = pieces.chunks(usize::try_from(*count).ok()?.max(1));
        pieces = chunks.map(|chunk| joined_at(chunk, 1)).collect();
    }
    let mut blocks = Vec::new();
    for AxisPiece { sent_at, received_at, dims } in pieces.into_iter().flatten() {
        blocks.push(RouteBlock { sent_at, received_at, dims });
    }
    if blocks.len() > MAX_BLOCKS {
        return None;
    }
    let bytes = RouteBytes::of(&layout.bytes(element), &received);
    let memory = Some(RouteMemory { bytes, receivers: None });
    WorkRoute::of_memory(Rearrangement { unit: element, blocks, memory })
}

/// Routes of an exchange with `traffic`, of whose bytes `known` carry a part. Channels that fill
/// groups have no senders. The model lets tiles send as much of them as they receive.
pub(super) fn with_rest(traffic: &TileRuns<TileTraffic>, known: Vec<WorkRoute>) -> WorkRoutes {
    if known.is_empty() {
        return WorkRoutes::default();
    }
    let rest = unrouted(&traffic.map(|tile| tile.bytes_in), &known);
    let mut routes = known;
    if let Some(end) = rest.end() {
        routes.push(WorkRoute::of_unknown_order(RouteBytes::of(&rest, &rest), end));
    }
    WorkRoutes::new(traffic, routes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poputil::rearranged_blocks::tests::{owners, positions};
    use crate::poputil::tensor_layout::ElementOrder;
    use crate::shape::DType;
    use proptest::prelude::*;
    use tilescope_report::RoutePattern;
    use tilescope_report::units::Elements;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(200)))]
        /// Overlapping boxes of a tensor in any order get exactly their elements, from the tiles
        /// that hold them.
        #[test]
        fn boxes_get_their_elements(
            shape in prop::collection::vec(1u64..9, 3),
            [axis, group] in [0..3u64, 1..5],
            [rows, columns] in [1..4u64, 1..4],
            overlap in 0..3u64,
            each in 1..20u64,
        ) {
            let ty = TensorInfo { shape: shape.clone(), dtype: DType::Half };
            let order = ElementOrder::grouped(&shape, axis as usize, group);
            let mut left = ty.elements().0;
            let mut held = Vec::new();
            while left > 0 {
                held.push(Some(Elements(each.min(left))));
                left -= each.min(left);
            }
            let layout = TensorLayout { elements: TileRuns::from_tiles(TileId(0), held), order };
            let cut = |size: u64, parts: u64, at: u64| {
                let start = at * size / parts;
                start..((at + 1) * size / parts + overlap).min(size).max(start)
            };
            let mut ranges = Vec::new();
            for row in 0..rows {
                for column in 0..columns {
                    let rows = cut(shape[1], rows, row);
                    ranges.push(vec![0..shape[0], rows, cut(shape[2], columns, column)]);
                }
            }
            let boxes = OperandBoxes { ranges, parts: vec![rows, columns] };
            let Some(route) = route_to_boxes(&ty, &layout, &boxes) else {
                prop_assert!(memory_by_axis(&layout.order, &shape).is_none());
                return Ok(());
            };
            let RoutePattern::Rearranged(order) = &route.pattern else { unreachable!() };
            let [sent, received] = order.memory_of(&route.tiles).map(|ends| owners(&ends, 2));
            let mut found = Vec::new();
            for (from, to) in positions(&order.blocks) {
                found.push((from, sent[from as usize], received[to as usize]));
            }
            let flat = layout.order.flat_indices(&shape).unwrap();
            let mut wanted = Vec::new();
            for (tile, ranges) in TileId(0).onwards().zip(&boxes.ranges) {
                for (position, flat) in (0u64..).zip(&flat) {
                    let index = [flat / shape[2] / shape[1], flat / shape[2] % shape[1], flat % shape[2]];
                    if ranges.iter().zip(index).all(|(range, index)| range.contains(&index)) {
                        wanted.push((position, sent[position as usize], tile));
                    }
                }
            }
            found.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }
}
