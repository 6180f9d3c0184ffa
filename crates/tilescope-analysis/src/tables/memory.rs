//! Tables of memory: the tree of what fills the tiles, and lists of what lies on them. They have
//! one column of bytes for each of the tiles that were asked for, or one for all tiles.

use super::tile_columns;
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::memory::{MemoryList, MemoryListRow, MemoryTreeRow};
use crate::tile_curves::TileCurveUnit;
use tilescope_report::units::{Bytes, TileId};

/// What fills the tiles.
pub fn details(rows: &[MemoryTreeRow], tiles: &[TileId]) -> DataTable {
    let mut columns = vec![TableColumn::number("Depth"), TableColumn::text("Part")];
    columns.extend(tile_columns(tiles, "All tiles"));
    let row = |row: &MemoryTreeRow| {
        let value = match row.unit {
            TileCurveUnit::Bytes => |bytes| TableCell::Bytes(Bytes(bytes)),
            TileCurveUnit::Count | TileCurveUnit::Cycles => TableCell::Count,
        };
        let mut cells = vec![TableCell::Count(row.depth.into()), row.name.as_str().into()];
        cells.extend(row.bytes.iter().copied().map(value));
        cells
    };
    DataTable::new(columns, rows.iter().map(row).collect())
}

/// Variables with their bytes.
pub fn variables(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    let mut table = list(listing, tiles, ["Variable", "Size", "Tiles"]);
    // Variables that never live together share their bytes. What is live together is in the tree.
    table.columns = table.columns.into_iter().map(TableColumn::without_sum).collect();
    table
}

/// Vertex types with the bytes of their state and code.
pub fn vertices(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    list(listing, tiles, ["Vertex type", "State and code", "Vertices"])
}

/// Compute sets with the bytes of their state.
pub fn compute_sets(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    list(listing, tiles, ["Compute set", "State", "Vertices"])
}

/// Exchanges and copies with the bytes of their code.
pub fn exchanges(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    list(listing, tiles, ["Exchange", "Code", "Messages"])
}

fn list(listing: &MemoryList, tiles: &[TileId], [name, bytes, count]: [&str; 3]) -> DataTable {
    let mut columns = vec![TableColumn::text(name), TableColumn::text("About")];
    columns.extend(tile_columns(tiles, bytes));
    columns.push(TableColumn::number(count));
    let row = |listed: &MemoryListRow| {
        let mut cells: Vec<TableCell> =
            vec![listed.name.as_str().into(), listed.about.as_str().into()];
        cells.extend(listed.bytes.iter().copied().map(TableCell::Bytes));
        cells.push(TableCell::Count(listed.count));
        cells
    };
    DataTable::new(columns, listing.rows.iter().map(row).collect()).with_totals()
}
