//! Half-open ranges of cycles and of tiles.

use super::{Cycles, TileId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A half-open range of cycles, `start..end`, counted from the first one of the trace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CycleRange {
    /// First cycle of the range.
    pub start: Cycles,
    /// First cycle after the range; never below `start`.
    pub end: Cycles,
}

impl CycleRange {
    /// The range `start..end`; an `end` below `start` gives an empty range at `start`.
    pub fn new(start: Cycles, end: Cycles) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Number of cycles in the range.
    pub fn length(self) -> Cycles {
        debug_assert!(self.start <= self.end, "a range runs forwards: {self:?}");
        self.end - self.start
    }

    /// True if the range is empty.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The part that both ranges cover; empty if they do not overlap.
    pub fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self::new(start, self.end.min(other.end))
    }

    /// True if both ranges share at least one cycle.
    pub fn overlaps(self, other: Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The smallest range that covers both.
    pub fn union(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A half-open range of tiles, `first..end`, numbered over all IPUs of a replica:
/// tile `t` of IPU `i` is `i * tiles_per_ipu + t` in software order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TileRange {
    /// First tile of the range.
    pub first: TileId,
    /// First tile after the range.
    pub end: TileId,
}

impl TileRange {
    /// The half-open range `first..end`.
    pub fn new(first: TileId, end: TileId) -> Self {
        debug_assert!(first <= end, "a tile range runs forwards: {first}..{end}");
        Self { first, end }
    }

    /// The first `count` tiles.
    pub fn first_tiles(count: u32) -> Self {
        Self::new(TileId(0), TileId(count))
    }

    /// One tile alone. Links and files may give any number, even the largest.
    pub fn single(tile: TileId) -> Self {
        Self { first: tile, end: TileId(tile.0.saturating_add(1)) }
    }

    /// The part that both ranges cover; empty if they do not overlap.
    pub fn intersection(self, other: Self) -> Self {
        let first = self.first.max(other.first);
        Self { first, end: self.end.min(other.end).max(first) }
    }

    /// Number of tiles in the range.
    pub fn count(self) -> u32 {
        self.end - self.first
    }

    /// True if the range contains `tile`.
    pub fn contains(self, tile: TileId) -> bool {
        (self.first..self.end).contains(&tile)
    }

    /// The tiles of the range in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = TileId> + Clone {
        (self.first.0..self.end.0).map(TileId)
    }

    /// The indices of the tiles in a list of all tiles.
    pub fn indices(self) -> Range<usize> {
        self.first.index()..self.end.index()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_half_open() {
        let (a, b) =
            (CycleRange::new(Cycles::ZERO, Cycles(10)), CycleRange::new(Cycles(10), Cycles(20)));
        assert!(!a.overlaps(b));
        assert_eq!(a.union(b), CycleRange::new(Cycles::ZERO, Cycles(20)));
        assert_eq!(a.intersection(CycleRange::new(Cycles(4), Cycles(30))).length(), Cycles(6));
    }
}
