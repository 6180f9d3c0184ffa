//! Changes of the critical path: each path covers its whole run, so the changes on the path explain
//! the whole difference.

use super::comparison_table::{ComparedThing, ComparisonTable};
use super::{ComparedReports, WorkDivisors};
use crate::critical_path::{PathRow, PathTotals, path_totals};
use crate::data_table::TableCell;
use crate::view_location::ViewLocation;
use tilescope_report::ReportError;
use tilescope_report::units::Cycles;

/// A part of the path of one side.
struct PathPart {
    name: String,
    cycles: Cycles,
    place: Option<ViewLocation>,
}

/// Tables of the path by operation and by IPU; empty if one of the reports was not executed.
pub(super) fn tables(
    sides: &ComparedReports<'_>,
    divisors: WorkDivisors,
) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| path_totals(report, None))?;
    let (Some(source), Some(target)) = (source, target) else { return Ok(Vec::new()) };
    let dimensions: [PathDimension; 2] =
        [("Critical path", "Path through", by_operation), ("IPU path", "Path on", by_ipu)];
    let mut tables = Vec::new();
    for (title, column, parts) in dimensions {
        let [of_source, of_target] = [&source, &target].map(|side| {
            parts(side).into_iter().map(|part| {
                let thing = ComparedThing::new(&part.name, part.cycles).at(part.place);
                (part.name, thing)
            })
        });
        let [source_total, target_total] =
            [&source, &target].map(|side| Some(TableCell::Count(side.cycles.0)));
        let table = ComparisonTable::paired(title, column, of_source, of_target)
            .with_total(source_total, target_total);
        tables.push(table.per(divisors).by_change());
    }
    Ok(tables)
}

/// Title of a table, title of its column of names, and the parts of the path that are its rows.
type PathDimension = (&'static str, &'static str, fn(&PathTotals) -> Vec<PathPart>);

fn place(row: &PathRow) -> Option<ViewLocation> {
    match (row.operation, row.program) {
        (operation @ Some(_), _) => {
            Some(ViewLocation { operation, ..ViewLocation::view("operations") })
        }
        (None, program @ Some(_)) => {
            Some(ViewLocation { program, ..ViewLocation::view("execution-trace") })
        }
        (None, None) => None,
    }
}

/// Path by kind and operation, or program if there is no operation; IPUs are summed, since stages
/// move between them.
fn by_operation(totals: &PathTotals) -> Vec<PathPart> {
    parts(totals, |row| match row.name.as_str() {
        "" => row.kind.title().to_owned(),
        name => format!("{name} ({})", row.kind.title().to_lowercase()),
    })
}

fn by_ipu(totals: &PathTotals) -> Vec<PathPart> {
    let mut parts = parts(totals, |row| row.lane.clone());
    parts.iter_mut().for_each(|part| part.place = None);
    parts
}

fn parts(totals: &PathTotals, name: impl Fn(&PathRow) -> String) -> Vec<PathPart> {
    let mut parts: Vec<PathPart> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for row in &totals.rows {
        let name = name(row);
        let at = *places.entry(name.clone()).or_insert(parts.len());
        match parts.get_mut(at) {
            Some(part) => part.cycles += row.cycles,
            None => parts.push(PathPart { name, cycles: row.cycles, place: place(row) }),
        }
    }
    parts
}
