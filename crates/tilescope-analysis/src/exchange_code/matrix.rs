//! The matrix of senders and receivers, at the resolution of the screen.
//!
//! A cell sums the bytes from its senders to its receivers if each exchange runs once. Data in
//! order follow a staircase, rearranged data their blocks, and broadcasts and gathers fill the
//! cells of their groups. For all others only both ends are known: each receiver is assumed to get
//! the same shares from all senders, in proportion to the bytes that they send. These bytes are
//! kept apart from known ones.

mod blocks;
mod groups;

use super::ExchangeLink;
use super::flows::{ExchangeFlow, ExchangeFlows, ExchangePattern};
use ndarray::{Array2, Axis, Slice};
use std::ops::Range;
use tilescope_report::units::{Bytes, ProgramId, TileId, TileRange, TileRuns};

/// The requested part of the matrix, and its number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeMatrixKey {
    /// The sending tiles, as rows.
    pub senders: TileRange,
    /// The receiving tiles, as columns.
    pub receivers: TileRange,
    /// Number of columns and rows of cells; never more than tiles.
    pub cells: [usize; 2],
    pub link: Option<ExchangeLink>,
    pub program: Option<ProgramId>,
}

impl ExchangeMatrixKey {
    fn includes(&self, flow: &ExchangeFlow) -> bool {
        self.link.is_none_or(|link| link == flow.link)
            && self.program.is_none_or(|program| program == flow.program)
    }
}

/// Bytes by sender and receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeMatrix {
    /// The request, with the actual number of cells.
    pub key: ExchangeMatrixKey,
    /// Bytes, known and assumed, with senders as rows and receivers as columns.
    pub bytes: Array2<f64>,
    /// Bytes whose sender and receiver are recorded, in the same cells.
    pub known_bytes: Array2<f64>,
    /// The largest number of known bytes in a cell.
    pub max: f64,
    /// Bytes of all cells.
    pub total: f64,
    /// Share of all tiles' bytes whose sender and receiver are recorded.
    pub known: f64,
}

impl ExchangeMatrix {
    /// Bytes of a cell.
    pub fn get(&self, column: usize, row: usize) -> f64 {
        self.bytes.get((row, column)).copied().unwrap_or(0.0)
    }

    /// Bytes of a cell whose sender and receiver are recorded.
    pub fn known_in(&self, column: usize, row: usize) -> f64 {
        self.known_bytes.get((row, column)).copied().unwrap_or(0.0)
    }

    /// Tiles of a column and a row.
    pub fn tiles(&self, column: usize, row: usize) -> (TileRange, TileRange) {
        let [columns, rows] = self.key.cells;
        (bin_tiles(self.key.senders, rows, row), bin_tiles(self.key.receivers, columns, column))
    }
}

/// Adjacent cells as one.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeMatrixPart {
    pub senders: TileRange,
    pub receivers: TileRange,
    /// Bytes, known and assumed.
    pub bytes: f64,
    /// Bytes whose sender and receiver are recorded.
    pub known: f64,
}

impl ExchangeMatrix {
    /// The cells combined into at most `most` parts along each side.
    pub fn parts(&self, most: usize) -> Vec<ExchangeMatrixPart> {
        let [columns, rows] = self.key.cells;
        let sizes = [columns, rows].map(|cells| cells.div_ceil(most.max(1)).max(1));
        let mut parts = Vec::new();
        for row in (0..rows).step_by(sizes[1]) {
            for column in (0..columns).step_by(sizes[0]) {
                let ends = [(column + sizes[0]).min(columns), (row + sizes[1]).min(rows)];
                let first = self.tiles(column, row);
                let last = self.tiles(ends[0] - 1, ends[1] - 1);
                parts.push(ExchangeMatrixPart {
                    senders: TileRange::new(first.0.first, last.0.end),
                    receivers: TileRange::new(first.1.first, last.1.end),
                    bytes: sum_of(&self.bytes, row..ends[1], column..ends[0]),
                    known: sum_of(&self.known_bytes, row..ends[1], column..ends[0]),
                });
            }
        }
        parts
    }
}

/// The sum of a rectangle of cells.
fn sum_of(cells: &Array2<f64>, rows: Range<usize>, columns: Range<usize>) -> f64 {
    let rows = cells.slice_axis(Axis(0), Slice::from(rows));
    rows.slice_axis(Axis(1), Slice::from(columns)).iter().sum()
}

/// Cells of a window: the first tile of cell `i` of `n` is `i * tiles / n`, rounded up.
fn bin_tiles(window: TileRange, bins: usize, bin: usize) -> TileRange {
    let count = window.count() as usize;
    let edge = |bin: usize| window.first + (bin * count).div_ceil(bins.max(1)) as u32;
    TileRange::new(edge(bin), edge(bin + 1).min(window.end).max(edge(bin)))
}

/// The bin of a tile within the window.
fn bin_of(window: TileRange, bins: usize, tile: TileId) -> usize {
    let place = (tile - window.first) as usize;
    place * bins / (window.count() as usize).max(1)
}

/// Sums the flows into the cells of a matrix.
pub fn matrix(flows: &ExchangeFlows, key: &ExchangeMatrixKey) -> ExchangeMatrix {
    let [columns, rows] = [
        key.cells[0].clamp(1, (key.receivers.count() as usize).max(1)),
        key.cells[1].clamp(1, (key.senders.count() as usize).max(1)),
    ];
    let key = ExchangeMatrixKey { cells: [columns, rows], ..*key };
    let nothing = Array2::zeros((rows, columns));
    let mut cells = ExchangeMatrixBuilder { key, bytes: nothing.clone(), known_bytes: nothing };
    let mut known = 0.0;
    let mut all = 0.0f64;
    for flow in flows.flows.iter().filter(|flow| key.includes(flow)) {
        all += flow.bytes.as_f64();
        if flow.pattern.is_known() {
            known += flow.bytes.as_f64();
        }
        match &flow.pattern {
            ExchangePattern::InOrder => cells.staircase(flow),
            ExchangePattern::Rearranged(order) => cells.rearranged(flow, order),
            ExchangePattern::Broadcast(groups)
            | ExchangePattern::Gather(groups)
            | ExchangePattern::Assumed(Some(groups)) => cells.in_groups(flow, groups),
            ExchangePattern::EachToAll | ExchangePattern::Assumed(None) => cells.product(flow),
        }
    }
    let ExchangeMatrixBuilder { bytes, known_bytes, .. } = cells;
    let max = known_bytes.iter().copied().fold(0.0, f64::max);
    let total = bytes.iter().sum();
    debug_assert!(known <= all, "what keeps its order is a part of what moves");
    ExchangeMatrix { key, bytes, known_bytes, max, total, known: known / all.max(1.0) }
}

struct ExchangeMatrixBuilder {
    key: ExchangeMatrixKey,
    bytes: Array2<f64>,
    known_bytes: Array2<f64>,
}

impl ExchangeMatrixBuilder {
    /// Adds a flow in which every sender serves every receiver in proportion.
    fn product(&mut self, flow: &ExchangeFlow) {
        let ExchangeMatrixKey { senders, receivers, cells: [columns, rows], .. } = self.key;
        let all = flow.sent.total().as_f64();
        if all == 0.0 {
            return;
        }
        let rows = binned(&flow.sent, senders, rows);
        let columns_of = binned(&flow.received, receivers, columns);
        for (row, sent) in rows {
            for (column, received) in &columns_of {
                self.add_to_cell([row, *column], sent * received / all, flow.pattern.is_known());
            }
        }
    }

    /// Adds a flow whose data arrives in the order it was sent. Both ends are scaled to the bytes
    /// of the flow: a tile may send the same bytes along several routes.
    fn staircase(&mut self, flow: &ExchangeFlow) {
        let bytes = flow.bytes.as_f64();
        let send = bytes / flow.sent.total().as_f64().max(1.0);
        let receive = bytes / flow.received.total().as_f64().max(1.0);
        let mut senders = tiles(&flow.sent).map(|(tile, bytes)| (tile, bytes * send));
        let mut receivers = tiles(&flow.received).map(|(tile, bytes)| (tile, bytes * receive));
        let mut from = senders.next();
        let mut to = receivers.next();
        while let (Some((sender, left)), Some((receiver, room))) = (&mut from, &mut to) {
            let bytes = left.min(*room);
            self.add(*sender, *receiver, bytes);
            *left -= bytes;
            *room -= bytes;
            // The remainder of rounding is less than any byte.
            let empty = *left < 1e-6;
            let full = *room < 1e-6;
            if empty {
                from = senders.next();
            }
            if full {
                to = receivers.next();
            }
        }
    }

    fn add(&mut self, sender: TileId, receiver: TileId, bytes: f64) {
        let ExchangeMatrixKey { senders, receivers, cells: [columns, rows], .. } = self.key;
        if senders.contains(sender) && receivers.contains(receiver) {
            let row = bin_of(senders, rows, sender);
            let column = bin_of(receivers, columns, receiver);
            self.add_to_cell([row, column], bytes, true);
        }
    }

    fn add_to_cell(&mut self, cell: [usize; 2], bytes: f64, is_known: bool) {
        self.bytes[cell] += bytes;
        if is_known {
            self.known_bytes[cell] += bytes;
        }
    }
}

fn tiles(values: &TileRuns<Bytes>) -> impl Iterator<Item = (TileId, f64)> {
    values.iter().flat_map(|(range, value)| range.iter().map(move |tile| (tile, value.as_f64())))
}

/// Sums of the non-empty bins, in order.
fn binned(values: &TileRuns<Bytes>, window: TileRange, bins: usize) -> Vec<(usize, f64)> {
    let mut sums: Vec<(usize, f64)> = Vec::new();
    for (range, value) in values.iter() {
        let TileRange { first: mut tile, end } = range.intersection(window);
        while tile < end {
            let bin = bin_of(window, bins, tile);
            let edge = bin_tiles(window, bins, bin).end.min(end).max(tile + 1);
            let bytes = f64::from(edge - tile) * value.as_f64();
            match sums.last_mut() {
                Some((last, sum)) if *last == bin => *sum += bytes,
                _ => sums.push((bin, bytes)),
            }
            tile = edge;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// Bytes of tiles from 0 on.
    pub(super) fn bytes_on_tiles(bytes: &[u64]) -> TileRuns<Bytes> {
        TileRuns::from_tiles(TileId(0), bytes.iter().map(|v| (*v > 0).then_some(Bytes(*v))))
    }

    /// The square of some senders and the same receivers.
    pub(super) fn window_of(tiles: Range<u32>, cells: usize) -> ExchangeMatrixKey {
        let window = TileRange::new(TileId(tiles.start), TileId(tiles.end));
        ExchangeMatrixKey {
            senders: window,
            receivers: window,
            cells: [cells; 2],
            link: None,
            program: None,
        }
    }

    fn flow(sent: Vec<u64>, received: Vec<u64>, in_order: bool) -> ExchangeFlows {
        let tiles = sent.len().max(received.len()) as u32;
        let (sent, received) = (bytes_on_tiles(&sent), bytes_on_tiles(&received));
        let bytes = received.total();
        let flow = ExchangeFlow {
            program: ProgramId(0),
            link: ExchangeLink::Internal,
            sent,
            received,
            bytes,
            pattern: if in_order {
                ExchangePattern::InOrder
            } else {
                ExchangePattern::Assumed(None)
            },
        };
        ExchangeFlows { flows: vec![flow], tiles }
    }

    fn whole(flows: &ExchangeFlows, cells: usize) -> ExchangeMatrix {
        matrix(flows, &window_of(0..flows.tiles, cells))
    }

    /// Two lists with the same sum.
    fn ends() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
        (prop::collection::vec(0u64..50, 1..40), prop::collection::vec(0u64..50, 1..40)).prop_map(
            |(mut a, mut b)| {
                let (left, right): (u64, u64) = (a.iter().sum(), b.iter().sum());
                a[0] += right.saturating_sub(left);
                b[0] += left.saturating_sub(right);
                (a, b)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn parts_hold_every_cell_once(
            (sent, received) in ends(), cells in 1usize..50, most in 1usize..60,
        ) {
            let matrix = whole(&flow(sent, received, true), cells);
            let parts = matrix.parts(most);
            let [columns, rows] = matrix.key.cells;
            prop_assert!(parts.len() <= most.min(columns.max(1)) * most.min(rows.max(1)));
            let of_parts: f64 = parts.iter().map(|part| part.bytes).sum();
            let of_cells: f64 = matrix.bytes.iter().sum();
            prop_assert!((of_parts - of_cells).abs() < 1e-3);
            let area = |part: &ExchangeMatrixPart| part.senders.count() * part.receivers.count();
            let all = matrix.key.senders.count() * matrix.key.receivers.count();
            prop_assert_eq!(parts.iter().map(area).sum::<u32>(), all);
        }

        #[test]
        fn rows_sum_to_what_is_sent_and_columns_to_what_arrives(
            (sent, received) in ends(), in_order: bool, cells in 1usize..50,
        ) {
            let total: u64 = received.iter().sum();
            let flows = flow(sent.clone(), received.clone(), in_order);
            let matrix = whole(&flows, cells);
            let [columns, rows] = matrix.key.cells;
            prop_assert!((matrix.total - total as f64).abs() <= 1e-6 * total as f64 + 1e-6);
            for at in 0..rows {
                let row: f64 = (0..columns).map(|column| matrix.get(column, at)).sum();
                let tiles = matrix.tiles(0, at).0;
                let wanted: u64 = tiles.iter()
                    .map(|tile| sent.get(tile.index()).copied().unwrap_or(0)).sum();
                prop_assert!((row - wanted as f64).abs() < 1e-3, "row {at}: {row} {wanted}");
            }
            for at in 0..columns {
                let column: f64 = (0..rows).map(|row| matrix.get(at, row)).sum();
                let tiles = matrix.tiles(at, 0).1;
                let wanted: u64 = tiles.iter()
                    .map(|tile| received.get(tile.index()).copied().unwrap_or(0)).sum();
                prop_assert!((column - wanted as f64).abs() < 1e-3, "column {at}");
            }
        }

        #[test]
        fn a_part_of_the_matrix_is_what_the_whole_has_there(
            (sent, received) in ends(), in_order: bool, first in 0u32..20, count in 1u32..20,
        ) {
            let flows = flow(sent, received, in_order);
            let window = TileRange::new(TileId(first), TileId(first + count));
            let whole = whole(&flows, flows.tiles as usize);
            let key = ExchangeMatrixKey {
                senders: window, receivers: window, cells: [count as usize; 2], ..whole.key
            };
            let part = matrix(&flows, &key);
            for row in 0..count as usize {
                for column in 0..count as usize {
                    let (at, to) = (first as usize + column, first as usize + row);
                    let inside = at < flows.tiles as usize && to < flows.tiles as usize;
                    let wanted = if inside { whole.get(at, to) } else { 0.0 };
                    prop_assert!((part.get(column, row) - wanted).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn data_in_order_stays_near_the_diagonal() {
        let matrix = whole(&flow(vec![10; 8], vec![10; 8], true), 8);
        for row in 0..8 {
            for column in 0..8 {
                let wanted = if row == column { 10.0 } else { 0.0 };
                assert!((matrix.get(column, row) - wanted).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn assumed_bytes_are_separate_from_known_ones() {
        let known = whole(&flow(vec![10; 8], vec![10; 8], true), 4);
        assert_eq!((known.bytes.clone(), known.known), (known.known_bytes.clone(), 1.0));
        assert_eq!(known.max, 20.0);
        let assumed = whole(&flow(vec![10; 8], vec![10; 8], false), 4);
        assert!(assumed.known_bytes.iter().all(|bytes| *bytes == 0.0));
        assert_eq!((assumed.total, assumed.max, assumed.known), (80.0, 0.0, 0.0));
        assert!(assumed.parts(2).iter().all(|part| part.known == 0.0 && part.bytes == 20.0));
    }

    #[test]
    fn a_broadcast_reaches_every_receiver() {
        let matrix = whole(&flow(vec![32, 0, 0, 0], vec![8; 4], false), 4);
        assert!((0..4).all(|column| (matrix.get(column, 0) - 8.0).abs() < 1e-9));
    }
}
