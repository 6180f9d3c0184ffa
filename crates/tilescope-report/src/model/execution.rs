//! Executed steps, and the marks beside them.

use super::{ProgramKind, StreamEndpoint, TrainingPass};
use crate::units::{Bytes, CycleRange, Cycles, IpuId, ProgramId, ReplicaClassId, StepId};
use std::ops::Range;

/// The activity that a step spends its cycles on. A pixel of a trace shows one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepActivity {
    Compute,
    /// Exchange between tiles of one IPU.
    InternalExchange,
    GlobalExchange,
    /// Stream copies from and to the host.
    Host,
    /// Stream copies from and to remote buffers.
    RemoteBuffer,
    /// Waiting for other tiles, IPUs or the host.
    Sync,
    /// Steps of unknown kind.
    Other,
}

impl StepActivity {
    /// All activities, in the order of the enum.
    pub const ALL: [StepActivity; 7] = [
        Self::Compute,
        Self::InternalExchange,
        Self::GlobalExchange,
        Self::Host,
        Self::RemoteBuffer,
        Self::Sync,
        Self::Other,
    ];

    /// Key in JSON and name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::InternalExchange => "internal_exchange",
            Self::GlobalExchange => "global_exchange",
            Self::Host => "host",
            Self::RemoteBuffer => "remote_buffer",
            Self::Sync => "sync",
            Self::Other => "other",
        }
    }

    /// Name for users.
    pub fn title(self) -> &'static str {
        match self {
            Self::Compute => "Compute",
            Self::InternalExchange => "Internal exchange",
            Self::GlobalExchange => "Global exchange",
            Self::Host => "Host copies",
            Self::RemoteBuffer => "Remote buffers",
            Self::Sync => "Sync",
            Self::Other => "Other",
        }
    }

    /// The activity of a step of `kind`; `stream` is the other end of a stream copy.
    pub const fn from_program_kind(kind: ProgramKind, stream: StreamEndpoint) -> Self {
        match kind {
            ProgramKind::OnTileExecute => Self::Compute,
            ProgramKind::DoExchange => Self::InternalExchange,
            ProgramKind::GlobalExchange => Self::GlobalExchange,
            ProgramKind::StreamCopyBegin
            | ProgramKind::StreamCopyMid
            | ProgramKind::StreamCopyEnd => match stream {
                StreamEndpoint::Host => Self::Host,
                StreamEndpoint::RemoteBuffer => Self::RemoteBuffer,
            },
            ProgramKind::Sync => Self::Sync,
            ProgramKind::Sequence
            | ProgramKind::Repeat
            | ProgramKind::Switch
            | ProgramKind::Call
            | ProgramKind::WriteUndef
            | ProgramKind::Unknown => Self::Other,
        }
    }
}

/// An executed step, seen from one IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepOnIpu {
    /// IPU of the replica.
    pub ipu: IpuId,
    /// 0 for compute tiles; higher where I/O tiles work beside them.
    pub sub_lane: u8,
    /// Start of the first active tile.
    pub from_min: Cycles,
    /// Start of the last active tile: the left edge of the bar.
    pub from_max: Cycles,
    /// End of the first active tile.
    pub to_min: Cycles,
    /// End of the last active tile: the right edge of the bar.
    pub to_max: Cycles,
    /// Number of active tiles.
    pub active_tiles: u32,
    /// Mean active duration divided by the longest, 0 to 1.
    pub active_tile_balance: f32,
    /// Bytes received by the tiles of this IPU.
    pub bytes_in: Bytes,
    /// Bytes sent by the tiles of this IPU.
    pub bytes_out: Bytes,
}

impl StepOnIpu {
    /// The cycles that its bar covers.
    pub fn range(&self) -> CycleRange {
        CycleRange::new(self.from_max, self.to_max)
    }

    /// Active tile balance x active tiles / tiles of the IPU.
    pub fn tile_balance(&self, tiles_per_ipu: u32) -> f64 {
        tile_balance(self.active_tile_balance, self.active_tiles, tiles_per_ipu)
    }
}

/// Active tile balance x active tiles / tiles of the IPU.
pub(crate) fn tile_balance(active: f32, active_tiles: u32, tiles_per_ipu: u32) -> f64 {
    f64::from(active) * (f64::from(active_tiles) / f64::from(tiles_per_ipu.max(1)))
}

/// One execution of a leaf program.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionStep {
    /// The leaf program that ran.
    pub program: ProgramId,
    /// Its parts on each IPU that took part, in the order of IPUs, on the first class of replicas.
    pub ipus: Vec<StepOnIpu>,
    /// The same on the other classes of replicas, in the order of classes and IPUs; empty if all
    /// are alike.
    pub other_replicas: Vec<(ReplicaClassId, StepOnIpu)>,
}

impl ExecutionStep {
    /// A step that is the same on all replicas.
    pub fn new(program: ProgramId, ipus: Vec<StepOnIpu>) -> Self {
        Self { program, ipus, other_replicas: Vec::new() }
    }

    /// All its parts, by class of replicas and IPU.
    pub fn parts(&self) -> impl Iterator<Item = (ReplicaClassId, &StepOnIpu)> {
        let first = self.ipus.iter().map(|on_ipu| (ReplicaClassId(0), on_ipu));
        first.chain(self.other_replicas.iter().map(|(class, on_ipu)| (*class, on_ipu)))
    }
}

/// A kind of mark on the trace.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// One host call: `Engine::run #0`.
    Run,
    /// One weight update, or one pass over the loop of an inference program.
    Iteration,
    /// Ramp-up, main or ramp-down of a pipeline.
    Phase,
    /// One slot of a pipeline: every stage works on one micro-batch.
    Slot,
    /// One pass of one stage for one micro-batch on one IPU.
    Stage,
    /// A weight update on one IPU.
    Update,
    /// A host loader prepares the samples of a call.
    Loader,
    /// A host callback fills the stream buffers of a micro-batch.
    Callback,
}

impl MarkKind {
    /// Every kind, from the widest to the narrowest.
    pub const ALL: [MarkKind; 8] = [
        Self::Run,
        Self::Iteration,
        Self::Phase,
        Self::Slot,
        Self::Stage,
        Self::Update,
        Self::Loader,
        Self::Callback,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Iteration => "iteration",
            Self::Phase => "phase",
            Self::Slot => "slot",
            Self::Stage => "stage",
            Self::Update => "update",
            Self::Loader => "loader",
            Self::Callback => "callback",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A labelled range of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceMark {
    pub kind: MarkKind,
    /// Text for users: `B1 forward`.
    pub label: String,
    /// IPU it belongs to; `None` if it belongs to all.
    pub ipu: Option<IpuId>,
    /// Pass of a stage.
    pub pass: Option<TrainingPass>,
    /// Micro-batch of a stage, counted over the whole run; index of an iteration or slot.
    pub index: u64,
    /// Executed steps it covers, half-open.
    pub steps: Range<StepId>,
    /// Cycles it covers.
    pub cycles: CycleRange,
}
