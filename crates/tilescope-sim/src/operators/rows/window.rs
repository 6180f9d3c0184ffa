//! The rows of a field that determine some rows of a result.

use std::ops::Range;

/// The rows of an operand that determine a row of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWindow {
    /// The axis of the rows. `None` if any axis of the operands can be the row axis.
    pub axis: Option<usize>,
    /// The number of rows of a window.
    pub kernel: u64,
    /// The number of rows from one window to the next.
    pub stride: u64,
    /// The number of rows of padding before the first row.
    pub before: u64,
    /// The number of rows of padding after the last row.
    pub behind: u64,
}

/// Rows of padding at the edges of a part of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldEdges {
    /// Padding before its first row.
    pub before: u64,
    /// Padding after its last row.
    pub behind: u64,
}

impl RowWindow {
    /// The window of an operator whose rows depend on the same rows of all operands.
    pub(crate) const POINTWISE: Self =
        Self { axis: None, kernel: 1, stride: 1, before: 0, behind: 0 };

    /// True if each row depends on the same rows of the operands.
    pub(crate) fn is_pointwise(&self) -> bool {
        Self { axis: None, ..*self } == Self::POINTWISE
    }

    /// The number of rows of the result for a field of `rows` rows.
    pub(crate) fn results(&self, rows: u64) -> u64 {
        (rows + self.before + self.behind + self.stride).saturating_sub(self.kernel) / self.stride
    }

    /// The rows of an operand of `in_rows` rows that determine some rows of the result, and the
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
