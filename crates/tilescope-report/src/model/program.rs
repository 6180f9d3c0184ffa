//! Operations, programs, compute sets and exchanges.

use super::{ArithmeticType, CostBasis};
use crate::units::{
    Bytes, ComputeSetId, Cycles, IpuId, OperationId, ProgramId, TileRuns, VertexTypeId,
};

/// The side of training an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrainingPass {
    /// Forward pass, or inference.
    Forward,
    Backward,
    Update,
}

impl TrainingPass {
    /// Every pass, in the order they run.
    pub const ALL: [TrainingPass; 3] = [Self::Forward, Self::Backward, Self::Update];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Update => "update",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pass| pass.name() == name)
    }
}

/// One operation of the model, in the sense of "this conv".
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOperation {
    /// Path of names: `layer1/conv`.
    pub name: String,
    /// Operator: `conv2d`.
    pub kind: String,
    /// Operator and version of the node that it was made for, `Conv@11`, or of each node if several
    /// were fused, `MatMul@13, Add@13`. For operations named by `debug.cbor`, the layer that made
    /// them, `onnx`.
    pub source: Option<String>,
    /// Forward, backward or update.
    pub pass: TrainingPass,
    /// Block of the model according to its annotation, if any: `B1`.
    pub block: Option<String>,
    /// IPU of the replica it runs on; `None` if that was not recorded.
    pub ipu: Option<IpuId>,
    /// Floating point operations that its result needs in one execution, without multiplications by
    /// padding.
    pub flops: u64,
    /// The type that it computes in; `None` if that was not recorded. Integers count as floats of
    /// their size.
    pub element_type: Option<ArithmeticType>,
    /// The number of runs of its most frequent program in one execution: more than one in a serial
    /// loop. `None` if that was not recorded.
    pub inner_runs: Option<u64>,
    /// The basis of its cost, if it differs from that of its kind because its shape was not among
    /// the measured ones.
    pub cost_basis: Option<CostBasis>,
    /// Shapes in words: `[40,1,28,28] x [10,1,5,5] -> [40,10,24,24]`.
    pub shapes: String,
    /// The planner's choice as a JSON object (method, splits, estimated phases), if it has one.
    pub plan: Option<String>,
    /// Earlier operations whose results it reads, without duplicates, in the order of its operands.
    pub inputs: Vec<OperationId>,
}

/// Kinds of compiled programs and executed steps, as libpva spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramKind {
    /// Children one after the other.
    Sequence,
    /// Children, repeated.
    Repeat,
    /// One of several children.
    Switch,
    /// A call of a function.
    Call,
    OnTileExecute,
    /// Internal exchange, between tiles of one IPU.
    DoExchange,
    GlobalExchange,
    /// Handshake before a host copy.
    StreamCopyBegin,
    /// Transfer of a host copy.
    StreamCopyMid,
    /// End of a host copy.
    StreamCopyEnd,
    /// A wait for the tiles of an IPU (name `Internal`), or for other IPUs or the host
    /// (`External`).
    Sync,
    /// Marks a variable as not live.
    WriteUndef,
    /// A kind that this version does not know; kept under its original name.
    Unknown,
}

impl ProgramKind {
    /// True if programs of the kind move data.
    pub fn moves_data(self) -> bool {
        matches!(self, Self::DoExchange | Self::GlobalExchange | Self::StreamCopyMid)
    }
}

/// Name of syncs of the tiles of an IPU.
pub const INTERNAL_SYNC: &str = "Internal";

/// Name of syncs with other IPUs or the host.
pub const EXTERNAL_SYNC: &str = "External";

impl ProgramKind {
    /// All kinds, in the order of the enum.
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

    /// Parses a name in a file; [`ProgramKind::Unknown`] for names of other tools.
    pub(crate) fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(Self::Unknown)
    }
}

/// The other end of a stream copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamEndpoint {
    /// Host memory, through a callback.
    Host,
    /// A remote buffer in streaming memory.
    RemoteBuffer,
}

impl StreamEndpoint {
    /// All endpoints of streams.
    pub const ALL: [StreamEndpoint; 2] = [Self::Host, Self::RemoteBuffer];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::RemoteBuffer => "remote_buffer",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.name() == name)
    }
}

/// A node of the compiled program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramNode {
    pub kind: ProgramKind,
    /// Debug name: `cs0_layer1/conv/Conv_1/Convolve/ExchangePre`.
    pub name: String,
    /// Children in order; empty for leaves.
    pub children: Vec<ProgramId>,
    /// IPU it runs on; `None` if it concerns several.
    pub ipu: Option<IpuId>,
    /// Compute set of an [`ProgramKind::OnTileExecute`].
    pub compute_set: Option<ComputeSetId>,
    /// Operation it was made for.
    pub operation: Option<OperationId>,
    /// Other end of a stream copy.
    pub stream: StreamEndpoint,
    /// Iterations of an [`ProgramKind::Repeat`]; 1 for everything else.
    pub repeats: u64,
    /// The call and body that it belongs to, if it runs outlined code.
    pub outlined: Option<OutlinedCall>,
}

/// The use of a program in a function that exists once and is called several times. The first use
/// is the program of the function itself. Each further use is a separate program without a
/// parent, so that its steps belong to its own operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlinedCall {
    /// The program of the function. It has the compute set, the traffic and the code.
    pub body: ProgramId,
    /// The [`ProgramKind::Call`] that runs it.
    pub call: ProgramId,
}

impl ProgramNode {
    /// True if it waits for tiles of a single IPU.
    pub fn is_internal_sync(&self) -> bool {
        self.kind == ProgramKind::Sync && self.name == INTERNAL_SYNC
    }

    /// True if it waits for other IPUs or the host.
    pub fn is_external_sync(&self) -> bool {
        self.kind == ProgramKind::Sync && self.name == EXTERNAL_SYNC
    }

    /// A leaf without IPU, compute set or operation; a stream copy is one with the host.
    pub fn new(kind: ProgramKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            children: Vec::new(),
            ipu: None,
            compute_set: None,
            operation: None,
            stream: StreamEndpoint::Host,
            repeats: 1,
            outlined: None,
        }
    }
}

/// A kind of vertex: one codelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexTypeInfo {
    /// `poplin::ConvPartial1x1Out<float,float,true,false>`.
    pub name: String,
    /// Code on each tile that has at least one instance; 0 on an IPU Model.
    pub code_bytes: Bytes,
    /// True if types with this flag share one piece of code: a tile has it once, however many of
    /// them it uses.
    pub shares_code: bool,
    /// State of one instance.
    pub state_bytes: Bytes,
}

/// For each vertex type, the type that its code is counted with: itself, or the first of the types
/// that share their code.
pub fn code_owners(types: &[VertexTypeInfo]) -> Vec<VertexTypeId> {
    let shared = types.iter().position(|kind| kind.shares_code);
    types
        .iter()
        .enumerate()
        .map(|(id, kind)| {
            VertexTypeId::from_index(if kind.shares_code { shared.unwrap_or(id) } else { id })
        })
        .collect()
}

/// Equal vertices of one compute set.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexGroup {
    pub vertex_type: VertexTypeId,
    pub count: TileRuns<u64>,
    /// Edges of one instance.
    pub edges: u64,
    /// Floating point operations of all of them in one execution, including those on padding;
    /// `None` if they are not counted.
    pub flops: Option<u64>,
}

/// Vertices that run together.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeSet {
    /// `layer1/conv/Conv_1/Convolve`.
    pub name: String,
    /// Cycles of each tile that takes part, measured once and used for all executions.
    pub cycles: TileRuns<Cycles>,
    pub vertices: Vec<VertexGroup>,
}

/// Traffic and code of one tile in an exchange or copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileTraffic {
    pub bytes_in: Bytes,
    /// Bytes sent, a multicast counted once.
    pub bytes_out: Bytes,
    /// Bytes of the sent messages, multiplied by their receivers: `sum(bytes_in) =
    /// sum(bytes_delivered)`.
    pub bytes_delivered: Bytes,
    pub messages_in: u64,
    /// Messages sent, a multicast counted once.
    pub messages_out: u64,
    /// Exchange code of this program on the tile.
    pub code_bytes: Bytes,
}

impl TileTraffic {
    /// The traffic of a tile that does both.
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
pub struct ExchangeTraffic {
    /// The `DoExchange`, `GlobalExchange` or `StreamCopyMid` program.
    pub program: ProgramId,
    /// Traffic and code of each tile that takes part.
    pub tiles: TileRuns<TileTraffic>,
    /// Cycles that each tile of a `DoExchange` sends or receives; empty if that was not recorded.
    pub cycles: TileRuns<Cycles>,
}

/// Control code of one program, without that of its children.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlCode {
    /// The program. For outlined code, the [`ProgramKind::Call`] that runs it again.
    pub program: ProgramId,
    /// Bytes on each tile that takes part.
    pub tiles: TileRuns<Bytes>,
}
