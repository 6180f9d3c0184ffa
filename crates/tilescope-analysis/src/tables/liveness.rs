//! Tables of liveness: variables with their bytes, vertices and cycles of steps.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::liveness::{
    AddressTimeline, FreeMemory, LiveVariable, LivenessScope, StepVertices, TileCycles,
};
use tilescope_report::units::{Bytes, Cycles, grouped};

/// Variables of a source that are always live; those without bytes there are left out.
pub fn always_live(rows: &[LiveVariable], source: LivenessScope) -> DataTable {
    let title = match source {
        LivenessScope::Whole => "All tiles".to_owned(),
        LivenessScope::Ipu(ipu) => format!("IPU {ipu}"),
        LivenessScope::Tile(tile) => format!("Tile {}", grouped(tile.into())),
    };
    let columns =
        vec![TableColumn::text("Variable"), TableColumn::text("About"), TableColumn::bytes(title)];
    let rows = rows.iter().filter(|live| holds_bytes(live)).map(named).collect();
    DataTable::new(columns, rows).with_totals()
}

/// Variables that are live at `steps`, one column for each; those without bytes are left out.
pub fn live_at(rows: &[LiveVariable], steps: &[u32]) -> DataTable {
    let mut columns = vec![TableColumn::text("Variable"), TableColumn::text("About")];
    columns.extend(step_titles(steps).map(TableColumn::bytes));
    columns.push(TableColumn::short("First step").about("The first step it is live in"));
    columns.push(TableColumn::short("Last step").about("The last step it is live in"));
    let row = |live: &LiveVariable| {
        let step = |step: Option<u32>| TableCell::from(step.map(|at| TableCell::Id(at.into())));
        let life = live.lifetime.as_ref();
        let mut cells = named(live);
        cells.push(step(life.map(|life| life.start)));
        cells.push(step(life.map(|life| life.end.saturating_sub(1))));
        cells
    };
    let rows = rows.iter().filter(|live| holds_bytes(live)).map(row).collect();
    DataTable::new(columns, rows).with_totals()
}

/// All that is live at the step with most live bytes, always-live variables among it.
pub fn live_at_peak(rows: &[LiveVariable], peak: Option<usize>) -> DataTable {
    let size = peak.map_or_else(|| "Size".to_owned(), |p| format!("At step {}", grouped(p as u64)));
    let columns = vec![
        TableColumn::text("Variable"),
        TableColumn::text("About"),
        TableColumn::short("Live"),
        TableColumn::bytes(size),
    ];
    let row = |live: &LiveVariable| {
        let always = if live.lifetime.is_none() { "always" } else { "now" };
        vec![
            live.name.as_str().into(),
            live.about.as_str().into(),
            always.into(),
            TableCell::Bytes(live.bytes.iter().sum()),
        ]
    };
    let rows = rows.iter().filter(|live| holds_bytes(live)).map(row).collect();
    DataTable::new(columns, rows).with_totals()
}

/// Whether it is listed: a variable has no bytes on the tiles that do not hold it.
pub fn holds_bytes(live: &LiveVariable) -> bool {
    live.bytes.iter().any(|bytes| *bytes > Bytes::ZERO)
}

fn named(live: &LiveVariable) -> Vec<TableCell> {
    let mut cells: Vec<TableCell> = vec![live.name.as_str().into(), live.about.as_str().into()];
    cells.extend(live.bytes.iter().copied().map(TableCell::Bytes));
    cells
}

fn step_titles(steps: &[u32]) -> impl Iterator<Item = String> {
    steps.iter().map(|step| format!("Step {}", grouped((*step).into())))
}

/// Vertex types of the compute sets of `steps`.
pub fn vertices(rows: &[StepVertices], steps: &[u32]) -> DataTable {
    let mut columns = vec![TableColumn::text("Vertex type")];
    columns.extend(step_titles(steps).map(TableColumn::number));
    columns.push(TableColumn::bytes("State per vertex"));
    let row = |vertices: &StepVertices| {
        let mut cells: Vec<TableCell> = vec![vertices.name.as_str().into()];
        cells.extend(vertices.counts.iter().copied().map(TableCell::Count));
        cells.push(TableCell::Bytes(vertices.state_bytes));
        cells
    };
    DataTable::new(columns, rows.iter().map(row).collect())
}

/// Cycles of each tile in the compute sets of `steps`.
pub fn cycles(rows: &[TileCycles], steps: &[u32]) -> DataTable {
    let mut columns = vec![TableColumn::text("Tile")];
    columns.extend(step_titles(steps).map(TableColumn::number));
    let row = |of: &TileCycles| {
        let mut cells = vec![TableCell::Tile(of.tile)];
        cells.extend(
            of.cycles.iter().map(|cycles| TableCell::Count(cycles.unwrap_or(Cycles::ZERO).0)),
        );
        cells
    };
    DataTable::new(columns, rows.iter().map(row).collect())
}

/// Variables of a tile with addresses and lifetimes, by address.
pub fn addresses(timeline: &AddressTimeline) -> DataTable {
    let columns = vec![
        TableColumn::text("Variable"),
        TableColumn::text("Category"),
        TableColumn::bytes("Size"),
        TableColumn::bytes("First address"),
        TableColumn::short("First step").about("Empty for what is always live"),
        TableColumn::short("Last step").about("Empty for what is always live"),
        TableColumn::number("Steps unused")
            .about("The longest stretch of its lifetime in which no program uses it"),
    ];
    let row = |of: &crate::bank_map::PlacedVariable| {
        let step = |step: Option<u32>| TableCell::from(step.map(|at| TableCell::Id(at.into())));
        let life = of.lifetime.as_ref();
        let unused = timeline.unused.get(&of.id).map(|steps| TableCell::Count(steps.len() as u64));
        vec![
            of.name.as_str().into(),
            of.category.title().into(),
            TableCell::Bytes(of.addresses.end - of.addresses.start),
            TableCell::Bytes(of.addresses.start),
            step(life.map(|life| life.start)),
            step(life.map(|life| life.end.saturating_sub(1))),
            unused.into(),
        ]
    };
    DataTable::new(columns, timeline.placed.iter().map(row).collect())
}

/// Blocks of a tile that are free at a step, by address.
pub fn free_blocks(timeline: &AddressTimeline, free: &FreeMemory) -> DataTable {
    let columns = vec![
        TableColumn::bytes("Size"),
        TableColumn::bytes("First address"),
        TableColumn::text("Below it").about("The variable that ends where the block begins"),
        TableColumn::text("Above it").about("The variable that begins where the block ends"),
        TableColumn::short("Above until")
            .about("Last step of the variable above; empty for one that is always live"),
    ];
    let rows = free.blocks.iter().map(|block| {
        let [below, above] =
            block.between.map(|place| place.and_then(|at| timeline.placed.get(at)));
        let until =
            above.and_then(|of| of.lifetime.as_ref()).map(|life| life.end.saturating_sub(1));
        vec![
            TableCell::Bytes(block.bytes()),
            TableCell::Bytes(block.addresses.start),
            below.map(|of| of.name.as_str().into()).into(),
            above.map(|of| of.name.as_str().into()).into(),
            until.map(|step| TableCell::Id(step.into())).into(),
        ]
    });
    DataTable::new(columns, rows.collect())
}
