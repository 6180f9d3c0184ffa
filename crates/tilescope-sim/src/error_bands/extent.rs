//! Sizes of operations, and their distance from measured ones.

use crate::cost_constants::NEAR_MEASURED_RATIO;

/// The size of an operation, and how often it uses the data that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OperationExtent {
    /// Elements of the largest operand or result.
    pub elements: u64,
    /// Floating point operations for each element of the smaller one of first operand and result:
    /// twice the inner dimension of a product, or the elements of the window of a pooling.
    pub reuse: u64,
}

impl OperationExtent {
    /// The extent of an operation from the numbers of elements of its operands and results.
    pub(crate) fn new(operands: &[u64], results: &[u64], flops: u64) -> Self {
        let elements = operands.iter().chain(results).copied().max().unwrap_or(0);
        let firsts = operands.first().into_iter().chain(results.first());
        let least = firsts.copied().min().unwrap_or(1).max(1);
        Self { elements, reuse: flops.div_ceil(least) }
    }
}

/// The range of extents that were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentRange {
    pub elements: (u64, u64),
    pub reuse: (u64, u64),
}

impl ExtentRange {
    /// The range that covers `extents`. Empty if there are none.
    pub(crate) fn of(extents: impl Iterator<Item = OperationExtent>) -> Self {
        let mut range = Self { elements: (u64::MAX, 0), reuse: (u64::MAX, 0) };
        for OperationExtent { elements, reuse } in extents {
            range.elements = (range.elements.0.min(elements), range.elements.1.max(elements));
            range.reuse = (range.reuse.0.min(reuse), range.reuse.1.max(reuse));
        }
        range
    }

    /// Parses the last cells of a line of `residuals.csv`.
    pub(super) fn parse<'a>(cells: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut numbers = cells.map(|cell| cell.parse().ok());
        let mut pair = || Some((numbers.next()??, numbers.next()??));
        Some(Self { elements: pair()?, reuse: pair()? })
    }

    /// The cells of a line of `residuals.csv`.
    pub(crate) fn cells(self) -> String {
        let Self { elements: (e, f), reuse: (r, s) } = self;
        format!("{e},{f},{r},{s}")
    }

    /// True if an extent is inside the measured range or near it.
    pub(super) fn is_near(self, extent: OperationExtent) -> bool {
        is_near(extent.elements, self.elements) && is_near(extent.reuse, self.reuse)
    }
}

fn is_near(value: u64, (low, high): (u64, u64)) -> bool {
    let near = NEAR_MEASURED_RATIO.ratio();
    low as f64 / near <= value as f64 && value as f64 <= high as f64 * near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_over_the_field_is_far_from_small_windows() {
        let window = |side: u64, field: u64| {
            OperationExtent::new(&[64 * field * field], &[64 * (field / side).pow(2)], {
                64 * (field / side).pow(2) * side * side
            })
        };
        let measured = ExtentRange::of([window(2, 32), window(3, 33)].into_iter());
        assert!(measured.is_near(window(4, 32)) && !measured.is_near(window(32, 32)));
        assert!(!ExtentRange::of(std::iter::empty()).is_near(window(2, 2)));
    }
}
