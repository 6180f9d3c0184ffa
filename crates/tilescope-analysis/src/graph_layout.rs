//! Layered layout of a graph in lanes: cycles are broken, nodes get rows by their longest path,
//! edges over several rows get a dummy node in each, rows are ordered by sweeps of medians
//! (Sugiyama, Tagawa and Toda, 1981; Gansner and others, 1993), and nodes move to the middle of
//! their neighbours as far as the order allows.
//!
//! A lane goes down or up. Lanes belong to bands, which are placed side by side. Within a band, a
//! node is at or below its inputs from an earlier lane, so that a lane that goes up, such as the
//! backward pass, is beside the lane that goes down. O((nodes + dummies) x sweeps x log).

use std::cmp::Ordering;

/// The largest number of rows that an edge with dummies spans; longer ones are drawn without
/// dummies.
const MAX_SPAN: usize = 48;
/// Passes over all rows, alternately down and up, that order and place the nodes.
const SWEEPS: usize = 8;
/// Distance between centres, in units of the distance of two nodes: between a node and a dummy, and
/// between two dummies.
const BESIDE_DUMMY: f64 = 0.6;
const BETWEEN_DUMMIES: f64 = 0.15;
/// Free width between lanes.
const LANE_GAP: f64 = 0.3;

/// A lane: nodes of one band that share a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutLane {
    /// Its band, counted from the left. Lanes of a band are consecutive, in the order of their
    /// layout.
    pub band: usize,
    /// True if inputs are below their readers.
    pub goes_up: bool,
}

/// The input of a layout: a graph in lanes.
pub(crate) struct LayoutInput<'a> {
    pub lanes: &'a [LayoutLane],
    /// The lane of each node.
    pub lane_of: &'a [usize],
    /// Pairs of a node and one of its readers, without repetition; they may form cycles.
    pub edges: &'a [(usize, usize)],
}

/// A position: the distance from the left in node widths, and the row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayoutPoint {
    pub x: f64,
    pub row: usize,
}

/// The layout of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GraphLayout {
    /// The centre of each node.
    pub nodes: Vec<LayoutPoint>,
    /// The bends of each edge, from the input to its reader.
    pub bends: Vec<Vec<LayoutPoint>>,
    /// Left edge and width of each band.
    pub bands: Vec<(f64, f64)>,
    pub rows: usize,
}

/// Computes the layout of a graph.
pub(crate) fn lay_out(input: &LayoutInput<'_>) -> GraphLayout {
    let forwards = without_cycles(input.lane_of.len(), input.edges);
    let rows = rows(input, &forwards);
    let mut layers = LaneLayers::new(input, &forwards, rows);
    layers.put_in_order();
    layers.put_in_place();
    layers.finish(input)
}

/// The successors of each node.
fn adjacency(count: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); count];
    for (from, to) in edges {
        next[from].push(to);
    }
    next
}

/// For each edge, true if it is kept when cycles are broken by removing the edges that lead back to
/// a node whose readers are still being visited.
fn without_cycles(count: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        Not,
        Open,
        Done,
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (edge, (from, _)) in edges.iter().enumerate() {
        out[*from].push(edge);
    }
    let mut visits = vec![Visit::Not; count];
    let mut kept = vec![true; edges.len()];
    for start in 0..count {
        if visits[start] != Visit::Not {
            continue;
        }
        visits[start] = Visit::Open;
        let mut path = vec![(start, 0)];
        while let Some((node, at)) = path.last_mut() {
            let Some(edge) = out[*node].get(*at).copied() else {
                visits[*node] = Visit::Done;
                path.pop();
                continue;
            };
            *at += 1;
            let (_, to) = edges[edge];
            match visits[to] {
                Visit::Not => {
                    visits[to] = Visit::Open;
                    path.push((to, 0));
                }
                Visit::Open => kept[edge] = false,
                Visit::Done => {}
            }
        }
    }
    kept
}

/// Nodes in topological order, inputs first.
fn sorted(next: &[Vec<usize>]) -> Vec<usize> {
    let mut open = vec![0_usize; next.len()];
    next.iter().flatten().for_each(|to| open[*to] += 1);
    let mut order: Vec<usize> = (0..next.len()).filter(|node| open[*node] == 0).collect();
    let mut at = 0;
    while let Some(node) = order.get(at).copied() {
        at += 1;
        for to in &next[node] {
            open[*to] -= 1;
            if open[*to] == 0 {
                order.push(*to);
            }
        }
    }
    order
}

/// The row of each node, from the top.
fn rows(input: &LayoutInput<'_>, kept: &[bool]) -> Vec<usize> {
    let count = input.lane_of.len();
    let edges = input.edges.iter().zip(kept).filter(|(_, kept)| **kept).map(|(edge, _)| *edge);
    let next = adjacency(count, edges.clone());
    let before = adjacency(count, edges.map(|(from, to)| (to, from)));
    let order = sorted(&next);
    let mut rows = vec![0_usize; count];
    for (index, lane) in input.lanes.iter().enumerate() {
        let is_own = |node: &&usize| input.lane_of[**node] == index;
        let is_in_earlier_lane = |node: &&usize| {
            let lane_of_node = input.lane_of[**node];
            lane_of_node < index && input.lanes[lane_of_node].band == lane.band
        };
        let mut nodes: Vec<usize> = order.iter().filter(is_own).copied().collect();
        if lane.goes_up {
            nodes.reverse();
        }
        // The neighbours above a node in its own lane, and those below it.
        let (upper, lower) = if lane.goes_up { (&next, &before) } else { (&before, &next) };
        for node in &nodes {
            let above = upper[*node].iter().filter(is_own).map(|other| rows[*other] + 1).max();
            let earlier = before[*node].iter().filter(is_in_earlier_lane);
            let beside = earlier.map(|other| rows[*other]).max();
            rows[*node] = above.max(beside).unwrap_or(0);
        }
        // Nodes without a neighbour above move down to their readers.
        for node in nodes.iter().rev() {
            let is_held = upper[*node].iter().any(|other| is_own(&other))
                || before[*node].iter().any(|other| is_in_earlier_lane(&other));
            let needed = lower[*node].iter().filter(is_own).map(|other| rows[*other]).min();
            if let Some(needed) = needed.filter(|_| !is_held) {
                rows[*node] = rows[*node].max(needed.saturating_sub(1));
            }
        }
    }
    rows
}

/// A node, or a dummy where an edge passes a row.
#[derive(Clone, Copy)]
struct LayerEntry {
    lane: usize,
    row: usize,
    is_dummy: bool,
    x: f64,
}

/// Rows of all lanes, with dummies.
struct LaneLayers {
    entries: Vec<LayerEntry>,
    /// Neighbours in the row above and in the row below, within the lane.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// Dummies of each edge of the graph, from the input to its reader.
    bends: Vec<Vec<usize>>,
    /// Entries of each row of each lane, from the left.
    layers: Vec<Vec<Vec<usize>>>,
    /// Number of rows, common to all lanes.
    rows: usize,
}

impl LaneLayers {
    fn new(input: &LayoutInput<'_>, kept: &[bool], rows: Vec<usize>) -> Self {
        let mut entries: Vec<LayerEntry> = Vec::new();
        for (lane, row) in input.lane_of.iter().zip(&rows) {
            entries.push(LayerEntry { lane: *lane, row: *row, is_dummy: false, x: 0.0 });
        }
        let mut bends = vec![Vec::new(); input.edges.len()];
        let mut links = Vec::new();
        for (edge, (from, to)) in input.edges.iter().enumerate().filter(|(edge, _)| kept[*edge]) {
            let top = rows[*from].min(rows[*to]);
            let foot = rows[*from].max(rows[*to]);
            let lane = input.lane_of[*from];
            if lane != input.lane_of[*to] || foot == top || foot - top > MAX_SPAN {
                continue;
            }
            let goes_up = rows[*from] > rows[*to];
            let first = entries.len();
            let dummies =
                (top + 1..foot).map(|row| LayerEntry { lane, row, is_dummy: true, x: 0.0 });
            entries.extend(dummies);
            let (upper, lower) = if goes_up { (*to, *from) } else { (*from, *to) };
            let mut chain = vec![upper];
            chain.extend(first..entries.len());
            chain.push(lower);
            links.extend(chain.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))));
            bends[edge] = (first..entries.len()).collect();
            if goes_up {
                bends[edge].reverse();
            }
        }
        let rows = rows.iter().map(|row| row + 1).max().unwrap_or(0);
        let mut layers = vec![vec![Vec::new(); rows]; input.lanes.len()];
        for (index, entry) in entries.iter().enumerate() {
            layers[entry.lane][entry.row].push(index);
        }
        let below = adjacency(entries.len(), links.iter().copied());
        let above = adjacency(entries.len(), links.iter().map(|(upper, lower)| (*lower, *upper)));
        Self { entries, above, below, bends, layers, rows }
    }

    /// Orders the entries of each row to reduce crossings.
    fn put_in_order(&mut self) {
        let mut places = vec![0.0; self.entries.len()];
        for lane in 0..self.layers.len() {
            let mut layers = std::mem::take(&mut self.layers[lane]);
            number(&layers, &mut places);
            let mut best = (self.crossings(&layers, &places), layers.clone());
            for sweep in 0..SWEEPS {
                let down = sweep % 2 == 0;
                let near = if down { &self.above } else { &self.below };
                let mut order: Vec<usize> = (0..layers.len()).collect();
                if !down {
                    order.reverse();
                }
                for row in order {
                    sort_by_median(&mut layers[row], near, &mut places);
                }
                let crossings = self.crossings(&layers, &places);
                if crossings < best.0 {
                    best = (crossings, layers.clone());
                }
            }
            self.layers[lane] = best.1;
        }
    }

    /// Number of pairs of edges that cross between the rows of a lane.
    fn crossings(&self, layers: &[Vec<usize>], places: &[f64]) -> u64 {
        let mut crossings = 0;
        for layer in layers {
            let mut ends = Vec::new();
            for entry in layer {
                let mut lower: Vec<usize> =
                    self.below[*entry].iter().map(|other| places[*other] as usize).collect();
                lower.sort_unstable();
                ends.extend(lower);
            }
            crossings += inversions(&ends);
        }
        crossings
    }

    /// Moves entries to the middle of their neighbours, as far as their order allows.
    fn put_in_place(&mut self) {
        for lane in 0..self.layers.len() {
            let layers = std::mem::take(&mut self.layers[lane]);
            for layer in &layers {
                self.place(layer, |at| at as f64);
            }
            for sweep in 0..SWEEPS {
                if sweep % 2 == 0 {
                    layers.iter().for_each(|layer| self.place_by_neighbours(layer, true));
                } else {
                    layers.iter().rev().for_each(|layer| self.place_by_neighbours(layer, false));
                }
            }
            self.layers[lane] = layers;
        }
    }

    /// Places the entries of a row close to their neighbours in the row above, or below.
    fn place_by_neighbours(&mut self, layer: &[usize], above: bool) {
        let wanted: Vec<f64> = layer.iter().map(|entry| self.wanted(*entry, above)).collect();
        self.place(layer, |at| wanted[at]);
    }

    /// The mean position of an entry's neighbours on one side, or of those on the other side if
    /// there are none.
    fn wanted(&self, entry: usize, above: bool) -> f64 {
        let (near, far) = if above {
            (&self.above[entry], &self.below[entry])
        } else {
            (&self.below[entry], &self.above[entry])
        };
        let near = if near.is_empty() { far } else { near };
        let sum: f64 = near.iter().map(|other| self.entries[*other].x).sum();
        if near.is_empty() { self.entries[entry].x } else { sum / near.len() as f64 }
    }

    /// Places the entries of a row as close to the wanted positions as their order and widths
    /// allow.
    fn place(&mut self, layer: &[usize], wanted: impl Fn(usize) -> f64) {
        let mut offsets = Vec::with_capacity(layer.len());
        let mut offset = 0.0;
        for (at, entry) in layer.iter().enumerate() {
            if let Some(before) = at.checked_sub(1).and_then(|at| layer.get(at)) {
                let dummies = [before, entry].map(|of| self.entries[*of].is_dummy);
                offset += match dummies {
                    [false, false] => 1.0,
                    [true, true] => BETWEEN_DUMMIES,
                    _ => BESIDE_DUMMY,
                };
            }
            offsets.push(offset);
        }
        let places: Vec<f64> = (0..layer.len()).map(|at| wanted(at) - offsets[at]).collect();
        for ((entry, place), offset) in layer.iter().zip(isotonic(&places)).zip(offsets) {
            self.entries[*entry].x = place + offset;
        }
    }

    /// Places lanes and bands side by side.
    fn finish(self, input: &LayoutInput<'_>) -> GraphLayout {
        let mut lefts = Vec::with_capacity(input.lanes.len());
        let mut bands: Vec<(f64, f64)> = Vec::new();
        let mut at = 0.0;
        for (index, lane) in input.lanes.iter().enumerate() {
            let mut least = f64::INFINITY;
            let mut most = f64::NEG_INFINITY;
            for entry in self.entries.iter().filter(|entry| entry.lane == index) {
                least = least.min(entry.x);
                most = most.max(entry.x);
            }
            if bands.len() <= lane.band {
                bands.push((at, 0.0));
            }
            let width = if least <= most { most - least + 1.0 } else { 0.0 };
            lefts.push(at + LANE_GAP / 2.0 + 0.5 - if width > 0.0 { least } else { 0.0 });
            at += width + LANE_GAP;
            if let Some((left, width)) = bands.last_mut() {
                *width = at - *left;
            }
        }
        let mut points = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            points.push(LayoutPoint { x: lefts[entry.lane] + entry.x, row: entry.row });
        }
        let bends = self.bends.iter();
        let bends = bends.map(|dummies| dummies.iter().map(|dummy| points[*dummy]).collect());
        let bends = bends.collect();
        points.truncate(input.lane_of.len());
        GraphLayout { nodes: points, bends, bands, rows: self.rows }
    }
}

/// Stores the index of each entry in its row.
fn number(layers: &[Vec<usize>], places: &mut [f64]) {
    for layer in layers {
        for (place, entry) in layer.iter().enumerate() {
            places[*entry] = place as f64;
        }
    }
}

/// Orders a row by the medians of the entries' neighbours; entries without neighbours keep their
/// places.
fn sort_by_median(layer: &mut [usize], near: &[Vec<usize>], places: &mut [f64]) {
    let mut wanted: Vec<(f64, usize)> = Vec::with_capacity(layer.len());
    for entry in layer.iter() {
        let mut around: Vec<f64> = near[*entry].iter().map(|other| places[*other]).collect();
        around.sort_by(f64::total_cmp);
        let median = match around.len() {
            0 => places[*entry],
            // With an even number, the mean of the two middle ones.
            count => (around[(count - 1) / 2] + around[count / 2]) / 2.0,
        };
        wanted.push((median, *entry));
    }
    // Stable: entries with equal medians keep their order.
    wanted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    for (place, (slot, (_, entry))) in layer.iter_mut().zip(wanted).enumerate() {
        *slot = entry;
        places[entry] = place as f64;
    }
}

/// Number of inversions, counted by a merge sort.
fn inversions(values: &[usize]) -> u64 {
    fn merge_sort(values: &mut Vec<usize>) -> u64 {
        if values.len() < 2 {
            return 0;
        }
        let mut right = values.split_off(values.len() / 2);
        let mut found = merge_sort(values) + merge_sort(&mut right);
        let left = std::mem::take(values);
        let mut a = left.iter().peekable();
        let mut b = right.iter().peekable();
        let mut waiting = left.len() as u64;
        loop {
            match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.cmp(y) != Ordering::Greater => {
                    values.extend(a.next());
                    waiting -= 1;
                }
                (_, Some(_)) => {
                    found += waiting;
                    values.extend(b.next());
                }
                (Some(_), None) => values.extend(a.next()),
                (None, None) => return found,
            }
        }
    }
    merge_sort(&mut values.to_vec())
}

/// The non-decreasing numbers closest to `wanted`, by the sum of squares (pool adjacent violators).
fn isotonic(wanted: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(wanted.len());
    for value in wanted {
        let mut pool = (*value, 1);
        while let Some((mean, count)) = pools.last().copied().filter(|(mean, _)| *mean > pool.0) {
            let all = count + pool.1;
            pool = ((mean * count as f64 + pool.0 * pool.1 as f64) / all as f64, all);
            pools.pop();
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    const DOWN: LayoutLane = LayoutLane { band: 0, goes_up: false };
    const UP: LayoutLane = LayoutLane { band: 0, goes_up: true };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn nodes_do_not_overlap_and_edges_follow_their_lane(
            lane_of in proptest::collection::vec(0..4_usize, 1..40),
            edges in proptest::collection::btree_set((0..40_usize, 0..40_usize), 0..120),
        ) {
            let lanes = [
                DOWN,
                UP,
                LayoutLane { band: 1, ..DOWN },
                LayoutLane { band: 1, ..UP },
            ];
            let count = lane_of.len();
            let exists = |(from, to): &(usize, usize)| from != to && *from < count && *to < count;
            let edges: Vec<(usize, usize)> = edges.into_iter().filter(exists).collect();
            let input = LayoutInput { lanes: &lanes, lane_of: &lane_of, edges: &edges };
            let layout = lay_out(&input);
            prop_assert_eq!(layout.nodes.len(), count);
            for (a, one) in layout.nodes.iter().enumerate() {
                prop_assert!(one.row < layout.rows);
                let (left, width) = layout.bands[lanes[lane_of[a]].band];
                prop_assert!(one.x >= left + 0.5 - 1e-6 && one.x <= left + width - 0.5 + 1e-6);
                for other in &layout.nodes[..a] {
                    let apart = (one.x - other.x).abs() > 0.99;
                    prop_assert!(one.row != other.row || apart, "{:?} {:?}", one, other);
                }
            }
            let kept = without_cycles(count, &edges);
            for ((from, to), _) in edges.iter().zip(&kept).filter(|(_, kept)| **kept) {
                let lane = lane_of[*from];
                if lane == lane_of[*to] {
                    let (upper, lower) =
                        if lanes[lane].goes_up { (to, from) } else { (from, to) };
                    prop_assert!(layout.nodes[*upper].row < layout.nodes[*lower].row);
                }
            }
        }

        #[test]
        fn rising_numbers_rise_and_keep_their_mean(wanted in proptest::collection::vec(-9.0..9.0, 1..30)) {
            let found = isotonic(&wanted);
            prop_assert!(found.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9));
            prop_assert!((found.iter().sum::<f64>() - wanted.iter().sum::<f64>()).abs() < 1e-6);
        }
    }

    #[test]
    fn avoidable_crossings_are_avoided() {
        // Four sources, each read by the sink on the other side.
        let edges = [(0, 7), (1, 6), (2, 5), (3, 4)];
        let input = LayoutInput { lanes: &[DOWN], lane_of: &[0; 8], edges: &edges };
        let layout = lay_out(&input);
        let ends = |edge: &(usize, usize)| (layout.nodes[edge.0].x, layout.nodes[edge.1].x);
        for (at, one) in edges.iter().enumerate() {
            for other in &edges[..at] {
                let ((a, b), (c, d)) = (ends(one), ends(other));
                assert_eq!(a < c, b < d, "{one:?} crosses {other:?}");
            }
        }
        // The nodes of each edge are exactly above each other.
        assert!(edges.iter().map(ends).all(|(from, to)| (from - to).abs() < 1e-6));
    }

    #[test]
    fn a_long_edge_passes_beside_the_nodes_between() {
        let edges = [(0, 1), (1, 2), (2, 3), (0, 3)];
        let input = LayoutInput { lanes: &[DOWN], lane_of: &[0; 4], edges: &edges };
        let layout = lay_out(&input);
        let rows: Vec<usize> = layout.nodes.iter().map(|node| node.row).collect();
        assert_eq!(rows, [0, 1, 2, 3]);
        assert_eq!(layout.bends[3].len(), 2);
        for bend in &layout.bends[3] {
            let node = layout.nodes.iter().find(|node| node.row == bend.row).unwrap();
            assert!((bend.x - node.x).abs() >= BESIDE_DUMMY - 1e-6);
        }
    }

    #[test]
    fn the_backward_pass_goes_up_beside_the_forward_pass() {
        // Forward 0 -> 1 -> 2, backward 3 -> 4 -> 5, each reading the stored activations of its
        // forward operation.
        let edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4), (0, 5)];
        let lane_of = [0, 0, 0, 1, 1, 1];
        let input = LayoutInput { lanes: &[DOWN, UP], lane_of: &lane_of, edges: &edges };
        let rows: Vec<usize> = lay_out(&input).nodes.iter().map(|node| node.row).collect();
        assert_eq!(rows, [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn inversions_are_pairs_out_of_order() {
        assert_eq!(inversions(&[0, 1, 1, 2]), 0);
        assert_eq!(inversions(&[3, 2, 1, 0]), 6);
    }
}
