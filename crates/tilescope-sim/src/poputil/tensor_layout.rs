//! Layout of a tensor on the tiles of its IPU.

use super::element_order::Grouping;
pub(crate) use super::element_order::{ElementOrder, Innermost};
use super::index_counts::IndexCounts;
use super::shape_hash::{hash, place};
use super::split_regions::{self, SplitBounds};
use crate::poplar::tile_runs::per_tile;
use crate::shape::gcd;
use std::ops::Range;
use tilescope_report::units::{Bytes, Elements, TileId, TileRange, TileRuns};

/// Location and order of the elements of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorLayout {
    /// Elements on each tile of the IPU, tiles numbered from 0.
    pub elements: TileRuns<Elements>,
    pub order: ElementOrder,
}

/// Minimum number of bytes of a tensor that `mapTensorLinearly` puts on one tile (poplibs
/// lib/poputil/TileMapping.cpp).
const LINEAR_MIN_BYTES: Bytes = Bytes(128);

/// Width of a load in bytes.
pub(crate) const LOAD_BYTES: Bytes = Bytes(8);

impl TensorLayout {
    /// Distributes elements evenly from tile 0 up, as `poputil::mapTensorLinearly` does: in grains
    /// of 8 bytes, at least 128 bytes per tile, on the smallest number of tiles that keeps the
    /// fullest one minimal (poplibs lib/poputil/TileMapping.cpp).
    pub(crate) fn linear(elements: Elements, element_bytes: Bytes, tiles: u32) -> Self {
        Self {
            elements: linear_mapping(elements, element_bytes, LINEAR_MIN_BYTES, tiles),
            order: ElementOrder::Linear,
        }
    }

    /// Distributes complete rows of `columns` elements evenly from tile 0 up.
    pub(crate) fn whole_rows(elements: Elements, columns: u64, tiles: u32) -> Self {
        let bounds = SplitBounds { grain: columns, most: tiles.into(), least: columns };
        let rows = split_regions::split_evenly(elements.0, bounds);
        let rows = rows.map(|part| Elements(part.end - part.start));
        Self { elements: per_tile(TileId(0).onwards().zip(rows)), order: ElementOrder::Linear }
    }

    /// Layout of one value for each of `elements` rows or channels of a tensor of `shape`: the
    /// width of a load on each tile, starting at a tile that depends on the shape. Poplibs uses the
    /// tiles of the tensor and wraps around after the last tile (lib/poputil/Util.cpp,
    /// createBroadcastOperand with dithering).
    pub(crate) fn broadcast_operand(
        shape: &[u64],
        elements: Elements,
        element_bytes: Bytes,
        tiles: u32,
    ) -> Self {
        let grain = (LOAD_BYTES / element_bytes).max(1);
        let bounds = SplitBounds { grain, most: tiles.into(), least: grain };
        let parts = split_regions::split_evenly(elements.0, bounds);
        let held =
            per_tile(TileId(0).onwards().zip(parts.map(|part| Elements(part.end - part.start))));
        // First tiles from which all parts fit without wrapping past the last tile.
        let free = tiles + 1 - held.tile_count();
        let held = held.shifted(place(hash(shape.iter().copied()), free));
        debug_assert_eq!(held.total(), elements, "tiles hold the whole operand");
        Self { elements: held, order: ElementOrder::Linear }
    }

    /// Number of elements of the innermost axis of a tensor of `shape` that are contiguous on one
    /// tile: the greatest common divisor of the group, the largest share of a tile, and the axis,
    /// because groups would otherwise end inside it (poplibs lib/poputil/VarStructure.cpp,
    /// detectDimGroupings).
    pub(crate) fn group_on_tile(&self, shape: &[u64]) -> u64 {
        let Innermost { group, .. } = self.order.innermost(shape);
        // A tile that holds less than a group, or ends inside one, leaves smaller runs.
        self.order.whole(gcd(group, self.elements.max().0.min(group)))
    }

    /// Layout of the part of a tensor of `shape` whose index along `axis` is in `range`, in place.
    pub(crate) fn slice(&self, shape: &[u64], axis: usize, range: Range<u64>) -> Self {
        debug_assert!(
            range.start <= range.end && range.end <= shape[axis],
            "{range:?} of {shape:?}"
        );
        let low = range.start;
        let high = range.end;
        self.kept(shape, axis, high - low, |index| index.clamp(low, high) - low)
    }

    /// Layout of the parts of a tensor of `shape` whose index along `axis` is in `indices`, in
    /// place. Repeated indices count repeatedly.
    pub(crate) fn pick(&self, shape: &[u64], axis: usize, indices: &[u64]) -> Self {
        let mut sorted = indices.to_vec();
        sorted.sort_unstable();
        self.kept(shape, axis, sorted.len() as u64, |index| {
            sorted.partition_point(|of| *of < index) as u64
        })
    }

    /// Layout of the kept parts of a tensor of `shape`, in place. `below` returns the number of
    /// kept indices along `axis` less than the given one, of `all` in total.
    fn kept(&self, shape: &[u64], axis: usize, all: u64, below: impl Fn(u64) -> u64) -> Self {
        let counts = IndexCounts::new(&self.order, shape, axis, below);
        let [mut held, mut before] = [0; 2];
        let mut elements = TileRuns::empty();
        for (tiles, count) in self.elements.iter() {
            for tile in tiles.iter() {
                held += count.0;
                let kept = counts.kept_of_first(held);
                if kept > before {
                    elements.push(TileRange::single(tile), Elements(kept - before));
                }
                before = kept;
            }
        }
        let mut resized = shape.to_vec();
        resized[axis] = all;
        Self { elements, order: self.order.resized(shape, &resized) }
    }

    /// Elements on each tile if groups stay whole and short ones at the end of an axis are padded,
    /// as planned operations leave them (poplibs lib/poplin/ConvReduce.cpp, partialGroupedReduce
    /// distributes whole groups).
    pub(crate) fn whole_groups(&self) -> TileRuns<Elements> {
        let all = self.elements.total().0;
        let Some((groups, grouping)) = self.order.groups() else {
            return self.elements.clone();
        };
        let Grouping { group, .. } = grouping;
        let mut before = 0;
        let mut last = 0;
        per_tile(
            self.elements
                .iter()
                .flat_map(|(tiles, count)| tiles.iter().map(move |tile| (tile, *count)))
                .map(|(tile, count)| {
                    before += count.0;
                    let at = group_border(before, all, groups, grouping);
                    let held = at - last;
                    last = at;
                    (tile, Elements(held.saturating_mul(group)))
                }),
        )
    }

    /// Bytes on each tile.
    pub(crate) fn bytes(&self, element_bytes: Bytes) -> TileRuns<Bytes> {
        self.elements.map(|count| *count * element_bytes)
    }
}

/// Index of the group that begins after `before` of `all` elements in `groups` groups. Borders move
/// to the nearest group, so no tile gains or loses more than half a group.
fn group_border(before: u64, all: u64, groups: u64, grouping: Grouping) -> u64 {
    let Grouping { group, rest, on_borders, .. } = grouping;
    if !on_borders || rest == 0 {
        return nearest_group(before, all, groups);
    }
    // Short groups come after the whole ones.
    let short = (groups * group).saturating_sub(all) / (group - rest);
    let whole = groups.saturating_sub(short);
    match before.checked_sub(whole * group) {
        Some(behind) => whole + nearest_group(behind, short * rest, short),
        None => nearest_group(before, whole * group, whole),
    }
}

/// Index of the group of equal size that begins nearest to element `elements` of `all`.
fn nearest_group(elements: u64, all: u64, groups: u64) -> u64 {
    let elements = u128::from(elements);
    let all = u128::from(all.max(1));
    let groups = u128::from(groups);
    u64::try_from((2 * elements * groups + all) / (2 * all)).unwrap_or(u64::MAX)
}

/// Elements of each tile if `elements` are distributed in grains of 8 bytes over the tiles, with at
/// least `min_bytes` on each.
pub(crate) fn linear_mapping(
    elements: Elements,
    element_bytes: Bytes,
    min_bytes: Bytes,
    tiles: u32,
) -> TileRuns<Elements> {
    let bounds = SplitBounds {
        grain: (LOAD_BYTES / element_bytes).max(1),
        most: u64::from(tiles),
        least: min_bytes.next_multiple_of(element_bytes) / element_bytes,
    };
    let counts = split_regions::split_evenly(elements.0, bounds);
    let counts = counts.map(|part| Some(Elements(part.end - part.start)));
    let mapping = TileRuns::from_tiles(TileId(0), counts);
    debug_assert_eq!(mapping.total(), elements, "every element is mapped once");
    mapping
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    #[test]
    fn small_tensors_stay_on_few_tiles() {
        assert_eq!(TensorLayout::linear(Elements(10), Bytes(4), 1472).elements.tile_count(), 1);
        assert_eq!(TensorLayout::linear(Elements(64), Bytes(4), 1472).elements.tile_count(), 2);
    }

    #[test]
    fn rows_stay_whole() {
        // 16 heads of 729 tokens: eight rows on each of 1,458 tiles, as in a public profile.
        let rows = TensorLayout::whole_rows(Elements(16 * 729 * 729), 729, 1472).elements;
        assert_eq!((rows.tile_count(), rows.max()), (1458, Elements(8 * 729)));
    }

    #[test]
    fn groups_stay_whole() {
        let held = |counts: &[u64]| {
            per_tile(TileId(0).onwards().zip(counts.iter().map(|count| Elements(*count))))
        };
        // 12 rows are one and a half groups. The half is padded.
        let order = ElementOrder::grouped(&[12, 5], 0, 8);
        let layout = TensorLayout { elements: held(&[20, 20, 20]), order };
        assert_eq!(layout.whole_groups(), held(&[24, 32, 24]));
        let order = ElementOrder::grouped(&[8, 5], 0, 8);
        let whole = TensorLayout { elements: held(&[16, 24]), order };
        assert_eq!(whole.whole_groups(), whole.elements);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        /// Tiles that begin and end at group borders hold those groups, with short ones counted as
        /// whole.
        #[test]
        fn tiles_that_end_at_groups_hold_whole_ones(
            [rows, columns, group] in [1u64..50, 1u64..50, 2u64..20],
            cuts in prop::collection::vec(0u64..3000, 0..12),
        ) {
            // A single row is in the order of the shape.
            prop_assume!(columns > group && rows > 1);
            let order = ElementOrder::grouped_by_tile(&[rows, columns], 1, group);
            let groups = columns.div_ceil(group) * rows;
            let short = if columns.is_multiple_of(group) { 0 } else { rows };
            let mut borders: Vec<u64> = cuts.iter().map(|cut| cut % (groups + 1)).collect();
            borders.extend([0, groups]);
            borders.sort_unstable();
            let before = |groups_before: u64| {
                let whole = groups_before.min(groups - short);
                whole * group + (groups_before - whole) * (columns % group)
            };
            let tiles = TileId(0).onwards().zip(borders.windows(2));
            let held = per_tile(
                tiles.clone().map(|(tile, of)| (tile, Elements(before(of[1]) - before(of[0])))),
            );
            let padded = per_tile(tiles.map(|(tile, of)| (tile, Elements((of[1] - of[0]) * group))));
            let found = TensorLayout { elements: held, order }.whole_groups();
            prop_assert_eq!(found.total(), Elements(groups * group));
            for (tiles, count) in padded.iter() {
                for tile in tiles.iter() {
                    prop_assert_eq!(found.get(tile), Some(count));
                }
            }
        }

        #[test]
        fn slices_cover_the_tensor(
            shape in prop::collection::vec(1u64..20, 1..4),
            axis in 0usize..4,
            inner in 0usize..4,
            group in 1u64..4,
            cut in 0u64..20,
            grouped in any::<bool>(),
        ) {
            let axis = axis % shape.len();
            let inner = inner % shape.len();
            let elements = shape.iter().product::<u64>();
            let mut layout = TensorLayout::linear(Elements(elements), Bytes(4), 40);
            if grouped {
                layout.order = ElementOrder::grouped(&shape, inner, group);
            }
            let cut = cut % (shape[axis] + 1);
            let low = layout.slice(&shape, axis, 0..cut).elements;
            let high = layout.slice(&shape, axis, cut..shape[axis]).elements;
            prop_assert_eq!(low.total() + high.total(), Elements(elements));
            prop_assert_eq!(low.total(), Elements(elements / shape[axis] * cut));
            let picked: Vec<u64> = (0..cut).collect();
            prop_assert_eq!(layout.pick(&shape, axis, &picked).elements, low);
            let twice: Vec<u64> = (0..shape[axis]).flat_map(|index| [index; 2]).collect();
            let doubled = layout.pick(&shape, axis, &twice).elements;
            prop_assert_eq!(doubled, layout.elements.map(|count| Elements(2 * count.0)));
        }

        /// Slices of a view that cuts an axis in two, possibly inside groups, and permutes the
        /// axes.
        #[test]
        fn slices_of_views_cover_the_tensor(
            shape in prop::collection::vec(1u64..40, 1..4),
            parts in 1u64..5,
            [axis, inner, turns] in [0usize..4, 0usize..4, 0usize..4],
            group in 1u64..12,
            cut in 0u64..40,
        ) {
            let inner = inner % shape.len();
            let mut whole = shape.clone();
            whole[inner] *= parts;
            let elements = Elements(whole.iter().product());
            let order = ElementOrder::grouped(&whole, inner, group);
            let mut view = shape.clone();
            view.insert(inner, parts);
            let turned: Vec<usize> = (0..view.len()).map(|at| (at + turns) % view.len()).collect();
            let order = order.permuted(&view, &turned);
            let view: Vec<u64> = turned.iter().map(|axis| view[*axis]).collect();
            let layout = TensorLayout { order, ..TensorLayout::linear(elements, Bytes(2), 40) };
            let axis = axis % view.len();
            let cut = cut % (view[axis] + 1);
            let [low, high] = [0..cut, cut..view[axis]]
                .map(|range| layout.slice(&view, axis, range).elements.total());
            prop_assert_eq!(low + high, elements);
            prop_assert_eq!(low, elements / view[axis] * cut);
        }

        #[test]
        fn every_element_has_one_tile(elements in 1u64..5_000_000, bytes in prop_oneof![Just(1u64), Just(2), Just(4)]) {
            let layout = TensorLayout::linear(Elements(elements), Bytes(bytes), 1216);
            prop_assert_eq!(layout.elements.total(), Elements(elements));
            prop_assert!(layout.elements.tile_count() <= 1216);
        }
    }
}
