//! Rows of answers to SQL, as in `tilescope query`.

use super::super::super::session::OpenedReport;
use crate::cli::command::CliError;
use crate::cli::query::Asked;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tilescope_analysis::sql::{
    RowSink, SqlQuestion, SqlValue, json_value, list_tables, run as ask,
};
use tilescope_report::Report;

/// The time limit of an agent's query.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The first rows of an answer.
pub(super) fn rows(opened: &OpenedReport, sql: &str, limit: usize) -> Result<Value, CliError> {
    let report = shared(opened)?;
    let sql = Asked::of(sql)?.sql_for(&report)?;
    let question = SqlQuestion { time_limit: TIME_LIMIT, ..SqlQuestion::new(sql) };
    let mut first = FirstRows { limit, ..FirstRows::default() };
    let summary = ask(&report, &question, &mut first)?;
    let mut answer = json!({ "rows": first.rows });
    let rest = summary.rows.saturating_sub(limit as u64);
    if let Some(rows) = answer["rows"].as_array_mut().filter(|_| rest > 0) {
        rows.push(json!({ "left_off": rest }));
    }
    if let Some(hint) = summary.hint() {
        answer["hint"] = hint.into();
    }
    Ok(answer)
}

/// The report for a query, which runs on separate threads.
fn shared(opened: &OpenedReport) -> Result<Arc<Report>, CliError> {
    Ok(Arc::new(Report::open(opened.report.path())?))
}

/// The tables for SQL, with their columns and units.
pub(super) fn tables(opened: &OpenedReport) -> Result<Value, CliError> {
    let tables = list_tables(&shared(opened)?)?;
    let table = tables.iter().map(|table| {
        let columns = table.columns.iter().map(|column| match column.unit.as_str() {
            "" | "id" | "number" | "count" => column.name.clone(),
            unit => format!("{} ({unit})", column.name),
        });
        let columns: Vec<String> = columns.collect();
        json!({ "table": table.name, "row": table.about, "columns": columns.join(", ") })
    });
    Ok(table.collect())
}

/// Collects the first rows of an answer.
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
