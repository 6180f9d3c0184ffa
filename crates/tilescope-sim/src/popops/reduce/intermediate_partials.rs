//! Partial results between the stages of a reduction: columns on each tile, and tiles of each
//! column (poplibs lib/popops/reduction/IntermediatePartials.cpp).

use std::ops::Range;
use tilescope_report::units::TileId;

/// Columns for which each tile holds one partial result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IntermediatePartials {
    /// Tiles in order, each with its columns as sorted, disjoint, non-touching ranges.
    pub tiles: Vec<(TileId, Vec<Range<u64>>)>,
}

/// Adjacent columns that are on the same tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartialsSources {
    pub columns: Range<u64>,
    /// Tiles that hold the columns, in ascending order.
    pub tiles: Vec<TileId>,
}

/// Sorts ranges and joins those that touch or overlap.
pub(crate) fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut found: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match found.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => found.push(range),
        }
    }
    found
}

impl IntermediatePartials {
    /// Number of partial results on all tiles.
    pub(crate) fn elements(&self) -> u64 {
        self.tiles.iter().map(|(_, columns)| super::introspection::width(columns)).sum()
    }

    /// Stretches of columns between any borders of any tile, each with its tiles.
    pub(crate) fn stretches(&self) -> Vec<PartialsSources> {
        let mut borders = Vec::new();
        for range in self.tiles.iter().flat_map(|(_, columns)| columns) {
            borders.extend([range.start, range.end]);
        }
        borders.sort_unstable();
        borders.dedup();
        let mut found: Vec<PartialsSources> = borders
            .windows(2)
            .map(|pair| PartialsSources { columns: pair[0]..pair[1], tiles: Vec::new() })
            .collect();
        for (tile, columns) in &self.tiles {
            for range in columns {
                let first = borders.partition_point(|border| *border < range.start);
                for stretch in &mut found[first..] {
                    if stretch.columns.start >= range.end {
                        break;
                    }
                    stretch.tiles.push(*tile);
                }
            }
        }
        found.retain(|stretch| !stretch.tiles.is_empty());
        found
    }
}

/// Joins adjacent stretches on the same tiles.
pub(crate) fn joined(stretches: &[PartialsSources]) -> Vec<PartialsSources> {
    let mut found: Vec<PartialsSources> = Vec::new();
    for stretch in stretches {
        match found.last_mut() {
            Some(last)
                if last.columns.end == stretch.columns.start && last.tiles == stretch.tiles =>
            {
                last.columns.end = stretch.columns.end;
            }
            _ => found.push(stretch.clone()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_know_their_tiles() {
        let partials = IntermediatePartials {
            tiles: vec![(TileId(0), vec![0..8]), (TileId(3), vec![4..8, 12..16])],
        };
        let found: Vec<_> =
            partials.stretches().into_iter().map(|s| (s.columns, s.tiles)).collect();
        assert_eq!(
            found,
            [
                (0..4, vec![TileId(0)]),
                (4..8, vec![TileId(0), TileId(3)]),
                (12..16, vec![TileId(3)])
            ]
        );
    }

    #[test]
    fn equal_neighbours_join() {
        let stretch =
            |columns: Range<u64>| PartialsSources { columns, tiles: vec![TileId(1), TileId(2)] };
        assert_eq!(joined(&[stretch(0..4), stretch(4..6), stretch(8..9)]).len(), 2);
    }
}
