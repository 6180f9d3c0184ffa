//! One clock per IPU.

use crate::compile::LeafProgramCost;
use tilescope_report::StepOnIpu;
use tilescope_report::units::{Bytes, Cycles, IpuId};

/// The time on each IPU, in cycles since the start of the run: that of its compute tiles and that
/// of its I/O tiles.
pub(crate) struct IpuClocks {
    now: Vec<Cycles>,
    io: Vec<Cycles>,
}

impl IpuClocks {
    /// All clocks at 0.
    pub(crate) fn new(ipus: u32) -> Self {
        Self { now: vec![Cycles::ZERO; ipus as usize], io: vec![Cycles::ZERO; ipus as usize] }
    }

    /// The time on one IPU.
    pub(crate) fn at(&self, ipu: IpuId) -> Cycles {
        self.now[ipu.index()]
    }

    /// The latest time on any IPU.
    pub(crate) fn latest(&self) -> Cycles {
        self.now.iter().chain(&self.io).copied().max().unwrap_or_default()
    }

    /// The time on the I/O tiles of one IPU.
    pub(crate) fn io_at(&self, ipu: IpuId) -> Cycles {
        self.io[ipu.index()]
    }

    /// The I/O tiles of an IPU do nothing before its compute tiles are where they are now.
    pub(crate) fn sync_io_to_compute(&mut self, ipu: IpuId) {
        let now = self.now[ipu.index()];
        let io = &mut self.io[ipu.index()];
        *io = now.max(*io);
    }

    /// Lets the I/O tiles of an IPU do a step.
    pub(crate) fn run_io_step(&mut self, cost: &LeafProgramCost) -> StepOnIpu {
        let start = self.io[cost.ipu.index()];
        self.io[cost.ipu.index()] = start + cost.cycles;
        step(cost, start, 1)
    }

    /// Lets one IPU do a step. Its tiles are in lock-step since the last sync, so all active ones
    /// start together.
    pub(crate) fn run_step(&mut self, cost: &LeafProgramCost) -> StepOnIpu {
        let start = self.now[cost.ipu.index()];
        self.now[cost.ipu.index()] = start + cost.cycles;
        step(cost, start, 0)
    }

    /// Lets an IPU work for some cycles.
    pub(crate) fn advance(&mut self, ipu: IpuId, cycles: Cycles) {
        self.now[ipu.index()] += cycles;
    }

    /// Joins the compute tiles of some IPUs: each waits for the last, and then for the sync itself.
    pub(crate) fn sync_ipus(
        &mut self,
        ipus: &[IpuId],
        sync_cycles: Cycles,
        tiles: u32,
    ) -> Vec<StepOnIpu> {
        join(&mut self.now, ipus, sync_cycles, (0, tiles))
    }

    /// The same of their I/O tiles.
    pub(crate) fn sync_io_tiles(
        &mut self,
        ipus: &[IpuId],
        sync_cycles: Cycles,
        tiles: u32,
    ) -> Vec<StepOnIpu> {
        join(&mut self.io, ipus, sync_cycles, (1, tiles))
    }
}

/// Moves the clocks of some IPUs to where a sync lets all of them go.
fn join(
    clocks: &mut [Cycles],
    ipus: &[IpuId],
    sync_cycles: Cycles,
    (sub_lane, tiles): (u8, u32),
) -> Vec<StepOnIpu> {
    let last = ipus.iter().map(|ipu| clocks[ipu.index()]).max().unwrap_or_default();
    let release = last + sync_cycles;
    let wait = |ipu: IpuId| {
        let start = std::mem::replace(&mut clocks[ipu.index()], release);
        debug_assert!(start <= release, "a sync lets nobody go before all have come");
        StepOnIpu {
            ipu,
            sub_lane,
            from_min: start,
            from_max: start,
            to_min: release,
            to_max: release,
            active_tiles: tiles,
            active_tile_balance: 1.0,
            bytes_in: Bytes::ZERO,
            bytes_out: Bytes::ZERO,
        }
    };
    ipus.iter().copied().map(wait).collect()
}

/// A step of so much that begins at `start`.
fn step(cost: &LeafProgramCost, start: Cycles, sub_lane: u8) -> StepOnIpu {
    debug_assert!(
        cost.active_tiles > 0 || (cost.bytes_in + cost.bytes_out).is_zero(),
        "bytes need tiles"
    );
    debug_assert!(
        (0.0..=1.0).contains(&cost.tile_balance),
        "balance is a share: {}",
        cost.tile_balance
    );
    StepOnIpu {
        ipu: cost.ipu,
        sub_lane,
        from_min: start,
        from_max: start,
        to_min: start + cost.fastest_tile_cycles.min(cost.cycles),
        to_max: start + cost.cycles,
        active_tiles: cost.active_tiles,
        active_tile_balance: cost.tile_balance,
        bytes_in: cost.bytes_in,
        bytes_out: cost.bytes_out,
    }
}
