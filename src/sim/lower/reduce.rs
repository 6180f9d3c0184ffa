//! Reductions of a tensor that already lies on the tiles: on each tile first, then over tiles.
//! Formulas: poplibs lib/popops/reduction/CycleEstimationFunctions.cpp.

use super::elementwise;
use super::exchange;
use super::work::{Phase, Temporary, Work, WorkItem};
use crate::report::Category;
use crate::sim::graph::DType;
use crate::units::{TileRange, TileRuns};

/// Outputs of the last stage that one tile computes (poplibs lib/popops/reduction).
const OUTPUTS_PER_TILE: u64 = 8;

/// What is reduced to what.
#[derive(Clone, Debug)]
pub struct Reduction<'a> {
    /// Debug name: `bias/Reduce`.
    pub name: &'a str,
    /// Operation as vertex types spell it: `ReduceAdd`.
    pub operation: &'a str,
    /// Elements of the input on each tile.
    pub input: &'a TileRuns<u64>,
    /// Element type.
    pub dtype: DType,
    /// Elements of the result.
    pub outputs: u64,
    /// Tiles of the IPU.
    pub tiles: u32,
    /// Exchange speed of a tile.
    pub bytes_per_cycle: u64,
}

/// Cycles of the first stage on a tile: `outputs` sums of `depth` elements, strided.
fn on_tile_cycles(outputs: u64, depth: u64, width: u64) -> u64 {
    6 * (16 + outputs.div_ceil(width).div_ceil(6) * (15 + depth))
}

/// Adds the phases of a reduction to `work`; the result's elements per tile are returned.
pub fn add(work: &mut Work, reduction: &Reduction) -> TileRuns<u64> {
    let width = elementwise::vector_width(reduction.dtype);
    let (operation, ty) = (reduction.operation, reduction.dtype.poplar_name());
    let vertex = format!("popops::Reduce<popops::{operation},{ty},{ty},false,0>");
    let sums = reduction.input.map(|elements| (*elements).min(reduction.outputs));
    let first = elementwise::phase(
        &format!("{}_OnTile/ReduceOnTile", reduction.name),
        vertex.clone(),
        2,
        reduction.input,
        |elements| {
            let outputs = (*elements).min(reduction.outputs);
            on_tile_cycles(outputs, elements.div_ceil(outputs.max(1)), width)
        },
    );
    work.items.push(WorkItem::Phase(first));
    let depth = sums.total().div_ceil(reduction.outputs.max(1));
    if depth <= 1 {
        return sums;
    }
    let element_bytes = reduction.dtype.bytes();
    let result = final_outputs(reduction);
    let gathered = result.map(|outputs| outputs * depth * element_bytes);
    let name = format!("{}_ToOutput/ReduceFinalStage", reduction.name);
    let partials = sums.map(|count| count * element_bytes);
    // Partials are sent whole to where their sums are made.
    let sent = scaled_to(&partials, gathered.total());
    let start = work.phases().len();
    let messages = (depth, 1);
    let exchange = exchange::phase(
        &name,
        &gathered,
        &sent,
        messages,
        reduction.tiles,
        reduction.bytes_per_cycle,
    );
    work.items.extend(exchange.map(WorkItem::Phase));
    let last = elementwise::phase(&name, vertex, 2, &result, |_| 6 * (27 + depth));
    work.items.push(WorkItem::Phase(last));
    work.temporaries.push(Temporary {
        name: format!("{}/partials", reduction.name),
        category: Category::Variable,
        bytes: partials,
        interleaved: false,
        live: start.saturating_sub(1)..start + 1,
    });
    work.temporaries.push(Temporary {
        name: format!("{}/message", reduction.name),
        category: Category::Message,
        bytes: gathered,
        interleaved: false,
        live: start..start + 2,
    });
    result
}

/// Elements of the result on each tile, eight to a tile from tile 0 up.
fn final_outputs(reduction: &Reduction) -> TileRuns<u64> {
    let share = OUTPUTS_PER_TILE.max(reduction.outputs.div_ceil(u64::from(reduction.tiles)));
    let full = (reduction.outputs / share) as u32;
    let mut outputs = TileRuns::uniform(TileRange::new(0, full), share);
    let rest = reduction.outputs - u64::from(full) * share;
    if rest > 0 {
        outputs.push(TileRange::new(full, full + 1), rest);
    }
    outputs
}

/// The bytes of `partials` such that nothing is sent twice: no more than `total` in all.
fn scaled_to(partials: &TileRuns<u64>, total: u64) -> TileRuns<u64> {
    if partials.total() <= total {
        partials.clone()
    } else {
        partials.map(|bytes| (*bytes).min(total))
    }
}

impl Work {
    /// Appends a phase.
    pub fn push(&mut self, phase: Phase) {
        self.items.push(WorkItem::Phase(phase));
    }

    /// Appends a phase that may not be needed.
    pub fn push_some(&mut self, phase: Option<Phase>) {
        self.items.extend(phase.map(WorkItem::Phase));
    }
}
