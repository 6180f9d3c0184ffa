//! Costs of operations, one figure per table.

use super::comparison_table::{ComparisonRow, ComparisonTable, pair_by_key};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::operations::{OpRow, OperationLayer, operations};
use crate::view_location::ViewLocation;
use tilescope_report::ReportError;
use tilescope_report::units::Bytes;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "operations", tables };

/// A figure of an operation.
struct OperationFigure {
    title: &'static str,
    cell: fn(&OpRow) -> TableCell,
    /// Whether operations add up to a sum that means something.
    summed: bool,
    /// Whether it is of the whole run, rather than of one execution.
    of_run: bool,
}

/// A figure of one execution.
const fn figure(
    title: &'static str,
    summed: bool,
    cell: fn(&OpRow) -> TableCell,
) -> OperationFigure {
    OperationFigure { title, cell, summed, of_run: false }
}

/// Figures of an operation. Those have no sum that IPUs spend at the same time, that several
/// operations share, or that do not live together.
const FIGURES: &[OperationFigure] = &[
    OperationFigure {
        of_run: true,
        ..figure("Cycles of all IPUs", false, |row| TableCell::Count(row.elapsed.0))
    },
    figure("Cycles of the slowest tile", false, |row| TableCell::Count(row.cycles_slowest.0)),
    figure("Cycles of all tiles", true, |row| TableCell::Count(row.cycles_all_tiles.0)),
    figure("Memory", false, |row| TableCell::Bytes(row.memory)),
    figure("Code", false, |row| TableCell::Bytes(row.code())),
    figure("Floating point operations", true, |row| TableCell::Count(row.flops)),
    figure("Vertices", true, |row| TableCell::Count(row.vertices)),
];

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| operations(report, OperationLayer::Model))?;
    let keyed = |rows: Vec<OpRow>| {
        rows.into_iter().map(|row| ((row.name.clone(), row.kind.clone(), row.pass), row))
    };
    let pairs = pair_by_key(keyed(source), keyed(target));
    let divisors = sides.normalization()?.divisors();
    let table = |figure: &OperationFigure| {
        let rows = pairs.iter().map(|(source, target)| row(source, target, figure.cell)).collect();
        let mut table = ComparisonTable::new(figure.title, "Operation", rows);
        if figure.of_run {
            table = table.per(divisors);
        }
        table = table.by_change();
        if !figure.summed {
            return table;
        }
        let source = total(&pairs, |pair| &pair.0, figure.cell);
        table.with_total(source, total(&pairs, |pair| &pair.1, figure.cell))
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
