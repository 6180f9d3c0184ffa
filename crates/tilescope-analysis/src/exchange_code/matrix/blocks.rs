//! Flows whose data change their order in blocks.

use super::{ExchangeMatrixBuilder, bin_of};
use crate::exchange_code::flows::ExchangeFlow;
use tilescope_report::units::TileRange;
use tilescope_report::{Rearrangement, RouteBlock, RouteBytes, TileEnds};

/// Pieces into which the blocks of a flow are cut at most: a few for each pixel of a large screen.
/// Pieces beyond that are as large as a file demands, and stay whole.
const MAX_PIECES: u32 = 1 << 24;

/// Positions in the memory of one side, with the bin of each.
struct BinnedMemory {
    /// End of each stretch, in bytes.
    ends: Vec<u64>,
    /// Bin of each stretch; `None` outside the window.
    bins: Vec<Option<usize>>,
}

impl BinnedMemory {
    fn new(ends: &TileEnds, window: TileRange, bins: usize) -> Self {
        let mut memory = Self { ends: Vec::new(), bins: Vec::new() };
        for (tile, end) in ends {
            let is_inside = window.contains(*tile);
            memory.push(is_inside.then(|| bin_of(window, bins, *tile)), *end);
        }
        memory
    }

    fn push(&mut self, bin: Option<usize>, end: u64) {
        match (self.ends.last_mut(), self.bins.last()) {
            (Some(last), Some(of_last)) if *of_last == bin => *last = end,
            _ => {
                self.ends.push(end);
                self.bins.push(bin);
            }
        }
    }

    /// The stretch that contains a position.
    fn stretch(&self, at: u64) -> usize {
        self.ends.partition_point(|end| *end <= at)
    }

    fn bin(&self, stretch: usize) -> Option<usize> {
        self.bins.get(stretch).copied().flatten()
    }
}

/// A block that is cut until each piece goes from one stretch to another.
struct BlockCutter<'a> {
    cells: &'a mut ExchangeMatrixBuilder,
    memory: [BinnedMemory; 2],
    unit: u64,
    /// Steps of the dimensions on both sides, in units.
    steps: Vec<[u64; 2]>,
    pieces: u32,
}

impl ExchangeMatrixBuilder {
    /// Adds a flow whose data change their order.
    pub(super) fn rearranged(&mut self, flow: &ExchangeFlow, order: &Rearrangement) {
        let [columns, rows] = self.key.cells;
        let [sent, received] = order.memory_of(&RouteBytes::of(&flow.sent, &flow.received));
        let memory = [
            BinnedMemory::new(&sent, self.key.senders, rows),
            BinnedMemory::new(&received, self.key.receivers, columns),
        ];
        let mut cutter =
            BlockCutter { cells: self, memory, unit: order.unit.0, steps: Vec::new(), pieces: 0 };
        for block in &order.blocks {
            cutter.block(block);
        }
    }
}

impl BlockCutter<'_> {
    fn block(&mut self, block: &RouteBlock) {
        let mut counts = Vec::new();
        self.steps.clear();
        for dim in block.dims.iter().filter(|dim| dim.count > 1) {
            counts.push(dim.count);
            self.steps.push([dim.sent_step, dim.received_step]);
        }
        self.cut([block.sent_at, block.received_at], &mut counts);
    }

    /// Adds the units from `first` on in a piece with the given number along each dimension.
    fn cut(&mut self, first: [u64; 2], counts: &mut [u64]) {
        let mut last = first;
        for (count, steps) in counts.iter().zip(&self.steps) {
            for (last, step) in last.iter_mut().zip(steps) {
                *last += (count - 1) * step;
            }
        }
        let mut stretches = [0; 2];
        let mut crosses = [false; 2];
        for side in 0..2 {
            let memory = &self.memory[side];
            stretches[side] = memory.stretch(first[side] * self.unit);
            crosses[side] = stretches[side] != memory.stretch(last[side] * self.unit);
        }
        // A piece that is outside the window on one side is in no cell.
        let outside =
            (0..2).any(|side| !crosses[side] && self.memory[side].bin(stretches[side]).is_none());
        if outside {
            return;
        }
        let is_whole = crosses == [false; 2] || self.pieces >= MAX_PIECES;
        let longest = if is_whole { None } else { self.longest_dimension(counts, crosses) };
        let Some(longest) = longest else {
            self.pieces = self.pieces.saturating_add(1);
            let bins = [0, 1].map(|side| self.memory[side].bin(stretches[side]));
            if let [Some(row), Some(column)] = bins {
                let units = counts.iter().fold(1u64, |all, count| all.saturating_mul(*count));
                let bytes = units.saturating_mul(self.unit) as f64;
                self.cells.add_to_cell([row, column], bytes, true);
            }
            return;
        };
        let whole = counts[longest];
        let half = whole / 2;
        counts[longest] = half;
        self.cut(first, counts);
        counts[longest] = whole - half;
        let steps = self.steps[longest];
        self.cut([first[0] + half * steps[0], first[1] + half * steps[1]], counts);
        counts[longest] = whole;
    }

    /// The dimension that extends furthest on the sides that cross a stretch.
    fn longest_dimension(&self, counts: &[u64], crosses: [bool; 2]) -> Option<usize> {
        let mut longest = None;
        let mut most = 0;
        for (dim, (count, steps)) in counts.iter().zip(&self.steps).enumerate() {
            for side in 0..2 {
                let extent = (count - 1) * steps[side];
                if crosses[side] && extent > most {
                    most = extent;
                    longest = Some(dim);
                }
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use crate::exchange_code::flows::{ExchangeFlow, ExchangePattern};
    use crate::exchange_code::matrix::tests::{bytes_on_tiles, window_of};
    use crate::exchange_code::{ExchangeFlows, ExchangeLink, matrix};
    use proptest::prelude::*;
    use tilescope_report::units::{Bytes, ProgramId, TileId, TileRange, TileRuns};
    use tilescope_report::{
        Rearrangement, RouteBlock, RouteBytes, RouteDim, RouteMemory, TileOrder, TileRing,
    };
    use tilescope_test_tiers::cases;

    /// Distances between elements of each axis if `order` names the axes, outermost first.
    fn steps(sizes: [u64; 3], order: [usize; 3]) -> [u64; 3] {
        let mut steps = [0; 3];
        let mut inside = 1;
        for axis in order.into_iter().rev() {
            steps[axis] = inside;
            inside *= sizes[axis];
        }
        steps
    }

    /// Units on each tile: the given numbers until no units are left.
    fn dealt(parts: &[u64], mut units: u64) -> Vec<u64> {
        let mut held = Vec::new();
        for part in parts.iter().cycle() {
            if units == 0 {
                break;
            }
            held.push(units.min(*part));
            units -= units.min(*part);
        }
        held
    }

    fn orders() -> impl Strategy<Value = [usize; 3]> {
        Just([0, 1, 2]).prop_shuffle()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn cells_count_the_units_from_tile_to_tile(
            sizes in [1u64..9, 1..9, 1..9],
            [from, to] in [orders(), orders()],
            [sent, received] in [
                prop::collection::vec(1u64..40, 1..9), prop::collection::vec(1u64..40, 1..9)
            ],
            unit in 1u64..5,
            cells in 1usize..40,
            [first, count] in [0u32..20, 1u32..80],
        ) {
            let units = sizes.iter().product();
            let [sent, received] = [&sent, &received].map(|parts| dealt(parts, units));
            let owners = |held: &[u64]| -> Vec<usize> {
                let tiles = held.iter().enumerate();
                tiles.flat_map(|(tile, units)| vec![tile; *units as usize]).collect()
            };
            let owners = [owners(&sent), owners(&received)];
            let [sent_steps, received_steps] = [from, to].map(|order| steps(sizes, order));
            let dims = (0..3).map(|axis| RouteDim {
                count: sizes[axis],
                sent_step: sent_steps[axis],
                received_step: received_steps[axis],
            });
            let dims: Vec<RouteDim> = dims.collect();
            let mut wanted = vec![vec![0; received.len()]; sent.len()];
            for x in 0..sizes[0] {
                for y in 0..sizes[1] {
                    for z in 0..sizes[2] {
                        let [from, to] = [sent_steps, received_steps].map(|steps| {
                            (x * steps[0] + y * steps[1] + z * steps[2]) as usize
                        });
                        wanted[owners[0][from]][owners[1][to]] += unit;
                    }
                }
            }
            let blocks = vec![RouteBlock { sent_at: 0, received_at: 0, dims }];
            let bytes_of =
                |held: &[u64]| -> Vec<u64> { held.iter().map(|units| units * unit).collect() };
            let flow = ExchangeFlow {
                program: ProgramId(0),
                link: ExchangeLink::Internal,
                sent: bytes_on_tiles(&bytes_of(&sent)),
                received: bytes_on_tiles(&bytes_of(&received)),
                bytes: Bytes(units * unit),
                pattern: ExchangePattern::Rearranged(Rearrangement {
                    unit: Bytes(unit),
                    blocks,
                    memory: None,
                }),
            };
            let tiles = sent.len().max(received.len()) as u32;
            let flows = ExchangeFlows { flows: vec![flow], tiles };
            let found = matrix(&flows, &window_of(first..first + count, cells));
            for row in 0..found.key.cells[1] {
                for column in 0..found.key.cells[0] {
                    let (senders, receivers) = found.tiles(column, row);
                    let mut sum = 0;
                    for from in senders.iter().filter_map(|tile| wanted.get(tile.index())) {
                        let received = receivers.iter().filter_map(|tile| from.get(tile.index()));
                        sum += received.sum::<u64>();
                    }
                    prop_assert_eq!(found.known_in(column, row), sum as f64);
                }
            }
        }
    }

    /// Receivers in an order of their own, each with all units, and gaps in their memory.
    #[test]
    fn units_go_to_several_receivers() {
        let tiles = TileRange::first_tiles(2);
        let ring = TileRing { first: TileId(1), tiles, descending: true };
        let memory = RouteMemory {
            bytes: TileRuns::from_tiles(
                TileId(0),
                [[1, 4], [2, 4]].map(|bytes| Some(RouteBytes::from(bytes))),
            ),
            receivers: Some(TileOrder { ring, digits: vec![[2, 1]] }),
        };
        let dims = vec![
            RouteDim { count: 2, sent_step: 0, received_step: 4 },
            RouteDim { count: 3, sent_step: 1, received_step: 1 },
        ];
        let order = Rearrangement {
            unit: Bytes(1),
            blocks: vec![RouteBlock { sent_at: 0, received_at: 0, dims }],
            memory: Some(memory),
        };
        let flow = ExchangeFlow {
            program: ProgramId(0),
            link: ExchangeLink::Internal,
            sent: bytes_on_tiles(&[2, 4]),
            received: bytes_on_tiles(&[3, 3]),
            bytes: Bytes(6),
            pattern: ExchangePattern::Rearranged(order),
        };
        let flows = ExchangeFlows { flows: vec![flow], tiles: 2 };
        let found = matrix(&flows, &window_of(0..2, 2));
        let rows = [0, 1].map(|row| [0, 1].map(|column| found.known_in(column, row)));
        assert_eq!(rows, [[1.0, 1.0], [2.0, 2.0]]);
    }
}
