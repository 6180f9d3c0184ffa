//! Costs of operations, one figure per table.

use super::comparison_table::{ComparedThing, ComparisonTable};
use super::{ComparedReports, ViewComparison};
use crate::data_table::ColumnAggregate;
use crate::data_table::TableCell;
use crate::operations::{OpRow, OperationLayer, operations};
use crate::tables::operations::{COSTS, OperationColumn};
use crate::view_location::ViewLocation;
use tilescope_report::{ReportError, TrainingPass};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "operations", tables };

/// Columns of the table of operations that are compared, with the titles of their comparisons.
const FIGURES: [(&str, &str); 7] = [
    ("elapsed", "Cycles of all IPUs"),
    ("slowest", "Cycles of the slowest tile"),
    ("all_tiles", "Cycles of all tiles"),
    ("memory", "Memory"),
    ("code", "Code"),
    ("flops", "Floating point operations"),
    ("vertices", "Vertices"),
];

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| operations(report, OperationLayer::Model))?;
    let divisors = sides.normalization()?.divisors();
    let mut tables = Vec::new();
    for (key, title) in FIGURES {
        let Some(column) = COSTS.iter().find(|column| column.key == key) else { continue };
        let [source, target] = [&source, &target].map(|rows| things(rows, column));
        let mut table = ComparisonTable::paired(title, "Operation", source, target);
        if column.is_of_run() {
            table = table.per(divisors);
        }
        table = table.by_change();
        tables.push(if column.aggregate == ColumnAggregate::Sum {
            table.with_sums(TableCell::Count(0))
        } else {
            table
        });
    }
    Ok(tables)
}

/// Operations by name, operator and pass.
fn things<'a>(
    rows: &'a [OpRow],
    column: &'static OperationColumn,
) -> impl Iterator<Item = ((&'a str, &'a str, Option<TrainingPass>), ComparedThing)> {
    rows.iter().map(move |row| {
        let place = ViewLocation { operation: row.operation, ..ViewLocation::view("operations") };
        let key = (row.name.as_str(), row.kind.as_str(), row.pass);
        (key, ComparedThing::new(&row.name, column.value(row)).at(place))
    })
}
