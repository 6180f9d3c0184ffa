//! Flows within groups of tiles.

use super::{ExchangeMatrixBuilder, bin_of, tiles};
use crate::exchange_code::flows::{ExchangeFlow, ExchangePattern};
use std::collections::BTreeMap;
use tilescope_report::TileGroups;
use tilescope_report::units::{TileId, TileRange};

/// Bytes of less than this are remainders of rounding.
const ROUNDING: f64 = 1e-6;

/// Senders and receivers of one group. A sender sends its weight times that of a receiver.
#[derive(Default)]
struct GroupEnds {
    senders: Vec<(TileId, f64)>,
    receivers: Vec<(TileId, f64)>,
}

impl GroupEnds {
    /// Replaces bytes by weights. Returns true if no tile sends to itself.
    fn weigh(&mut self, pattern: &ExchangePattern) -> bool {
        match pattern {
            ExchangePattern::Broadcast(_) => {
                share_among_others(&mut self.senders, &mut self.receivers);
                true
            }
            ExchangePattern::Gather(_) => {
                share_among_others(&mut self.receivers, &mut self.senders);
                true
            }
            _ => {
                let all: f64 = self.senders.iter().map(|(_, sent)| sent).sum();
                self.senders.iter_mut().for_each(|(_, weight)| *weight /= all.max(1.0));
                false
            }
        }
    }
}

/// Divides the bytes of each tile of one side by the number of other tiles on the opposite side. All
/// tiles of that side count the same.
fn share_among_others(side: &mut [(TileId, f64)], opposite: &mut [(TileId, f64)]) {
    for (tile, weight) in side {
        let is_on_both = opposite.binary_search_by_key(tile, |(other, _)| *other).is_ok();
        let others = opposite.len() - usize::from(is_on_both);
        *weight /= others.max(1) as f64;
    }
    opposite.iter_mut().for_each(|(_, weight)| *weight = 1.0);
}

impl ExchangeMatrixBuilder {
    /// Adds a flow within groups of tiles.
    pub(super) fn in_groups(&mut self, flow: &ExchangeFlow, groups: &TileGroups) {
        let mut ends: BTreeMap<u64, GroupEnds> = BTreeMap::new();
        for (tile, bytes) in tiles(&flow.sent) {
            if let Some(group) = groups.group_of(tile) {
                ends.entry(group).or_default().senders.push((tile, bytes));
            }
        }
        for (tile, bytes) in tiles(&flow.received) {
            if let Some(group) = groups.group_of(tile) {
                ends.entry(group).or_default().receivers.push((tile, bytes));
            }
        }
        let is_known = flow.pattern.is_known();
        for group in ends.values_mut() {
            let others_only = group.weigh(&flow.pattern);
            self.group(group, others_only, is_known);
        }
    }

    fn group(&mut self, group: &GroupEnds, others_only: bool, is_known: bool) {
        let [columns, rows] = self.key.cells;
        let columns_of = binned(&group.receivers, self.key.receivers, columns);
        for (row, sent) in binned(&group.senders, self.key.senders, rows) {
            for (column, received) in &columns_of {
                self.add_to_cell([row, *column], sent * received, is_known);
            }
        }
        if !others_only {
            return;
        }
        let mut receivers = group.receivers.iter().peekable();
        for (tile, sent) in &group.senders {
            while receivers.next_if(|(other, _)| other < tile).is_some() {}
            let Some((_, received)) = receivers.next_if(|(other, _)| other == tile) else {
                continue;
            };
            if self.key.senders.contains(*tile) && self.key.receivers.contains(*tile) {
                let cell = [
                    bin_of(self.key.senders, rows, *tile),
                    bin_of(self.key.receivers, columns, *tile),
                ];
                self.add_to_cell(cell, -sent * received, is_known);
                for sums in [&mut self.bytes, &mut self.known_bytes] {
                    if sums[cell].abs() < ROUNDING {
                        sums[cell] = 0.0;
                    }
                }
            }
        }
    }
}

/// Sums of the non-empty bins, in order.
fn binned(ends: &[(TileId, f64)], window: TileRange, bins: usize) -> Vec<(usize, f64)> {
    let mut sums: Vec<(usize, f64)> = Vec::new();
    for (tile, weight) in ends {
        if !window.contains(*tile) {
            continue;
        }
        let bin = bin_of(window, bins, *tile);
        match sums.last_mut() {
            Some((last, sum)) if *last == bin => *sum += weight,
            _ => sums.push((bin, *weight)),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use crate::exchange_code::flows::{ExchangeFlow, ExchangePattern};
    use crate::exchange_code::matrix::tests::{bytes_on_tiles, window_of};
    use crate::exchange_code::{ExchangeFlows, ExchangeLink, matrix};
    use proptest::prelude::*;
    use tilescope_report::units::{Bytes, ProgramId, TileId};
    use tilescope_report::{TileDigit, TileGroups};
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn groups_exchange_data_among_themselves(
            digits in prop::collection::vec((1u32..6, 1u32..6), 1..4),
            held in prop::collection::vec(0u64..9, 125),
            gathers: bool,
            cells in 1usize..40,
            [first, count] in [0u32..60, 1u32..125],
        ) {
            let digits = digits
                .iter()
                .map(|(size, parts)| TileDigit { size: *size, parts: *parts.min(size) });
            let groups = TileGroups::of_digits(digits.collect());
            let tiles = groups.ring.tiles.count();
            let group = |tile: u32| groups.group_of(TileId(tile)).unwrap();
            // A tile gives each other tile of its group what it holds, or takes that from each.
            let mut sent = vec![0; tiles as usize];
            let mut received = sent.clone();
            let mut wanted = vec![vec![0; tiles as usize]; tiles as usize];
            for from in 0..tiles {
                for to in 0..tiles {
                    if from != to && group(from) == group(to) {
                        let bytes = held[if gathers { to } else { from } as usize];
                        wanted[from as usize][to as usize] = bytes;
                        sent[from as usize] += bytes;
                        received[to as usize] += bytes;
                    }
                }
            }
            // Tiles that hold nothing take no part, so all others need to take part.
            let taking_part = if gathers { &sent } else { &received };
            let partners =
                |tile: u32| (0..tiles).filter(|other| group(*other) == group(tile)).count() > 1;
            prop_assume!((0..tiles).all(|tile| !partners(tile) || taking_part[tile as usize] > 0));
            let bytes = Bytes(sent.iter().sum());
            let pattern = if gathers {
                ExchangePattern::Gather(groups.clone())
            } else {
                ExchangePattern::Broadcast(groups.clone())
            };
            let flow = ExchangeFlow {
                program: ProgramId(0),
                link: ExchangeLink::Internal,
                sent: bytes_on_tiles(&sent),
                received: bytes_on_tiles(&received),
                bytes,
                pattern,
            };
            let flows = ExchangeFlows { flows: vec![flow], tiles };
            let key = window_of(first..first + count, cells);
            let found = matrix(&flows, &key);
            for row in 0..found.key.cells[1] {
                for column in 0..found.key.cells[0] {
                    let (senders, receivers) = found.tiles(column, row);
                    let inside = |range: tilescope_report::units::TileRange| {
                        range.iter().filter(|tile| tile.0 < tiles).collect::<Vec<_>>()
                    };
                    let mut sum = 0;
                    for from in inside(senders) {
                        for to in inside(receivers) {
                            sum += wanted[from.index()][to.index()];
                        }
                    }
                    prop_assert!((found.get(column, row) - sum as f64).abs() < 1e-3);
                    prop_assert_eq!(found.get(column, row), found.known_in(column, row));
                }
            }
        }
    }

    #[test]
    fn data_of_unknown_receivers_stay_in_their_group() {
        let groups = TileGroups::of_digits(vec![TileDigit::apart(2), TileDigit::joined(2)]);
        let flow = ExchangeFlow {
            program: ProgramId(0),
            link: ExchangeLink::Internal,
            sent: bytes_on_tiles(&[4, 0, 6, 2]),
            received: bytes_on_tiles(&[2, 2, 4, 4]),
            bytes: Bytes(12),
            pattern: ExchangePattern::Assumed(Some(groups)),
        };
        let flows = ExchangeFlows { flows: vec![flow], tiles: 4 };
        let found = matrix(&flows, &window_of(0..4, 4));
        let row = |row| [0, 1, 2, 3].map(|column| found.get(column, row));
        assert_eq!(
            [0, 2, 3].map(row),
            [[2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 3.0, 3.0], [0.0, 0.0, 1.0, 1.0]]
        );
        assert_eq!((found.known, found.max), (0.0, 0.0));
    }
}
