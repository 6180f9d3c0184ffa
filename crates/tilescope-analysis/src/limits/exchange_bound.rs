//! Lower bound of an exchange between the tiles of an IPU: its busiest tile sends, or receives, all
//! the time.

use super::machine::Machine;
use tilescope_report::ExchangeTraffic;
use tilescope_report::trace::ProgramStepSums;
use tilescope_report::units::{Bytes, Cycles, TileId, TileRange, TileRuns};

/// A tile with the bytes that it sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusiestTile {
    /// The first if several are equal.
    pub tile: TileId,
    pub bytes: Bytes,
}

/// The traffic of one execution of an exchange on the tiles of an IPU, with its lower bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeBound {
    /// Sums over tiles, with each multicast sent once.
    pub sent: Bytes,
    pub received: Bytes,
    /// `None` if these tiles send nothing.
    pub sender: Option<BusiestTile>,
    /// `None` if these tiles receive nothing.
    pub receiver: Option<BusiestTile>,
    /// Number of tiles that take part.
    pub tiles: u32,
    /// Least cycles of the tile with the largest need, and their sum over all tiles; `None` if the
    /// speed of tiles is not known.
    pub cycles: Option<TileCycleSums>,
    /// Cycles of the slowest tile, if cycles of tiles were recorded.
    pub slowest: Option<Cycles>,
}

/// Cycles that tiles need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TileCycleSums {
    pub most: f64,
    pub sum: f64,
}

impl ExchangeBound {
    /// Sums up an exchange on some tiles.
    pub(crate) fn new(machine: &Machine, traffic: &ExchangeTraffic, tiles: TileRange) -> Self {
        let mut bound = Self::default();
        let own = || on_tiles(&traffic.tiles, tiles);
        for (run, of) in own() {
            let count = u64::from(run.count());
            bound.tiles += run.count();
            bound.sent = bound.sent.saturating_add(of.bytes_out.saturating_mul(count));
            bound.received = bound.received.saturating_add(of.bytes_in.saturating_mul(count));
            busiest(&mut bound.sender, run.first, of.bytes_out);
            busiest(&mut bound.receiver, run.first, of.bytes_in);
        }
        let repeated = bound.received.saturating_sub(bound.sent);
        let mut sums = TileCycleSums::default();
        let known = own().try_for_each(|(run, of)| {
            let needed = machine.limits.tile_exchange_cycles(of, repeated)?;
            sums.most = sums.most.max(needed);
            sums.sum += needed * f64::from(run.count());
            Some(())
        });
        bound.cycles = known.map(|()| sums);
        bound.slowest = on_tiles(&traffic.cycles, tiles).map(|(_, cycles)| *cycles).max();
        bound
    }

    /// The cycles of its steps in which tiles move data; the others passed before they began.
    /// Without recorded cycles of tiles these are all cycles of the steps.
    pub(crate) fn moving(&self, sums: &ProgramStepSums) -> Cycles {
        match self.slowest {
            None | Some(Cycles::ZERO) => sums.cycles,
            Some(slowest) => sums.cycles.min(slowest.saturating_mul(sums.steps)),
        }
    }
}

/// The part of `values` on `tiles`.
fn on_tiles<T>(values: &TileRuns<T>, tiles: TileRange) -> impl Iterator<Item = (TileRange, &T)> {
    let own = values.iter().map(move |(run, value)| (run.intersection(tiles), value));
    own.filter(|(run, _)| run.count() > 0)
}

fn busiest(most: &mut Option<BusiestTile>, tile: TileId, bytes: Bytes) {
    if !bytes.is_zero() && most.is_none_or(|most| bytes > most.bytes) {
        *most = Some(BusiestTile { tile, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::units::ProgramId;
    use tilescope_report::{Bandwidth, MachineInterface, MachineLimits, TileTraffic};

    fn machine() -> Machine {
        let bandwidth = |interface, bytes_per_cycle| Bandwidth { interface, bytes_per_cycle };
        let bandwidths = vec![
            bandwidth(MachineInterface::Tile, 8.0),
            bandwidth(MachineInterface::TileSend, 4.0),
        ];
        let limits = MachineLimits { rates: Vec::new(), bandwidths };
        Machine { limits, tiles: 4, clock: None }
    }

    fn bound(tiles: &[(u64, u64)]) -> ExchangeBound {
        let tile = |(bytes_in, bytes_out): &(u64, u64)| TileTraffic {
            bytes_in: Bytes(*bytes_in),
            bytes_out: Bytes(*bytes_out),
            ..TileTraffic::default()
        };
        let tiles = TileRuns::from_tiles(TileId(0), tiles.iter().map(|of| Some(tile(of))));
        let traffic = ExchangeTraffic { program: ProgramId(0), tiles, cycles: TileRuns::empty() };
        ExchangeBound::new(&machine(), &traffic, TileRange::first_tiles(4))
    }

    #[test]
    fn the_busiest_tile_decides() {
        let of = bound(&[(0, 400), (100, 0), (300, 0), (0, 0)]);
        assert_eq!(of.cycles, Some(TileCycleSums { most: 100.0, sum: 200.0 }));
        assert_eq!(of.sender, Some(BusiestTile { tile: TileId(0), bytes: Bytes(400) }));
        assert_eq!(of.receiver, Some(BusiestTile { tile: TileId(2), bytes: Bytes(300) }));
        assert_eq!((of.sent, of.received, of.tiles), (Bytes(400), Bytes(400), 4));
    }

    #[test]
    fn only_data_with_several_receivers_arrives_at_the_double_rate() {
        // Both receivers get the same 400 bytes: 400 of the 800 received bytes were not sent twice.
        assert_eq!(bound(&[(0, 400), (400, 0), (400, 0)]).cycles.unwrap().most, 100.0);
        assert_eq!(bound(&[(0, 10), (400, 0), (400, 0)]).cycles.unwrap().most, 50.0);
        // Of 500 bytes, 100 may be received by another tile too.
        let of = bound(&[(0, 500), (500, 0), (100, 0)]);
        assert_eq!(of.cycles.unwrap().most, 125.0);
        let of = bound(&[(0, 300), (0, 200), (500, 0), (100, 0)]);
        assert_eq!(of.cycles.unwrap().most, 400.0 / 4.0 + 100.0 / 8.0);
    }
}
