//! What a report says, as plain data: the machine, the compiled program, memory, execution.
//!
//! The writer takes these types and the reader gives them back; names follow libpva where it has
//! one. A report describes one replica: tiles are numbered over its IPUs
//! (`ipu * tiles_per_ipu + tile`), and figures are multiplied by the replicas only where that is
//! said.

use crate::units::{
    Bytes, ComputeSetId, CycleRange, Hertz, OperationId, ProgramId, StepId, TileRange, TileRuns,
    VertexTypeId,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What the program was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Hardware: programs carry code, the host takes its time.
    Ipu,
    /// Poplar's IPU Model: no code is generated, the host answers at once.
    IpuModel,
}

impl TargetKind {
    /// Both kinds.
    pub const ALL: [TargetKind; 2] = [Self::Ipu, Self::IpuModel];

    /// The name in the file, as Poplar spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipu => "IPU",
            Self::IpuModel => "IPU_MODEL",
        }
    }

    /// The kind of a name in a file.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The machine a report was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Hardware or IPU Model.
    pub kind: TargetKind,
    /// Name a spec uses: `mk2`.
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
    /// Tile clock.
    pub clock: Hertz,
    /// Copies of the program that run side by side.
    pub replicas: u32,
    /// IPUs of one replica; the lanes and tiles of this report.
    pub ipus_per_replica: u32,
    /// Size of one element (bank) of non-interleaved tile memory.
    pub memory_element_bytes: Bytes,
    /// Offset where interleaved memory begins, counted from the start of tile memory.
    pub interleaved_offset: Bytes,
    /// Tiles of one column of the chip's floor plan.
    pub tiles_per_column: u32,
}

impl Target {
    /// Tiles of one replica.
    pub fn tiles_per_replica(&self) -> u32 {
        self.tiles_per_ipu * self.ipus_per_replica
    }

    /// Tiles of one IPU that run the model.
    pub fn compute_tiles_per_ipu(&self) -> u32 {
        self.tiles_per_ipu - self.io_tiles_per_ipu
    }

    /// All tiles of one IPU of the replica.
    pub fn tiles_of_ipu(&self, ipu: u32) -> TileRange {
        TileRange::new(ipu * self.tiles_per_ipu, (ipu + 1) * self.tiles_per_ipu)
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

/// How many samples one host call moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Samples of one forward (and backward) pass.
    pub micro_batch: u64,
    /// Micro-batches per weight update.
    pub gradient_accumulation: u64,
    /// Replicas that work side by side.
    pub replicas: u64,
    /// Weight updates (or inference loops) per host call.
    pub device_iterations: u64,
}

impl Batching {
    /// Samples per host call: micro-batch x accumulation x replicas x device iterations.
    pub fn samples_per_call(&self) -> u64 {
        self.micro_batch * self.gradient_accumulation * self.replicas * self.device_iterations
    }
}

/// The side of training an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// Forward pass, or inference.
    Forward,
    /// Gradients.
    Backward,
    /// Optimiser.
    Update,
}

impl Pass {
    /// Every pass, in the order they run.
    pub const ALL: [Pass; 3] = [Self::Forward, Self::Backward, Self::Update];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Update => "update",
        }
    }

    /// The pass of a name in a file.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pass| pass.name() == name)
    }
}

/// One operation of the model: what people mean when they say "this conv".
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Path of names: `layer1/conv`.
    pub name: String,
    /// Operator: `conv2d`.
    pub kind: String,
    /// Forward, backward or update.
    pub pass: Pass,
    /// Block of the model it was annotated with, if any: `B1`.
    pub block: Option<String>,
    /// IPU of the replica it runs on.
    pub ipu: u32,
    /// Floating point operations of one execution.
    pub flops: u64,
    /// Shapes in words: `[40,1,28,28] x [10,1,5,5] -> [40,10,24,24]`.
    pub shapes: String,
    /// The planner's choice as a JSON object (method, splits, estimated phases), where it has one.
    pub plan: Option<String>,
    /// Earlier operations whose results it reads, without repetition, in the order of its operands.
    pub inputs: Vec<OperationId>,
}

/// Kinds of compiled programs and executed steps, as libpva spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramKind {
    /// Children one after the other.
    Sequence,
    /// Children again and again.
    Repeat,
    /// One of several children.
    Switch,
    /// A call of a function.
    Call,
    /// A compute set.
    OnTileExecute,
    /// Internal exchange, between tiles of one IPU.
    DoExchange,
    /// Exchange between IPUs.
    GlobalExchange,
    /// Handshake before a host copy.
    StreamCopyBegin,
    /// Transfer of a host copy.
    StreamCopyMid,
    /// End of a host copy.
    StreamCopyEnd,
    /// Wait for the tiles of an IPU (name `Internal`) or for other IPUs or the host (`External`).
    Sync,
    /// Marks a variable as not live.
    WriteUndef,
    /// Something this version does not know; kept under the name it came with.
    Unknown,
}

impl ProgramKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [ProgramKind; 13] = [
        Self::Sequence,
        Self::Repeat,
        Self::Switch,
        Self::Call,
        Self::OnTileExecute,
        Self::DoExchange,
        Self::GlobalExchange,
        Self::StreamCopyBegin,
        Self::StreamCopyMid,
        Self::StreamCopyEnd,
        Self::Sync,
        Self::WriteUndef,
        Self::Unknown,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequence => "Sequence",
            Self::Repeat => "Repeat",
            Self::Switch => "Switch",
            Self::Call => "Call",
            Self::OnTileExecute => "OnTileExecute",
            Self::DoExchange => "DoExchange",
            Self::GlobalExchange => "GlobalExchange",
            Self::StreamCopyBegin => "StreamCopyBegin",
            Self::StreamCopyMid => "StreamCopyMid",
            Self::StreamCopyEnd => "StreamCopyEnd",
            Self::Sync => "Sync",
            Self::WriteUndef => "WriteUndef",
            Self::Unknown => "Unknown",
        }
    }

    /// The kind of a name in a file; [`ProgramKind::Unknown`] for names of other tools.
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(Self::Unknown)
    }
}

/// Where a stream copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamEnd {
    /// Host memory, through a callback.
    Host,
    /// A remote buffer in streaming memory.
    RemoteBuffer,
}

impl StreamEnd {
    /// Both ends.
    pub const ALL: [StreamEnd; 2] = [Self::Host, Self::RemoteBuffer];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::RemoteBuffer => "remote_buffer",
        }
    }

    /// The end of a name in a file.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.name() == name)
    }
}

/// What a step spends its cycles on: the things a pixel of a trace can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// Vertices.
    Compute,
    /// Exchange between tiles of one IPU.
    InternalExchange,
    /// Exchange between IPUs.
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

impl Activity {
    /// Every activity, in the order of the enum.
    pub const ALL: [Activity; 7] = [
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

    /// What a step of `kind` that ends at `stream` (for stream copies) spends its time on.
    pub fn of(kind: ProgramKind, stream: StreamEnd) -> Self {
        match kind {
            ProgramKind::OnTileExecute => Self::Compute,
            ProgramKind::DoExchange => Self::InternalExchange,
            ProgramKind::GlobalExchange => Self::GlobalExchange,
            ProgramKind::StreamCopyBegin
            | ProgramKind::StreamCopyMid
            | ProgramKind::StreamCopyEnd => match stream {
                StreamEnd::Host => Self::Host,
                StreamEnd::RemoteBuffer => Self::RemoteBuffer,
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

/// A node of the compiled program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What it does.
    pub kind: ProgramKind,
    /// Debug name: `cs0_layer1/conv/Conv_1/Convolve/ExchangePre`.
    pub name: String,
    /// Children in order; empty for leaves.
    pub children: Vec<ProgramId>,
    /// IPU it runs on; `None` where it concerns several.
    pub ipu: Option<u32>,
    /// Compute set of an [`ProgramKind::OnTileExecute`].
    pub compute_set: Option<ComputeSetId>,
    /// Operation it was made for.
    pub operation: Option<OperationId>,
    /// Other end of a stream copy.
    pub stream: StreamEnd,
    /// Iterations of an [`ProgramKind::Repeat`]; 1 for everything else.
    pub repeats: u64,
}

/// A kind of vertex: one codelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexType {
    /// `poplin::ConvPartial1x1Out<float,float,true,false>`.
    pub name: String,
    /// Code on each tile that has at least one instance; 0 on an IPU Model.
    pub code_bytes: u64,
    /// State of one instance.
    pub state_bytes: u64,
}

/// Equal vertices of one compute set.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexGroup {
    /// Their type.
    pub vertex_type: VertexTypeId,
    /// Instances per tile.
    pub count: TileRuns<u64>,
    /// Edges of one instance.
    pub edges: u64,
}

/// Vertices that run together.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeSet {
    /// `layer1/conv/Conv_1/Convolve`.
    pub name: String,
    /// Cycles of each tile that takes part, measured once and reused by all executions.
    pub cycles: TileRuns<u64>,
    /// Its vertices.
    pub vertices: Vec<VertexGroup>,
}

/// What one tile does in an exchange or copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileTraffic {
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent, a multicast counted once.
    pub bytes_out: u64,
    /// Bytes of the sent messages times their receivers: `sum(bytes_in) = sum(bytes_delivered)`.
    pub bytes_delivered: u64,
    /// Messages received.
    pub messages_in: u64,
    /// Messages sent, a multicast counted once.
    pub messages_out: u64,
    /// Exchange code of this program on the tile.
    pub code_bytes: u64,
}

impl TileTraffic {
    /// What a tile does that does both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes_in: self.bytes_in + other.bytes_in,
            bytes_out: self.bytes_out + other.bytes_out,
            bytes_delivered: self.bytes_delivered + other.bytes_delivered,
            messages_in: self.messages_in + other.messages_in,
            messages_out: self.messages_out + other.messages_out,
            code_bytes: self.code_bytes + other.code_bytes,
        }
    }
}

/// The traffic of one exchange or copy program.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The `DoExchange`, `GlobalExchange` or `StreamCopyMid` program.
    pub program: ProgramId,
    /// What each tile that takes part does.
    pub tiles: TileRuns<TileTraffic>,
}

/// Who sends to whom in an exchange: the tiles `from` send `bytes` to the tiles `to`, in order. What
/// the first of them sends first is what the first receiver gets first. In an exchange without
/// routes that order is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The exchange or copy program.
    pub program: ProgramId,
    /// Senders.
    pub from: TileRange,
    /// Receivers.
    pub to: TileRange,
    /// Bytes that arrive.
    pub bytes: u64,
}

/// Memory categories, as libpva spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Tensors of the model and temporaries of operations.
    Variable,
    /// Constants of the program, worklists among them.
    Constant,
    /// Packet headers of host copies.
    HostExchangePacketHeader,
    /// Packet headers of copies between IPUs.
    GlobalExchangePacketHeader,
    /// Worker and supervisor stacks.
    Stack,
    /// State of vertices.
    VertexInstanceState,
    /// Fields of copy vertices.
    CopyDescriptor,
    /// Descriptors of vectors of lists.
    VectorListDescriptor,
    /// Arrays that vertex fields point to.
    VertexFieldData,
    /// Tables of the control program.
    ControlTable,
    /// Program flow.
    ControlCode,
    /// Switch variables and sync ids.
    ControlId,
    /// Codelets.
    VertexCode,
    /// Exchange programs between tiles.
    InternalExchangeCode,
    /// Exchange programs with the host.
    HostExchangeCode,
    /// Exchange programs between IPUs.
    GlobalExchangeCode,
    /// Cycle counters of the profiler.
    InstrumentationResults,
    /// Receive buffers of exchanges.
    Message,
    /// Temporaries of layout changes.
    Rearrangement,
    /// Code shared between programs.
    SharedCodeStorage,
    /// Data shared between programs.
    SharedDataStorage,
    /// Something this version does not know, in a file of another tool.
    Unknown,
}

impl Category {
    /// Every category, in the order reports list them.
    pub const ALL: [Category; 22] = [
        Self::Variable,
        Self::Constant,
        Self::HostExchangePacketHeader,
        Self::GlobalExchangePacketHeader,
        Self::Stack,
        Self::VertexInstanceState,
        Self::CopyDescriptor,
        Self::VectorListDescriptor,
        Self::VertexFieldData,
        Self::ControlTable,
        Self::ControlCode,
        Self::ControlId,
        Self::VertexCode,
        Self::InternalExchangeCode,
        Self::HostExchangeCode,
        Self::GlobalExchangeCode,
        Self::InstrumentationResults,
        Self::Message,
        Self::Rearrangement,
        Self::SharedCodeStorage,
        Self::SharedDataStorage,
        Self::Unknown,
    ];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variable => "variable",
            Self::Constant => "constant",
            Self::HostExchangePacketHeader => "hostExchangePacketHeader",
            Self::GlobalExchangePacketHeader => "globalExchangePacketHeader",
            Self::Stack => "stack",
            Self::VertexInstanceState => "vertexInstanceState",
            Self::CopyDescriptor => "copyDescriptor",
            Self::VectorListDescriptor => "vectorListDescriptor",
            Self::VertexFieldData => "vertexFieldData",
            Self::ControlTable => "controlTable",
            Self::ControlCode => "controlCode",
            Self::ControlId => "controlId",
            Self::VertexCode => "vertexCode",
            Self::InternalExchangeCode => "internalExchangeCode",
            Self::HostExchangeCode => "hostExchangeCode",
            Self::GlobalExchangeCode => "globalExchangeCode",
            Self::InstrumentationResults => "instrumentationResults",
            Self::Message => "message",
            Self::Rearrangement => "rearrangement",
            Self::SharedCodeStorage => "sharedCodeStorage",
            Self::SharedDataStorage => "sharedDataStorage",
            Self::Unknown => "unknown",
        }
    }

    /// Words for people: `Internal exchange code`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Variable => "Variables",
            Self::Constant => "Constants",
            Self::HostExchangePacketHeader => "Host exchange packet headers",
            Self::GlobalExchangePacketHeader => "Global exchange packet headers",
            Self::Stack => "Stack",
            Self::VertexInstanceState => "Vertex instances",
            Self::CopyDescriptor => "Copy descriptors",
            Self::VectorListDescriptor => "Vector list descriptors",
            Self::VertexFieldData => "Vertex field data",
            Self::ControlTable => "Control table",
            Self::ControlCode => "Control code",
            Self::ControlId => "Control ids",
            Self::VertexCode => "Vertex code",
            Self::InternalExchangeCode => "Internal exchange code",
            Self::HostExchangeCode => "Host exchange code",
            Self::GlobalExchangeCode => "Global exchange code",
            Self::InstrumentationResults => "Instrumentation results",
            Self::Message => "Messages",
            Self::Rearrangement => "Rearrangement",
            Self::SharedCodeStorage => "Shared code storage",
            Self::SharedDataStorage => "Shared data storage",
            Self::Unknown => "Unknown",
        }
    }

    /// The category of a name in a file; [`Category::Unknown`] for names of other tools.
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|category| category.name() == name).unwrap_or(Self::Unknown)
    }
}

/// Parts of a tile's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    /// Lower part: data and code, 64 bits at a time.
    NonInterleaved,
    /// Upper part: data only, pairs of banks, 128 bits at a time.
    Interleaved,
    /// Beyond the end: what does not fit.
    Overflowed,
}

impl Region {
    /// Every region, from low to high addresses.
    pub const ALL: [Region; 3] = [Self::NonInterleaved, Self::Interleaved, Self::Overflowed];

    /// Key in the file and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonInterleaved => "non_interleaved",
            Self::Interleaved => "interleaved",
            Self::Overflowed => "overflowed",
        }
    }
}

/// The part of a variable that one tile holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// Bytes on the tile.
    pub bytes: u64,
    /// Address, counted from the start of tile memory.
    pub offset: u64,
}

/// A variable as the compiler placed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// `layer1/conv/weights`.
    pub name: String,
    /// What it is for.
    pub category: Category,
    /// Operation it was made for.
    pub operation: Option<OperationId>,
    /// Element type and shape in words, `float32[10,1,5,5]`; empty for code and the like.
    pub shape: String,
    /// Liveness steps it is live in; `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// Where it lies, tile by tile.
    pub tiles: TileRuns<Placement>,
}

/// Bytes of one tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileMemory {
    /// Address behind the last used byte: everything below counts.
    pub including_gaps: u64,
    /// Bytes of non-interleaved memory that are ever used.
    pub non_interleaved: u64,
    /// Bytes of interleaved memory that are ever used.
    pub interleaved: u64,
    /// Bytes used beyond the end of memory.
    pub overflowed: u64,
    /// Bytes that are always live.
    pub always_live: u64,
    /// Most bytes of other variables live at any one liveness step.
    pub peak_not_always_live: u64,
}

impl TileMemory {
    /// Bytes ever used, whatever lies between them: the sum of the regions.
    pub fn excluding_gaps(&self) -> u64 {
        self.non_interleaved + self.interleaved + self.overflowed
    }
}

/// Used bytes of a tile, split by what owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CategoryBytes {
    /// The owner's category. Bytes that several categories share over time go to the largest user.
    pub category: Category,
    /// The region they lie in.
    pub region: Region,
    /// Whether several variables use the same addresses at different times.
    pub overlapped: bool,
    /// Bytes on each tile of the run.
    pub bytes: u64,
}

/// One step of the liveness walk over the compiled program, in program order, loop bodies once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivenessStep {
    /// The leaf program.
    pub program: ProgramId,
    /// Bytes of not-always-live variables over all tiles.
    pub bytes: u64,
}

/// The compiled program: all that is known without running it.
#[derive(Clone, Debug, PartialEq)]
pub struct Compilation {
    /// The machine.
    pub target: Target,
    /// Sizes.
    pub graph: GraphCounts,
    /// Options in effect, as key and value.
    pub options: Vec<(String, String)>,
    /// Batching, where a model was run in batches.
    pub batching: Option<Batching>,
    /// The model's operations; [`OperationId`] counts into this.
    pub operations: Vec<Operation>,
    /// Program nodes; [`ProgramId`] counts into this.
    pub programs: Vec<Program>,
    /// Roots of the program tree: the control programs.
    pub roots: Vec<ProgramId>,
    /// Compute sets; [`ComputeSetId`] counts into this.
    pub compute_sets: Vec<ComputeSet>,
    /// Vertex types; [`VertexTypeId`] counts into this.
    pub vertex_types: Vec<VertexType>,
    /// Traffic of exchanges and copies.
    pub exchanges: Vec<Exchange>,
    /// Who sends to whom, where that is known.
    pub routes: Vec<Route>,
    /// Variables; [`VariableId`](crate::units::VariableId) counts into this.
    pub variables: Vec<Variable>,
    /// Memory of each tile of the replica.
    pub tile_memory: TileRuns<TileMemory>,
    /// Memory of each tile by category; runs with the same owner list.
    pub tile_categories: TileRuns<Vec<CategoryBytes>>,
    /// Liveness walk.
    pub liveness: Vec<LivenessStep>,
    /// What the reader should know: warnings of the compiler.
    pub notes: Vec<String>,
}

/// An executed step, seen from one IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepOnIpu {
    /// IPU of the replica.
    pub ipu: u32,
    /// 0 for compute tiles; higher where I/O tiles work beside them.
    pub sub_lane: u8,
    /// When the first active tile starts.
    pub from_min: u64,
    /// When the last active tile starts: the left edge of the bar.
    pub from_max: u64,
    /// When the first active tile ends.
    pub to_min: u64,
    /// When the last active tile ends: the right edge of the bar.
    pub to_max: u64,
    /// Tiles that do something.
    pub active_tiles: u32,
    /// Mean active duration divided by the longest, 0 to 1.
    pub active_tile_balance: f32,
    /// Bytes received by the tiles of this IPU.
    pub bytes_in: u64,
    /// Bytes sent by the tiles of this IPU.
    pub bytes_out: u64,
}

impl StepOnIpu {
    /// The drawn bar.
    pub fn range(&self) -> CycleRange {
        CycleRange::new(self.from_max, self.to_max)
    }
}

/// One executed step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The leaf program that ran.
    pub program: ProgramId,
    /// What it did on each IPU that took part, by IPU.
    pub ipus: Vec<StepOnIpu>,
}

/// What a mark on the trace stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// The kind of a name in a file.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A stretch of the trace with a meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// What it stands for.
    pub kind: MarkKind,
    /// Words for people: `B1 forward`.
    pub label: String,
    /// IPU it belongs to; `None` for all of them.
    pub ipu: Option<u32>,
    /// Pass of a stage.
    pub pass: Option<Pass>,
    /// Micro-batch of a stage, counted over the whole run; index of an iteration or slot.
    pub index: u64,
    /// Executed steps it covers, half-open.
    pub steps: Range<StepId>,
    /// Cycles it covers.
    pub cycles: CycleRange,
}
