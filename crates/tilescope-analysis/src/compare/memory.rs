//! Memory by region, category, variable, IPU and tile.

use super::comparison_table::{ComparedThing, ComparisonRow, ComparisonTable};
use super::matched_entities::variables_by_name;
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::memory::details;
use crate::summary::summary;
use crate::view_location::ViewLocation;
use std::collections::BTreeMap;
use std::fmt;
use tilescope_report::units::{Bytes, IpuId, TileId};
use tilescope_report::{Report, ReportError, TileMemory};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "memory", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    Ok(vec![tree(sides)?, categories(sides)?, variables(sides)?, ipus(sides)?, tiles(sides)?])
}

/// The tree of details over all tiles, in the layout of the memory view.
fn tree(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| details(report, &[]))?;
    let keyed = |rows: Vec<crate::memory::MemoryTreeRow>| {
        let mut above: Vec<String> = Vec::new();
        let keyed = move |row: crate::memory::MemoryTreeRow| {
            above.truncate(row.depth as usize);
            above.push(row.name.clone());
            (above.join("\n"), row)
        };
        rows.into_iter().map(keyed).collect::<Vec<_>>()
    };
    let source = keyed(source);
    let target = keyed(target);
    let bytes = |rows: &[(String, crate::memory::MemoryTreeRow)]| -> BTreeMap<String, Bytes> {
        let sum = |row: &crate::memory::MemoryTreeRow| Bytes(row.bytes.iter().sum());
        rows.iter().map(|(path, row)| (path.clone(), sum(row))).collect()
    };
    let of_source = bytes(&source);
    let of_target = bytes(&target);
    // Both lists are in the order of regions and categories, and so is the merged one.
    let mut order: Vec<&(String, crate::memory::MemoryTreeRow)> = Vec::new();
    let mut rest = target.iter().peekable();
    for row in &source {
        if of_target.contains_key(&row.0) {
            while let Some(other) = rest.next_if(|other| other.0 != row.0) {
                order.push(other);
            }
            rest.next();
        }
        order.push(row);
    }
    order.extend(rest);
    let mut seen = std::collections::BTreeSet::new();
    let rows =
        order.into_iter().filter(|(path, _)| seen.insert(path.clone())).map(|(path, row)| {
            let cell =
                |known: &BTreeMap<String, Bytes>| known.get(path).map(|b| TableCell::Bytes(*b));
            let source = cell(&of_source);
            let target = cell(&of_target);
            ComparisonRow {
                depth: row.depth,
                ..ComparisonRow::new(row.name.clone(), source, target)
            }
        });
    Ok(ComparisonTable::new("Details", "Memory of all tiles", rows.collect()))
}

fn categories(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| {
        let memory = summary(report)?.memory;
        let categories = memory.map(|memory| memory.by_category).unwrap_or_default();
        let mut things = Vec::new();
        for (name, bytes) in categories {
            things.push((name, ComparedThing::new(name, bytes)));
        }
        Ok(things)
    })?;
    let table = ComparisonTable::paired("Categories", "Category", source, target);
    Ok(table.by_change().with_sums(NO_BYTES))
}

const NO_BYTES: TableCell = TableCell::Bytes(Bytes::ZERO);

fn variables(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| variables_by_name(report, |_| true))?;
    Ok(super::matched_entities::variable_table("Variables", "memory", [source, target], false))
}

/// Used bytes of each IPU.
fn ipus(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let per_ipu = |report: &Report| -> Result<BTreeMap<IpuId, Bytes>, ReportError> {
        let target = report.target()?;
        let memory = report.tile_memory()?;
        let mut bytes = BTreeMap::new();
        for (tiles, of) in memory.iter() {
            for tile in tiles.iter() {
                *bytes.entry(target.ipu_of_tile(tile)).or_default() +=
                    TileMemory::excluding_gaps(of);
            }
        }
        Ok(bytes)
    };
    let (source, target) = sides.both(per_ipu)?;
    Ok(numbered("IPUs", "IPU", &source, &target, |_| None))
}

/// Bytes of each tile, gaps included.
fn tiles(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let per_tile = |report: &Report| -> Result<BTreeMap<TileId, Bytes>, ReportError> {
        let memory = report.tile_memory()?;
        let runs = memory.iter();
        let tiles =
            runs.flat_map(|(tiles, of)| tiles.iter().map(move |tile| (tile, of.including_gaps)));
        Ok(tiles.collect())
    };
    let (source, target) = sides.both(per_tile)?;
    let place = |tile| Some(ViewLocation { tiles: vec![tile], ..ViewLocation::view("memory") });
    Ok(numbered("Tiles", "Tile", &source, &target, place))
}

/// One row per IPU or tile; the same number is the same IPU or tile in both reports.
pub(super) fn numbered<N: Copy + Ord + fmt::Display>(
    title: &'static str,
    what: &'static str,
    source: &BTreeMap<N, Bytes>,
    target: &BTreeMap<N, Bytes>,
    place: impl Fn(N) -> Option<ViewLocation>,
) -> ComparisonTable {
    let [source, target] = [source, target].map(|side| {
        let mut things = Vec::new();
        for (number, bytes) in side {
            let thing = ComparedThing::new(format!("{what} {number}"), *bytes);
            things.push((*number, thing.at(place(*number))));
        }
        things
    });
    ComparisonTable::paired(title, what, source, target).by_change().with_sums(NO_BYTES)
}
