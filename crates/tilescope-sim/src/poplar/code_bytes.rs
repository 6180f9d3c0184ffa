//! Memory that a program takes on a tile besides its tensors: code and state.
//!
//! Poplar's code generator is closed. These are parametric formulas whose constants, in
//! [`crate::cost_constants`], are derived from the few published totals (an adder on GC2, a dense
//! layer and a matmul chain on GC200, the code bytes of BERT-Large). An IPU Model generates no
//! code, so its rows are zero.

use crate::cost_constants::{
    COPY_CODE_BYTES, CostConstant, EMPTY_CONTROL_CODE_BYTES, EMPTY_HOST_EXCHANGE_CODE_BYTES,
    EMPTY_INTERNAL_EXCHANGE_CODE_BYTES, EMPTY_PACKET_HEADER_BYTES, EMPTY_VARIABLE_BYTES,
    EMPTY_VERTEX_CODE_BYTES, EMPTY_VERTEX_STATE_BYTES, EXCHANGE_BYTES_PER_MESSAGE, EXTRA_COUNTERS,
    HOST_BYTES_PER_PACKET, HOST_PACKET_IN_BYTES, HOST_PACKET_OUT_BYTES, INTER_IPU_END_CODE_BYTES,
    INTER_IPU_SEND_CODE_BYTES, OTHER_VERTEX_CODE_BYTES, SINGLE_EDGE_STATE_BYTES,
    VERTEX_STATE_BYTES,
};
use crate::targets::Chip;
use tilescope_report::units::{Bytes, TileId};
use tilescope_report::{MemoryCategory, TargetKind, TileTraffic};

/// Bytes on each tile of an empty program, by category.
static EMPTY_PROGRAM_BYTES: &[(MemoryCategory, &CostConstant)] = &[
    (MemoryCategory::ControlCode, &EMPTY_CONTROL_CODE_BYTES),
    (MemoryCategory::VertexCode, &EMPTY_VERTEX_CODE_BYTES),
    (MemoryCategory::HostExchangeCode, &EMPTY_HOST_EXCHANGE_CODE_BYTES),
    (MemoryCategory::InternalExchangeCode, &EMPTY_INTERNAL_EXCHANGE_CODE_BYTES),
    (MemoryCategory::Variable, &EMPTY_VARIABLE_BYTES),
    (MemoryCategory::VertexInstanceState, &EMPTY_VERTEX_STATE_BYTES),
    (MemoryCategory::HostExchangePacketHeader, &EMPTY_PACKET_HEADER_BYTES),
];

/// Bytes of one cycle counter of the profiler.
const COUNTER_BYTES: Bytes = Bytes(4);

/// Code sizes by prefix of the vertex type's name, counted in the assembly sources of
/// graphcore/poplibs (instructions x 4 bytes, worker and supervisor). The first match applies.
const VERTEX_CODE: &[(&str, Bytes)] = &[
    ("poplin::ConvPartial1x1Out<float", Bytes(668 + 500)),
    ("poplin::ConvPartial1x1Out", Bytes(632 + 500)),
    ("poplin::ConvPartialnx1", Bytes(536 + 1120)),
    ("poplin::ConvPartial1x4SLIC", Bytes(1100)),
    ("poplin::ConvPartialHorizontalMac", Bytes(640)),
    ("poplin::ConvPartialVerticalMac", Bytes(700)),
    ("poplin::OuterProduct", Bytes(260)),
    ("poplin::ReduceAddSingleInput", Bytes(180)),
    ("poplin::ReduceAdd<half", Bytes(388)),
    ("poplin::ReduceAdd", Bytes(208)),
    ("popops::ScaledAdd", Bytes(380)),
    ("popops::BroadcastVectorOuter", Bytes(358)),
    ("popops::BinaryOp", Bytes(124)),
    ("popops::MultiSlice", Bytes(420)),
    ("popops::DynamicSlice", Bytes(772)),
    ("popops::DynamicUpdateSlice", Bytes(772)),
    ("popnn::NonLinearity", Bytes(400)),
    ("poplar_rt::Transpose", Bytes(420)),
];

/// Code bytes of one vertex type on a tile that uses it.
pub(crate) fn vertex_code_bytes(vertex_type: &str, kind: TargetKind) -> Bytes {
    if kind == TargetKind::IpuModel {
        return Bytes::ZERO;
    }
    if is_copy_vertex(vertex_type) {
        return COPY_CODE_BYTES.bytes();
    }
    let listed = VERTEX_CODE.iter().find(|(start, _)| vertex_type.starts_with(start));
    listed.map_or_else(|| OTHER_VERTEX_CODE_BYTES.bytes(), |(_, bytes)| *bytes)
}

/// Returns true if a vertex copies data. All copy vertices of a tile share their code.
pub(crate) fn is_copy_vertex(vertex_type: &str) -> bool {
    ["StridedCopy", "Memcpy", "LongStridedCopy"].iter().any(|part| vertex_type.contains(part))
}

/// Bytes of state of one vertex: a header and pointers. Lists of edges are in field data.
pub(crate) fn vertex_state_bytes(edges: u64) -> Bytes {
    let state = if edges <= 1 { &SINGLE_EDGE_STATE_BYTES } else { &VERTEX_STATE_BYTES };
    state.bytes()
}

/// Exchange code bytes of one internal exchange on a tile.
pub(crate) fn exchange_code_bytes(traffic: &TileTraffic, kind: TargetKind) -> Bytes {
    match kind {
        TargetKind::IpuModel => Bytes::ZERO,
        TargetKind::Ipu => {
            EXCHANGE_BYTES_PER_MESSAGE.bytes() * (traffic.messages_in + traffic.messages_out)
        }
    }
}

/// Code bytes of one copy between IPUs on a tile at either end, for messages of 64 words.
pub(crate) fn global_code_bytes(traffic: &TileTraffic, kind: TargetKind) -> Bytes {
    match kind {
        TargetKind::IpuModel => Bytes::ZERO,
        TargetKind::Ipu => {
            let ends = u64::from(traffic.bytes_in > Bytes::ZERO)
                + u64::from(traffic.bytes_out > Bytes::ZERO);
            let sends = traffic.messages_in + traffic.messages_out;
            INTER_IPU_END_CODE_BYTES.bytes() * ends + INTER_IPU_SEND_CODE_BYTES.bytes() * sends
        }
    }
}

/// Control code of each case of a switch: the jump table entry, a call to the exchange code and a
/// jump to the end (poplibs lib/popops/ReplicatedCollectives.cpp,
/// createSliceableTensorIfBenefical).
pub(crate) const SWITCH_CASE_BYTES: Bytes = Bytes(12);

/// Global exchange code on a tile for the copies of one half of an all-reduce: one end, in a loop.
/// The growth of a published program with its replicas leaves no code for individual sends.
pub(crate) fn collective_code_bytes(kind: TargetKind) -> Bytes {
    if kind == TargetKind::IpuModel { Bytes::ZERO } else { INTER_IPU_END_CODE_BYTES.bytes() }
}

/// Code bytes of one host copy on a tile.
pub(crate) fn host_code_bytes(traffic: &TileTraffic, kind: TargetKind) -> Bytes {
    match kind {
        TargetKind::IpuModel => Bytes::ZERO,
        TargetKind::Ipu => {
            let most_in = HOST_PACKET_IN_BYTES.bytes();
            let most_out = HOST_PACKET_OUT_BYTES.bytes();
            let packets = traffic.bytes_in.next_multiple_of(most_in) / most_in
                + traffic.bytes_out.next_multiple_of(most_out) / most_out;
            Bytes::from_f64((packets as f64 * HOST_BYTES_PER_PACKET.ratio()).round())
        }
    }
}

/// Bytes per tile and category, for all tiles of a replica.
#[derive(Clone, Debug)]
pub(crate) struct TileCodeBytes {
    kind: TargetKind,
    tiles: u32,
    by_category: Vec<Vec<Bytes>>,
    has_copies: Vec<bool>,
}

impl TileCodeBytes {
    /// Creates the bytes of an empty program on `tiles` tiles.
    pub(crate) fn new(chip: &Chip, kind: TargetKind, tiles: u32) -> Self {
        let by_category = vec![vec![Bytes::ZERO; tiles as usize]; MemoryCategory::ALL.len()];
        let mut account =
            Self { kind, tiles, by_category, has_copies: vec![false; tiles as usize] };
        for (category, bytes) in EMPTY_PROGRAM_BYTES {
            account.add_everywhere(*category, bytes.bytes());
        }
        account.add_everywhere(MemoryCategory::Stack, chip.stack_bytes.bytes());
        account.add_everywhere(
            MemoryCategory::InstrumentationResults,
            COUNTER_BYTES * EXTRA_COUNTERS.count(),
        );
        account
    }

    /// Adds bytes on one tile. Code is ignored on an IPU Model.
    pub(crate) fn add(&mut self, category: MemoryCategory, tile: TileId, bytes: Bytes) {
        if self.kind == TargetKind::IpuModel && is_code(category) {
            return;
        }
        self.by_category[category as usize][tile.index()] += bytes;
    }

    /// Adds the same bytes on every tile.
    pub(crate) fn add_everywhere(&mut self, category: MemoryCategory, bytes: Bytes) {
        for tile in 0..self.tiles {
            self.add(category, TileId(tile), bytes);
        }
    }

    /// Adds the counter of one compute set on every tile.
    pub(crate) fn add_compute_set(&mut self) {
        self.add_everywhere(MemoryCategory::InstrumentationResults, COUNTER_BYTES);
    }

    /// Adds the shared copy code of a tile, once.
    pub(crate) fn add_copy_code(&mut self, tile: TileId) {
        // All copy vertices of a tile run the same code.
        if !std::mem::replace(&mut self.has_copies[tile.index()], true) {
            self.add(MemoryCategory::VertexCode, tile, COPY_CODE_BYTES.bytes());
        }
    }

    /// Bytes of one category on each tile.
    pub(crate) fn category(&self, category: MemoryCategory) -> &[Bytes] {
        &self.by_category[category as usize]
    }
}

/// Returns true if a category exists only in generated code.
fn is_code(category: MemoryCategory) -> bool {
    category.is_executable()
        || matches!(category, MemoryCategory::ControlTable | MemoryCategory::Stack)
}
