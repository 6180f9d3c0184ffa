//! Tables of liveness: variables with their bytes, vertices and cycles of steps.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::liveness::{
    AddressTimeline, FreeMemory, LiveVariable, LivenessScope, StepVertices, TileCycles,
};
use crate::table;
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles, grouped};

/// Always-live variables of a scope; those without bytes there are left out.
pub fn always_live(rows: &[LiveVariable], source: LivenessScope) -> DataTable {
    let title = match source {
        LivenessScope::Whole => "All tiles".to_owned(),
        LivenessScope::Ipu(ipu) => format!("IPU {ipu}"),
        LivenessScope::Tile(tile) => format!("Tile {}", grouped(tile.into())),
    };
    let table = table! { rows.iter().filter(|live| holds_bytes(live)), |live|
        operation "Variable" => &live.name;
        text "About" => &live.about;
        all [TableColumn::bytes(title)] => live.bytes.iter().copied();
    };
    table.with_totals()
}

/// Variables that are live at `steps`, one column for each; those without bytes are left out.
pub fn live_at(rows: &[LiveVariable], steps: &[u32]) -> DataTable {
    let table = table! { rows.iter().filter(|live| holds_bytes(live)), |live|
        operation "Variable" => &live.name;
        text "About" => &live.about;
        all step_titles(steps).map(TableColumn::bytes) => live.bytes.iter().copied();
        short "First step" => first_step(live.lifetime.as_ref()), "First step in which it is live";
        short "Last step" => last_step(live.lifetime.as_ref()), "Last step in which it is live";
    };
    table.with_totals()
}

fn first_step(life: Option<&Range<u32>>) -> Option<TableCell> {
    life.map(|life| TableCell::id(life.start))
}

fn last_step(life: Option<&Range<u32>>) -> Option<TableCell> {
    life.map(|life| TableCell::id(life.end.saturating_sub(1)))
}

/// All variables that are live at the step with the most live bytes, including always-live ones.
pub fn live_at_peak(rows: &[LiveVariable], peak: Option<usize>) -> DataTable {
    let size = peak.map_or_else(|| "Size".to_owned(), |p| format!("At step {}", grouped(p as u64)));
    let table = table! { rows.iter().filter(|live| holds_bytes(live)), |live|
        operation "Variable" => &live.name;
        text "About" => &live.about;
        short "Live" => if live.lifetime.is_none() { "always" } else { "now" };
        bytes size => live.total_bytes();
    };
    table.with_totals()
}

/// True if the variable is listed: it has bytes on the selected tiles.
pub fn holds_bytes(live: &LiveVariable) -> bool {
    live.bytes.iter().any(|bytes| *bytes > Bytes::ZERO)
}

fn step_titles(steps: &[u32]) -> impl Iterator<Item = String> {
    steps.iter().map(|step| format!("Step {}", grouped((*step).into())))
}

/// Vertex types of the compute sets of `steps`.
pub fn vertices(rows: &[StepVertices], steps: &[u32]) -> DataTable {
    table! { rows, |vertices|
        text "Vertex type" => &vertices.name;
        all step_titles(steps).map(TableColumn::number) => vertices.counts.iter().copied();
        bytes "State per vertex" => vertices.state_bytes;
    }
}

/// Cycles of each tile in the compute sets of `steps`.
pub fn cycles(rows: &[TileCycles], steps: &[u32]) -> DataTable {
    table! { rows, |of|
        text "Tile" => of.tile;
        all step_titles(steps).map(TableColumn::cycles) => of.cycles.iter().map(|cycles| cycles.unwrap_or(Cycles::ZERO));
    }
}

/// Variables of a tile with addresses and lifetimes, by address.
pub fn addresses(timeline: &AddressTimeline) -> DataTable {
    const ALWAYS: &str = "Empty for variables that are always live";
    table! { &timeline.placed, |of|
        operation "Variable" => &of.name;
        text "Category" => of.category.title();
        bytes "Size" => of.addresses.end - of.addresses.start;
        unsummed_bytes "First address" => of.addresses.start;
        short "First step" => first_step(of.lifetime.as_ref()), ALWAYS;
        short "Last step" => last_step(of.lifetime.as_ref()), ALWAYS;
        most "Steps unused" => timeline.unused.get(&of.id).map(|steps| steps.len() as u64),
            "The longest stretch of its lifetime in which no program uses it";
    }
}

/// Blocks of a tile that are free at a step, by address.
pub fn free_blocks(timeline: &AddressTimeline, free: &FreeMemory) -> DataTable {
    let mut rows = Vec::new();
    for block in &free.blocks {
        let [below, above] = block.between.map(|place| timeline.placed.get(place?));
        rows.push((block, below, above));
    }
    table! { rows, |(block, below, above)|
        bytes "Size" => block.bytes();
        bytes "First address" => block.addresses.start;
        text "Variable below" => below.map(|of| of.name.as_str()), "The variable that ends where the block begins";
        text "Variable above" => above.map(|of| of.name.as_str()), "The variable that begins where the block ends";
        short "Above until" => last_step(above.and_then(|of| of.lifetime.as_ref())),
            "Last step of the variable above; empty for one that is always live";
    }
}
