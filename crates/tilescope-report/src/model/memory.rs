//! Variables, their placement, and the contents of memory.

use crate::units::{Bytes, OperationId, ProgramId, TileRuns, VariableId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Memory categories, as libpva spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryCategory {
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
    VertexInstanceState,
    /// Fields of copy vertices.
    CopyDescriptor,
    /// Descriptors of vectors of lists.
    VectorListDescriptor,
    /// Arrays that vertex fields point to.
    VertexFieldData,
    /// Tables of the control program.
    ControlTable,
    ControlCode,
    /// Switch variables and sync ids.
    ControlId,
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
    /// A category of another tool that this version does not know.
    Unknown,
}

impl MemoryCategory {
    /// True if tiles fetch it as instructions.
    pub fn is_executable(self) -> bool {
        matches!(
            self,
            Self::ControlCode
                | Self::VertexCode
                | Self::InternalExchangeCode
                | Self::HostExchangeCode
                | Self::GlobalExchangeCode
                | Self::SharedCodeStorage
        )
    }

    /// All categories, in the order in which reports list them.
    pub const ALL: [MemoryCategory; 22] = [
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
    pub const fn name(self) -> &'static str {
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

    /// Name for users: `Internal exchange code`.
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

    /// Parses a name in a file; [`MemoryCategory::Unknown`] for names of other tools.
    pub(crate) fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|category| category.name() == name).unwrap_or(Self::Unknown)
    }
}

/// Parts of a tile's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryRegion {
    /// Lower part: data and code, 64 bits at a time.
    NonInterleaved,
    /// The upper part: data only, pairs of banks, 128 bits at a time.
    Interleaved,
    /// Beyond the end: data that do not fit.
    Overflowed,
}

impl MemoryRegion {
    /// All regions, from low to high addresses.
    pub const ALL: [MemoryRegion; 3] = [Self::NonInterleaved, Self::Interleaved, Self::Overflowed];

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
pub struct VariablePlacement {
    /// Bytes on the tile.
    pub bytes: Bytes,
    /// Address, counted from the start of tile memory.
    pub offset: Bytes,
}

/// A variable as the compiler placed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// `layer1/conv/weights`.
    pub name: String,
    pub category: MemoryCategory,
    /// Operation it was allocated for.
    pub operation: Option<OperationId>,
    /// Element type and shape in words, `float32[10,1,5,5]`; empty for code and the like.
    pub shape: String,
    /// Liveness steps it is live in; `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// Its placement, tile by tile.
    pub tiles: TileRuns<VariablePlacement>,
}

/// Liveness steps whose programs use a variable: they read it, write it or keep it as an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableUse {
    pub variable: VariableId,
    /// The steps, within its lifetime.
    pub steps: Range<u32>,
}

/// Bytes of one tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileMemory {
    /// Address after the last used byte, including gaps.
    pub including_gaps: Bytes,
    /// Bytes of non-interleaved memory that are used at any time.
    pub non_interleaved: Bytes,
    /// Bytes of interleaved memory that are used at any time.
    pub interleaved: Bytes,
    /// Bytes used beyond the end of memory.
    pub overflowed: Bytes,
    /// Bytes that are always live.
    pub always_live: Bytes,
    /// Most bytes of other variables live at any one liveness step.
    pub peak_not_always_live: Bytes,
}

impl TileMemory {
    /// Bytes that are used at any time, without the gaps between them: the sum of the regions.
    pub fn excluding_gaps(&self) -> Bytes {
        self.non_interleaved + self.interleaved + self.overflowed
    }
}

/// Used bytes of a tile, by owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CategoryBytes {
    /// The owner's category. Bytes that several categories share over time go to the largest user.
    pub category: MemoryCategory,
    /// The region of these bytes.
    pub region: MemoryRegion,
    /// True if several variables use the same addresses at different times.
    pub overlapped: bool,
    /// Bytes on each tile of the run.
    pub bytes: Bytes,
}

/// One step of the liveness walk over the compiled program, in program order, with each loop body
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivenessStep {
    pub program: ProgramId,
    /// Bytes of not-always-live variables over all tiles.
    pub bytes: Bytes,
}
