//! Tables of tile mapping: what can be mapped, and the parts of what is mapped.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::tile_mapping::{
    MappedRearrangement, MappedVariableRegion, MappedVertexRow, MappingListEntry,
    MappingSubjectKind, ReplicaShare, SubjectTileMapping,
};
use tilescope_report::units::{Bytes, TileRange, TileRuns, exact_bytes, grouped};

/// Everything of a kind that can be mapped.
pub fn subjects(entries: &[MappingListEntry], kind: MappingSubjectKind) -> DataTable {
    let (name, size) = match kind {
        MappingSubjectKind::Tensors => ("Tensor", TableColumn::number("Bytes")),
        MappingSubjectKind::Operations => ("Operation", TableColumn::number("Bytes")),
        MappingSubjectKind::ComputeSets => {
            ("Compute set", TableColumn::number("Cycles").about("Cycles of the slowest tile"))
        }
    };
    let tiles = TableColumn::number("Tiles").about("Tiles that hold a part");
    let columns = vec![TableColumn::text(name), size, tiles];
    let row = |entry: &MappingListEntry| {
        let size = match kind {
            MappingSubjectKind::ComputeSets => TableCell::Count(entry.size),
            MappingSubjectKind::Tensors | MappingSubjectKind::Operations => {
                TableCell::Bytes(Bytes(entry.size))
            }
        };
        vec![entry.name.as_str().into(), size, TableCell::Count(entry.tiles)]
    };
    DataTable::new(columns, entries.iter().map(row).collect())
}

/// Which part of each sharded tensor a replica holds.
pub fn replicas(shares: &[(String, ReplicaShare)]) -> DataTable {
    let columns = vec![
        TableColumn::text("Tensor"),
        TableColumn::bytes("Whole"),
        TableColumn::bytes("On each replica"),
        TableColumn::number("Replicas"),
        TableColumn::number("Parts").about("How many the tensor is cut into"),
    ];
    let row = |(name, share): &(String, ReplicaShare)| {
        vec![
            name.as_str().into(),
            TableCell::Bytes(share.whole),
            TableCell::Bytes(share.held),
            TableCell::Count(share.replicas.into()),
            TableCell::Count(share.shards.into()),
        ]
    };
    DataTable::new(columns, shares.iter().map(row).collect())
}

fn tiles_text(tiles: TileRange) -> String {
    match tiles.count() {
        1 => format!("Tile {}", grouped(tiles.first.into())),
        _ => format!("Tiles {} - {}", grouped(tiles.first.into()), grouped((tiles.end - 1).into())),
    }
}

/// Which tiles hold which part.
pub fn regions(mapping: &SubjectTileMapping, addresses: bool) -> DataTable {
    let columns = vec![
        TableColumn::text("Tiles"),
        TableColumn::text("Variable"),
        TableColumn::text("Part, in layout order"),
        TableColumn::number("Bytes per tile"),
        TableColumn::number("Address"),
    ];
    let row = |region: &MappedVariableRegion| {
        vec![
            tiles_text(region.tiles).into(),
            region.variable.as_str().into(),
            region.part().into(),
            TableCell::Bytes(region.bytes),
            addresses.then_some(TableCell::Count(region.offset.0)).into(),
        ]
    };
    DataTable::new(columns, mapping.regions.iter().map(row).collect())
}

/// Vertex types of what is mapped.
pub fn vertices(mapping: &SubjectTileMapping) -> DataTable {
    let columns = vec![
        TableColumn::text("Vertex type"),
        TableColumn::text("About"),
        TableColumn::number("Vertices"),
        TableColumn::number("Tiles"),
        TableColumn::number("Max per tile"),
    ];
    let row = |row: &MappedVertexRow| {
        let about = if row.strided_copy { "⚠ strided copy: rearranges data" } else { "" };
        vec![
            row.name.as_str().into(),
            about.into(),
            TableCell::Count(row.count),
            TableCell::Count(row.tiles),
            TableCell::Count(row.most),
        ]
    };
    DataTable::new(columns, mapping.vertex_types.iter().map(row).collect())
}

/// Layouts before and after data is rearranged.
pub fn rearrangements(mapping: &SubjectTileMapping) -> DataTable {
    let columns = vec![
        TableColumn::text("Rearrangement"),
        TableColumn::text("About"),
        TableColumn::number("Bytes"),
        TableColumn::number("Cycles"),
    ];
    let row = |one: &MappedRearrangement| {
        let (from, to) = (holders(&one.before), holders(&one.after));
        let about = format!(
            "{} tiles, at most {} -> {} tiles, at most {}",
            grouped(from),
            exact_bytes(one.before.max().0),
            grouped(to),
            exact_bytes(one.after.max().0)
        );
        vec![
            one.name.as_str().into(),
            about.into(),
            TableCell::Bytes(one.after.total()),
            TableCell::Count(one.cycles.0),
        ]
    };
    DataTable::new(columns, mapping.rearrangements.iter().map(row).collect())
}

fn holders(tiles: &TileRuns<Bytes>) -> u64 {
    let some = tiles.iter().filter(|(_, bytes)| **bytes > Bytes::ZERO);
    some.map(|(range, _)| u64::from(range.count())).sum()
}
