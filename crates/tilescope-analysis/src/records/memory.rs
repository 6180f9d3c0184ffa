//! Tables of memory: tiles, variables, and liveness.

use super::{RecordTable, RowFilter, RowSelection, never, record};
use crate::data_table::{ColumnQuantity, DataTable, TableCell, TableColumn};
use crate::liveness::{LivenessCurve, LivenessScope, curve};
use crate::tile_curves::ChipFloorPlan;
use tilescope_report::units::{Bytes, TileId, TileRange, VariableId};
use tilescope_report::{
    LivenessStep, MemoryCategory, Report, ReportError, TileMemory, Variable, VariableFilter,
};

/// The table `memory_by_tile`.
pub(crate) const MEMORY_BY_TILE: RecordTable = RecordTable::whole(
    "memory_by_tile",
    "memory of a tile",
    || tile_table(Vec::new()),
    |report, selection| tiles(report, selection).map(tile_table),
)
.in_place_of_file(never)
.by(&[RowFilter::Ipus, RowFilter::Tiles]);

struct TileRow {
    tile: TileId,
    ipu: Option<u32>,
    /// Column and row in the floor plan.
    place: Option<(usize, usize)>,
    memory: TileMemory,
    /// Bytes of each category.
    categories: [Bytes; MemoryCategory::ALL.len()],
}

fn tiles(report: &Report, selection: &RowSelection) -> Result<Vec<TileRow>, ReportError> {
    let target = report.target()?;
    let plan = ChipFloorPlan::from_target(&target);
    let categories = report.tile_categories()?;
    let mut rows = Vec::new();
    for (tiles, memory) in report.tile_memory()?.iter() {
        for tile in tiles.iter() {
            if !selection.has_tile_of(TileRange::single(tile), &target) {
                continue;
            }
            let of_tile = categories.get(tile).map_or(&[][..], Vec::as_slice);
            let sum_up = |category: MemoryCategory| {
                of_tile.iter().filter(|of| of.category == category).map(|of| of.bytes).sum()
            };
            rows.push(TileRow {
                tile,
                ipu: tile.0.checked_div(target.tiles_per_ipu),
                place: if plan.known { Some(plan.cell(tile)) } else { None },
                memory: *memory,
                categories: MemoryCategory::ALL.map(sum_up),
            });
        }
    }
    Ok(rows)
}

fn tile_table(rows: Vec<TileRow>) -> DataTable {
    let by_category = MemoryCategory::ALL.map(|category| {
        let about = "bytes used of this category";
        TableColumn::named(category.name(), ColumnQuantity::Bytes, about)
    });
    record! { "memory_by_tile", rows, |row|
        [
            row.tile,
            row.memory.excluding_gaps(),
            row.memory.including_gaps,
            row.memory.non_interleaved,
            row.memory.interleaved,
            row.memory.overflowed,
            row.memory.always_live,
            row.memory.peak_not_always_live
        ]
        Ordinal ipu => row.ipu.map(TableCell::id), "its IPU";
        Ordinal x => row.place.map(|(x, _)| TableCell::Id(x as u64)),
            "column on the floor plan; NULL if unknown";
        Ordinal y => row.place.map(|(_, y)| TableCell::Id(y as u64)),
            "row on the floor plan; NULL if unknown";
        + by_category => row.categories;
    }
}

/// The table `variables`.
pub(super) const VARIABLES: RecordTable = RecordTable::paged(
    "variables",
    "a variable with its lifetime, over all tiles",
    || variable_table(&[]),
    |report, selection, after, limit| {
        let target = report.target()?;
        let after = after.and_then(|id| u32::try_from(id).ok()).map(VariableId);
        let mut filter = VariableFilter { tiles: selection.tiles, category: None, after, limit };
        if selection.tiles.is_some() || selection.ipus.is_some() {
            // Each page would search the tiles of all variables, and might end up empty.
            filter.limit = usize::MAX;
        }
        let mut rows = report.variables(&filter)?;
        if selection.ipus.is_some() {
            rows.retain(|(_, variable)| {
                variable.tiles.iter().any(|(tiles, _)| selection.has_tile_of(tiles, &target))
            });
        }
        Ok(variable_table(&rows))
    },
)
.by(&[RowFilter::Ipus, RowFilter::Tiles]);

fn variable_table(rows: &[(VariableId, Variable)]) -> DataTable {
    let rows = rows.iter().map(|(id, of)| (id, of, of.tiles.map(|placement| placement.bytes)));
    record! { "", rows, |(id, of, bytes)|
        []
        Id id => *id, "vars.id";
        Words name => &of.name, "its name";
        Words category => of.category.name(), "memory category, in the spelling of libpva";
        Id operation => of.operation, "operations.id";
        Words shape => &of.shape, "type and shape as text";
        Id first_live => of.lifetime.as_ref().map(|life| TableCell::id(life.start)),
            "first liveness step in which it is live; NULL: always live";
        Id end_live => of.lifetime.as_ref().map(|life| TableCell::id(life.end)),
            "first liveness step after its lifetime";
        Count tiles => u64::from(of.tiles.tile_count()), "tiles that hold a part of it";
        Bytes bytes => bytes.total(), "bytes on all tiles";
        Bytes max_tile_bytes => bytes.max(), "bytes on the tile with the most";
    }
}

/// The table `liveness_steps`.
pub(crate) const LIVENESS_STEPS: RecordTable = RecordTable::whole(
    "liveness_steps",
    "a step of the compiled program, with the bytes live at it",
    || liveness_table(Vec::new(), &LivenessCurve::default()),
    |report, _| {
        let programs = report.programs()?;
        let mut rows = Vec::new();
        for (id, step) in report.liveness()?.into_iter().enumerate() {
            let name = programs.get(step.program).map(|node| node.name.clone());
            rows.push((id, step, name));
        }
        Ok(liveness_table(rows, &curve(report, LivenessScope::Whole)?.unwrap_or_default()))
    },
)
.in_place_of_file(never);

fn liveness_table(
    rows: Vec<(usize, LivenessStep, Option<String>)>,
    curve: &LivenessCurve,
) -> DataTable {
    record! { "liveness_steps", rows, |(id, step, name)|
        [TableCell::Id(id as u64), step.program, step.bytes]
        Words name => name, "debug name of the program";
        Bytes live => curve.total(id), "bytes live over all tiles, including always live ones";
    }
}
