//! Strided runs of tiles: equal runs at equal distances in one row.
//!
//! A planned operation distributes its work in a pattern that repeats along the tiles, with a
//! ragged last part now and then. As plain runs, every change takes a row; as strided runs, every
//! distinct value does:
//!
//! ```text
//!  tile    0 1 2 3 4 5 6 7 8 9 ...        value 5: first 0, length 2, every 3, times 4
//!  value   5 5 2 5 5 2 5 5 2 5 5          value 2: first 2, length 1, every 3, times 3
//! ```

use crate::units::{TileId, TileRange, TileRuns};
use std::collections::BTreeMap;

/// `times` runs of `length` tiles, the first at tile `first`, each `every` tiles after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StridedTileRuns {
    pub(super) first: TileId,
    pub(super) run_length: u32,
    /// At least `length`, so that runs do not overlap.
    pub(super) stride: u32,
    /// At least 1.
    pub(super) repeats: u32,
}

impl StridedTileRuns {
    /// A single run.
    pub(super) fn single_run(tiles: TileRange) -> Self {
        Self { first: tiles.first, run_length: tiles.count(), stride: tiles.count(), repeats: 1 }
    }

    /// Makes strided runs from columns of the file; none unless all tiles are among the first
    /// `tiles`.
    pub(super) fn checked(
        first: TileId,
        end: TileId,
        every: u32,
        times: u32,
        tiles: u32,
    ) -> Option<Self> {
        if first >= end {
            return None;
        }
        let length = end - first;
        let strided = Self { first, run_length: length, stride: every, repeats: times };
        let last = u64::from(first.0) + u64::from(every) * u64::from(times.checked_sub(1)?);
        if every >= length && last + u64::from(length) <= u64::from(tiles) {
            Some(strided)
        } else {
            None
        }
    }

    /// First tile after the first run.
    pub(super) fn first_run_end(&self) -> TileId {
        self.first + self.run_length
    }

    /// First tile after the last run.
    pub(super) fn last_run_end(&self) -> TileId {
        self.first_run_end() + self.stride * (self.repeats - 1)
    }

    pub(super) fn count(&self) -> u64 {
        u64::from(self.run_length) * u64::from(self.repeats)
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = TileRange> {
        let strided = *self;
        (0..strided.repeats).map(move |time| {
            let first = strided.first + strided.stride * time;
            TileRange::new(first, first + strided.run_length)
        })
    }

    /// Adds the next run of the same value if it continues the pattern. Returns false otherwise.
    fn extend(&mut self, tiles: TileRange) -> bool {
        let distance = tiles.first - (self.first + self.stride * (self.repeats - 1));
        let fits =
            tiles.count() == self.run_length && (self.repeats == 1 || distance == self.stride);
        debug_assert!(distance >= self.run_length, "runs come in tile order");
        if fits {
            (self.stride, self.repeats) = (distance, self.repeats + 1);
        }
        fits
    }
}

/// The strided form of `runs`, in the order of their first tiles.
pub(super) fn strided_runs_of<T: Clone + Ord>(runs: &TileRuns<T>) -> Vec<(StridedTileRuns, T)> {
    let mut open: BTreeMap<&T, usize> = BTreeMap::new();
    let mut all: Vec<(StridedTileRuns, T)> = Vec::new();
    for (tiles, value) in runs.iter() {
        let last = open.get(value).copied();
        if last.is_some_and(|last| all[last].0.extend(tiles)) {
            continue;
        }
        open.insert(value, all.len());
        all.push((StridedTileRuns::single_run(tiles), value.clone()));
    }
    debug_assert_eq!(
        all.iter().map(|(strided, _)| strided.count()).sum::<u64>(),
        u64::from(runs.tile_count()),
        "every tile is in one run"
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    #[test]
    fn a_repeating_pattern_is_a_row_per_value() {
        let tiles = (0..300u32).map(|tile| Some(if tile % 3 == 2 { 2u64 } else { 5 }));
        let all = strided_runs_of(&TileRuns::from_tiles(TileId(0), tiles));
        let five = StridedTileRuns { first: TileId(0), run_length: 2, stride: 3, repeats: 100 };
        let two = StridedTileRuns { first: TileId(2), run_length: 1, stride: 3, repeats: 100 };
        assert_eq!(all, [(five, 5), (two, 2)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn combs_cover_each_tile_once(tiles in prop::collection::vec(prop::option::of(0u64..3), 0..120)) {
            let runs = TileRuns::from_tiles(TileId(0), tiles.clone());
            let mut covered = vec![None; tiles.len()];
            for (strided, value) in strided_runs_of(&runs) {
                prop_assert_eq!(StridedTileRuns::checked(strided.first, strided.first_run_end(), strided.stride, strided.repeats, 120), Some(strided));
                for range in strided.ranges() {
                    for tile in range.iter() {
                        prop_assert_eq!(covered[tile.index()].replace(value), None);
                    }
                }
            }
            prop_assert_eq!(covered, tiles);
        }
    }
}
