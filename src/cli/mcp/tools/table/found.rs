//! Finds items of a report by name and with typed filters.

use super::super::super::answer::first;
use super::super::super::session::OpenedReport;
use crate::cli::command::CliError;
use crate::cli::find::{hit_json, read_query};
use serde_json::{Value, json};
use tilescope_analysis::find::{CatalogueItem, SearchCatalogue, SearchEntity, find};
use tilescope_analysis::view_location::ViewLocation;

/// Items that match, with totals over all of them.
pub(super) fn rows(opened: &OpenedReport, query: &str, limit: usize) -> Result<Value, CliError> {
    let query = read_query(query)?;
    let all = SearchCatalogue::read(&opened.report)?;
    let found = find(&opened.report, &all, &query)?;
    Ok(json!({
        "totals": found.totals,
        "rows": first(found.hits.iter(), limit, |hit| opened.linked(hit_json(hit), Some(&place(hit)))),
        "units": {
            "cycles": "cycles of all executions, added over IPUs",
            "bytes": "moved by all executions; of variables, over all tiles; of vertices, code and \
                      state",
            "count": "executions; tiles of variables; instances of vertices",
        },
    }))
}

/// The place of an item in a view.
fn place(hit: &CatalogueItem) -> ViewLocation {
    let ipu = hit.ipu;
    match hit.thing {
        SearchEntity::Steps(program, _) => {
            ViewLocation { program: Some(program), ipu, ..ViewLocation::view("execution-trace") }
        }
        SearchEntity::Program(program) => {
            ViewLocation { program: Some(program), ..ViewLocation::view("program-tree") }
        }
        SearchEntity::Operation(operation) => {
            ViewLocation { operation: Some(operation), ..ViewLocation::view("operations") }
        }
        SearchEntity::Variable(variable) => {
            ViewLocation { variable: Some(variable), ..ViewLocation::view("memory") }
        }
        SearchEntity::Tensor(variable) => {
            ViewLocation { variable: Some(variable), ..ViewLocation::view("tile-mapping") }
        }
        SearchEntity::VertexType(_) => ViewLocation::view("memory"),
    }
}
