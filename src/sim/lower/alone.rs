//! One operation alone on an IPU Model, as poplibs' tools run it: upload, operation, download.
//!
//! Cycles and bytes are those the tools report with host transfers left out. No code is generated,
//! so memory is tensors, temporaries and the state of vertices.

use super::allocate::{Wanted, allocate};
use super::constants::{
    COMPUTE_START_CYCLES, EXCHANGE_START_CYCLES, MODEL_FIRST_TILE_BYTES, MODEL_TILE_BYTES,
};
use super::work::{Phase, PhaseKind, Place, Temporary, VertexUse, Work};
use crate::report::{Category, TileMemory};
use crate::sim::planner::Machine;
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

/// What a tool runs between upload and download.
#[derive(Clone, Debug)]
pub struct Program {
    /// Tiles of the IPU that are used.
    pub tiles: u32,
    /// What happens, in order.
    pub works: Vec<Work>,
    /// Bytes on each tile of the tensors that live always, because the host reads or writes them.
    pub live: Vec<TileRuns<u64>>,
    /// What vertices need of the places of those tensors.
    pub place: Place,
    /// Whether the tool compiles code; others leave it out of memory.
    pub code: bool,
}

impl Program {
    /// A program that does nothing.
    pub fn new(machine: &Machine) -> Self {
        let tiles = machine.tiles as u32;
        Self { tiles, works: Vec::new(), live: Vec::new(), place: Place::Any, code: false }
    }

    fn phases(&self) -> impl Iterator<Item = &Phase> {
        self.works.iter().flat_map(Work::phases).map(|(phase, _)| phase)
    }
}

/// Costs of a program.
pub fn cost(chip: &Chip, program: &Program) -> Cost {
    let memory = allocate(chip, &variables(chip, program), program.tiles).memory;
    let sum = |bytes: fn(&TileMemory) -> u64| memory.map(bytes).total();
    Cost {
        cycles: program.works.iter().map(cycles).sum(),
        memory_bytes: sum(|tile| tile.always_live) + sum(|tile| tile.peak_not_always_live),
        fullest_tile_bytes: memory.map(|tile| tile.including_gaps).max(),
    }
}

/// All that needs a place: tensors, state of vertices, temporaries.
fn variables(chip: &Chip, program: &Program) -> Vec<Wanted> {
    let operand = |bytes: &TileRuns<u64>| Wanted { place: program.place, ..always(bytes.clone()) };
    let mut wanted: Vec<Wanted> = program.live.iter().map(operand).collect();
    wanted.push(always(TileRuns::uniform(TileRange::new(0, program.tiles), MODEL_TILE_BYTES)));
    wanted.push(always(TileRuns::uniform(TileRange::new(0, 1), MODEL_FIRST_TILE_BYTES)));
    for phase in program.phases() {
        if let PhaseKind::Compute { vertices, .. } = &phase.kind {
            let state = |vertex: &VertexUse| {
                always(vertex.count.map(|count| count * state_bytes(chip, vertex)))
            };
            wanted.extend(vertices.iter().map(state));
        }
    }
    let mut first = 0;
    for work in &program.works {
        wanted.extend(work.temporaries.iter().map(|each| temporary(each, first)));
        first += work.phases().len() as u32;
    }
    wanted
}

fn always(bytes: TileRuns<u64>) -> Wanted {
    Wanted { category: Category::Variable, lifetime: None, place: Place::Any, bytes }
}

/// A temporary of a work whose first phase is phase `first` of the program.
fn temporary(temporary: &Temporary, first: u32) -> Wanted {
    let live = first + temporary.live.start as u32..first + temporary.live.end as u32;
    Wanted {
        category: temporary.category,
        lifetime: Some(live),
        place: temporary.place,
        bytes: temporary.bytes.clone(),
    }
}
