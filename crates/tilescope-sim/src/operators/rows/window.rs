//! Which rows of a field some rows of a result follow from.

use std::ops::Range;

/// Rows of an operand that a row of the result follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWindow {
    /// Axis of the rows; none where it is that of the operands, whichever that is.
    pub axis: Option<usize>,
    /// Rows of a window.
    pub kernel: u64,
    /// Rows from one window to the next.
    pub stride: u64,
    /// Rows of padding before the first row.
    pub before: u64,
    /// Rows of padding behind the last one.
    pub behind: u64,
}

/// Rows of padding at the edges of a part of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldEdges {
    /// Padding before its first row.
    pub before: u64,
    /// Padding behind its last row.
    pub behind: u64,
}

impl RowWindow {
    /// Each row follows from the same rows of all operands.
    pub(crate) const POINTWISE: Self =
        Self { axis: None, kernel: 1, stride: 1, before: 0, behind: 0 };

    /// Whether each row follows from the same rows of the operands.
    pub(crate) fn is_pointwise(&self) -> bool {
        Self { axis: None, ..*self } == Self::POINTWISE
    }

    /// Rows of the result of a field of so many rows.
    pub(crate) fn results(&self, rows: u64) -> u64 {
        (rows + self.before + self.behind + self.stride).saturating_sub(self.kernel) / self.stride
    }

    /// The rows of an operand of `in_rows` rows that some rows of the result follow from, and the
    /// padding beside them.
    pub(crate) fn operand_rows(
        &self,
        results: &Range<u64>,
        in_rows: u64,
    ) -> (Range<u64>, FieldEdges) {
        // Counted from the first row of padding.
        let first = results.start * self.stride;
        let end = results.end.saturating_sub(1) * self.stride + self.kernel;
        let edges = FieldEdges {
            before: self.before.saturating_sub(first),
            behind: end.saturating_sub(self.before + in_rows),
        };
        let rows = first.saturating_sub(self.before)..end.saturating_sub(self.before).min(in_rows);
        (rows, edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn parts_read_what_the_whole_reads(
            rows in 1u64..60, kernel in 1u64..8, stride in 1u64..4, parts in 1u64..6
        ) {
            let window =
                RowWindow { axis: None, kernel, stride, before: kernel / 2, behind: kernel / 2 };
            let results = window.results(rows);
            prop_assume!(results >= parts);
            for part in 0..parts {
                let made = part * results / parts..(part + 1) * results / parts;
                let (read, edges) = window.operand_rows(&made, rows);
                let of_part = RowWindow { before: edges.before, behind: edges.behind, ..window };
                prop_assert!(read.end <= rows && read.start < read.end);
                prop_assert_eq!(of_part.results(read.end - read.start), made.end - made.start);
            }
        }
    }
}
