//! Tables of tile mapping: the subjects, and the parts of one subject.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::table;
use crate::tile_mapping::{MappingListEntry, MappingSubjectKind, ReplicaShare, SubjectTileMapping};
use tilescope_report::units::{Bytes, TileRange, TileRuns, exact_bytes, grouped};

/// All subjects of a kind.
pub fn subjects(entries: &[MappingListEntry], kind: MappingSubjectKind) -> DataTable {
    let (name, size): (&str, TableColumn) = match kind {
        MappingSubjectKind::Tensors => ("Tensor", TableColumn::number("Bytes")),
        MappingSubjectKind::Operations => ("Operation", TableColumn::number("Bytes")),
        MappingSubjectKind::ComputeSets => {
            let cycles = TableColumn::cycles("Cycles").about("Cycles of the slowest tile");
            ("Compute set", cycles)
        }
    };
    table! { entries, |entry|
        operation name => &entry.name;
        all [size] => [match kind {
            MappingSubjectKind::ComputeSets => TableCell::Count(entry.size),
            MappingSubjectKind::Tensors | MappingSubjectKind::Operations => {
                TableCell::Bytes(Bytes(entry.size))
            }
        }];
        most "Tiles" => entry.tiles, "Tiles that hold a part";
    }
}

/// The part of each sharded tensor on a replica.
pub fn replicas(shares: &[(String, ReplicaShare)]) -> DataTable {
    table! { shares, |(name, share)|
        text "Tensor" => name;
        bytes "Whole" => share.whole;
        bytes "On each replica" => share.held;
        number "Replicas" => u64::from(share.replicas);
        number "Parts" => u64::from(share.shards), "Number of parts of the tensor";
    }
}

fn tiles_text(tiles: TileRange) -> String {
    match tiles.count() {
        1 => format!("Tile {}", grouped(tiles.first.into())),
        _ => format!("Tiles {} - {}", grouped(tiles.first.into()), grouped((tiles.end - 1).into())),
    }
}

/// Regions of variables, with the tiles that hold them. Regions of one variable do not repeat its
/// name, and have nothing to be grouped by.
pub fn regions(mapping: &SubjectTileMapping, addresses: bool) -> DataTable {
    let first = mapping.regions.first();
    let is_one =
        mapping.regions.iter().all(|of| Some(&of.variable) == first.map(|of| &of.variable));
    let table = table! { &mapping.regions, |region|
        short "Tiles" => tiles_text(region.tiles);
        operation "Variable" => &region.variable;
        text "Part, in layout order" => region.part();
        most_bytes "Bytes per tile" => region.bytes;
        bytes "On all tiles" => Bytes(region.bytes.0 * u64::from(region.tiles.count())),
            "Bytes per tile x number of tiles";
        unsummed "Address" => if addresses { Some(TableCell::Count(region.offset.0)) } else { None };
    };
    let name = table.name_column();
    table.with_columns(|at| at != name || !is_one)
}

/// Vertex types of a subject.
pub fn vertices(mapping: &SubjectTileMapping) -> DataTable {
    table! { &mapping.vertex_types, |row|
        text "Vertex type" => &row.name;
        text "About" => if row.strided_copy { "⚠ strided copy: rearranges data" } else { "" };
        number "Vertices" => row.count;
        number "Tiles" => row.tiles;
        number "Max per tile" => row.most;
    }
}

/// Layouts before and after rearrangements of data.
pub fn rearrangements(mapping: &SubjectTileMapping) -> DataTable {
    table! { &mapping.rearrangements, |one|
        operation "Rearrangement" => &one.name;
        text "About" => format!("{} -> {}", layout(&one.before), layout(&one.after));
        number "Bytes" => one.after.total();
        cycles "Cycles" => one.cycles;
    }
}

/// The number of tiles that hold bytes, and the most bytes of one: `16 tiles, at most 1,024 bytes`.
fn layout(tiles: &TileRuns<Bytes>) -> String {
    let mut holders = 0;
    for (range, bytes) in tiles.iter() {
        if *bytes > Bytes::ZERO {
            holders += u64::from(range.count());
        }
    }
    format!("{} tiles, at most {}", grouped(holders), exact_bytes(tiles.max().0))
}
