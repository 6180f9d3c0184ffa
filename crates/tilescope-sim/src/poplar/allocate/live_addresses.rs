//! Addresses in use during each stretch of time.

use super::address_ranges::AddressRanges;
use std::ops::Range;
use tilescope_report::units::Bytes;

/// Addresses of the variables of a tile and their lifetimes, as a binary tree: its root spans all
/// steps, and the children of a node span half of its steps each. A lifetime consists of a few
/// whole nodes, and cuts a few others, so that a variable is placed without looking at all
/// variables that are live with it.
pub(super) struct LiveAddresses {
    nodes: Vec<SpanAddresses>,
    /// Steps at which a lifetime begins or ends, in order. The leaves of the tree are the spans
    /// between them.
    moments: Vec<u32>,
}

/// Addresses in use during a span of moments.
#[derive(Clone, Default)]
struct SpanAddresses {
    /// Those of variables whose lifetime has this span, but not that of the parent.
    throughout: AddressRanges,
    /// Those in use at any moment of the span, but for variables that are live during the span of
    /// the parent.
    at_times: AddressRanges,
}

/// Position of a node in the tree: the children of `n` are `2 n` and `2 n + 1`.
const ROOT: usize = 1;

impl LiveAddresses {
    /// No addresses yet, for variables with the given lifetimes.
    pub(super) fn new<'a>(lives: impl Iterator<Item = &'a Range<u32>>) -> Self {
        let mut moments: Vec<u32> = lives.flat_map(|life| [life.start, life.end]).collect();
        moments.sort_unstable();
        moments.dedup();
        let nodes = 2 * moments.len().next_power_of_two();
        Self { nodes: vec![SpanAddresses::default(); nodes], moments }
    }

    /// Sets whose union is in use during the lifetimes `lives`, which are in order.
    pub(super) fn during(&self, lives: &[Range<u32>]) -> Vec<&AddressRanges> {
        let mut sets = Vec::new();
        visit_spans(&self.moments, ROOT, lives, &mut |node, is_whole| {
            let span = &self.nodes[node];
            sets.push(if is_whole { &span.at_times } else { &span.throughout });
        });
        sets
    }

    /// Adds the addresses of a variable with the lifetimes `lives`, which are in order.
    pub(super) fn insert(&mut self, lives: &[Range<u32>], start: Bytes, size: Bytes) {
        let nodes = &mut self.nodes;
        visit_spans(&self.moments, ROOT, lives, &mut |node, is_whole| {
            nodes[node].at_times.insert(start, size);
            if is_whole {
                nodes[node].throughout.insert(start, size);
            }
        });
    }
}

/// Calls `visit` with each node that the lifetimes cut, and, with true, each that is a whole part of
/// one. `node` spans `moments`.
fn visit_spans(
    moments: &[u32],
    node: usize,
    lives: &[Range<u32>],
    visit: &mut impl FnMut(usize, bool),
) {
    let [start, .., end] = *moments else { return };
    let first = lives.partition_point(|life| life.end <= start);
    let behind = lives.partition_point(|life| life.start < end);
    let Some(life) = lives[first..behind].first() else { return };
    if life.start <= start && end <= life.end {
        visit(node, true);
        return;
    }
    visit(node, false);
    let middle = moments.len() / 2;
    visit_spans(&moments[..=middle], 2 * node, &lives[first..behind], visit);
    visit_spans(&moments[middle..], 2 * node + 1, &lives[first..behind], visit);
}

#[cfg(test)]
mod tests {
    use super::super::address_ranges::first_common_gap;
    use super::*;

    /// Places `count` variables of a byte whose lifetimes contain each other, and returns the
    /// number of nodes that this reads and writes.
    fn visits_of_nested_lifetimes(count: u32) -> usize {
        let lives: Vec<Range<u32>> = (0..count).map(|at| at..2 * count - at).collect();
        let mut live = LiveAddresses::new(lives.iter());
        let mut visits = 0;
        for (at, life) in (0u64..).zip(lives) {
            let sets = live.during(std::slice::from_ref(&life));
            visits += 2 * sets.len();
            let start = first_common_gap(&sets, Bytes::ZERO, Bytes(1));
            assert_eq!(start, Bytes(8 * at));
            live.insert(&[life], start, Bytes(1));
        }
        visits
    }

    /// All pairs of these variables interfere, so that visits of pairs would grow 16-fold.
    #[test]
    fn variables_that_are_live_together_are_placed_in_nearly_linear_time() {
        let [short, long] = [1 << 10, 1 << 12].map(visits_of_nested_lifetimes);
        assert!(long < 5 * short, "{short} visits, then {long}");
    }
}
