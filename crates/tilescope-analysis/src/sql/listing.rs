//! List of the tables of a report that SQL can query, with their columns and units.

use super::SqlError;
use super::connection;
use crate::records::{QueryClock, RECORDS, RecordTable};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tilescope_report::{Report, schema};
use tilescope_vtab::ColumnRole;

/// A table that SQL can query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTable {
    pub name: String,
    /// The meaning of a row; empty if not known.
    pub about: String,
    pub columns: Vec<ListedColumn>,
}

/// A column of a listed table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedColumn {
    pub name: String,
    /// Its type in SQL; empty if it has none.
    pub declaration: String,
    /// The unit of its numbers; empty without one.
    pub unit: String,
    /// The content of the column; empty if not known.
    pub about: String,
}

/// Every table and view of a report, and the functions of its run, by name.
///
/// # Errors
/// Reports that cannot be read.
pub fn list_tables(report: &Arc<Report>) -> Result<Vec<ListedTable>, SqlError> {
    let clock = Arc::new(QueryClock::new(Duration::from_secs(10), Arc::default()));
    let connection = connection::open(report, &clock, &Arc::default(), "")?;
    let failed = |error: rusqlite::Error| SqlError::Failed(error.to_string());
    let sql = "SELECT name FROM main.sqlite_schema WHERE type IN ('table', 'view')
               AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
    let names: Vec<String> = names.filter_map(Result::ok).collect();
    let mut tables: Vec<ListedTable> = Vec::new();
    for name in names {
        if RECORDS.iter().any(|table| table.stands_in(report) && table.name == name) {
            continue;
        }
        let columns = columns_of(&connection, &name).map_err(failed)?;
        let about = schema::about(&name).unwrap_or_default().to_owned();
        tables.push(ListedTable { name, about, columns });
    }
    let of_the_run = RECORDS.iter().filter(|table| table.is_own() || table.stands_in(report));
    tables.extend(of_the_run.map(listed));
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tables)
}

fn columns_of(
    connection: &rusqlite::Connection,
    table: &str,
) -> rusqlite::Result<Vec<ListedColumn>> {
    let known = schema::columns_of(table);
    let mut statement = connection.prepare("SELECT name, type FROM pragma_table_xinfo(?1)")?;
    let columns = statement.query_map([table], |row| {
        let name: String = row.get(0)?;
        let own = known.iter().find(|column| column.name.eq_ignore_ascii_case(&name));
        Ok(ListedColumn {
            declaration: row.get(1)?,
            unit: own.map_or("", |own| own.unit).to_owned(),
            about: own.map_or("", |own| own.about).to_owned(),
            name,
        })
    })?;
    Ok(columns.filter_map(Result::ok).collect())
}

fn listed(table: &RecordTable) -> ListedTable {
    let mut columns = Vec::new();
    for column in table.columns() {
        columns.push(ListedColumn {
            name: column.name.to_owned(),
            declaration: column.declaration.to_owned(),
            unit: column.unit.to_owned(),
            about: column.about.to_owned(),
        });
    }
    ListedTable { name: table.name.to_owned(), about: table.about.to_owned(), columns }
}

/// The functions of a run as Markdown, for `docs/format.md`.
pub fn function_document() -> String {
    let mut text = String::new();
    for table in RECORDS.iter().filter(|table| table.is_own()) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "### `{}`\n\n{}.\n\n| column | SQL | unit | holds |\n|---|---|---|---|\n",
            table.name,
            schema::sentence(table.about)
        );
        for column in table.columns() {
            let hidden = if column.role == ColumnRole::Argument { " (hidden)" } else { "" };
            let _ = writeln!(
                text,
                "| `{}` | {}{hidden} | {} | {} |",
                column.name, column.declaration, column.unit, column.about
            );
        }
        text.push('\n');
    }
    text
}
