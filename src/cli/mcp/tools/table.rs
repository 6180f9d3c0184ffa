//! Any table of any view.

use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, failed};
use super::table_json::table_json;
use super::{CHANGES, LIMIT, McpTool, REPORT};
use crate::cli::CliError;
use serde_json::{Value, json};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::{ReportTable, all, named};
use tilescope_analysis::view_location::ViewLocation;

const OPTIONAL_REPORT: ToolArgument = ToolArgument { required: false, ..REPORT };
const VIEW: ToolArgument = ToolArgument::optional(
    "view",
    ArgumentKind::Text,
    "View that the table is of, as in \"liveness\"; without it, all tables are listed",
);
const TABLE: ToolArgument =
    ToolArgument::optional("table", ArgumentKind::Text, "Table of the view; without it, its first");
const SORT: ToolArgument = ToolArgument::optional(
    "sort",
    ArgumentKind::Text,
    "Column by which rows are ordered, the largest first",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "table",
    about: "Rows of any table that the views of a report show: memory by tile and by variable, \
            liveness, program tree, operations, exchanges, executions and more. Without a view it \
            lists the tables there are.",
    arguments: &[OPTIONAL_REPORT, CHANGES, VIEW, TABLE, SORT, LIMIT],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &mut McpSession) -> Result<Value, CliError> {
    let Some(view) = arguments.text(VIEW.name) else {
        let table = |table: &ReportTable| json!({ "view": table.view, "table": table.name, "about": table.about });
        return Ok(json!({ "tables": all().map(table).collect::<Vec<_>>() }));
    };
    let table = named(view, arguments.text(TABLE.name))
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let Some(report) = arguments.text(REPORT.name) else {
        return Err(CliError::Usage(format!("report is missing: {}", REPORT.about)));
    };
    let opened = session.open(report, &arguments.changes(CHANGES.name))?;
    let mut rows = (table.read)(&opened.report).map_err(failed)?;
    if let Some(column) = arguments.text(SORT.name) {
        sort(&mut rows, column)?;
    }
    let answer = table_json(&rows, arguments.limit());
    Ok(opened.answer(opened.linked(answer, Some(&ViewLocation::view(table.view)))))
}

fn sort(table: &mut DataTable, column: &str) -> Result<(), CliError> {
    let is_named = |title: &str| title.eq_ignore_ascii_case(column);
    let Some(at) = table.columns.iter().position(|of| is_named(&of.title)) else {
        let known: Vec<&str> = table.columns.iter().map(|of| of.title.as_str()).collect();
        let known = known.join(", ");
        return Err(CliError::Usage(format!("there is no column {column:?}; there are: {known}")));
    };
    table.rows.sort_by(|a, b| b[at].compare(&a[at]));
    Ok(())
}
