//! Things of a report by name and by typed filters.

use super::super::answer::first;
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, failed};
use super::{CHANGES, LIMIT, McpTool, REPORT};
use crate::cli::CliError;
use crate::cli::find::{hit_json, read_query};
use serde_json::{Value, json};
use tilescope_analysis::find::{CatalogueItem, SearchCatalogue, SearchEntity, find};
use tilescope_analysis::view_location::ViewLocation;

const QUERY: ToolArgument = ToolArgument::required(
    "query",
    ArgumentKind::Text,
    "Words that must occur in the name, /regular expressions/, \"phrases\", -excluded words, and \
     filters: in:steps type:DoExchange name~attn name=relu ipu:0..3 tile:17 cycles>10k bytes>=64KiB \
     count<3. Lists for in: are steps, operations, programs, variables, tensors, vertices",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "find",
    about: "Finds steps, operations, programs, variables, tensors and vertices of a report by name \
            and by filters, with totals over all that match.",
    arguments: &[REPORT, CHANGES, QUERY, LIMIT],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &mut McpSession) -> Result<Value, CliError> {
    let query = read_query(arguments.required_text(QUERY.name))?;
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    let all = SearchCatalogue::read(&opened.report).map_err(failed)?;
    let found = find(&opened.report, &all, &query).map_err(failed)?;
    let hit = |hit: &CatalogueItem| opened.linked(hit_json(hit), Some(&place(hit)));
    Ok(opened.answer(json!({
        "totals": found.totals,
        "hits": first(found.hits.iter(), arguments.limit(), hit),
        "units": {
            "cycles": "cycles of all executions, added over IPUs",
            "bytes": "moved by all executions; of variables over all tiles; of vertices code and state",
            "count": "executions; tiles of variables; instances of vertices",
        },
    })))
}

/// Where a thing can be seen.
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
