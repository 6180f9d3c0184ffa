//! Changes of limits: the figures that the runs achieve, the destinations of their cycles, and the
//! waste of operations.

use super::comparison_table::{ComparedThing, ComparisonRow, ComparisonTable};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::limits::{LimitsRow, ReportLimits, WaterfallStep, limits};
use crate::tables::limits::columns;
use crate::view_location::ViewLocation;
use tilescope_report::ReportError;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "limits", tables };

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
    let figures = ["wasted", "ideal", "cycles"];
    let figures = figures.into_iter().filter_map(|key| columns().find(|column| column.key == key));
    let of_operations = figures.map(|column| {
        let thing = |row: &LimitsRow| {
            let place = ViewLocation { operation: row.operation, ..ViewLocation::view("limits") };
            let key = (row.name.clone(), row.kind.clone(), row.pass);
            (key, ComparedThing::new(&row.name, column.limit(&row.limits)).at(place))
        };
        let [source, target] = [&source, &target].map(|side| side.rows.iter().map(thing));
        let table = ComparisonTable::paired(column.title, "Operation", source, target);
        table.per(divisors).by_change()
    });
    Ok([shares, steps].into_iter().chain(of_operations).collect())
}

/// Shares of the cycles of both runs by waterfall step.
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

/// True if both sides are zero or missing.
fn is_nothing(row: &ComparisonRow) -> bool {
    let number =
        |cell: &Option<TableCell>| cell.as_ref().and_then(TableCell::number).unwrap_or(0.0);
    number(&row.source) == 0.0 && number(&row.target) == 0.0
}
