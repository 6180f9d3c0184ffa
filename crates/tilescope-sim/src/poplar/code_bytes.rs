//! Bytes of code and state: what a program costs a tile besides its tensors.
//!
//! Poplar's code generator is closed; these are parametric formulas whose constants are read off
//! the few published totals (an adder on GC2, a dense layer and a matmul chain on GC200, the code
//! bytes of BERT-Large). On an IPU Model no code is generated: its rows are zero.

use crate::targets::Chip;
use tilescope_report::units::{Bytes, TileId};
use tilescope_report::{MemoryCategory, TargetKind, TileTraffic};

/// Bytes each tile has before the program does anything, by category: an adder on GC2
/// (graphcore/tensorflow docs/logging.rst, 1,216 tiles).
const EMPTY_PROGRAM_BYTES: &[(MemoryCategory, Bytes)] = &[
    (MemoryCategory::ControlCode, Bytes(700)),
    (MemoryCategory::VertexCode, Bytes(140)),
    (MemoryCategory::HostExchangeCode, Bytes(289)),
    (MemoryCategory::InternalExchangeCode, Bytes(48)),
    (MemoryCategory::Variable, Bytes(32)),
    (MemoryCategory::VertexInstanceState, Bytes(12)),
    (MemoryCategory::HostExchangePacketHeader, Bytes(8)),
];

/// Control code of one step on a tile that takes part: the adder's 24 bytes a launch.
pub(crate) const CONTROL_BYTES_PER_STEP: Bytes = Bytes(24);

/// Exchange code of one received message, and of one send of up to 64 words (poplibs
/// lib/popops/DynamicSlice.cpp prices a message at 4 bytes).
const EXCHANGE_BYTES_PER_MESSAGE: Bytes = Bytes(4);

/// Host exchange code of one packet; fitted on the 1-replica BERT-Large figure, upload and download
/// of weights included.
const HOST_BYTES_PER_PACKET: f64 = 12.0;

/// Largest packet to a tile (osmarks/ipu-stack, exchange notes).
const HOST_PACKET_IN_BYTES: Bytes = Bytes(1024);

/// Largest packet from a tile (the same notes).
const HOST_PACKET_OUT_BYTES: Bytes = Bytes(256);

/// Code of one end of a copy between IPUs.
const INTER_IPU_END_CODE_BYTES: Bytes = Bytes(8);

/// Code of each 64-word send of a copy between IPUs.
const INTER_IPU_SEND_CODE_BYTES: Bytes = Bytes(8);

/// A cycle counter of the profiler.
const COUNTER_BYTES: Bytes = Bytes(4);

/// Counters besides one per compute set.
const EXTRA_COUNTERS: u64 = 2;

/// Code bytes of copy vertices on a tile that has any: what the dense layer's total leaves.
pub(crate) const COPY_CODE_BYTES: Bytes = Bytes(690);

/// Code sizes by the start of the vertex type's name, counted from the assembly sources of
/// graphcore/poplibs (instructions x 4 bytes, worker and supervisor); first match wins.
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

/// Code bytes of a codelet that is not in the list: about what the listed small ones take.
const OTHER_VERTEX_CODE: Bytes = Bytes(240);

/// Code bytes of one vertex type on a tile that uses it.
pub(crate) fn vertex_code_bytes(vertex_type: &str, kind: TargetKind) -> Bytes {
    if kind == TargetKind::IpuModel {
        return Bytes::ZERO;
    }
    let listed = VERTEX_CODE.iter().find(|(start, _)| vertex_type.starts_with(start));
    listed.map_or(OTHER_VERTEX_CODE, |(_, bytes)| *bytes)
}

/// Whether a vertex copies data around: its code is shared by all copy vertices of a tile.
pub(crate) fn is_copy_vertex(vertex_type: &str) -> bool {
    ["StridedCopy", "Memcpy", "LongStridedCopy"].iter().any(|part| vertex_type.contains(part))
}

/// Bytes of state of one vertex: a header and pointers (12 bytes with one edge, 16 with two or
/// three; lists of edges lie in field data).
pub(crate) fn vertex_state_bytes(edges: u64) -> Bytes {
    if edges <= 1 { Bytes(12) } else { Bytes(16) }
}

/// Exchange code of one internal exchange on a tile.
pub(crate) fn exchange_code_bytes(traffic: &TileTraffic, kind: TargetKind) -> Bytes {
    match kind {
        TargetKind::IpuModel => Bytes::ZERO,
        TargetKind::Ipu => {
            EXCHANGE_BYTES_PER_MESSAGE * (traffic.messages_in + traffic.messages_out)
        }
    }
}

/// Code of one copy between IPUs on a tile at either end, for messages of 64 words.
pub(crate) fn global_code_bytes(traffic: &TileTraffic, kind: TargetKind) -> Bytes {
    match kind {
        TargetKind::IpuModel => Bytes::ZERO,
        TargetKind::Ipu => {
            let ends = u64::from(traffic.bytes_in > Bytes::ZERO)
                + u64::from(traffic.bytes_out > Bytes::ZERO);
            let sends = traffic.messages_in + traffic.messages_out;
            INTER_IPU_END_CODE_BYTES * ends + INTER_IPU_SEND_CODE_BYTES * sends
        }
    }
}

/// Code of one half of an all-reduce between replicas on a tile: one looped exchange. Read off the
/// 4-replica column of the BERT-Large code table (Memory and performance optimisation, 4.3).
const COLLECTIVE_BYTES: Bytes = Bytes(8);

/// Control code of each switch case of a step, one for each replica that may run it.
const SWITCH_CASE_CODE_BYTES: Bytes = Bytes(12);

/// Replicas from which steps are looped and find their neighbour in a table: unrolled switches
/// would grow with the square of the replicas. Assumed; the one published program has four.
const MAX_UNROLLED_SWITCH_CASES: u64 = 8;

/// Internal exchange code of one step's slice and addition. Read off the same table.
const COLLECTIVE_STEP_EXCHANGE_BYTES: Bytes = Bytes(32);

/// Internal exchange code of the loop around all steps. Read off the same table.
const COLLECTIVE_LOOP_EXCHANGE_BYTES: Bytes = Bytes(128);

/// Code that the steps of a collective have on a tile.
pub(crate) struct CollectiveStepCode {
    pub control: Bytes,
    pub internal_exchange: Bytes,
}

/// Global exchange code of one half of an all-reduce on a tile.
pub(crate) fn collective_code_bytes(kind: TargetKind) -> Bytes {
    if kind == TargetKind::IpuModel { Bytes::ZERO } else { COLLECTIVE_BYTES }
}

/// Code that `steps` steps over so many ranks have on a tile, besides those of the first step's programs: poplibs lowers collectives to a switch on the
/// replica with a slice, a copy and an addition for each step.
pub(crate) fn collective_step_bytes(steps: u64, ranks: u64) -> CollectiveStepCode {
    let programs = 3 * steps.saturating_sub(1) + 2;
    let cases = steps.min(MAX_UNROLLED_SWITCH_CASES) * ranks.min(MAX_UNROLLED_SWITCH_CASES);
    let control = CONTROL_BYTES_PER_STEP * programs.min(3 * MAX_UNROLLED_SWITCH_CASES)
        + SWITCH_CASE_CODE_BYTES * cases;
    let unrolled = COLLECTIVE_STEP_EXCHANGE_BYTES * steps.min(MAX_UNROLLED_SWITCH_CASES);
    CollectiveStepCode { control, internal_exchange: unrolled + COLLECTIVE_LOOP_EXCHANGE_BYTES }
}

/// Code of one host copy on a tile.
pub(crate) fn host_code_bytes(traffic: &TileTraffic, kind: TargetKind) -> Bytes {
    match kind {
        TargetKind::IpuModel => Bytes::ZERO,
        TargetKind::Ipu => {
            let packets = traffic.bytes_in.next_multiple_of(HOST_PACKET_IN_BYTES)
                / HOST_PACKET_IN_BYTES
                + traffic.bytes_out.next_multiple_of(HOST_PACKET_OUT_BYTES) / HOST_PACKET_OUT_BYTES;
            Bytes::from_f64((packets as f64 * HOST_BYTES_PER_PACKET).round())
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
    /// The floor of an empty program on `tiles` tiles.
    pub(crate) fn new(chip: &Chip, kind: TargetKind, tiles: u32) -> Self {
        let by_category = vec![vec![Bytes::ZERO; tiles as usize]; MemoryCategory::ALL.len()];
        let mut account =
            Self { kind, tiles, by_category, has_copies: vec![false; tiles as usize] };
        for (category, bytes) in EMPTY_PROGRAM_BYTES {
            account.add_everywhere(*category, *bytes);
        }
        account.add_everywhere(MemoryCategory::Stack, chip.stack_bytes);
        account
            .add_everywhere(MemoryCategory::InstrumentationResults, COUNTER_BYTES * EXTRA_COUNTERS);
        account
    }

    /// Adds bytes on one tile; code is dropped on an IPU Model.
    pub(crate) fn add(&mut self, category: MemoryCategory, tile: TileId, bytes: Bytes) {
        if self.kind == TargetKind::IpuModel && is_code(category) {
            return;
        }
        self.by_category[category as usize][tile.index()] += bytes;
    }

    /// Adds bytes on every tile.
    pub(crate) fn add_everywhere(&mut self, category: MemoryCategory, bytes: Bytes) {
        for tile in 0..self.tiles {
            self.add(category, TileId(tile), bytes);
        }
    }

    /// Adds the counter of one compute set on every tile.
    pub(crate) fn add_compute_set(&mut self) {
        self.add_everywhere(MemoryCategory::InstrumentationResults, COUNTER_BYTES);
    }

    /// Notes that a tile copies data; the shared copy code is added once.
    pub(crate) fn add_copy_code(&mut self, tile: TileId) {
        // All copy vertices of a tile run the same code.
        if !std::mem::replace(&mut self.has_copies[tile.index()], true) {
            self.add(MemoryCategory::VertexCode, tile, COPY_CODE_BYTES);
        }
    }

    /// Bytes of each tile of one category.
    pub(crate) fn category(&self, category: MemoryCategory) -> &[Bytes] {
        &self.by_category[category as usize]
    }
}

/// Whether a category is fetched as instructions.
pub(crate) fn is_executable(category: MemoryCategory) -> bool {
    matches!(
        category,
        MemoryCategory::ControlCode
            | MemoryCategory::VertexCode
            | MemoryCategory::InternalExchangeCode
            | MemoryCategory::HostExchangeCode
            | MemoryCategory::GlobalExchangeCode
            | MemoryCategory::SharedCodeStorage
    )
}

/// Whether a category exists only where code is generated.
fn is_code(category: MemoryCategory) -> bool {
    is_executable(category)
        || matches!(category, MemoryCategory::ControlTable | MemoryCategory::Stack)
}
