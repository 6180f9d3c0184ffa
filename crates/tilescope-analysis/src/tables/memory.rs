//! Tables of memory: the tree of the contents of tiles, and lists of variables, vertices and
//! exchanges. They have one column of bytes for each of the requested tiles, or one for all tiles.

use super::tile_columns;
use crate::data_table::{ColumnAggregate, ColumnSubject, DataTable, TableCell};
use crate::memory::{MemoryList, MemoryTreeRow};
use crate::table;
use crate::tile_curves::TileCurveUnit;
use tilescope_report::units::{Bytes, TileId};

/// The contents of tiles as a tree.
pub fn details(rows: &[MemoryTreeRow], tiles: &[TileId]) -> DataTable {
    let value = |unit: TileCurveUnit| match unit {
        TileCurveUnit::Bytes => |bytes| TableCell::Bytes(Bytes(bytes)),
        TileCurveUnit::Count | TileCurveUnit::Cycles => TableCell::Count,
    };
    table! { rows, |row|
        number "Depth" => u64::from(row.depth);
        text "Part" => &row.name;
        all tile_columns(tiles, "All tiles") => row.bytes.iter().copied().map(value(row.unit));
    }
}

/// Variables with their bytes.
pub fn variables(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    let mut table = list(listing, tiles, ["Variable", "Size", "Tiles"]);
    // Variables that are never live together share their bytes. The tree has the bytes that are
    // live together.
    for column in &mut table.columns {
        column.aggregate = ColumnAggregate::SumOfGroup;
    }
    naming_operations(table)
}

/// Vertex types with the bytes of their state and code.
pub fn vertices(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    list(listing, tiles, ["Vertex type", "State and code", "Vertices"])
}

/// Compute sets with the bytes of their state.
pub fn compute_sets(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    naming_operations(list(listing, tiles, ["Compute set", "State", "Vertices"]))
}

/// Exchanges and copies with the bytes of their code.
pub fn exchanges(listing: &MemoryList, tiles: &[TileId]) -> DataTable {
    naming_operations(list(listing, tiles, ["Exchange", "Code", "Messages"]))
}

/// The same table, whose names begin with those of operations.
fn naming_operations(mut table: DataTable) -> DataTable {
    if let Some(name) = table.columns.first_mut() {
        name.subject = Some(ColumnSubject::Operation);
    }
    table
}

fn list(listing: &MemoryList, tiles: &[TileId], [name, bytes, count]: [&str; 3]) -> DataTable {
    let table = table! { &listing.rows, |listed|
        text name => &listed.name;
        text "About" => &listed.about;
        all tile_columns(tiles, bytes) => listed.bytes.iter().copied();
        number count => listed.count;
    };
    table.with_totals()
}
