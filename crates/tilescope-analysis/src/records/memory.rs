//! Tables of memory: tiles, variables, and liveness.

use super::kept_rows::{estimate, kept};
use super::{NAME, RecordTable, RowFilter, plain, text, text_or_null, whole, whole_or_null};
use crate::tile_curves::ChipFloorPlan;
use rusqlite::types::ValueRef;
use tilescope_report::units::{Bytes, TileId, TileRange, VariableId};
use tilescope_report::{LivenessStep, MemoryCategory, TileMemory, Variable, VariableFilter};
use tilescope_vtab::VirtualColumn;

/// `memory_by_tile`
pub(super) const MEMORY_BY_TILE: RecordTable = RecordTable {
    name: "memory_by_tile",
    about: "memory of a tile",
    stands_in: Some(|_| false),
    filters: Some(&[RowFilter::Ipus, RowFilter::Tiles]),
    bounded: &[],
    columns: &PLACES_AND_CATEGORIES,
    order: &[],
    estimate,
    rows: |reader, bounds, _| {
        let report = &reader.report;
        let target = report.target()?;
        let plan = ChipFloorPlan::from_target(&target);
        let (memory, categories) = (report.tile_memory()?, report.tile_categories()?);
        let mut rows = Vec::new();
        for (tiles, memory) in memory.iter() {
            for tile in
                tiles.iter().filter(|tile| bounds.has_tile_of(TileRange::single(*tile), &target))
            {
                let mut bytes = vec![Bytes::ZERO; MemoryCategory::ALL.len()];
                for of in categories.get(tile).into_iter().flatten() {
                    if let Some(at) =
                        MemoryCategory::ALL.iter().position(|known| *known == of.category)
                    {
                        bytes[at] += of.bytes;
                    }
                }
                rows.push(TileRow {
                    tile,
                    ipu: tile.0.checked_div(target.tiles_per_ipu),
                    place: plan.known.then(|| plan.cell(tile)),
                    memory: *memory,
                    categories: bytes,
                });
            }
        }
        kept(rows, tile_cell)
    },
};

const PLACES_AND_CATEGORIES: [VirtualColumn; 3 + MemoryCategory::ALL.len()] = {
    let mut columns = [plain("ipu", "INTEGER", "number", "its IPU"); 3 + MemoryCategory::ALL.len()];
    columns[1] = plain("x", "INTEGER", "number", "column on the floor plan; NULL where not known");
    columns[2] = plain("y", "INTEGER", "number", "row on the floor plan; NULL where not known");
    let mut at = 0;
    while at < MemoryCategory::ALL.len() {
        let name = MemoryCategory::ALL[at].name();
        columns[3 + at] = plain(name, "INTEGER", "bytes", "bytes used of this category");
        at += 1;
    }
    columns
};

struct TileRow {
    tile: TileId,
    ipu: Option<u32>,
    /// Column and row on the floor plan.
    place: Option<(usize, usize)>,
    memory: TileMemory,
    /// Bytes of each category.
    categories: Vec<Bytes>,
}

fn tile_cell(row: &TileRow, column: usize) -> ValueRef<'_> {
    let memory = &row.memory;
    match column {
        0 => whole(row.tile.0),
        1 => whole(memory.excluding_gaps().0),
        2 => whole(memory.including_gaps.0),
        3 => whole(memory.non_interleaved.0),
        4 => whole(memory.interleaved.0),
        5 => whole(memory.overflowed.0),
        6 => whole(memory.always_live.0),
        7 => whole(memory.peak_not_always_live.0),
        8 => whole_or_null(row.ipu),
        9 => whole_or_null(row.place.map(|(x, _)| x as u64)),
        10 => whole_or_null(row.place.map(|(_, y)| y as u64)),
        _ => whole_or_null(row.categories.get(column - 11).map(|bytes| bytes.0)),
    }
}

/// `variables`
pub(super) const VARIABLES: RecordTable = RecordTable {
    name: "variables",
    about: "a variable with its lifetime, over all tiles",
    stands_in: None,
    filters: Some(&[RowFilter::Ipus, RowFilter::Tiles]),
    bounded: &[],
    columns: &[
        plain("id", "INTEGER", "id", "vars.id"),
        plain("name", "TEXT", "", "its name"),
        plain("category", "TEXT", "", "memory category as libpva spells it"),
        plain("operation", "INTEGER", "id", "operations.id"),
        plain("shape", "TEXT", "", "type and shape in words"),
        plain(
            "first_live",
            "INTEGER",
            "id",
            "first liveness step it is live in; NULL: always live",
        ),
        plain("end_live", "INTEGER", "id", "first liveness step after those"),
        plain("tiles", "INTEGER", "count", "tiles that hold a part of it"),
        plain("bytes", "INTEGER", "bytes", "bytes on all of them"),
        plain("max_tile_bytes", "INTEGER", "bytes", "bytes on the tile that has most"),
    ],
    order: &[],
    estimate,
    rows: |reader, bounds, _| {
        let target = reader.report.target()?;
        let tiles = bounds.selection.and_then(|selection| selection.tiles);
        let filter = VariableFilter { tiles, category: None, after: None, limit: usize::MAX };
        let mut rows = reader.report.variables(&filter)?;
        if bounds.selection.is_some_and(|selection| selection.ipus.is_some()) {
            let is_on = |of: &Variable| {
                of.tiles.iter().any(|(tiles, _)| bounds.has_tile_of(tiles, &target))
            };
            rows.retain(|(_, variable)| is_on(variable));
        }
        kept(rows, variable_cell)
    },
};

fn variable_cell((id, of): &(VariableId, Variable), column: usize) -> ValueRef<'_> {
    let bytes = || of.tiles.map(|placement| placement.bytes);
    let life = of.lifetime.as_ref();
    match column {
        0 => whole(id.0),
        1 => text(&of.name),
        2 => text(of.category.name()),
        3 => whole_or_null(of.operation.map(|id| id.0)),
        4 => text(&of.shape),
        5 => whole_or_null(life.map(|life| life.start)),
        6 => whole_or_null(life.map(|life| life.end)),
        7 => whole(of.tiles.tile_count()),
        8 => whole(bytes().total().0),
        9 => whole(bytes().max().0),
        _ => ValueRef::Null,
    }
}

/// `liveness_steps`
pub(super) const LIVENESS_STEPS: RecordTable = RecordTable {
    name: "liveness_steps",
    about: "a step of the walk over the compiled program, with the bytes live at it",
    stands_in: Some(|_| false),
    filters: Some(&[]),
    bounded: &[],
    columns: &[NAME],
    order: &[],
    estimate,
    rows: |reader, _, _| {
        let programs = reader.report.programs()?;
        let mut rows = Vec::new();
        for (id, step) in (0u64..).zip(reader.report.liveness()?) {
            let name = programs.get(step.program).map(|node| node.name.clone());
            rows.push((id, step, name));
        }
        kept(rows, liveness_cell)
    },
};

fn liveness_cell(
    (id, step, name): &(u64, LivenessStep, Option<String>),
    column: usize,
) -> ValueRef<'_> {
    match column {
        0 => whole(*id),
        1 => whole(step.program.0),
        2 => whole(step.bytes.0),
        3 => text_or_null(name.as_deref()),
        _ => ValueRef::Null,
    }
}
