//! Stretches of a tensor's memory on tiles, and classes of equal shape.
//!
//! Most tiles of a reduction hold stretches that differ only in their position. The analysis of one
//! of them is valid for all, with other columns.

use super::introspection::{self, ColumnPiece, PartialsDescription, ReduceDim};
use crate::poplar::tile_runs::per_tile;
use std::collections::HashMap;
use std::ops::Range;
use tilescope_report::units::{Elements, TileId, TileRuns};

/// Shape of a stretch of memory, independent of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoryStretchShape {
    /// Outermost dimension that may vary within the stretch. All dimensions outside it have a
    /// single index.
    dim: usize,
    /// Number of elements between the last change of the outer indices and the stretch.
    start: u64,
    length: u64,
}

impl MemoryStretchShape {
    /// Returns the shape of a stretch of a tensor with these collapsed dimensions, and the column
    /// from which its own columns are counted.
    pub(crate) fn from_range(dims: &[ReduceDim], range: &Range<u64>) -> (Self, u64) {
        // Elements and columns of one index of a dimension.
        let mut elements = 1;
        let mut columns = 1;
        let mut at = dims.len().saturating_sub(1);
        while at > 0 {
            let ReduceDim { size, reduced } = dims[at];
            let all = elements * size;
            // The stretch is within one index of this dimension. Outer dimensions only shift the
            // columns, so the shape omits them and more tiles have equal shapes.
            if range.start / all == range.end.saturating_sub(1) / all {
                break;
            }
            elements = all;
            columns *= if reduced { 1 } else { size };
            at -= 1;
        }
        let outer = &dims[..dims.len().min(at + 1)];
        let first = introspection::column(outer, range.start / elements) * columns;
        let start = range.start % elements;
        let length = range.end - range.start;
        (Self { dim: at, start, length }, first)
    }

    fn range(&self) -> Range<u64> {
        self.start..self.start + self.length
    }

    /// Groups of its columns.
    pub(crate) fn groups(&self, dims: &[ReduceDim]) -> Vec<PartialsDescription> {
        introspection::groups(&dims[self.dim..], self.range())
    }

    /// Its elements in memory order.
    pub(crate) fn pieces(&self, dims: &[ReduceDim]) -> Vec<ColumnPiece> {
        introspection::pieces(&dims[self.dim..], self.range())
    }

    /// Number of its different columns.
    fn columns(&self, dims: &[ReduceDim]) -> u64 {
        introspection::columns(&dims[self.dim..], self.range())
    }
}

/// Number of different columns with elements on each tile.
pub(crate) fn columns_on_tiles(dims: &[ReduceDim], input: &TileRuns<Elements>) -> TileRuns<u64> {
    let mut known: HashMap<MemoryStretchShape, u64> = HashMap::new();
    per_tile(stretches(input).map(|(tile, range)| {
        let (shape, _) = MemoryStretchShape::from_range(dims, &range);
        (tile, *known.entry(shape).or_insert_with(|| shape.columns(dims)))
    }))
}

/// Returns each tile with its stretch of memory.
pub(crate) fn stretches(input: &TileRuns<Elements>) -> impl Iterator<Item = (TileId, Range<u64>)> {
    let mut next = 0;
    input
        .iter()
        .flat_map(|(tiles, elements)| tiles.iter().map(move |tile| (tile, *elements)))
        .filter(|(_, elements)| !elements.is_zero())
        .map(move |(tile, elements)| {
            let start = next;
            next += elements.0;
            (tile, start..next)
        })
}

#[cfg(test)]
mod tests {
    use super::super::introspection::tests::{dims, stretch};
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn a_stretch_has_the_same_groups_from_its_first_column(
            dims in dims(),
            [from, to] in [0u64..1000, 0u64..1000],
        ) {
            let dims = introspection::collapse(&dims);
            let range = stretch(&dims, from, to);
            prop_assume!(!range.is_empty());
            let (shape, first) = MemoryStretchShape::from_range(&dims, &range);
            let mut groups = shape.groups(&dims);
            for columns in groups.iter_mut().flat_map(|group| &mut group.columns) {
                *columns = columns.start + first..columns.end + first;
            }
            prop_assert_eq!(groups, introspection::groups(&dims, range.clone()));
            prop_assert_eq!(shape.columns(&dims), introspection::columns(&dims, range));
        }
    }

    #[test]
    fn stretches_within_a_row_of_groups_have_equal_shapes() {
        let dims = [(48, true), (4096, false), (16, true)];
        let dims = dims.map(|(size, reduced)| ReduceDim { size, reduced });
        let (one, first) = MemoryStretchShape::from_range(&dims, &(3..2003));
        let (other, later) = MemoryStretchShape::from_range(&dims, &(65_536 + 163..65_536 + 2163));
        assert_eq!((one, first, later), (other, 0, 10));
    }
}
