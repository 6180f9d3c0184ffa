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
    let table = |title, column, parts: fn(&PathTotals) -> Vec<PathPart>| {
        let things = |side: &PathTotals| {
            let things = parts(side).into_iter().map(|part| {
                let thing = ComparedThing::new(&part.name, part.cycles).at(part.place);
                (part.name, thing)
            });
            things.collect::<Vec<_>>()
        };
        let total = |side: &PathTotals| Some(TableCell::Count(side.cycles.0));
        ComparisonTable::paired(title, column, things(&source), things(&target))
            .with_total(total(&source), total(&target))
            .per(divisors)
            .by_change()
    };
    Ok(vec![
        table("Critical path", "Path through", by_operation),
        table("IPU path", "Path on", by_ipu),
    ])
}

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
