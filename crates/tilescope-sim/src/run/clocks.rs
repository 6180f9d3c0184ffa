//! One clock per IPU for each class of equal replicas.

use super::host::WaitTotals;
use crate::compile::LeafProgramCost;
use tilescope_report::units::{Bytes, Cycles, IpuId, ReplicaClassId};
use tilescope_report::{ExecutionStep, StepOnIpu};

/// The time on each IPU, in cycles since the start of the run, separately for its compute tiles and
/// its I/O tiles. All replicas run the same program and differ only in their waits.
///
/// The methods add the activity on each class of replicas to the step that is passed in.
pub(crate) struct IpuClocks {
    replicas: Vec<ReplicaClocks>,
}

#[derive(Clone)]
struct ReplicaClocks {
    now: Vec<Cycles>,
    io: Vec<Cycles>,
    waits: WaitTotals,
}

/// The tiles that a clock of an IPU belongs to. The value is the number of the sub-lane in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileGroup {
    Compute = 0,
    Io = 1,
}

impl ReplicaClocks {
    fn of(&self, tiles: TileGroup) -> &[Cycles] {
        match tiles {
            TileGroup::Compute => &self.now,
            TileGroup::Io => &self.io,
        }
    }

    fn of_mut(&mut self, tiles: TileGroup) -> &mut [Cycles] {
        match tiles {
            TileGroup::Compute => &mut self.now,
            TileGroup::Io => &mut self.io,
        }
    }
}

/// The replicas that a sync joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncReach {
    /// The IPUs of each replica separately.
    Replica,
    /// The IPUs of all replicas.
    AllReplicas,
}

impl IpuClocks {
    /// Makes clocks at 0 for `classes` classes of replicas, at least one.
    pub(crate) fn new(ipus: u32, classes: usize) -> Self {
        let zero = vec![Cycles::ZERO; ipus as usize];
        let clocks = ReplicaClocks { now: zero.clone(), io: zero, waits: WaitTotals::default() };
        Self { replicas: vec![clocks; classes.max(1)] }
    }

    /// The number of classes of replicas.
    pub(crate) fn classes(&self) -> usize {
        self.replicas.len()
    }

    /// The time on some tiles of one IPU, for each class of replicas.
    pub(crate) fn of_classes(
        &self,
        ipu: IpuId,
        tiles: TileGroup,
    ) -> impl Iterator<Item = Cycles> + Clone {
        self.replicas.iter().map(move |of| of.of(tiles)[ipu.index()])
    }

    /// The latest time on any IPU of the first class of replicas.
    pub(crate) fn latest(&self) -> Cycles {
        latest(&self.replicas[0])
    }

    /// The latest time on any IPU, for each class of replicas.
    pub(crate) fn latest_of_classes(&self) -> Vec<Cycles> {
        self.replicas.iter().map(latest).collect()
    }

    /// The waits of each class of replicas so far.
    pub(crate) fn waits(&self) -> Vec<WaitTotals> {
        self.replicas.iter().map(|of| of.waits).collect()
    }

    /// The waits of one class, for additions.
    pub(crate) fn waits_mut(&mut self, class: usize) -> &mut WaitTotals {
        &mut self.replicas[class].waits
    }

    /// Delays the I/O tiles of an IPU to the current time of its compute tiles.
    pub(crate) fn sync_io_to_compute(&mut self, ipu: IpuId) {
        for replica in &mut self.replicas {
            let now = replica.now[ipu.index()];
            // Clocks never go back: I/O tiles that are ahead stay there.
            let io = &mut replica.io[ipu.index()];
            *io = now.max(*io);
        }
    }

    /// Makes `active` compute tiles of an IPU wait for its I/O tiles, on replicas where these are
    /// behind.
    pub(crate) fn sync_compute_to_io(&mut self, ipu: IpuId, active: u32, out: &mut ExecutionStep) {
        for (class, replica) in self.replicas.iter_mut().enumerate() {
            let io = replica.io[ipu.index()];
            let now = &mut replica.now[ipu.index()];
            let start = *now;
            *now = io.max(start);
            // A wait of no cycles would be a step without meaning in the trace.
            if start < *now {
                add(out, class, wait(ipu, (TileGroup::Compute, active), start, *now));
            }
        }
    }

    /// Runs a step on some tiles of an IPU. They are in lock-step since the last sync, so all
    /// active ones start together.
    pub(crate) fn run_on(
        &mut self,
        cost: &LeafProgramCost,
        tiles: TileGroup,
        out: &mut ExecutionStep,
    ) {
        for (class, replica) in self.replicas.iter_mut().enumerate() {
            let clock = &mut replica.of_mut(tiles)[cost.ipu.index()];
            add(out, class, step(cost, *clock, tiles));
            *clock += cost.cycles;
        }
    }

    /// Runs a step on some tiles of an IPU that takes each class of replicas the given `cycles`.
    pub(crate) fn run_unequal(
        &mut self,
        cost: &LeafProgramCost,
        tiles: TileGroup,
        cycles: &[Cycles],
        out: &mut ExecutionStep,
    ) {
        for (class, (replica, cycles)) in self.replicas.iter_mut().zip(cycles).enumerate() {
            let clock = &mut replica.of_mut(tiles)[cost.ipu.index()];
            let cost = LeafProgramCost { cycles: *cycles, fastest_tile_cycles: *cycles, ..*cost };
            add(out, class, step(&cost, *clock, tiles));
            *clock += *cycles;
        }
    }

    /// Advances the clock of an IPU by some cycles.
    pub(crate) fn advance(&mut self, ipu: IpuId, cycles: Cycles) {
        for replica in &mut self.replicas {
            replica.now[ipu.index()] += cycles;
        }
    }

    /// Joins some tiles of some IPUs. Each waits for the last one, and then for the sync itself.
    /// `active` is the number of tiles of an IPU that take part.
    pub(crate) fn sync(
        &mut self,
        ipus: &[IpuId],
        (group, active): (TileGroup, u32),
        sync_cycles: Cycles,
        reach: SyncReach,
        out: &mut ExecutionStep,
    ) {
        let cycles = vec![sync_cycles; self.replicas.len()];
        self.sync_unequal(ipus, (group, active), &cycles, reach, out);
    }

    /// Joins some tiles like [`Self::sync`], with separate `sync_cycles` for each class of
    /// replicas.
    pub(crate) fn sync_unequal(
        &mut self,
        ipus: &[IpuId],
        (tiles, active): (TileGroup, u32),
        sync_cycles: &[Cycles],
        reach: SyncReach,
        out: &mut ExecutionStep,
    ) {
        let mut arrived = Vec::new();
        for replica in &self.replicas {
            let times = ipus.iter().map(|ipu| replica.of(tiles)[ipu.index()]);
            arrived.push(times.max().unwrap_or_default());
        }
        // Classes differ only if their hosts do; the waits for each other are summed for Summary.
        let first = arrived.iter().copied().min().unwrap_or_default();
        let slowest = arrived.iter().copied().max().unwrap_or_default();
        let each = self.replicas.iter_mut().zip(arrived).zip(sync_cycles);
        for (class, ((replica, own), cycles)) in each.enumerate() {
            let last = match reach {
                SyncReach::Replica => own,
                SyncReach::AllReplicas => {
                    replica.waits.met(own - first, (slowest - own) * ipus.len() as u64);
                    slowest
                }
            };
            let release = last + *cycles;
            for ipu in ipus {
                let clock = &mut replica.of_mut(tiles)[ipu.index()];
                let start = std::mem::replace(clock, release);
                debug_assert!(start <= release, "no lane leaves a sync before all have arrived");
                add(out, class, wait(*ipu, (tiles, active), start, release));
            }
        }
    }
}

/// Adds the activity of a class of replicas on an IPU to a step.
fn add(step: &mut ExecutionStep, class: usize, on_ipu: StepOnIpu) {
    match class {
        0 => step.ipus.push(on_ipu),
        _ => step.other_replicas.push((ReplicaClassId::from_index(class), on_ipu)),
    }
}

fn latest(of: &ReplicaClocks) -> Cycles {
    of.now.iter().chain(&of.io).copied().max().unwrap_or_default()
}

/// The wait of an IPU from its arrival at a sync to its release.
fn wait(
    ipu: IpuId,
    (tiles, active_tiles): (TileGroup, u32),
    start: Cycles,
    release: Cycles,
) -> StepOnIpu {
    StepOnIpu {
        ipu,
        sub_lane: tiles as u8,
        from_min: start,
        from_max: start,
        to_min: release,
        to_max: release,
        active_tiles,
        active_tile_balance: 1.0,
        bytes_in: Bytes::ZERO,
        bytes_out: Bytes::ZERO,
    }
}

/// The activity of a step of this cost that begins at `start`.
fn step(cost: &LeafProgramCost, start: Cycles, tiles: TileGroup) -> StepOnIpu {
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
        sub_lane: tiles as u8,
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
