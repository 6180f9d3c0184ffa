//! How limits moved: what the runs achieve, where their cycles go, and what operations waste.

use super::comparison_table::{ComparisonRow, ComparisonTable, pair_by_key};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::limits::{LimitsRow, OperationLimits, ReportLimits, WaterfallStep, limits};
use crate::view_location::ViewLocation;
use tilescope_report::ReportError;
use tilescope_report::units::Cycles;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "limits", tables };

/// A figure of an operation over the run.
type LimitFigure = (&'static str, fn(&OperationLimits) -> Option<Cycles>);

const FIGURES: [LimitFigure; 3] = [
    ("Wasted cycles", OperationLimits::wasted),
    ("Ideal cycles", |limits| Some(limits.ideal?.cycles)),
    ("Cycles", |limits| Some(limits.total())),
];

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(limits)?;
    let divisors = sides.normalization()?.divisors();
    let shares = ComparisonTable::new("Shares of the peak", "Step", shares(&source, &target));
    let waterfall = |of: &ReportLimits, step: WaterfallStep| {
        let cycles = of.run.as_ref().map(|run| run.all[step]);
        cycles.map(|cycles| TableCell::Count(cycles.0))
    };
    let steps = WaterfallStep::ALL.into_iter().map(|step| {
        ComparisonRow::new(step.title(), waterfall(&source, step), waterfall(&target, step))
    });
    let steps = steps.filter(|row| !is_nothing(row)).collect();
    let steps = ComparisonTable::new("Cycles of the waterfall", "Step", steps).per(divisors);
    let key = |row: &LimitsRow| (row.name.clone(), row.kind.clone(), row.pass);
    let pairs = pair_by_key(
        source.rows.iter().map(|row| (key(row), row)),
        target.rows.iter().map(|row| (key(row), row)),
    );
    let of_operations = FIGURES.into_iter().map(|(title, figure)| {
        let cell = |side: &Option<&LimitsRow>| {
            let cycles = side.as_ref().and_then(|row| figure(&row.limits));
            cycles.map(|cycles| TableCell::Count(cycles.0))
        };
        let place = |side: &Option<&LimitsRow>| {
            let operation = side.as_ref()?.operation;
            Some(ViewLocation { operation, ..ViewLocation::view("limits") })
        };
        let rows = pairs.iter().map(|(source, target)| {
            let name = source.as_ref().or(target.as_ref()).map_or("", |row| &row.name);
            ComparisonRow {
                source_place: place(source),
                target_place: place(target),
                ..ComparisonRow::new(name, cell(source), cell(target))
            }
        });
        ComparisonTable::new(title, "Operation", rows.collect()).per(divisors).by_change()
    });
    Ok([shares, steps].into_iter().chain(of_operations).collect())
}

/// Shares of the cycles of both runs by where they go.
fn shares(source: &ReportLimits, target: &ReportLimits) -> Vec<ComparisonRow> {
    let share = |of: &ReportLimits, step: WaterfallStep| {
        let run = of.run.as_ref()?;
        let is_known = step != WaterfallStep::Achieved || run.unknown.is_none();
        is_known.then(|| TableCell::Share(run.all.share(step)))
    };
    let rows = WaterfallStep::ALL
        .into_iter()
        .map(|step| ComparisonRow::new(step.title(), share(source, step), share(target, step)));
    rows.filter(|row| !is_nothing(row)).collect()
}

/// Whether neither side has anything.
fn is_nothing(row: &ComparisonRow) -> bool {
    let number =
        |cell: &Option<TableCell>| cell.as_ref().and_then(TableCell::number).unwrap_or(0.0);
    number(&row.source) == 0.0 && number(&row.target) == 0.0
}
