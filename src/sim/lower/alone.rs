//! One operation alone on an IPU Model, as poplibs' tools run it: upload, operation, download.
//!
//! Cycles and bytes are those the tools report with host transfers left out. Some tools compile the
//! code of vertices, others count tensors, temporaries and the state of vertices only.

use super::allocate::{Wanted, allocate};
use super::code::{COPY_CODE_BYTES, is_copy_vertex, vertex_code_bytes};
use super::constants::{
    COMPUTE_START_CYCLES, EXCHANGE_START_CYCLES, MODEL_FIRST_TILE_BYTES, MODEL_TILE_BYTES,
    REARRANGING_CODE_BYTES,
};
use super::runs;
use super::work::{PhaseKind, Place, Temporary, VertexUse, Work};
use crate::report::{Category, TargetKind, TileMemory};
use crate::sim::planner::Machine;
use crate::sim::targets::Chip;
use crate::units::{TileRange, TileRuns};
use std::collections::BTreeMap;
use std::ops::Range;

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

/// Bytes of a vertex without its constants: pointers of its edges and some counts. Where 16 bits reach all of a tile's
/// memory in words, pointers take two bytes.
pub fn state_bytes(chip: &Chip, vertex: &VertexUse) -> u64 {
    const COUNTS_BYTES: u64 = 6;
    let pointer = if chip.bytes_per_tile <= 4 << 16 { 2 } else { 4 };
    vertex.edges * pointer + COUNTS_BYTES + vertex.field_bytes
}

/// A tensor that a program reads or writes.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Bytes on each tile.
    pub bytes: TileRuns<u64>,
    /// What vertices need of its place.
    pub place: Place,
    /// Phases of the program it lives in; always, if the host reads or writes it.
    pub live: Option<Range<u32>>,
}

impl Operand {
    /// A tensor that the host reads or writes.
    pub fn always(bytes: TileRuns<u64>, place: Place) -> Self {
        Self { bytes, place, live: None }
    }
}

/// What a tool runs between upload and download.
#[derive(Clone, Debug)]
pub struct Program {
    /// Tiles of the IPU that are used.
    pub tiles: u32,
    /// What happens, in order.
    pub works: Vec<Work>,
    /// Operands and results.
    pub tensors: Vec<Operand>,
    /// Whether the tool compiles code; others leave it out of memory.
    pub code: bool,
}

impl Program {
    /// A program that does nothing.
    pub fn new(machine: &Machine) -> Self {
        let tiles = machine.tiles as u32;
        Self { tiles, works: Vec::new(), tensors: Vec::new(), code: false }
    }

    fn vertices(&self) -> impl Iterator<Item = &VertexUse> {
        let phases = self.works.iter().flat_map(Work::phases);
        phases.flat_map(|(phase, _)| match &phase.kind {
            PhaseKind::Compute { vertices, .. } => vertices.as_slice(),
            PhaseKind::Exchange { .. } => &[],
        })
    }
}

/// Costs of a program.
pub fn cost(chip: &Chip, program: &Program) -> Cost {
    let memory = allocate(chip, &variables(chip, program), program.tiles).memory;
    let sum = |bytes: fn(&TileMemory) -> u64| memory.map(bytes).total();
    Cost {
        // One more sync than the works have exchanges: the tiles wait for the upload.
        cycles: EXCHANGE_START_CYCLES + program.works.iter().map(cycles).sum::<u64>(),
        memory_bytes: sum(|tile| tile.always_live) + sum(|tile| tile.peak_not_always_live),
        fullest_tile_bytes: memory.map(|tile| tile.including_gaps).max(),
    }
}

/// All that needs a place: tensors, vertices and their code, temporaries.
fn variables(chip: &Chip, program: &Program) -> Vec<Wanted> {
    let operand = |operand: &Operand| Wanted {
        place: operand.place,
        lifetime: operand.live.clone(),
        ..always(operand.bytes.clone())
    };
    let mut wanted: Vec<Wanted> = program.tensors.iter().map(operand).collect();
    wanted.push(always(TileRuns::uniform(TileRange::new(0, program.tiles), MODEL_TILE_BYTES)));
    wanted.push(always(TileRuns::uniform(TileRange::new(0, 1), MODEL_FIRST_TILE_BYTES)));
    // Copies are made by the compiler after the graph's vertices have been counted.
    let counted = || program.vertices().filter(|vertex| !is_copy_vertex(&vertex.vertex_type));
    wanted.extend(
        counted().map(|vertex| always(vertex.count.map(|count| count * state_bytes(chip, vertex)))),
    );
    wanted.extend(constants(counted()));
    if program.code {
        wanted.extend(code(program));
        wanted.extend(rearranging_code(program));
    }
    let mut first = 0;
    for work in &program.works {
        wanted.extend(work.temporaries.iter().map(|each| temporary(each, first)));
        first += work.phases().len() as u32;
    }
    wanted
}

/// Constants of vertices. A tile stores equal ones once; lists of the same length that different
/// compute sets have on a tile are taken for equal.
fn constants<'a>(vertices: impl Iterator<Item = &'a VertexUse>) -> impl Iterator<Item = Wanted> {
    let mut stored: BTreeMap<u64, TileRuns<u64>> = BTreeMap::new();
    for vertex in vertices.filter(|vertex| vertex.constant_bytes > 0) {
        let known = stored.entry(vertex.constant_bytes).or_insert_with(TileRuns::empty);
        *known = runs::most(known, &vertex.count);
    }
    stored.into_iter().map(|(bytes, count)| always(count.map(|count| count * bytes)))
}

/// Code of each vertex type on the tiles that use it; all copies share theirs.
fn code(program: &Program) -> impl Iterator<Item = Wanted> {
    let mut users: BTreeMap<&str, TileRuns<u64>> = BTreeMap::new();
    for vertex in program.vertices() {
        let copies = is_copy_vertex(&vertex.vertex_type);
        let codelet = if copies { COPIES } else { vertex.vertex_type.as_str() };
        let known = users.entry(codelet).or_insert_with(TileRuns::empty);
        *known = runs::add(known, &vertex.count);
    }
    users.into_iter().map(|(codelet, tiles)| {
        let bytes = match codelet {
            COPIES => COPY_CODE_BYTES,
            codelet => vertex_code_bytes(codelet, TargetKind::Ipu),
        };
        Wanted { category: Category::VertexCode, ..always(tiles.map(|_| bytes)) }
    })
}

/// Code that brings rearranged operands into place, on the tiles that hold any.
fn rearranging_code(program: &Program) -> Option<Wanted> {
    let temporaries = program.works.iter().flat_map(|work| &work.temporaries);
    let rearranged = temporaries.filter(|each| each.category == Category::Rearrangement);
    let holders = rearranged.map(|each| each.bytes.clone());
    let holders = holders.reduce(|all, more| runs::add(&all, &more))?;
    let code = holders.map(|bytes| if *bytes > 0 { REARRANGING_CODE_BYTES } else { 0 });
    Some(Wanted { category: Category::VertexCode, ..always(code) })
}

/// Stands for all codelets that copy.
const COPIES: &str = "";

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
