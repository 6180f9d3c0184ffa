//! Costs of operations, one figure per table.

use super::comparison_table::{ComparisonRow, ComparisonTable, pair_by_key};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::insights::ViewLocation;
use crate::operations::{OpRow, OperationLayer, operations};
use tilescope_report::ReportError;
use tilescope_report::units::Bytes;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "operations", tables };

/// A figure of an operation, in words and how it is read.
type OperationFigure = (&'static str, fn(&OpRow) -> TableCell);

/// The figure that has no sum.
const MEMORY: &str = "Memory";

/// Figures of an operation.
const FIGURES: &[OperationFigure] = &[
    ("Cycles of all IPUs", |row| TableCell::Count(row.elapsed.0)),
    ("Cycles of the slowest tile", |row| TableCell::Count(row.cycles_slowest.0)),
    ("Cycles of all tiles", |row| TableCell::Count(row.cycles_all_tiles.0)),
    (MEMORY, |row| TableCell::Bytes(row.memory)),
    ("Code", |row| TableCell::Bytes(row.code())),
    ("Floating point operations", |row| TableCell::Count(row.flops)),
    ("Vertices", |row| TableCell::Count(row.vertices)),
];

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| operations(report, OperationLayer::Model))?;
    let keyed = |rows: Vec<OpRow>| {
        rows.into_iter().map(|row| ((row.name.clone(), row.kind.clone(), row.pass), row))
    };
    let pairs = pair_by_key(keyed(source), keyed(target));
    let table = |(title, figure): &(&'static str, fn(&OpRow) -> TableCell)| {
        let rows = pairs.iter().map(|(source, target)| row(source, target, *figure)).collect();
        // Variables of operations share bytes where they do not live together.
        if *title == MEMORY {
            return ComparisonTable::new(title, "Operation", rows).by_change();
        }
        let total = (total(&pairs, |pair| &pair.0, *figure), total(&pairs, |p| &p.1, *figure));
        let table = ComparisonTable::new(title, "Operation", rows).by_change();
        table.with_total(total.0, total.1)
    };
    Ok(FIGURES.iter().map(table).collect())
}

type OpRowPair = (Option<OpRow>, Option<OpRow>);

fn row(
    source: &Option<OpRow>,
    target: &Option<OpRow>,
    figure: fn(&OpRow) -> TableCell,
) -> ComparisonRow {
    let name = source.as_ref().or(target.as_ref()).map_or("", |row| &row.name);
    let place = |side: &Option<OpRow>| {
        let operation = side.as_ref()?.operation;
        Some(ViewLocation { operation, ..ViewLocation::view("operations") })
    };
    ComparisonRow {
        source_place: place(source),
        target_place: place(target),
        ..ComparisonRow::new(name, source.as_ref().map(figure), target.as_ref().map(figure))
    }
}

fn total(
    pairs: &[OpRowPair],
    side: fn(&OpRowPair) -> &Option<OpRow>,
    figure: fn(&OpRow) -> TableCell,
) -> Option<TableCell> {
    let (mut sum, mut bytes) = (0u64, false);
    for cell in pairs.iter().filter_map(|pair| side(pair).as_ref()).map(figure) {
        bytes |= matches!(cell, TableCell::Bytes(_));
        if let TableCell::Bytes(Bytes(value)) | TableCell::Count(value) = cell {
            sum = sum.saturating_add(value);
        }
    }
    Some(if bytes { TableCell::Bytes(Bytes(sum)) } else { TableCell::Count(sum) })
}
