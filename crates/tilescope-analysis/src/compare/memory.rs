//! Memory by region, category, variable, IPU and tile.

use super::comparison_table::{ComparedThing, ComparisonRow, ComparisonTable};
use super::matched_entities::variables_by_name;
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::memory::{MemoryTreeRow, details};
use crate::summary::summary;
use crate::view_location::ViewLocation;
use std::collections::{BTreeMap, BTreeSet};
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
    let source = with_paths(source);
    let target = with_paths(target);
    let of_source = bytes_by_path(&source);
    let of_target = bytes_by_path(&target);
    // Both lists are in the order of regions and categories, and so is the merged one.
    let mut order: Vec<&(String, MemoryTreeRow)> = Vec::new();
    let mut rest = target.iter().peekable();
    for row in &source {
        if of_target.contains_key(row.0.as_str()) {
            while let Some(other) = rest.next_if(|other| other.0 != row.0) {
                order.push(other);
            }
            rest.next();
        }
        order.push(row);
    }
    order.extend(rest);
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for (path, row) in order {
        if !seen.insert(path) {
            continue;
        }
        let source = of_source.get(path.as_str()).map(|bytes| TableCell::Bytes(*bytes));
        let target = of_target.get(path.as_str()).map(|bytes| TableCell::Bytes(*bytes));
        let compared = ComparisonRow::new(row.name.clone(), source, target);
        rows.push(ComparisonRow { depth: row.depth, ..compared });
    }
    Ok(ComparisonTable::new("Details", "Memory of all tiles", rows))
}

/// Rows with the names from the root down to each of them.
fn with_paths(rows: Vec<MemoryTreeRow>) -> Vec<(String, MemoryTreeRow)> {
    let mut above: Vec<String> = Vec::new();
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        above.truncate(row.depth as usize);
        above.push(row.name.clone());
        found.push((above.join("\n"), row));
    }
    found
}

fn bytes_by_path(rows: &[(String, MemoryTreeRow)]) -> BTreeMap<&str, Bytes> {
    let sums = rows.iter().map(|(path, row)| (path.as_str(), Bytes(row.bytes.iter().sum())));
    sums.collect()
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
    let (source, target) = sides.both(bytes_by_ipu)?;
    Ok(numbered("IPUs", "IPU", &source, &target, |_| None))
}

fn bytes_by_ipu(report: &Report) -> Result<BTreeMap<IpuId, Bytes>, ReportError> {
    let target = report.target()?;
    let memory = report.tile_memory()?;
    let mut bytes = BTreeMap::new();
    for (tiles, of) in memory.iter() {
        for tile in tiles.iter() {
            *bytes.entry(target.ipu_of_tile(tile)).or_default() += TileMemory::excluding_gaps(of);
        }
    }
    Ok(bytes)
}

/// Bytes of each tile, including gaps.
fn tiles(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(bytes_by_tile)?;
    Ok(numbered("Tiles", "Tile", &source, &target, |tile| {
        Some(ViewLocation { tiles: vec![tile], ..ViewLocation::view("memory") })
    }))
}

fn bytes_by_tile(report: &Report) -> Result<BTreeMap<TileId, Bytes>, ReportError> {
    let memory = report.tile_memory()?;
    let mut bytes = BTreeMap::new();
    for (tiles, of) in memory.iter() {
        bytes.extend(tiles.iter().map(|tile| (tile, of.including_gaps)));
    }
    Ok(bytes)
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
