//! Changes of limits: the figures that the runs achieve, the destinations of their cycles, and the
//! waste of operations.

use super::comparison_table::{ComparedThing, ComparisonRow, ComparisonTable};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::limits::{ReportLimits, WaterfallStep, limits};
use crate::tables::limits::columns;
use crate::view_location::ViewLocation;
use tilescope_report::ReportError;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "limits", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(limits)?;
    let divisors = sides.normalization()?.divisors();
    let shares = ComparisonTable::new("Shares of the peak", "Step", shares(&source, &target));
    let mut steps = Vec::new();
    for step in WaterfallStep::ALL {
        let [source, target] =
            [&source, &target].map(|of| Some(TableCell::Count(of.run.as_ref()?.all[step].0)));
        steps.push(ComparisonRow::new(step.title(), source, target));
    }
    steps.retain(|row| !is_nothing(row));
    let steps = ComparisonTable::new("Cycles of the waterfall", "Step", steps).per(divisors);
    let mut tables = vec![shares, steps];
    for key in ["wasted", "ideal", "cycles"] {
        let Some(column) = columns().find(|column| column.key == key) else { continue };
        let [source, target] = [&source, &target].map(|side| {
            side.rows.iter().map(|row| {
                let place =
                    ViewLocation { operation: row.operation, ..ViewLocation::view("limits") };
                let key = (row.name.clone(), row.kind.clone(), row.pass);
                (key, ComparedThing::new(&row.name, column.limit(&row.limits)).at(place))
            })
        });
        let table = ComparisonTable::paired(column.title, "Operation", source, target);
        tables.push(table.per(divisors).by_change());
    }
    Ok(tables)
}

/// Shares of the cycles of both runs by waterfall step.
fn shares(source: &ReportLimits, target: &ReportLimits) -> Vec<ComparisonRow> {
    let mut rows = Vec::new();
    for step in WaterfallStep::ALL {
        let [source, target] = [source, target].map(|of| {
            let run = of.run.as_ref()?;
            let is_known = step != WaterfallStep::Achieved || run.unknown.is_none();
            if is_known { Some(TableCell::Share(run.all.share(step))) } else { None }
        });
        rows.push(ComparisonRow::new(step.title(), source, target));
    }
    rows.retain(|row| !is_nothing(row));
    rows
}

/// True if both sides are zero or missing.
fn is_nothing(row: &ComparisonRow) -> bool {
    let mut numbers =
        [&row.source, &row.target].into_iter().flatten().filter_map(TableCell::number);
    numbers.all(|number| number == 0.0)
}
