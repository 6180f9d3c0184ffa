//! Patterns of the values of a smaller operand along the elements of a tile.
//!
//! Poplibs analyses each tile separately (lib/popops/ElementWise.cpp, BroadcastPatternAnalysis). A
//! stretch of memory is cut into patterns. Each is a sequence of values, with every value repeated
//! a number of times in a row and the whole sequence repeated a number of times.

use crate::popops::reduce::ColumnPiece;
use std::ops::Range;

/// Values that repeat uniformly along a stretch of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BroadcastPattern {
    /// Consecutive elements that share a value.
    pub inner: u64,
    /// Number of different values.
    pub values: u64,
    /// Number of repetitions of the sequence of values.
    pub outer: u64,
    /// First value of the sequence.
    first: u64,
}

impl BroadcastPattern {
    pub(super) fn elements(&self) -> u64 {
        self.inner * self.values * self.outer
    }

    /// Returns true if both contain the same values.
    pub(super) fn has_values_of(&self, other: &Self) -> bool {
        (self.first, self.values) == (other.first, other.values)
    }

    /// Number and length of its runs of one value each.
    pub(super) fn runs(&self) -> (u64, u64) {
        (self.values * self.outer, self.inner)
    }

    #[cfg(test)]
    pub(super) fn of(inner: u64, values: u64, outer: u64) -> Self {
        Self { inner, values, outer, first: 0 }
    }
}

/// Position between two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PieceCursor {
    piece: usize,
    /// Columns of the piece before the position.
    within: u64,
}

impl PieceCursor {
    /// Columns from here to the end of the piece, if they have `inner` elements each.
    fn columns(self, pieces: &[ColumnPiece], inner: u64) -> Option<Range<u64>> {
        let piece = pieces.get(self.piece).filter(|piece| piece.inner == inner)?;
        Some(piece.columns.start + self.within..piece.columns.end)
    }

    fn advance(&mut self, pieces: &[ColumnPiece], columns: u64) {
        self.within += columns;
        let Range { start, end } = pieces[self.piece].columns;
        debug_assert!(self.within <= end - start, "a step stays inside its piece");
        if self.within == end - start {
            *self = Self { piece: self.piece + 1, within: 0 };
        }
    }
}

/// Returns the patterns of a tile whose elements are in `pieces`.
pub(super) fn patterns(pieces: &[ColumnPiece]) -> Vec<BroadcastPattern> {
    let mut found = Vec::new();
    let mut at = PieceCursor { piece: 0, within: 0 };
    while at.piece < pieces.len() {
        let (pattern, next) = next_pattern(pieces, at);
        debug_assert!(at != next, "a pattern has elements");
        found.push(pattern);
        at = next;
    }
    found
}

/// Returns the pattern that begins at `start`, and the start of the next one.
fn next_pattern(pieces: &[ColumnPiece], start: PieceCursor) -> (BroadcastPattern, PieceCursor) {
    let inner = pieces[start.piece].inner;
    let first = pieces[start.piece].columns.start + start.within;
    let (region, behind) = values_in_order(pieces, start, first);
    let values = region.iter().map(|columns| columns.end - columns.start).sum();
    let (outer, next) = repetitions(pieces, behind, inner, &region);
    (BroadcastPattern { inner, values, outer, first }, next)
}

/// Returns the values up to the next occurrence of the first one, and the position after them. As
/// in poplibs, only the first value is compared: a row that begins in its middle and precedes rows
/// of other values never repeats.
fn values_in_order(
    pieces: &[ColumnPiece],
    start: PieceCursor,
    first: u64,
) -> (Vec<Range<u64>>, PieceCursor) {
    let inner = pieces[start.piece].inner;
    let mut region: Vec<Range<u64>> = Vec::new();
    let mut at = start;
    while let Some(columns) = at.columns(pieces, inner) {
        let again = at != start && columns.contains(&first);
        let end = if again { first } else { columns.end };
        let length = end - columns.start;
        if length > 0 {
            match region.last_mut() {
                Some(last) if last.end == columns.start => last.end = end,
                _ => region.push(columns.start..end),
            }
            at.advance(pieces, length);
        }
        if again {
            break;
        }
    }
    (region, at)
}

/// Returns the number of complete repetitions of the values, including the one before `start`, and
/// the position after the last one.
fn repetitions(
    pieces: &[ColumnPiece],
    start: PieceCursor,
    inner: u64,
    region: &[Range<u64>],
) -> (u64, PieceCursor) {
    let mut outer = 1;
    let mut whole = start;
    let mut at = start;
    loop {
        for expected in region {
            let mut expected = expected.clone();
            while !expected.is_empty() {
                let columns = at.columns(pieces, inner);
                let Some(columns) = columns.filter(|found| found.start == expected.start) else {
                    return (outer, whole);
                };
                let length = (columns.end - columns.start).min(expected.end - expected.start);
                at.advance(pieces, length);
                expected.start += length;
            }
        }
        outer += 1;
        whole = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::popops::reduce::{ReduceDim, pieces};

    /// Patterns as inner factor, values, outer factor.
    fn found(dims: &[(u64, bool)], range: Range<u64>) -> Vec<(u64, u64, u64)> {
        let dims: Vec<_> = dims
            .iter()
            .map(|(size, reduced)| ReduceDim { size: *size, reduced: *reduced })
            .collect();
        let patterns = patterns(&pieces(&dims, range.clone()));
        let elements: u64 = patterns.iter().map(BroadcastPattern::elements).sum();
        assert_eq!(elements, range.end - range.start, "patterns are all elements");
        patterns.iter().map(|found| (found.inner, found.values, found.outer)).collect()
    }

    #[test]
    fn rows_of_a_bias_repeat() {
        let bias = [(1020, true), (16, false)];
        assert_eq!(found(&bias, 0..160), [(1, 16, 10)]);
        // From the middle of a row on, the values are rotated.
        assert_eq!(found(&bias, 8..168), [(1, 16, 10)]);
        // The remainder of a row is a separate pattern.
        assert_eq!(found(&bias, 0..165), [(1, 16, 10), (1, 5, 1)]);
        assert_eq!(found(&bias, 3..10), [(1, 7, 1)]);
    }

    #[test]
    fn groups_of_channels_have_separate_patterns() {
        let groups = [(4, false), (10, true), (16, false)];
        assert_eq!(found(&groups, 0..320), [(1, 16, 10), (1, 16, 10)]);
        assert_eq!(found(&groups, 96..224), [(1, 16, 4), (1, 16, 4)]);
        // The first value of a rotated row does not recur after the border.
        assert_eq!(found(&groups, 104..200), [(1, 16, 3), (1, 48, 1)]);
    }

    #[test]
    fn rows_with_one_value_each_are_runs() {
        let rows = [(9, false), (100, true)];
        assert_eq!(found(&rows, 0..300), [(100, 3, 1)]);
        assert_eq!(found(&rows, 50..370), [(50, 1, 1), (100, 2, 1), (70, 1, 1)]);
        assert_eq!(found(&[(5, true), (3, false), (4, true)], 0..36), [(4, 3, 3)]);
        assert_eq!(found(&[(50, true)], 3..40), [(37, 1, 1)]);
    }
}
