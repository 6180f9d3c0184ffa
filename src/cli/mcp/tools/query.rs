//! A question in SQL, as `tilescope query` answers it.

use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, failed};
use super::{CHANGES, LIMIT, McpTool, REPORT};
use crate::cli::CliError;
use crate::cli::query::{Asked, failure};
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tilescope_analysis::sql::{
    RowSink, SqlQuestion, SqlValue, json_value, list_tables, run as ask,
};
use tilescope_report::Report;

const SQL: ToolArgument = ToolArgument::optional(
    "sql",
    ArgumentKind::Text,
    "A SELECT in SQLite's SQL, or the name of a ready question; without it, tables and their columns \
     with units are listed. program_cycles(first_cycle, end_cycle), activity_cycles(…) and \
     steps_between(…) have the sums and steps of a window of cycles, or without arguments of the run",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "query",
    about: "Answers a question about a report in SQL: one SELECT over its tables, which can change \
            nothing. For what no other tool lists.",
    arguments: &[REPORT, CHANGES, SQL, LIMIT],
    run,
};

/// How long an agent waits.
const TIME_LIMIT: Duration = Duration::from_secs(20);

fn run(arguments: &CheckedArguments<'_>, session: &mut McpSession) -> Result<Value, CliError> {
    let asked = arguments.text(SQL.name).map(Asked::of).transpose()?;
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    // The question has threads of its own.
    let report = Arc::new(Report::open(opened.report.path()).map_err(failed)?);
    let Some(asked) = asked else { return Ok(opened.answer(tables(&report)?)) };
    let question =
        SqlQuestion { time_limit: TIME_LIMIT, ..SqlQuestion::new(asked.sql_for(&report)?) };
    let mut first = FirstRows { limit: arguments.limit(), ..FirstRows::default() };
    let summary = ask(&report, &question, &mut first).map_err(failure)?;
    let mut answer = json!({ "rows": first.rows });
    let rest = summary.rows.saturating_sub(arguments.limit() as u64);
    if let Some(rows) = answer["rows"].as_array_mut().filter(|_| rest > 0) {
        rows.push(json!({ "left_off": rest }));
    }
    if let Some(hint) = summary.hint() {
        answer["hint"] = hint.into();
    }
    Ok(opened.answer(answer))
}

/// What can be asked.
fn tables(report: &Arc<Report>) -> Result<Value, CliError> {
    let tables = list_tables(report).map_err(failure)?;
    let table = tables.iter().map(|table| {
        let columns = table.columns.iter().map(|column| match column.unit.as_str() {
            "" | "id" | "number" | "count" => column.name.clone(),
            unit => format!("{} ({unit})", column.name),
        });
        let columns: Vec<String> = columns.collect();
        json!({ "table": table.name, "row": table.about, "columns": columns.join(", ") })
    });
    Ok(json!({ "tables": table.collect::<Vec<Value>>() }))
}

/// Keeps the first rows of an answer.
#[derive(Default)]
struct FirstRows {
    limit: usize,
    names: Vec<String>,
    rows: Vec<Value>,
}

impl RowSink for FirstRows {
    fn columns(&mut self, names: &[String]) -> io::Result<()> {
        self.names = names.to_vec();
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> io::Result<()> {
        if self.rows.len() < self.limit {
            let cells = self.names.iter().cloned().zip(values.iter().map(json_value));
            self.rows.push(Value::Object(cells.collect::<Map<String, Value>>()));
        }
        Ok(())
    }
}
