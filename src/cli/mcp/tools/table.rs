//! Rows of any table: by name, with SQL or by a search.

mod found;
mod specs;
mod sql;

use super::super::answer::first;
use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::McpSession;
use super::{CHANGES, LIMIT, McpTool, REPORT, ToolAnswer};
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::{Map, Value, json};
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};
use tilescope_analysis::grouping::{GroupKey, GroupingError};
use tilescope_analysis::records::RowSelection;
use tilescope_analysis::tables::{self, NamedTable, find as find_table};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::Report;

const OPTIONAL_REPORT: ToolArgument = ToolArgument { required: false, ..REPORT };
const TABLE: ToolArgument = ToolArgument::optional(
    "table",
    ArgumentKind::Text,
    "Table of a topic, for example \"memory/variables\"; \"memory\" is its first. \"specs\" and \
     \"keys\" need no report: the bundled specs, and the keys that `changes` may set",
);
const SQL: ToolArgument = ToolArgument::optional(
    "sql",
    ArgumentKind::Text,
    "Instead: a SELECT in SQLite's SQL, or the name of a ready query. Quote the names of tables of \
     topics; program_cycles(first_cycle, end_cycle), activity_cycles(…) and steps_between(…) have \
     the sums and steps of a window of cycles, or without arguments of the run",
);
const FIND: ToolArgument = ToolArgument::optional(
    "find",
    ArgumentKind::Text,
    "Instead: words that must occur in the name, /regular expressions/, \"phrases\", -excluded words, \
     and filters: in:steps type:DoExchange name~attn name=relu ipu:0..3 tile:17 cycles>10k \
     bytes>=64KiB count<3. Lists for in: are steps, operations, programs, variables, tensors, vertices",
);
const CONTAINS: ToolArgument = ToolArgument::optional(
    "contains",
    ArgumentKind::Text,
    "Only rows with a text that contains this",
);
const SORT: ToolArgument =
    ToolArgument::optional("sort", ArgumentKind::Text, "Column to sort rows by, the largest first");

const GROUP_BY: ToolArgument = ToolArgument::optional(
    "group_by",
    ArgumentKind::Text,
    "Rows of a table of operations in groups with sums and shares, by: block, layer (kind of layer: \
     layer*/ff2/wu), part (layer*/ff2), operator, pass, stage or ipu",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "table",
    about: "Returns rows of any table of a report: memory by tile and by variable, liveness, \
            program tree, operations, their lower bounds (limits/operations), the critical path \
            (execution-trace/critical-path) and slack, exchanges and more. Or the rows of a \
            read-only SELECT; or the steps, operations, programs, variables, tensors and vertices \
            that a search finds, with totals over all matches. Without any of the three it lists \
            the tables and, for a report, the tables of SQL with their columns.",
    arguments: &[OPTIONAL_REPORT, CHANGES, TABLE, SQL, FIND, CONTAINS, SORT, LIMIT],
    answer: &[
        AnswerField::sometimes("report", AnswerKind::Text, "The report as it was named"),
        AnswerField::sometimes(
            "columns",
            AnswerKind::Rows(&[
                AnswerField::always("name", AnswerKind::Text, "Its title"),
                AnswerField::sometimes("unit", AnswerKind::Text, "Unit of its values"),
                AnswerField::sometimes("formula", AnswerKind::Text, "Formulas of the columns"),
            ]),
            "Columns of a table, in the order of cells",
        ),
        AnswerField::sometimes(
            "rows",
            AnswerKind::Cells,
            "Lists of cells of a table; otherwise objects. The last gives the number of rows left \
             out",
        ),
        AnswerField::sometimes("totals", AnswerKind::Any, "find: sums over all matches"),
        AnswerField::sometimes("units", AnswerKind::Object, "find: units of the sums"),
        AnswerField::sometimes("hint", AnswerKind::Text, "sql: hints for a faster or safer query"),
        AnswerField::sometimes("tables", AnswerKind::Rows(&[]), "Tables to request by name"),
        AnswerField::sometimes("sql", AnswerKind::Rows(&[]), "Tables of SQL with their columns"),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let [table, sql, find] = [TABLE, SQL, FIND].map(|of| arguments.text(of.name));
    if [table, sql, find].into_iter().flatten().count() > 1 {
        return Err(UsageError::Request("pass one of table, sql and find at a time").into());
    }
    let has_rows = table.is_none() && (sql.is_some() || find.is_some());
    for of in [CONTAINS, SORT, GROUP_BY] {
        if has_rows && arguments.text(of.name).is_some() {
            return Err(UsageError::NotForAnswers(of.name).into());
        }
    }
    let word = arguments.text(CONTAINS.name).unwrap_or_default().to_lowercase();
    let limit = arguments.limit();
    if let Some(mut rows) = table.and_then(specs::rows) {
        rows.retain(|row| row.to_string().to_lowercase().contains(&word));
        return Ok(json!({ "rows": first(rows.into_iter(), limit, |row| row) }).into());
    }
    let known = table.map(find_table).transpose()?;
    let Some(report) = arguments.text(REPORT.name) else {
        if table.or(sql).or(find).is_some() {
            return Err(UsageError::MissingArgument { name: "report", about: REPORT.about }.into());
        }
        return Ok(json!({ "tables": listed() }).into());
    };
    let opened = session.open(report, &arguments.changes(CHANGES.name))?;
    let answer = match (known, sql, find) {
        (Some(table), ..) => {
            let mut rows = match arguments.text(GROUP_BY.name) {
                Some(key) => read_groups(table, &opened.report, key)?,
                None => read(table, &opened.report)?,
            };
            rows.rows.retain(|row| row.iter().any(|cell| has_word(cell, &word)));
            if let Some(column) = arguments.text(SORT.name) {
                sort(&mut rows, column)?;
            }
            let place = match table {
                NamedTable::OfTopic(table) => Some(ViewLocation::view(table.view)),
                NamedTable::Record(_) => None,
            };
            opened.linked(table_json(&rows, limit), place.as_ref())
        }
        (_, Some(sql), _) => sql::rows(&opened, sql, limit)?,
        (.., Some(query)) => found::rows(&opened, query, limit)?,
        _ => json!({ "tables": listed(), "sql": sql::tables(&opened)? }),
    };
    Ok(opened.answer(answer)?.into())
}

/// All rows of a table.
fn read(table: NamedTable, report: &Report) -> Result<DataTable, CliError> {
    match table {
        NamedTable::OfTopic(table) => Ok((table.read)(report)?),
        NamedTable::Record(record) => {
            let rows = record.read_whole(report, &RowSelection::default())?;
            rows.ok_or_else(|| UsageError::AskedInSql(record.name).into())
        }
    }
}

/// The rows of a table in groups.
fn read_groups(table: NamedTable, report: &Report, key: &str) -> Result<DataTable, CliError> {
    let Some(key) = GroupKey::of_name(key) else {
        let known = GroupKey::ALL.map(GroupKey::name).join(", ");
        return Err(UsageError::unknown("group_by", key, format!("; known: {known}")).into());
    };
    let groups = match table {
        NamedTable::OfTopic(table) => table.grouped(report, key),
        NamedTable::Record(table) => Err(GroupingError::NoGroups { table: table.name.to_owned() }),
    };
    groups.map_err(|error| match error {
        GroupingError::Report(error) => CliError::from(error),
        error => UsageError::Table(error.into()).into(),
    })
}

/// The tables that can be read by name.
fn listed() -> Vec<Value> {
    let tables = tables::listed().into_iter();
    tables.map(|table| json!({ "table": table.name, "about": table.about })).collect()
}

fn has_word(cell: &TableCell, word: &str) -> bool {
    word.is_empty() || matches!(cell, TableCell::Text(text) if text.to_lowercase().contains(word))
}

fn sort(table: &mut DataTable, column: &str) -> Result<(), CliError> {
    let is_named = |title: &str| title.eq_ignore_ascii_case(column);
    let Some(at) = table.columns.iter().position(|of| is_named(&of.title)) else {
        let known: Vec<&str> = table.columns.iter().map(|of| of.title.as_str()).collect();
        let hint = format!("; known: {}", known.join(", "));
        return Err(UsageError::unknown("column", column, hint).into());
    };
    table.rows.sort_by(|a, b| b[at].compare(&a[at]));
    Ok(())
}

/// A table with its first rows.
fn table_json(table: &DataTable, limit: usize) -> Value {
    let columns: Vec<Value> = table.columns.iter().map(column).collect();
    json!({ "columns": columns, "rows": first(table.rows.iter(), limit, |cells| json!(cells)) })
}

fn column(column: &TableColumn) -> Value {
    let mut said = Map::new();
    said.insert("name".to_owned(), column.title.as_str().into());
    if let Some(unit) = column.unit {
        said.insert("unit".to_owned(), unit.into());
    }
    if !column.about.is_empty() {
        said.insert("formula".to_owned(), column.about.into());
    }
    Value::Object(said)
}
