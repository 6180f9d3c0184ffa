//! Splitting of stretches of elements into parts of nearly equal size, as poplibs distributes work
//! over tiles and workers (poplibs lib/poputil/Util.cpp, splitRegions).

use std::ops::Range;
use tilescope_report::units::Quantity;

/// Limits of a split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitBounds {
    /// Elements that stay together. Only the last part may end inside a grain.
    pub grain: u64,
    pub most: u64,
    /// Minimum number of elements of a part. If the total is smaller, there is one part.
    pub least: u64,
}

/// Splits `total` elements into the smallest number of parts that keeps the largest part minimal.
pub(crate) fn split_evenly(total: u64, bounds: SplitBounds) -> impl Iterator<Item = Range<u64>> {
    let grain = bounds.grain.max(1);
    let grains = total.div_ceil(grain);
    let least = bounds.least.div_ceil(grain).max(1);
    let most = bounds.most.max(1).min((grains / least).max(1));
    let largest = grains.div_ceil(most).max(1);
    // Use fewer parts of the same largest size. More would only add vertices and messages.
    let count = grains.div_ceil(largest);
    (0..count).map(move |part| {
        // Rounding down distributes the odd grains evenly over the parts.
        let start = grains.share(part, count) * grain;
        let end = grains.share(part + 1, count) * grain;
        start..end.min(total)
    })
}

/// Splits several stretches together. Each part lists the pieces it covers. Pieces are never
/// joined, so a part may have several.
pub(crate) fn split_regions(stretches: &[Range<u64>], bounds: SplitBounds) -> Vec<Vec<Range<u64>>> {
    debug_assert!(stretches.iter().all(|stretch| stretch.start <= stretch.end));
    let total = stretches.iter().map(|stretch| stretch.end - stretch.start).sum();
    let mut rest = stretches.iter().cloned();
    let mut current = rest.next().unwrap_or(0..0);
    let mut found = Vec::new();
    for part in split_evenly(total, bounds) {
        let mut wanted = part.end - part.start;
        let mut pieces = Vec::new();
        while wanted > 0 {
            if current.is_empty() {
                match rest.next() {
                    Some(next) => current = next,
                    None => break,
                }
                continue;
            }
            let length = wanted.min(current.end - current.start);
            pieces.push(current.start..current.start + length);
            current.start += length;
            wanted -= length;
        }
        debug_assert_eq!(wanted, 0, "the stretches hold all split elements");
        found.push(pieces);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn sizes(total: u64, grain: u64, most: u64, least: u64) -> Vec<u64> {
        split_evenly(total, SplitBounds { grain, most, least })
            .map(|part| part.end - part.start)
            .collect()
    }

    #[test]
    fn the_fewest_parts_with_a_minimal_largest_one_are_used() {
        // 11 grains on up to 8 parts of at least 2 grains: the example in the comment of poplibs.
        assert_eq!(sizes(42, 4, 8, 6), [8, 12, 12, 10]);
        assert_eq!(sizes(16, 4, 6, 1), [4, 4, 4, 4]);
        assert_eq!(sizes(10, 4, 1, 0), [10]);
        assert_eq!(sizes(0, 4, 6, 1), [] as [u64; 0]);
    }

    #[test]
    fn stretches_never_join() {
        let parts = split_regions(&[0..8, 20..28], SplitBounds { grain: 4, most: 6, least: 1 });
        assert_eq!(parts, [[0..4], [4..8], [20..24], [24..28]]);
        let parts = split_regions(&[0..2, 8..12], SplitBounds { grain: 4, most: 1, least: 1 });
        assert_eq!(parts, [[0..2, 8..12]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn parts_cover_all_once(total in 0u64..1_000_000, grain in 1u64..20, most in 1u64..2000, least in 0u64..200) {
            let mut next = 0;
            let mut count = 0;
            for part in split_evenly(total, SplitBounds { grain, most, least }) {
                prop_assert_eq!(part.start, next);
                prop_assert!(part.end > part.start);
                next = part.end;
                count += 1;
            }
            prop_assert_eq!(next, total);
            prop_assert!(count <= most);
        }
    }
}
