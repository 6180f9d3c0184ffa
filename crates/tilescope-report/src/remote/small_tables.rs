//! Small tables travel whole when a report is opened, and are asked here: a program has dozens of
//! them, and each question over the pipe takes the delay of the link.

// Everything here reads bytes that anybody may have sent.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::messages::{CellReader, DatabaseFacts, write_cell};
use crate::database::{ReportDatabase, SelectQuery};
use crate::error::ReportError;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};
use std::ops::ControlFlow;

/// Bytes of a table that is small, and of all of them.
const MAX_TABLE_BYTES: usize = 16 << 10;
const MAX_BYTES: usize = 256 << 10;
/// Names that SQLite has for the number of a row.
const ROW_NUMBERS: [&str; 3] = ["rowid", "oid", "_rowid_"];

/// The cells of all small tables, table after table as they are in `facts`, which says from now on
/// how many rows each has.
pub(super) fn pack(
    database: &ReportDatabase,
    facts: &mut DatabaseFacts,
) -> Result<Vec<u8>, ReportError> {
    let mut cells = Vec::new();
    for (name, table) in &mut facts.tables {
        let columns = sent_columns(&table.columns, table.has_rowid);
        let Some(columns) = columns else { continue };
        let (before, mut rows, mut is_small) = (cells.len(), 0, true);
        let select = SelectQuery::all(name, &columns);
        let read = database.stream(select, |row| {
            row.values().for_each(|value| write_cell(&mut cells, value));
            rows += 1;
            is_small = cells.len() - before <= MAX_TABLE_BYTES && cells.len() <= MAX_BYTES;
            Ok(if is_small { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        // What cannot be read is asked for when it is needed, and fails then.
        if is_small && read.is_ok() {
            table.rows = Some(rows);
        } else {
            cells.truncate(before);
        }
    }
    Ok(cells)
}

/// The columns that travel, the number of the row first if it has one; `None` for tables whose
/// columns cannot be named in a copy.
fn sent_columns(columns: &[String], has_rowid: bool) -> Option<Vec<&str>> {
    let is_plain = |name: &str| {
        let letters = name.chars().all(|l| l.is_ascii_alphanumeric() || l == '_');
        letters && !name.is_empty() && !ROW_NUMBERS.contains(&name)
    };
    let names: Option<Vec<&str>> =
        columns.iter().map(|name| Some(name.as_str()).filter(|name| is_plain(name))).collect();
    let number = has_rowid.then_some("rowid");
    (!columns.is_empty()).then_some(())?;
    Some(number.into_iter().chain(names?).collect())
}

/// A database in memory with the small tables of `facts`; `None` where the cells are not theirs.
pub(super) fn unpack(facts: &DatabaseFacts, cells: &[u8]) -> Option<Connection> {
    let copy = Connection::open_in_memory().ok()?;
    copy.execute_batch("PRAGMA journal_mode = OFF; BEGIN").ok()?;
    let mut cells = CellReader::new(cells);
    for (name, table) in &facts.tables {
        let Some(rows) = table.rows else { continue };
        let columns = sent_columns(&table.columns, table.has_rowid)?;
        let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_plain.then_some(())?;
        let quoted = |names: &[String]| {
            names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
        };
        copy.execute_batch(&format!("CREATE TABLE \"{name}\"({})", quoted(&table.columns))).ok()?;
        let names = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let values = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO \"{name}\"({names}) VALUES ({values})");
        let mut insert = copy.prepare(&insert).ok()?;
        for _ in 0..rows {
            let row: Option<Vec<Cell>> = columns.iter().map(|_| cells.take().map(Cell)).collect();
            insert.execute(params_from_iter(row?)).ok()?;
        }
    }
    copy.execute_batch("COMMIT").ok()?;
    cells.is_done().then_some(copy)
}

/// A cell as SQLite takes it: a text may be in no encoding at all.
struct Cell<'a>(ValueRef<'a>);

impl rusqlite::ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0))
    }
}
