//! One operation alone on an IPU Model, as poplibs' tools run it: upload, operation, download.
//!
//! Cycles and bytes are those the tools report with host transfers left out. No code is generated,
//! so memory is tensors, temporaries and the state of vertices.

use super::allocate::{Wanted, allocate};
use super::constants::{
    COMPUTE_START_CYCLES, EXCHANGE_START_CYCLES, MODEL_FIRST_TILE_BYTES, MODEL_TILE_BYTES,
};
use super::work::{PhaseKind, Place, Temporary, VertexUse, Work};
use crate::report::{Category, TileMemory};
use crate::sim::targets::Chip;
use crate::units::{TileRange, TileRuns};

/// What one operation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Cycles from the end of the upload to the start of the download.
    pub cycles: u64,
    /// Sum over all tiles of always-live bytes and of each tile's peak of the others.
    pub memory_bytes: u64,
    /// Highest address in use on any tile.
    pub fullest_tile_bytes: u64,
}

/// Cycles of a work: each phase lasts as long as its slowest tile.
pub fn cycles(work: &Work) -> u64 {
    let phase = |kind: &PhaseKind| match kind {
        PhaseKind::Exchange { cycles, .. } => EXCHANGE_START_CYCLES + cycles.max(),
        PhaseKind::Compute { cycles, .. } => COMPUTE_START_CYCLES + cycles.max(),
    };
    work.phases().iter().map(|(work, times)| times * phase(&work.kind)).sum()
}

/// Bytes of a vertex: pointers of its edges and some counts. Where 16 bits reach all of a tile's
/// memory in words, pointers take two bytes.
pub fn state_bytes(chip: &Chip, vertex: &VertexUse) -> u64 {
    const COUNTS_BYTES: u64 = 6;
    let pointer = if chip.bytes_per_tile <= 4 << 16 { 2 } else { 4 };
    vertex.edges * pointer + COUNTS_BYTES + vertex.field_bytes + vertex.constant_bytes
}

/// Costs of `work` on `tiles` tiles whose operands and results take `live` bytes, all in places of
/// one kind.
pub fn cost(chip: &Chip, tiles: u32, work: &Work, live: &[TileRuns<u64>], place: Place) -> Cost {
    let operand = |bytes: &TileRuns<u64>| Wanted { place, ..always(bytes.clone()) };
    let mut wanted: Vec<Wanted> = live.iter().map(operand).collect();
    wanted.push(always(TileRuns::uniform(TileRange::new(0, tiles), MODEL_TILE_BYTES)));
    wanted.push(always(TileRuns::uniform(TileRange::new(0, 1), MODEL_FIRST_TILE_BYTES)));
    for (phase, _) in work.phases() {
        if let PhaseKind::Compute { vertices, .. } = &phase.kind {
            let state = |vertex: &VertexUse| {
                always(vertex.count.map(|count| count * state_bytes(chip, vertex)))
            };
            wanted.extend(vertices.iter().map(state));
        }
    }
    wanted.extend(work.temporaries.iter().map(temporary));
    let memory = allocate(chip, &wanted, tiles).memory;
    let sum = |bytes: fn(&TileMemory) -> u64| memory.map(bytes).total();
    Cost {
        // One more sync than the work has exchanges: the tiles wait for the upload.
        cycles: EXCHANGE_START_CYCLES + cycles(work),
        memory_bytes: sum(|tile| tile.always_live) + sum(|tile| tile.peak_not_always_live),
        fullest_tile_bytes: memory.map(|tile| tile.including_gaps).max(),
    }
}

fn always(bytes: TileRuns<u64>) -> Wanted {
    Wanted { category: Category::Variable, lifetime: None, place: Place::Any, bytes }
}

fn temporary(temporary: &Temporary) -> Wanted {
    let live = temporary.live.start as u32..temporary.live.end as u32;
    Wanted {
        category: temporary.category,
        lifetime: Some(live),
        place: temporary.place,
        bytes: temporary.bytes.clone(),
    }
}
