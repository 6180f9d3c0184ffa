//! Windows of a pooling along one axis: results that a window position affects, and operands that
//! results need.

use std::ops::Range;

/// One axis of a pooling. In the forward pass, results are windows and operands the elements they
/// cover. In the backward pass, the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolAxis {
    /// Number of elements that windows cover.
    pub elements: u64,
    /// Size of a window.
    pub kernel: u64,
    pub stride: u64,
    pub before: u64,
    pub behind: u64,
}

impl PoolAxis {
    /// Axis that fields with fewer dimensions lack.
    pub(crate) const NONE: Self = Self { elements: 1, kernel: 1, stride: 1, before: 0, behind: 0 };

    /// Number of windows. `None` if none fits or the sizes are invalid.
    pub(crate) fn windows(self) -> Option<u64> {
        if self.kernel == 0 || self.stride == 0 || self.elements == 0 {
            return None;
        }
        let padded = self.elements.checked_add(self.before)?.checked_add(self.behind)?;
        padded.checked_sub(self.kernel).map(|room| room / self.stride + 1)
    }

    /// Number of results.
    pub(crate) fn results(self, backward: bool) -> u64 {
        if backward { self.elements } else { self.windows().unwrap_or(0) }
    }

    /// Number of results in `range` that have an operand at `position` of a window.
    pub(crate) fn results_with_operand(
        self,
        backward: bool,
        position: u64,
        range: Range<u64>,
    ) -> u64 {
        if backward {
            // Elements `window * stride + position - before` of all windows.
            let windows = self.windows().unwrap_or(0);
            let [before_start, before_end] = [range.start, range.end].map(|element| {
                let first = (element + self.before).saturating_sub(position).div_ceil(self.stride);
                // Strides may leave elements at the end that no window reaches.
                first.min(windows)
            });
            before_end - before_start
        } else {
            // Windows whose element at `position` is not padding.
            let first = self.before.saturating_sub(position).div_ceil(self.stride);
            let end = (self.elements + self.before).saturating_sub(position).div_ceil(self.stride);
            end.min(range.end).saturating_sub(first.max(range.start))
        }
    }

    /// Number of operands.
    pub(crate) fn operand_size(self, backward: bool) -> u64 {
        self.results(!backward)
    }

    /// Number of operands that are read, each counted once. Strides may leave elements between
    /// windows and after the last one, and windows of padding alone have no gradient.
    pub(crate) fn read_operands(self, backward: bool) -> u64 {
        let windows = self.windows().unwrap_or(0);
        if backward || self.kernel >= self.stride {
            let reached = self.operands(backward, 0..self.results(backward));
            return reached.end - reached.start;
        }
        (0..self.kernel)
            .map(|position| self.results_with_operand(false, position, 0..windows))
            .sum()
    }

    /// Operands that the results in `range` need.
    pub(crate) fn operands(self, backward: bool, range: Range<u64>) -> Range<u64> {
        if range.is_empty() {
            return 0..0;
        }
        if backward {
            let windows = self.windows().unwrap_or(0);
            let first = (range.start + self.before + 1).saturating_sub(self.kernel);
            let end = (range.end - 1 + self.before) / self.stride + 1;
            first.div_ceil(self.stride).min(windows)..end.min(windows)
        } else {
            let first = (range.start * self.stride).saturating_sub(self.before);
            let end = ((range.end - 1) * self.stride + self.kernel).saturating_sub(self.before);
            first.min(self.elements)..end.min(self.elements)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use tilescope_test_tiers::cases;

    fn axis() -> impl Strategy<Value = PoolAxis> {
        (1u64..20, 1u64..6, 1u64..5, 0u64..4, 0u64..4)
            .prop_map(|(elements, kernel, stride, before, behind)| PoolAxis {
                elements,
                kernel,
                stride,
                before,
                behind,
            })
            .prop_filter("a window fits", |axis| axis.windows().is_some())
    }

    /// Pairs of window and element, by definition.
    fn pairs(axis: PoolAxis) -> Vec<(u64, u64, u64)> {
        let windows = 0..axis.windows().expect("a window fits");
        let all = windows.flat_map(|window| {
            (0..axis.kernel).filter_map(move |position| {
                let at = (window * axis.stride + position).checked_sub(axis.before)?;
                (at < axis.elements).then_some((window, position, at))
            })
        });
        all.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn read_operands_are_counted_once(axis in axis()) {
            let elements: BTreeSet<u64> = pairs(axis).into_iter().map(|pair| pair.2).collect();
            prop_assert_eq!(axis.read_operands(false), elements.len() as u64);
            let windows: BTreeSet<u64> = pairs(axis).into_iter().map(|pair| pair.0).collect();
            prop_assert!(axis.read_operands(true) >= windows.len() as u64);
            prop_assert!(axis.read_operands(true) <= axis.operand_size(true));
        }

        #[test]
        fn both_directions_see_the_same_pairs(axis in axis(), from in 0u64..20, to in 0u64..20) {
            for backward in [false, true] {
                let size = axis.results(backward);
                let range = from.min(to).min(size)..from.max(to).min(size);
                let result = |pair: &(u64, u64, u64)| if backward { pair.2 } else { pair.0 };
                let operand = |pair: &(u64, u64, u64)| if backward { pair.0 } else { pair.2 };
                for position in 0..axis.kernel {
                    let all = pairs(axis);
                    let expected = all
                        .iter()
                        .filter(|pair| pair.1 == position && range.contains(&result(pair)))
                        .count();
                    prop_assert_eq!(axis.results_with_operand(backward, position, range.clone()), expected as u64);
                }
                let window = axis.operands(backward, range.clone());
                for pair in pairs(axis) {
                    if range.contains(&result(&pair)) {
                        prop_assert!(window.contains(&operand(&pair)), "{window:?} {pair:?}");
                    }
                }
            }
        }
    }
}
