//! Arithmetic on values per tile.

use tilescope_report::units::{Elements, Quantity, TileId, TileRange, TileRuns};

/// Collects the values of tiles, in order, into runs. Zeros are omitted.
pub(crate) fn per_tile<T: Quantity>(values: impl IntoIterator<Item = (TileId, T)>) -> TileRuns<T> {
    let mut runs = TileRuns::empty();
    for (tile, value) in values.into_iter().filter(|(_, value)| *value > T::ZERO) {
        runs.push(TileRange::single(tile), value);
    }
    runs
}

/// Sum of two values on each tile that has either.
pub(crate) fn add_per_tile<T: Quantity>(a: &TileRuns<T>, b: &TileRuns<T>) -> TileRuns<T> {
    either(a, b, |a, b| a + b)
}

/// Maximum of two values on each tile that has either.
pub(crate) fn max_per_tile<T: Quantity>(a: &TileRuns<T>, b: &TileRuns<T>) -> TileRuns<T> {
    either(a, b, T::max)
}

fn either<T: Quantity>(
    a: &TileRuns<T>,
    b: &TileRuns<T>,
    join_values: fn(T, T) -> T,
) -> TileRuns<T> {
    let present = a.merged(b, join_values).filtered(|value| *value > T::ZERO);
    debug_assert!(present.total() <= a.total() + b.total(), "neither a sum nor the larger is more");
    present
}

/// Removes padding from the end, so that `real` elements are left.
pub(crate) fn trimmed(elements: &TileRuns<Elements>, real: Elements) -> TileRuns<Elements> {
    let mut padding = elements.total().saturating_sub(real);
    if padding.is_zero() {
        return elements.clone();
    }
    let tiles: Vec<(TileId, Elements)> = elements
        .iter()
        .flat_map(|(range, count)| range.iter().map(move |tile| (tile, *count)))
        .collect();
    // Padding follows the last real element, so it is cut from the last tiles.
    let mut kept: Vec<(TileId, Elements)> = tiles
        .into_iter()
        .rev()
        .map(|(tile, count)| {
            let cut = padding.min(count);
            padding -= cut;
            (tile, count - cut)
        })
        .collect();
    kept.reverse();
    let kept = per_tile(kept);
    debug_assert_eq!(kept.total(), real, "only padding is cut off");
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn runs() -> impl Strategy<Value = TileRuns<u64>> {
        prop::collection::vec(0u64..3, 0..40)
            .prop_map(|values| per_tile(TileId(0).onwards().zip(values)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn sums_are_those_of_each_tile(a in runs(), b in runs()) {
            let sum = add_per_tile(&a, &b);
            for tile in TileRange::first_tiles(40).iter() {
                let value = |runs: &TileRuns<u64>| runs.get(tile).copied().unwrap_or(0);
                prop_assert_eq!(value(&sum), value(&a) + value(&b));
            }
            prop_assert_eq!(a.zip(&b, |a, _| a), a);
        }
    }
}
