//! A three-way merge of lists that several windows change, such as bookmarks. The versions are the
//! common base, the window's own list and the list now in the file.

/// Merges two lists. The result has the entries that either side added and lacks those that either
/// side removed; the window's entries come first.
pub(crate) fn merged_list<T: PartialEq + Clone>(known: &[T], mine: &[T], there: &[T]) -> Vec<T> {
    let kept = mine.iter().filter(|entry| there.contains(entry) || !known.contains(entry));
    let theirs = there.iter().filter(|entry| !mine.contains(entry) && !known.contains(entry));
    kept.chain(theirs).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn an_unchanged_side_leaves_the_other_as_it_is(
            known in proptest::collection::vec(0..9u8, 0..6),
            other in proptest::collection::vec(0..9u8, 0..6),
        ) {
            prop_assert_eq!(merged_list(&known, &known, &known), known.clone());
            let sorted = |mut list: Vec<u8>| { list.sort_unstable(); list.dedup(); list };
            let theirs = merged_list(&known, &known, &other);
            prop_assert_eq!(sorted(theirs), sorted(other.clone()));
            let mine = merged_list(&known, &other, &known);
            prop_assert_eq!(sorted(mine), sorted(other));
        }
    }
}
