//! Arithmetic on values per tile.

use crate::units::{TileRange, TileRuns};

/// Values of some tiles in order, as runs; zeros are left out.
pub fn per_tile(values: impl IntoIterator<Item = (u32, u64)>) -> TileRuns<u64> {
    let mut runs = TileRuns::empty();
    for (tile, value) in values.into_iter().filter(|(_, value)| *value > 0) {
        runs.push(TileRange::new(tile, tile + 1), value);
    }
    runs
}

/// Pairs of values, one pair for each tile of `a`; `b` counts as 0 where it has no value.
pub fn zip<T: Clone + PartialEq>(
    a: &TileRuns<u64>,
    b: &TileRuns<u64>,
    mut join: impl FnMut(u64, u64) -> T,
) -> TileRuns<T> {
    let mut joined = TileRuns::empty();
    let mut others = b.iter().peekable();
    for (tiles, value) in a.iter() {
        let mut first = tiles.first;
        while first < tiles.end {
            while others.next_if(|(range, _)| range.end <= first).is_some() {}
            let (end, other) = match others.peek() {
                Some((range, other)) if range.first <= first => (range.end.min(tiles.end), **other),
                Some((range, _)) => (range.first.min(tiles.end), 0),
                None => (tiles.end, 0),
            };
            joined.push(TileRange::new(first, end), join(*value, other));
            first = end;
        }
    }
    joined
}

/// Sum of two values on each tile that has any.
pub fn add(a: &TileRuns<u64>, b: &TileRuns<u64>) -> TileRuns<u64> {
    either(a, b, |a, b| a + b)
}

/// The larger of two values on each tile that has any.
pub fn most(a: &TileRuns<u64>, b: &TileRuns<u64>) -> TileRuns<u64> {
    either(a, b, u64::max)
}

fn either(a: &TileRuns<u64>, b: &TileRuns<u64>, join: fn(u64, u64) -> u64) -> TileRuns<u64> {
    let last = a.iter().chain(b.iter()).map(|(tiles, _)| tiles.end).max().unwrap_or(0);
    let whole = TileRuns::uniform(TileRange::new(0, last), 0);
    let sum = zip(&zip(&whole, a, |_, a| a), b, join);
    let mut present = TileRuns::empty();
    for (tiles, value) in sum.iter().filter(|(_, value)| **value > 0) {
        present.push(tiles, *value);
    }
    present
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs() -> impl Strategy<Value = TileRuns<u64>> {
        prop::collection::vec(0u64..3, 0..40).prop_map(|values| per_tile((0u32..).zip(values)))
    }

    proptest! {
        #[test]
        fn sums_are_those_of_each_tile(a in runs(), b in runs()) {
            let sum = add(&a, &b);
            for tile in 0..40 {
                let value = |runs: &TileRuns<u64>| runs.get(tile).copied().unwrap_or(0);
                prop_assert_eq!(value(&sum), value(&a) + value(&b));
            }
            prop_assert_eq!(zip(&a, &b, |a, _| a), a);
        }
    }
}
