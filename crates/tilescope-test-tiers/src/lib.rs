//! The two tiers of tests: a fast one that `cargo test` runs, and a slow one that
//! `TILESCOPE_SLOW_TESTS=1 cargo test` adds. CONTRIBUTING.md describes both.

use std::collections::BTreeSet;

/// Returns whether the slow tier runs too.
pub fn slow_tests() -> bool {
    std::env::var_os("TILESCOPE_SLOW_TESTS").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns `true`, and prints the reason, if a test belongs to the slow tier and only the fast one
/// runs.
pub fn skipped_in_the_fast_tier() -> bool {
    if slow_tests() {
        return false;
    }
    println!("skipped: part of the slow tier, TILESCOPE_SLOW_TESTS=1 runs it");
    true
}

/// The number of cases of a property test: at most 32 in the fast tier, `slow` in the slow one.
/// `TILESCOPE_PROPERTY_CASES` sets another number for both.
pub fn cases(slow: u32) -> u32 {
    let asked = std::env::var("TILESCOPE_PROPERTY_CASES").ok();
    if let Some(asked) = asked.and_then(|text| text.parse().ok()) {
        return asked;
    }
    if slow_tests() { slow } else { slow.min(32) }
}

/// The number of cases of a property test whose cases take long: at most 8 in the fast tier.
pub fn long_cases(slow: u32) -> u32 {
    let cases = cases(slow);
    if slow_tests() { cases } else { cases.min(8) }
}

/// The number of entries of a list that a test uses: `fast` in the fast tier, all of them in the
/// slow one. For `take`, on lists sorted by how much the entries find.
pub fn up_to(fast: usize) -> usize {
    if slow_tests() { usize::MAX } else { fast }
}

/// The pairs of different entries of a list that a test tries: all of them in the slow tier, each
/// entry with the next one in the fast one. The first of a pair comes first in the list.
pub fn pairs_of_entries(entries: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for first in 0..entries {
        for second in first + 1..entries {
            if slow_tests() || second == first + 1 {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

/// All combinations of choices: one choice per axis in each row, where `axes` holds the number of
/// choices of each axis.
pub fn product(axes: &[usize]) -> Vec<Vec<usize>> {
    let mut rows = vec![Vec::new()];
    for &choices in axes {
        let mut longer = Vec::with_capacity(rows.len() * choices);
        for row in &rows {
            for choice in 0..choices {
                let mut row: Vec<usize> = row.clone();
                row.push(choice);
                longer.push(row);
            }
        }
        rows = longer;
    }
    rows
}

/// Returns the combinations that a test over a large product tries: all of [`product`] in the slow
/// tier, in the fast one two for each choice of the longest axis, in which every choice occurs.
pub fn spread(axes: &[usize]) -> Vec<Vec<usize>> {
    if slow_tests() { product(axes) } else { diagonals(axes, 2) }
}

/// Rows with every choice of every axis: those of the longest axis `turns` times, each time beside
/// other choices.
fn diagonals(axes: &[usize], turns: usize) -> Vec<Vec<usize>> {
    let longest = axes.iter().copied().max().unwrap_or(0);
    if axes.contains(&0) {
        return Vec::new();
    }
    let mut rows = BTreeSet::new();
    for turn in 0..turns {
        for place in 0..longest {
            let row =
                axes.iter().enumerate().map(|(axis, choices)| (place + turn * axis) % choices);
            rows.insert(row.collect());
        }
    }
    rows.into_iter().collect()
}

/// Returns the indices of the rows that a test over many combinations tries: all of them in the
/// slow tier, in the fast one the rows of [`pairwise`] with the most pairs, at most 10.
pub fn sample(rows: &[Vec<usize>]) -> Vec<usize> {
    if slow_tests() {
        return (0..rows.len()).collect();
    }
    let mut places = pairwise(rows);
    places.truncate(10);
    places
}

/// Returns indices of rows that together contain every pair of choices of two axes that occurs in
/// any row, found greedily. Most faults need no more than two settings at a time.
pub fn pairwise(rows: &[Vec<usize>]) -> Vec<usize> {
    let mut open = BTreeSet::new();
    for row in rows {
        open.extend(pairs(row));
    }
    let mut chosen = Vec::new();
    while !open.is_empty() {
        let mut best = (0, 0);
        for (place, row) in rows.iter().enumerate() {
            let new = pairs(row).filter(|pair| open.contains(pair)).count();
            if new > best.1 {
                best = (place, new);
            }
        }
        for pair in pairs(&rows[best.0]) {
            open.remove(&pair);
        }
        chosen.push(best.0);
    }
    chosen
}

/// A choice of one axis and a choice of another one: each as axis and choice.
type ChoicePair = [(usize, usize); 2];

/// The pairs of choices of a row; of a row of one axis, its choice twice.
fn pairs(row: &[usize]) -> impl Iterator<Item = ChoicePair> {
    let choices = row.iter().copied().enumerate();
    let alone = (row.len() == 1).then(|| [(0, row[0]); 2]);
    let pairs = choices.flat_map(move |first| {
        row.iter().copied().enumerate().skip(first.0 + 1).map(move |second| [first, second])
    });
    alone.into_iter().chain(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_every_row_once() {
        let rows = product(&[2, 3, 4]);
        let distinct: BTreeSet<_> = rows.iter().collect();
        assert_eq!((rows.len(), distinct.len()), (24, 24));
    }

    #[test]
    fn diagonals_hold_every_choice() {
        for axes in [&[19, 11][..], &[7, 11, 4], &[1, 11], &[3, 3]] {
            let rows = diagonals(axes, 2);
            for (axis, choices) in axes.iter().enumerate() {
                let held: BTreeSet<usize> = rows.iter().map(|row| row[axis]).collect();
                assert_eq!(held.len(), *choices, "{axes:?}");
            }
            let all: BTreeSet<_> = product(axes).into_iter().collect();
            assert!(rows.iter().all(|row| all.contains(row)));
        }
        assert_eq!(diagonals(&[19, 11], 2).len(), 38);
        assert_eq!(diagonals(&[3, 0], 2), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn chosen_rows_hold_every_pair() {
        for axes in [&[8, 3, 6][..], &[8, 6, 3, 2], &[1, 2, 5, 2, 2, 2], &[7]] {
            let mut rows = product(axes);
            // Some combinations are refused.
            rows.retain(|row| row.iter().sum::<usize>() % 5 != 3);
            let chosen = pairwise(&rows);
            let mut held = BTreeSet::new();
            for place in &chosen {
                held.extend(pairs(&rows[*place]));
            }
            assert!(rows.iter().flat_map(|row| pairs(row)).all(|pair| held.contains(&pair)));
            let distinct: BTreeSet<_> = chosen.iter().collect();
            assert_eq!(distinct.len(), chosen.len());
        }
        assert!(pairwise(&product(&[8, 6, 3, 2])).len() < 70);
        assert_eq!(pairwise(&[]), [0; 0]);
    }
}
