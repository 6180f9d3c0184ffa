//! One clock per IPU.

use crate::report::StepOnIpu;
use crate::sim::compile::LeafCost;

/// The time on each IPU, in cycles since the start of the run.
pub struct Clocks {
    now: Vec<u64>,
}

impl Clocks {
    /// All clocks at 0.
    pub fn new(ipus: u32) -> Self {
        Self { now: vec![0; ipus as usize] }
    }

    /// The time on one IPU.
    pub fn at(&self, ipu: u32) -> u64 {
        self.now[ipu as usize]
    }

    /// The latest time on any IPU.
    pub fn latest(&self) -> u64 {
        self.now.iter().copied().max().unwrap_or(0)
    }

    /// Lets one IPU do a step. Its tiles are in lock-step since the last sync, so all active ones
    /// start together.
    pub fn spend(&mut self, cost: &LeafCost) -> StepOnIpu {
        let start = self.now[cost.ipu as usize];
        self.now[cost.ipu as usize] = start + cost.cycles;
        StepOnIpu {
            ipu: cost.ipu,
            sub_lane: 0,
            from_min: start,
            from_max: start,
            to_min: start + cost.shortest.min(cost.cycles),
            to_max: start + cost.cycles,
            active_tiles: cost.active_tiles,
            active_tile_balance: cost.balance,
            bytes_in: cost.bytes_in,
            bytes_out: cost.bytes_out,
        }
    }

    /// Joins all IPUs: each waits for the last, and then for the sync itself.
    pub fn join(&mut self, sync_cycles: u64, tiles: u32) -> Vec<StepOnIpu> {
        let release = self.latest() + sync_cycles;
        let wait = |(ipu, now): (usize, &mut u64)| {
            let start = std::mem::replace(now, release);
            StepOnIpu {
                ipu: ipu as u32,
                sub_lane: 0,
                from_min: start,
                from_max: start,
                to_min: release,
                to_max: release,
                active_tiles: tiles,
                active_tile_balance: 1.0,
                bytes_in: 0,
                bytes_out: 0,
            }
        };
        self.now.iter_mut().enumerate().map(wait).collect()
    }
}
