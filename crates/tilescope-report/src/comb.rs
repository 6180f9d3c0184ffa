//! Runs of tiles as combs: equal runs at equal distances in one row.
//!
//! A planned operation deals its work out in a pattern that repeats from tile to tile, a ragged
//! last part every so often. As plain runs that is a row for every change; as combs it is a row
//! per distinct value:
//!
//! ```text
//!  tile    0 1 2 3 4 5 6 7 8 9 ...        value 5: first 0, length 2, every 3, times 4
//!  value   5 5 2 5 5 2 5 5 2 5 5          value 2: first 2, length 1, every 3, times 3
//! ```

use crate::units::{TileRange, TileRuns};
use std::collections::BTreeMap;

/// `times` runs of `length` tiles, the first at tile `first`, each `every` tiles after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comb {
    pub(super) first: u32,
    pub(super) length: u32,
    /// At least `length`, so that runs do not overlap.
    pub(super) every: u32,
    /// At least 1.
    pub(super) times: u32,
}

impl Comb {
    /// A comb of one run.
    pub(super) fn one(tiles: TileRange) -> Self {
        Self { first: tiles.first, length: tiles.count(), every: tiles.count(), times: 1 }
    }

    /// The comb of these columns, if all its tiles are among the first `tiles`.
    pub(super) fn checked(
        first: u32,
        end: u32,
        every: u32,
        times: u32,
        tiles: u32,
    ) -> Option<Self> {
        let length = end.checked_sub(first).filter(|length| *length > 0)?;
        let comb = Self { first, length, every, times };
        let last = u64::from(first) + u64::from(every) * u64::from(times.checked_sub(1)?);
        (every >= length && last + u64::from(length) <= u64::from(tiles)).then_some(comb)
    }

    /// First tile after the first run.
    pub(super) fn end(&self) -> u32 {
        self.first + self.length
    }

    /// First tile after the last run.
    pub(super) fn end_of_all(&self) -> u32 {
        self.end() + self.every * (self.times - 1)
    }

    pub(super) fn count(&self) -> u64 {
        u64::from(self.length) * u64::from(self.times)
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = TileRange> {
        let comb = *self;
        (0..comb.times).map(move |time| {
            let first = comb.first + comb.every * time;
            TileRange::new(first, first + comb.length)
        })
    }

    /// Whether a run shares a tile with `tiles`.
    pub(super) fn meets(&self, tiles: TileRange) -> bool {
        self.ranges().any(|run| run.first < tiles.end && tiles.first < run.end)
    }

    /// Takes the next run of the same value in, if it continues the pattern.
    fn extend(&mut self, tiles: TileRange) -> bool {
        let distance = tiles.first - (self.first + self.every * (self.times - 1));
        let fits = tiles.count() == self.length && (self.times == 1 || distance == self.every);
        if fits {
            (self.every, self.times) = (distance, self.times + 1);
        }
        fits
    }
}

/// The combs of `runs`, in the order of their first tiles.
pub(super) fn combs<T: Clone + Ord>(runs: &TileRuns<T>) -> Vec<(Comb, T)> {
    let mut open: BTreeMap<&T, usize> = BTreeMap::new();
    let mut combs: Vec<(Comb, T)> = Vec::new();
    for (tiles, value) in runs.iter() {
        let last = open.get(value).copied();
        if last.is_some_and(|last| combs[last].0.extend(tiles)) {
            continue;
        }
        open.insert(value, combs.len());
        combs.push((Comb::one(tiles), value.clone()));
    }
    combs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_repeating_pattern_is_a_row_per_value() {
        let tiles = (0..300u32).map(|tile| Some(if tile % 3 == 2 { 2u64 } else { 5 }));
        let combs = combs(&TileRuns::from_tiles(0, tiles));
        let five = Comb { first: 0, length: 2, every: 3, times: 100 };
        let two = Comb { first: 2, length: 1, every: 3, times: 100 };
        assert_eq!(combs, [(five, 5), (two, 2)]);
    }

    proptest! {
        #[test]
        fn combs_cover_each_tile_once(tiles in prop::collection::vec(prop::option::of(0u64..3), 0..120)) {
            let runs = TileRuns::from_tiles(0, tiles.clone());
            let mut covered = vec![None; tiles.len()];
            for (comb, value) in combs(&runs) {
                prop_assert_eq!(Comb::checked(comb.first, comb.end(), comb.every, comb.times, 120), Some(comb));
                for range in comb.ranges() {
                    for tile in range.first..range.end {
                        prop_assert_eq!(covered[tile as usize].replace(value), None);
                    }
                }
            }
            prop_assert_eq!(covered, tiles);
        }
    }
}
