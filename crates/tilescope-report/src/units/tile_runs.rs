//! One value per tile, stored as runs of tiles with the same value.

use super::{Quantity, TileId, TileRange};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One value per tile, run-length encoded: sorted, disjoint ranges; tiles in no run have no value.
///
/// Clones and shifted copies share their runs until one of them changes: equal operations on many
/// IPUs then take the memory of one.
#[derive(Clone, Debug)]
pub struct TileRuns<T> {
    runs: Arc<Vec<(TileRange, T)>>,
    /// Added to the tiles of all runs.
    offset: u32,
}

impl<T> Default for TileRuns<T> {
    fn default() -> Self {
        Self { runs: Arc::new(Vec::new()), offset: 0 }
    }
}

impl<T: PartialEq> PartialEq for TileRuns<T> {
    fn eq(&self, other: &Self) -> bool {
        let shared = Arc::ptr_eq(&self.runs, &other.runs) && self.offset == other.offset;
        shared || self.runs.len() == other.runs.len() && self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for TileRuns<T> {}

impl<T: Hash> Hash for TileRuns<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|run| run.hash(state));
    }
}

impl<T> TileRuns<T> {
    /// The runs in tile order.
    pub fn iter(&self) -> impl Iterator<Item = (TileRange, &T)> {
        let moved =
            |tiles: &TileRange| TileRange::new(tiles.first + self.offset, tiles.end + self.offset);
        self.runs.iter().map(move |(tiles, value)| (moved(tiles), value))
    }

    /// Number of runs of equal values.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// True if no tile has a value.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of tiles that have a value.
    pub fn tile_count(&self) -> u32 {
        self.runs.iter().map(|(tiles, _)| tiles.count()).sum()
    }

    /// The first tile after all runs; `None` if there are none.
    pub fn end(&self) -> Option<TileId> {
        self.runs.last().map(|(tiles, _)| tiles.end + self.offset)
    }

    /// True if a tile of `range` has a value.
    pub fn overlaps(&self, range: TileRange) -> bool {
        let at = self.runs.partition_point(|(tiles, _)| tiles.end + self.offset <= range.first);
        self.runs.get(at).is_some_and(|(tiles, _)| tiles.first + self.offset < range.end)
    }

    /// The value of one tile.
    pub fn get(&self, tile: TileId) -> Option<&T> {
        let tile = tile.checked_sub(self.offset)?;
        let at = self.runs.partition_point(|(tiles, _)| tiles.end <= tile);
        self.runs.get(at).filter(|(tiles, _)| tiles.contains(tile)).map(|(_, value)| value)
    }

    /// The same values `offset` tiles higher.
    pub fn shifted(&self, offset: u32) -> Self {
        Self { runs: Arc::clone(&self.runs), offset: self.offset + offset }
    }

    /// The identity of the runs: equal for copies that share them on the same tiles, so that work
    /// on them can be done once. Copies that do not share their runs may still be equal.
    pub fn shared_key(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.runs) as usize, self.offset)
    }
}

impl<T: Clone + PartialEq> TileRuns<T> {
    /// Runs without a value on any tile.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The same value on every tile of `tiles`.
    pub fn uniform(tiles: TileRange, value: T) -> Self {
        let mut runs = Self::empty();
        runs.push(tiles, value);
        runs
    }

    /// One value per tile, the first belonging to tile `first`; `None` leaves the tile out.
    pub fn from_tiles(first: TileId, values: impl IntoIterator<Item = Option<T>>) -> Self {
        let mut runs = Self::empty();
        for (tile, value) in first.onwards().zip(values) {
            if let Some(value) = value {
                runs.push(TileRange::single(tile), value);
            }
        }
        runs
    }

    /// Appends a run after all others. It is merged with the last run if they touch and have the
    /// same value.
    pub fn push(&mut self, tiles: TileRange, value: T) {
        if tiles.count() == 0 {
            return;
        }
        if self.offset != 0 {
            let runs = self.iter().map(|(tiles, value)| (tiles, value.clone())).collect();
            (self.runs, self.offset) = (Arc::new(runs), 0);
        }
        let runs = Arc::make_mut(&mut self.runs);
        if let Some((last, last_value)) = runs.last_mut() {
            assert!(last.end <= tiles.first, "runs are pushed in tile order");
            if last.end == tiles.first && *last_value == value {
                last.end = tiles.end;
                return;
            }
        }
        runs.push((tiles, value));
    }

    /// The values of tiles `0..tiles` moved up so that tile 0 goes to `start`; those that pass the
    /// end continue at 0.
    pub fn rotated(&self, start: TileId, tiles: u32) -> Self {
        let by = start - TileId(0);
        if by == 0 {
            return self.clone();
        }
        let end = TileId(tiles);
        let wrapped = self.iter().filter(|(range, _)| range.end + by > end);
        let wrapped = wrapped.map(|(range, value)| {
            let first = (range.first + by).checked_sub(tiles).unwrap_or(TileId(0));
            (TileRange::new(first, range.end + by - tiles), value)
        });
        let rest = self.iter().filter(|(range, _)| range.first + by < end);
        let rest = rest.map(|(range, value)| {
            (TileRange::new(range.first + by, (range.end + by).min(end)), value)
        });
        let mut rotated = Self::empty();
        for (range, value) in wrapped.chain(rest) {
            rotated.push(range, value.clone());
        }
        debug_assert_eq!(rotated.tile_count(), self.tile_count(), "a rotation keeps every tile");
        rotated
    }

    /// The values of tiles `0..tiles` in reverse order.
    pub fn mirrored(&self, tiles: u32) -> Self {
        let end = TileId(tiles);
        let find_opposite = |tile: TileId| TileId(end - tile);
        let mut mirrored = Self::empty();
        let runs: Vec<_> = self.iter().collect();
        for (range, value) in runs.into_iter().rev() {
            mirrored.push(
                TileRange::new(find_opposite(range.end), find_opposite(range.first)),
                value.clone(),
            );
        }
        debug_assert_eq!(mirrored.tile_count(), self.tile_count(), "a mirror keeps every tile");
        mirrored
    }

    /// The same ranges with other values.
    pub fn map<U: Clone + PartialEq>(&self, mut change: impl FnMut(&T) -> U) -> TileRuns<U> {
        let mut mapped = TileRuns::empty();
        for (tiles, value) in self.iter() {
            mapped.push(tiles, change(value));
        }
        mapped
    }

    /// The runs whose values `keeps` accepts.
    pub fn filtered(&self, keeps: impl Fn(&T) -> bool) -> Self {
        let mut kept = Self::empty();
        for (tiles, value) in self.iter().filter(|(_, value)| keeps(value)) {
            kept.push(tiles, value.clone());
        }
        kept
    }
}

impl<T: Copy + Default + PartialEq> TileRuns<T> {
    /// Joins two values on each tile that has either. A missing value counts as the default.
    pub fn merged<U: Copy + Default + PartialEq, V: Clone + PartialEq>(
        &self,
        others: &TileRuns<U>,
        mut join: impl FnMut(T, U) -> V,
    ) -> TileRuns<V> {
        let mut edges = Vec::new();
        for tiles in
            self.iter().map(|(tiles, _)| tiles).chain(others.iter().map(|(tiles, _)| tiles))
        {
            edges.extend([tiles.first, tiles.end]);
        }
        edges.sort_unstable();
        // Both are constant between adjacent borders, so one sample there is sufficient.
        edges.dedup();
        let mut joined = TileRuns::empty();
        for (first, end) in edges.iter().zip(edges.iter().skip(1)) {
            let one = self.get(*first);
            let other = others.get(*first);
            if one.is_some() || other.is_some() {
                let value =
                    join(one.copied().unwrap_or_default(), other.copied().unwrap_or_default());
                joined.push(TileRange::new(*first, *end), value);
            }
        }
        joined
    }
}

impl<T: Quantity> TileRuns<T> {
    /// Pairs of values, one pair for each tile that has a value; `others` counts as zero where it
    /// has none.
    pub fn zip<U: Quantity, V: Clone + PartialEq>(
        &self,
        others: &TileRuns<U>,
        mut join: impl FnMut(T, U) -> V,
    ) -> TileRuns<V> {
        let mut joined = TileRuns::empty();
        let mut others = others.iter().peekable();
        for (tiles, value) in self.iter() {
            let mut first = tiles.first;
            while first < tiles.end {
                while others.next_if(|(range, _)| range.end <= first).is_some() {}
                let (end, other) = match others.peek() {
                    Some((range, other)) if range.first <= first => (range.end, **other),
                    Some((range, _)) => (range.first, U::ZERO),
                    None => (tiles.end, U::ZERO),
                };
                let end = end.min(tiles.end);
                joined.push(TileRange::new(first, end), join(*value, other));
                first = end;
            }
        }
        debug_assert_eq!(joined.tile_count(), self.tile_count(), "one pair for each tile");
        joined
    }

    /// Sum over all tiles.
    pub fn total(&self) -> T {
        self.runs.iter().map(|(tiles, value)| *value * u64::from(tiles.count())).sum()
    }

    /// Largest value of any tile; zero if no tile has one.
    pub fn max(&self) -> T {
        self.runs.iter().map(|(_, value)| *value).max().unwrap_or(T::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bytes, Cycles};
    use super::*;

    #[test]
    fn rotation_moves_every_tile_and_wraps_around() {
        let mut runs = TileRuns::empty();
        runs.push(TileRange::first_tiles(3), 'a');
        runs.push(TileRange::new(TileId(5), TileId(8)), 'b');
        for by in 0..8 {
            let rotated = runs.rotated(TileId(by), 8);
            for tile in 0..8 {
                assert_eq!(
                    rotated.get(TileId((tile + by) % 8)),
                    runs.get(TileId(tile)),
                    "{tile} by {by}"
                );
            }
        }
    }

    #[test]
    fn touching_runs_with_one_value_join() {
        let mut runs = TileRuns::uniform(TileRange::first_tiles(4), 7u64);
        runs.push(TileRange::new(TileId(4), TileId(6)), 7);
        runs.push(TileRange::new(TileId(8), TileId(9)), 7);
        assert_eq!(runs.len(), 2);
        assert_eq!((runs.total(), runs.max(), runs.tile_count()), (49, 7, 7));
        assert_eq!(
            (runs.get(TileId(5)), runs.get(TileId(6)), runs.get(TileId(8))),
            (Some(&7), None, Some(&7))
        );
    }

    #[test]
    fn runs_of_two_kinds_pair_tile_by_tile() {
        let cycles = TileRuns::uniform(TileRange::first_tiles(4), Cycles(7));
        let mut bytes = TileRuns::uniform(TileRange::new(TileId(1), TileId(2)), Bytes(5));
        bytes.push(TileRange::new(TileId(3), TileId(9)), Bytes(6));
        let pairs = cycles.zip(&bytes, |cycles, bytes| (cycles, bytes));
        for tile in TileRange::first_tiles(9).iter() {
            let pair = cycles.get(tile).map(|&c| (c, bytes.get(tile).copied().unwrap_or_default()));
            assert_eq!(pairs.get(tile), pair.as_ref(), "tile {tile}");
        }
        assert_eq!((cycles.total(), bytes.total()), (Cycles(28), Bytes(41)));
        assert_eq!((bytes.max(), TileRuns::<Bytes>::empty().max()), (Bytes(6), Bytes::ZERO));
    }
}
