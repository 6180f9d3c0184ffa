//! The target a program was compiled for, and the size of its graph.

use super::{ArithmeticType, ComputeEngine, ComputeRate, MachineChange, TileTraffic};
use crate::units::{Bytes, Cycles, Hertz, IpuId, TileId, TileRange};

/// The kind of target: hardware or the IPU Model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Hardware: programs contain code, and the host takes time.
    Ipu,
    /// Poplar's IPU Model: no code is generated, and the host answers at once.
    IpuModel,
}

impl TargetKind {
    /// Both kinds of target.
    pub const ALL: [TargetKind; 2] = [Self::Ipu, Self::IpuModel];

    /// The name in the file, as Poplar spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ipu => "IPU",
            Self::IpuModel => "IPU_MODEL",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The machine a report was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Hardware or IPU Model.
    pub kind: TargetKind,
    /// Name in specs: `mk2`.
    pub name: String,
    /// Generation: `Mk1`, `Mk2`, `Bow`.
    pub architecture: String,
    /// IPUs over all replicas.
    pub num_ipus: u32,
    /// Tiles of one IPU.
    pub tiles_per_ipu: u32,
    /// Tiles of one IPU set aside for I/O; the last ones in software order.
    pub io_tiles_per_ipu: u32,
    /// Memory of one tile.
    pub bytes_per_tile: Bytes,
    pub clock: Hertz,
    /// Copies of the program that run side by side.
    pub replicas: u32,
    /// IPUs of one replica, and so the lanes and tiles of this report.
    pub ipus_per_replica: u32,
    /// Size of one element (bank) of non-interleaved tile memory.
    pub memory_element_bytes: Bytes,
    /// Offset where interleaved memory begins, counted from the start of tile memory.
    pub interleaved_offset: Bytes,
    /// Tiles of one column of the chip's floor plan.
    pub tiles_per_column: u32,
    /// True if tiles are numbered column by column, as tools that access the hardware number them.
    /// Otherwise their numbers wind through the chip.
    pub physical_numbers: bool,
    /// Differences from the machine of that name, and constants of its simulation that were fitted
    /// to a measurement. Empty for a machine that can be bought and its usual simulation.
    pub changes: Vec<MachineChange>,
}

impl Target {
    /// True if a spec changed some of its constants, so that it cannot be bought.
    pub fn is_changed(&self) -> bool {
        self.machine_changes().next().is_some()
    }

    /// True if constants of its simulation were fitted to a measurement.
    pub fn is_calibrated(&self) -> bool {
        self.calibration().next().is_some()
    }

    /// The differences from the machine of its name.
    pub fn machine_changes(&self) -> impl Iterator<Item = &MachineChange> {
        self.changes.iter().filter(|change| !change.is_calibration())
    }

    /// The constants of its simulation that were fitted to a measurement.
    pub fn calibration(&self) -> impl Iterator<Item = &MachineChange> {
        self.changes.iter().filter(|change| change.is_calibration())
    }

    /// The machine as text: `mk2`, `mk2, changed: exchange 16 B/cycle` or `mk2, calibrated:
    /// exchange start 371 cycles`.
    pub fn machine_name(&self) -> String {
        let format_list = |words: &str, texts: Vec<String>| {
            if texts.is_empty() {
                String::new()
            } else {
                format!(", {words}: {}", texts.join(", "))
            }
        };
        let changed = self.machine_changes().map(MachineChange::text).collect();
        let calibrated = self.calibration().map(MachineChange::text).collect();
        format!(
            "{}{}{}",
            self.name,
            format_list("changed", changed),
            format_list("calibrated", calibrated)
        )
    }

    /// The number of IPUs that work like each IPU of the report, including itself: several with
    /// tensor parallelism.
    pub fn identical_ipus(&self) -> u32 {
        let shown = u64::from(self.replicas) * u64::from(self.ipus_per_replica);
        // The number of IPUs of a system is a power of two, so up to half of them may be left over.
        let most = u64::from(self.num_ipus).checked_div(shown).unwrap_or(0);
        most.checked_ilog2().map_or(1, |bits| 1 << bits)
    }

    /// Tiles of one replica.
    pub fn tiles_per_replica(&self) -> u32 {
        self.tiles_per_ipu * self.ipus_per_replica
    }

    /// Tiles of one IPU that run the model.
    pub fn compute_tiles_per_ipu(&self) -> u32 {
        self.tiles_per_ipu - self.io_tiles_per_ipu
    }

    /// The IPU of a tile of the replica.
    pub fn ipu_of_tile(&self, tile: TileId) -> IpuId {
        IpuId(tile.0 / self.tiles_per_ipu.max(1))
    }

    /// True if the replica has this tile.
    pub fn has_tile(&self, tile: TileId) -> bool {
        tile < TileId(self.tiles_per_replica())
    }

    /// True if the replica has this IPU.
    pub fn has_ipu(&self, ipu: IpuId) -> bool {
        ipu < IpuId(self.ipus_per_replica)
    }

    /// All tiles of one IPU of the replica.
    pub fn tiles_of_ipu(&self, ipu: IpuId) -> TileRange {
        let first = TileId(ipu.0 * self.tiles_per_ipu);
        TileRange::new(first, first + self.tiles_per_ipu)
    }
}

/// Size of the compiled graph of one replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// Number of compute sets.
    pub compute_sets: u64,
    /// Number of vertex instances over all tiles.
    pub vertices: u64,
    /// Number of edges from vertices to variables.
    pub edges: u64,
    /// Number of lowered variables over all tiles.
    pub variables: u64,
}

/// The number of samples in one host call, by factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchingConfig {
    /// Samples of one forward (and backward) pass.
    pub micro_batch: u64,
    /// Micro-batches per weight update.
    pub gradient_accumulation: u64,
    /// Replicas that work side by side.
    pub replicas: u64,
    /// Weight updates (or inference loops) per host call.
    pub device_iterations: u64,
}

impl BatchingConfig {
    /// Samples per host call: micro-batch x accumulation x replicas x device iterations.
    pub fn samples_per_call(&self) -> u64 {
        self.micro_batch * self.gradient_accumulation * self.replicas * self.device_iterations
    }
}

/// An interface through which data enter or leave a part of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineInterface {
    /// A tile in an exchange between tiles: the data that it receives or sends.
    Tile,
    /// The data that a tile sends in such an exchange: fewer where two tiles share a bus.
    TileSend,
    /// All links of an IPU to others, in one direction.
    IpuLinks,
    /// Between the host and an IPU.
    Host,
    /// Between streaming memory and an IPU.
    RemoteBuffer,
    /// The links of an IPU along the ladder of pairs, in one direction.
    LadderLinks,
    /// The links to the other IPU of its pair, in one direction.
    PairLinks,
    /// Its share of the links between racks, in one direction.
    Gateways,
}

impl MachineInterface {
    /// All interfaces.
    pub const ALL: [MachineInterface; 8] = [
        Self::Tile,
        Self::TileSend,
        Self::IpuLinks,
        Self::Host,
        Self::RemoteBuffer,
        Self::LadderLinks,
        Self::PairLinks,
        Self::Gateways,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tile => "tile",
            Self::TileSend => "tile_send",
            Self::IpuLinks => "ipu_links",
            Self::Host => "host",
            Self::RemoteBuffer => "remote_buffer",
            Self::LadderLinks => "ladder_links",
            Self::PairLinks => "pair_links",
            Self::Gateways => "gateways",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interface| interface.name() == name)
    }
}

/// The highest rate of an interface in bytes per cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    pub interface: MachineInterface,
    pub bytes_per_cycle: f64,
}

/// The peak rates of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineLimits {
    /// Engines of one tile.
    pub rates: Vec<ComputeRate>,
    /// Bandwidths of its interfaces.
    pub bandwidths: Vec<Bandwidth>,
}

impl MachineLimits {
    /// The highest rate of an interface in bytes per cycle, if known.
    pub fn bytes_per_cycle(&self, interface: MachineInterface) -> Option<f64> {
        let known = self.bandwidths.iter().find(|known| known.interface == interface)?;
        // A bandwidth of zero would lead to meaningless figures.
        if known.bytes_per_cycle > 0.0 && known.bytes_per_cycle.is_finite() {
            Some(known.bytes_per_cycle)
        } else {
            None
        }
    }

    /// A lower bound on the cycles of a tile for its part of an exchange, if known. The tile sends
    /// and receives at the same time. Data that its neighbour receives too arrive at twice the
    /// rate; in an exchange in which `repeated` bytes arrive more than once, at most these do.
    pub fn tile_exchange_cycles(&self, tile: &TileTraffic, repeated: Bytes) -> Option<f64> {
        let alone = self.bytes_per_cycle(MachineInterface::TileSend)?;
        let shared = self.bytes_per_cycle(MachineInterface::Tile).unwrap_or(alone);
        let twice = tile.bytes_in.min(repeated);
        let once = tile.bytes_in.saturating_sub(twice);
        let received = once.as_f64() / alone + twice.as_f64() / shared.max(alone);
        Some(received.max(tile.bytes_out.as_f64() / alone))
    }

    /// The peak rate of an engine of a tile with these types in floating point operations per
    /// cycle, if known.
    pub fn flops_per_cycle(
        &self,
        engine: ComputeEngine,
        input: ArithmeticType,
        partials: ArithmeticType,
    ) -> Option<u64> {
        self.rates
            .iter()
            .find(|rate| (rate.engine, rate.input, rate.partials) == (engine, input, partials))
            .map(|rate| rate.flops_per_cycle)
    }

    /// The peak rate of an engine with operands of a type and any sums, if known.
    pub fn peak_flops_per_cycle(
        &self,
        engine: ComputeEngine,
        input: ArithmeticType,
    ) -> Option<u64> {
        let known = self.rates.iter().filter(|rate| (rate.engine, rate.input) == (engine, input));
        known.map(|rate| rate.flops_per_cycle).max()
    }
}

/// An action of a machine that always takes the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineAction {
    /// A sync of several IPUs, after the last one has arrived.
    ExternalSync,
    /// The handshake before the transfer of a stream copy with the host. Any further time of its
    /// begin is waiting for the host.
    StreamBegin,
    /// The end of a stream copy with the host, after the transfer.
    StreamEnd,
}

impl MachineAction {
    /// All actions.
    pub const ALL: [MachineAction; 3] = [Self::ExternalSync, Self::StreamBegin, Self::StreamEnd];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExternalSync => "external_sync",
            Self::StreamBegin => "stream_begin",
            Self::StreamEnd => "stream_end",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}

/// The time that an action takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionCost {
    pub action: MachineAction,
    pub cycles: Cycles,
}

/// Names of the sync groups in a file.
pub(crate) const GS1: &str = "GS1";
pub(crate) const GS2: &str = "GS2";

/// The IPUs of a replica that wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncGroupMembers {
    /// The group of copies between IPUs.
    pub gs1: Vec<IpuId>,
    /// The parts that wait for the host and for streaming memory on their own.
    pub gs2: Vec<Vec<IpuId>>,
}

impl SyncGroupMembers {
    /// True if these IPUs may wait for each other: they are all of GS1 or of a part of GS2. A
    /// single IPU waits for no other.
    pub(crate) fn may_sync(&self, ipus: &[IpuId]) -> bool {
        ipus.len() == 1 || is_all_of(&self.gs1, ipus) || self.has_part(ipus)
    }

    /// True if IPUs may wait for each other before a copy to other replicas: they are all of GS1,
    /// or one of the two sides of a ladder. Any other part of GS2 has a single IPU and joins it to
    /// the host.
    pub(crate) fn may_join_replicas(&self, ipus: &[IpuId]) -> bool {
        is_all_of(&self.gs1, ipus) || (self.gs2.len() == 2 && self.has_part(ipus))
    }

    fn has_part(&self, ipus: &[IpuId]) -> bool {
        self.gs2.iter().any(|part| is_all_of(part, ipus))
    }
}

fn is_all_of(group: &[IpuId], ipus: &[IpuId]) -> bool {
    group.len() == ipus.len() && ipus.iter().all(|ipu| group.contains(ipu))
}
