//! Alignment of two sequences: the corresponding entries of both.
//!
//! Runs of programs are long and regular, so a general difference algorithm, which is quadratic if
//! much differs, is too slow. Entries that occur equally often on both sides most likely
//! correspond: the k-th occurrences are paired, and the longest chain of pairs that do not cross is
//! kept (patience sorting). The procedure is repeated between neighbours of the chain, where other
//! entries occur equally often; small remainders are aligned exactly. O(n log n) for each of at
//! most [`MAX_DEPTH`] rounds.

use ndarray::Array2;
use std::cmp::Ordering;

/// The largest number of rounds of pairing.
const MAX_DEPTH: u32 = 12;
/// Cells of the largest remainder that is aligned exactly.
const MAX_CELLS: usize = 1 << 14;

/// Positions in `a` and `b` of corresponding entries: pairs of equal entries that rise on both
/// sides. Exchanging `a` and `b` exchanges the positions of every pair. Entries should be small
/// numbers.
pub(crate) fn align(a: &[u32], b: &[u32]) -> Vec<(u32, u32)> {
    // Ties are resolved from one side, the same one for either order of the arguments.
    let swap = a.len().cmp(&b.len()).then_with(|| a.cmp(b)) == Ordering::Greater;
    let (first, second) = if swap { (b, a) } else { (a, b) };
    let kinds = first.iter().chain(second).max().map_or(0, |most| *most as usize + 1);
    let mut work = SequenceAligner {
        a: first,
        b: second,
        places: vec![EntryOccurrences::default(); kinds],
        pairs: Vec::new(),
    };
    work.part((0, first.len()), (0, second.len()), 0);
    if swap {
        work.pairs.iter_mut().for_each(|pair| *pair = (pair.1, pair.0));
    }
    work.pairs
}

/// Occurrences of an entry in the current part of both sequences.
#[derive(Clone, Default)]
struct EntryOccurrences {
    in_a: u32,
    in_b: Vec<u32>,
    used: u32,
}

struct SequenceAligner<'a> {
    a: &'a [u32],
    b: &'a [u32],
    places: Vec<EntryOccurrences>,
    pairs: Vec<(u32, u32)>,
}

type SequenceRange = (usize, usize);

impl SequenceAligner<'_> {
    /// Adds the pairs of `a[from_a..]` and `b[from_b..]`, in order.
    fn part(&mut self, (mut a, end_a): SequenceRange, (mut b, end_b): SequenceRange, depth: u32) {
        while a < end_a && b < end_b && self.a[a] == self.b[b] {
            self.pairs.push((a as u32, b as u32));
            (a, b) = (a + 1, b + 1);
        }
        let mut stop_a = end_a;
        let mut stop_b = end_b;
        while a < stop_a && b < stop_b && self.a[stop_a - 1] == self.b[stop_b - 1] {
            (stop_a, stop_b) = (stop_a - 1, stop_b - 1);
        }
        if a < stop_a && b < stop_b {
            self.align_between_anchors((a, stop_a), (b, stop_b), depth);
        }
        let tail = (stop_a..end_a).zip(stop_b..end_b);
        self.pairs.extend(tail.map(|(a, b)| (a as u32, b as u32)));
    }

    fn align_between_anchors(&mut self, a: SequenceRange, b: SequenceRange, depth: u32) {
        if (a.1 - a.0) * (b.1 - b.0) <= MAX_CELLS {
            return self.exact(a, b);
        }
        let mut chain = self.chain(a, b, true);
        if chain.is_empty() {
            chain = self.chain(a, b, false);
        }
        let mut from_a = a.0;
        let mut from_b = b.0;
        for (at_a, at_b) in chain {
            if depth < MAX_DEPTH {
                self.part((from_a, at_a as usize), (from_b, at_b as usize), depth + 1);
            }
            self.pairs.push((at_a, at_b));
            (from_a, from_b) = (at_a as usize + 1, at_b as usize + 1);
        }
        // An empty chain means that the remainders have nothing in common.
        if depth < MAX_DEPTH && (from_a, from_b) != (a.0, b.0) {
            self.part((from_a, a.1), (from_b, b.1), depth + 1);
        }
    }

    /// The longest chain of pairs that do not cross, made of the k-th occurrences of each kind;
    /// `equal` leaves out kinds that do not occur equally often.
    fn chain(&mut self, a: SequenceRange, b: SequenceRange, equal: bool) -> Vec<(u32, u32)> {
        for kind in &self.a[a.0..a.1] {
            self.places[*kind as usize].in_a += 1;
        }
        for (at, kind) in (b.0..b.1).zip(&self.b[b.0..b.1]) {
            self.places[*kind as usize].in_b.push(at as u32);
        }
        let mut candidates = Vec::new();
        for (at, kind) in (a.0..a.1).zip(&self.a[a.0..a.1]) {
            let places = &mut self.places[*kind as usize];
            if equal && places.in_a as usize != places.in_b.len() {
                continue;
            }
            if let Some(there) = places.in_b.get(places.used as usize) {
                candidates.push((at as u32, *there));
                places.used += 1;
            }
        }
        let seen = self.a[a.0..a.1].iter().chain(&self.b[b.0..b.1]);
        for kind in seen {
            let places = &mut self.places[*kind as usize];
            (places.in_a, places.used) = (0, 0);
            places.in_b.clear();
        }
        longest_rising(&candidates)
    }

    /// The longest common subsequence, by dynamic programming.
    fn exact(&mut self, a: SequenceRange, b: SequenceRange) {
        let rows = &self.a[a.0..a.1];
        let columns = &self.b[b.0..b.1];
        let mut best = Array2::<u32>::zeros((rows.len() + 1, columns.len() + 1));
        for row in (0..rows.len()).rev() {
            for column in (0..columns.len()).rev() {
                best[[row, column]] = if rows[row] == columns[column] {
                    best[[row + 1, column + 1]] + 1
                } else {
                    best[[row, column + 1]].max(best[[row + 1, column]])
                };
            }
        }
        let mut row = 0;
        let mut column = 0;
        while row < rows.len() && column < columns.len() {
            if rows[row] == columns[column] {
                self.pairs.push(((a.0 + row) as u32, (b.0 + column) as u32));
                (row, column) = (row + 1, column + 1);
            } else if best[[row, column + 1]] > best[[row + 1, column]] {
                column += 1;
            } else {
                row += 1;
            }
        }
    }
}

/// The longest subsequence of `pairs`, which rise in their first number, that rises in the second
/// too.
fn longest_rising(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    // ends[n]: the pair with the smallest second number that ends a chain of length n + 1.
    let mut ends: Vec<u32> = Vec::new();
    let mut before: Vec<Option<u32>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end as usize].1 < pair.1);
        before.push(length.checked_sub(1).map(|previous| ends[previous]));
        match ends.get_mut(length) {
            Some(end) => *end = index as u32,
            None => ends.push(index as u32),
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        chain.push(pairs[index as usize]);
        next = before[index as usize];
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn check(a: &[u32], b: &[u32]) -> Vec<(u32, u32)> {
        let pairs = align(a, b);
        for pair in &pairs {
            assert_eq!(a[pair.0 as usize], b[pair.1 as usize]);
        }
        assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
        pairs
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn pairs_rise_and_sides_can_be_exchanged(
            a in prop::collection::vec(0u32..6, 0..400),
            b in prop::collection::vec(0u32..6, 0..400),
        ) {
            let there: Vec<_> = check(&a, &b);
            let back: Vec<_> = check(&b, &a).into_iter().map(|(b, a)| (a, b)).collect();
            prop_assert_eq!(there, back);
            prop_assert_eq!(check(&a, &a).len(), a.len());
        }

        #[test]
        fn removed_entries_do_not_shift_the_rest(
            a in prop::collection::vec(0u32..50, 0..600),
            keep in prop::collection::vec(prop::bool::weighted(0.95), 600),
        ) {
            let kept = a.iter().zip(&keep).filter(|(_, keep)| **keep);
            let b: Vec<u32> = kept.map(|(kind, _)| *kind).collect();
            // Nearly all remaining entries are found.
            prop_assert!(check(&a, &b).len() * 10 >= b.len() * 8);
        }
    }

    #[test]
    fn more_turns_of_a_loop_leave_what_comes_after_it_aligned() {
        let run = |turns: usize| -> Vec<u32> {
            let body = [1, 2, 9, 3, 9].repeat(turns);
            [vec![0], body, (20..400).collect()].concat()
        };
        let pairs = check(&run(100), &run(200));
        assert_eq!(pairs.len(), run(100).len());
    }

    #[test]
    fn an_additional_operation_per_iteration_keeps_the_others_aligned() {
        let plain = [1, 9, 2, 9, 3, 9].repeat(3_000);
        let more = [1, 9, 2, 9, 7, 9, 3, 9].repeat(3_000);
        assert_eq!(check(&plain, &more).len(), plain.len());
    }
}
