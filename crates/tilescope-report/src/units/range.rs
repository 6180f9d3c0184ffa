//! Half-open ranges of cycles and of tiles.

use super::{Cycles, Quantity};
use serde::{Deserialize, Serialize};

/// A half-open range of one kind of thing, `start..end`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct QuantityRange<Q> {
    /// The first of the range.
    pub start: Q,
    /// The first after the range; never below `start`.
    pub end: Q,
}

/// A half-open range of cycles, counted from the first one of the trace.
pub type CycleRange = QuantityRange<Cycles>;

/// A half-open range of positions on an axis, whatever the axis counts.
pub type PositionRange = QuantityRange<u64>;

impl<Q: Quantity> QuantityRange<Q> {
    /// The range `start..end`; an `end` below `start` gives an empty range at `start`.
    pub fn new(start: Q, end: Q) -> Self {
        Self { start, end: end.max(start) }
    }

    /// How much the range covers.
    pub fn length(self) -> Q {
        debug_assert!(self.start <= self.end, "a range runs forwards: {self:?}");
        self.end - self.start
    }

    /// Whether nothing is in the range.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The part that both ranges cover; empty where they do not meet.
    pub fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self::new(start, self.end.min(other.end))
    }

    /// Whether both ranges share anything.
    pub fn overlaps(self, other: Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The smallest range that covers both.
    pub fn union(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The same range on an axis.
    pub fn positions(self) -> PositionRange {
        PositionRange { start: self.start.number(), end: self.end.number() }
    }

    /// What a range on an axis stands for, where the axis counts this kind of thing.
    pub fn from_positions(range: PositionRange) -> Self {
        Self { start: Q::from_number(range.start), end: Q::from_number(range.end) }
    }
}

/// A half-open range of tiles, `first..end`, numbered over all IPUs of a replica:
/// tile `t` of IPU `i` is `i * tiles_per_ipu + t` in software order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TileRange {
    /// First tile of the range.
    pub first: u32,
    /// First tile after the range.
    pub end: u32,
}

impl TileRange {
    /// The half-open range `first..end`.
    pub fn new(first: u32, end: u32) -> Self {
        debug_assert!(first <= end, "a tile range runs forwards: {first}..{end}");
        Self { first, end }
    }

    /// Number of tiles in the range.
    pub fn count(self) -> u32 {
        self.end - self.first
    }

    /// Whether `tile` lies in the range.
    pub fn contains(self, tile: u32) -> bool {
        (self.first..self.end).contains(&tile)
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
