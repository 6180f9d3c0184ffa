//! A defensive view of an untrusted SQLite file.
//!
//! Only plain tables are read: a view, a virtual table or a generated column could hide unbounded
//! work. A query may take as much work as a sound file of that size can need, and a value may be as
//! large as the values of reports are. A value of the wrong type counts as missing.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::bounded_connection::{QueryBudget, harden_connection, plain_tables};
use super::error::ReportError;
use super::limits::{MAX_LIST_BYTES, MAX_LIST_TEXT_BYTES};
use super::packed_columns::UnpackedRows;
use super::row_cells::{RowCells, RowSource, integer};
use super::schema;
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub(super) use super::report_warnings::{ReportWarnings, lock};
pub(super) use super::row_cells::SelectQuery;

/// An open file and the plain tables in it.
pub(super) struct ReportDatabase {
    connection: Mutex<Connection>,
    tables: BTreeMap<String, Vec<String>>,
    path: PathBuf,
    bytes: u64,
    most_rows: u64,
    budget: QueryBudget,
    /// True for each known query that has a row, by the table and column it is about.
    filled: Mutex<BTreeMap<String, bool>>,
    pub(super) warnings: Arc<ReportWarnings>,
}

impl ReportDatabase {
    /// Takes over a connection that was opened read-only; `bytes` is the size of the file.
    pub(super) fn new(
        connection: Connection,
        path: &Path,
        bytes: u64,
        known: &[&str],
        warnings: Arc<ReportWarnings>,
    ) -> Result<Self, ReportError> {
        let budget = QueryBudget::for_file(bytes);
        let mut connection = connection;
        harden_connection(&mut connection, &budget)
            .map_err(|e| ReportError::sqlite_reading(&e, "header", path))?;
        let tables = plain_tables(&connection, known)
            .map_err(|e| ReportError::sqlite_reading(&e, "list of tables", path))?;
        Ok(Self {
            connection: Mutex::new(connection),
            tables,
            path: path.to_owned(),
            bytes,
            most_rows: bytes / 4 + 16,
            budget,
            filled: Mutex::default(),
            warnings,
        })
    }

    /// The columns of a plain table; none if there is no such table.
    pub(super) fn columns(&self, table: &str) -> &[String] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }

    /// Stores a flag that interrupts the running query with an error once it is set.
    pub(super) fn set_cancel(&mut self, cancel: Arc<AtomicBool>) -> Result<(), ReportError> {
        self.budget.cancel = cancel;
        self.budget
            .watch(&mut lock(&self.connection))
            .map_err(|e| ReportError::sqlite_reading(&e, "header", &self.path))
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.budget.cancel.load(Ordering::Relaxed)
    }

    /// True if the file has this table, as a plain one.
    pub(super) fn has_table(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// True if the file has this table with this column.
    pub(super) fn has(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|columns| columns.iter().any(|c| c == column))
    }

    /// True if rows of this table have row ids.
    pub(super) fn has_rowid(&self, table: &str) -> bool {
        let sql = format!("SELECT rowid FROM \"{table}\" LIMIT 1");
        self.has_table(table) && lock(&self.connection).prepare(&sql).is_ok()
    }

    /// True if the file has this table and it has rows. The answer is cached, because views ask for
    /// it in every frame and another query may hold the connection. A failed read is repeated.
    pub(super) fn has_rows(&self, table: &str) -> bool {
        self.any(table, SelectQuery::all(table, &[]).clauses("LIMIT 1"))
    }

    /// True if the file has this table with this column, and some row has a value that is not NULL.
    /// The answer is cached.
    pub(super) fn has_values(&self, table: &str, column: &str) -> bool {
        let filled = format!("WHERE \"{column}\" IS NOT NULL LIMIT 1");
        let select = SelectQuery::all(table, &[]).clauses(&filled);
        self.has(table, column) && self.any(&format!("{table}.{column}"), select)
    }

    /// True if a query has any row. The answer is cached under `name`.
    fn any(&self, name: &str, select: SelectQuery) -> bool {
        if let Some(&known) = lock(&self.filled).get(name) {
            return known;
        }
        let found = self.first(select, |_| ());
        let any = matches!(found, Ok(Some(())));
        if found.is_ok() {
            lock(&self.filled).insert(name.to_owned(), any);
        }
        any
    }

    /// The names of the known tables in the file.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Passes rows to `each` until it breaks. A missing table has no rows. `each` must not call any
    /// other method of this file.
    pub(super) fn read(
        &self,
        select: SelectQuery,
        mut each: impl FnMut(&RowCells) -> Result<ControlFlow<()>, ReportError>,
    ) -> Result<(), ReportError> {
        let mut texts = 0;
        let mut rows = 0;
        self.stream(select, |cells| {
            let flow = each(cells)?;
            texts += cells.bytes_handed();
            rows += 1;
            if texts + 64 * rows > MAX_LIST_BYTES || texts > MAX_LIST_TEXT_BYTES {
                self.warnings.add_limit(format!(
                    "table {} is too large to hold in memory: only its first rows are shown",
                    select.table
                ));
                return Ok(ControlFlow::Break(()));
            }
            Ok(flow)
        })
    }

    /// Like [`ReportDatabase::read`], for callers that do not keep the rows.
    pub(super) fn stream(
        &self,
        select: SelectQuery,
        mut each: impl FnMut(&RowCells) -> Result<ControlFlow<()>, ReportError>,
    ) -> Result<(), ReportError> {
        if !self.has_table(select.table) {
            return Ok(());
        }
        let connection = lock(&self.connection);
        let sql = sql(&select, self.columns(select.table));
        let to_error = |e: rusqlite::Error| self.failure(&e, select.table);
        self.budget.refill();
        let mut statement = connection.prepare_cached(&sql).map_err(to_error)?;
        let mut rows = statement.query(params_from_iter(select.params)).map_err(to_error)?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(to_error)? {
            count += 1;
            if count > self.most_rows {
                let problem = "more rows than a file of this size can hold";
                return Err(self.damage(select.table, problem));
            }
            if each(&RowCells::new(RowSource::Sqlite(row), &select, &self.warnings))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Refuses rows of a table that unpack to more bytes than their packed size can stand for.
    pub(super) fn check_raw_bytes(&self, table: &str, raw: u64) -> Result<(), ReportError> {
        if raw > self.bytes.saturating_mul(MOST_RAW_PER_BYTE).saturating_add(MOST_RAW_BYTES) {
            return Err(self.damage(table, "more rows than a file of this size can hold"));
        }
        Ok(())
    }

    /// Unpacks rows of `table` from the compressed columns in the piece `id` of `holder`.
    fn unpack(
        &self,
        holder: &str,
        id: i64,
        table: &str,
        columns: &[&str],
        (rows, data): (usize, &[u8]),
    ) -> Result<UnpackedRows, ReportError> {
        let rows =
            schema::find(table).and_then(|table| UnpackedRows::decode(table, columns, rows, data));
        rows.ok_or_else(|| self.damage(holder, &format!("piece {id} is broken")))
    }

    /// Passes on rows of another table that are stored as compressed columns in the piece `id` of
    /// `holder`. Returns their size in bytes.
    pub(super) fn read_piece(
        &self,
        holder: &str,
        (id, rows): (i64, usize),
        select: SelectQuery,
        mut each: impl FnMut(&RowCells),
    ) -> Result<u64, ReportError> {
        let data = self.blob(holder, "data", id)?;
        let unpacked = self.unpack(holder, id, select.table, select.columns, (rows, &data))?;
        for row in 0..rows {
            each(&RowCells::new(RowSource::Packed(&unpacked, row), &select, &self.warnings));
        }
        Ok(unpacked.bytes() as u64)
    }

    /// The blob in the row `id` of a table.
    fn blob(&self, table: &str, column: &str, id: i64) -> Result<Vec<u8>, ReportError> {
        let columns = [column];
        let params = [id];
        let select = SelectQuery::all(table, &columns).clauses("WHERE id = ?1").params(&params);
        let blob = self.first(select, |cells| cells.blob(0).map(<[u8]>::to_vec))?;
        blob.flatten().ok_or_else(|| self.damage(table, &format!("piece {id} is missing")))
    }

    /// Collects all rows in a list.
    pub(super) fn list<T>(
        &self,
        select: SelectQuery,
        mut item: impl FnMut(&RowCells) -> T,
    ) -> Result<Vec<T>, ReportError> {
        let mut items = Vec::new();
        self.read(select, |cells| {
            items.push(item(cells));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(items)
    }

    /// The first row, if there is one.
    pub(super) fn first<T>(
        &self,
        select: SelectQuery,
        mut item: impl FnMut(&RowCells) -> T,
    ) -> Result<Option<T>, ReportError> {
        let mut found = None;
        self.read(select, |cells| {
            found = Some(item(cells));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The number of rows of a plain table; `None` if the file has no such table.
    pub(super) fn row_count(&self, table: &str) -> Result<Option<u64>, ReportError> {
        // `count(*)` is one instruction, which cannot be interrupted in a file whose pages form a
        // loop; a sum checks for interrupts at each row.
        Ok(self.worked_out(table, "total(1)")?.map(i64::unsigned_abs))
    }

    /// The value of an aggregate `expression` over the columns of a plain table; `None` if the file
    /// has no such table.
    pub(super) fn worked_out(
        &self,
        table: &str,
        expression: &str,
    ) -> Result<Option<i64>, ReportError> {
        if !self.has_table(table) {
            return Ok(None);
        }
        let connection = lock(&self.connection);
        self.budget.refill();
        let sql = format!("SELECT {expression} FROM \"{table}\"");
        let value = connection.query_row(&sql, [], |row| Ok(integer(row.get_ref(0)?)));
        value.map_err(|e| self.failure(&e, table))
    }

    /// Merges two tables that are both sorted by their first column. For each row of `right`,
    /// passes on the row of `left` with the same number, converted to an item, if there is one.
    /// Neither table is kept in memory. Rows of `right` without a number are skipped. Where a
    /// number of `right` is smaller than the previous one, `each` gets no row of `left`.
    pub(super) fn merge<T>(
        &self,
        left: SelectQuery,
        right: SelectQuery,
        mut item: impl FnMut(&RowCells) -> T,
        mut each: impl FnMut(Option<&T>, &RowCells) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let connection = lock(&self.connection);
        self.budget.refill();
        let prepare = |select: &SelectQuery| {
            let columns = self.tables.get(select.table).map_or(&[][..], Vec::as_slice);
            connection.prepare(&sql(select, columns)).map_err(|e| self.failure(&e, select.table))
        };
        let mut right_statement = prepare(&right)?;
        let mut left_statement =
            if self.has_table(left.table) { Some(prepare(&left)?) } else { None };
        let mut left_rows = match &mut left_statement {
            Some(statement) => Some(statement.query([]).map_err(|e| self.failure(&e, left.table))?),
            None => None,
        };
        let mut read_next_left = || -> Result<Option<(i64, T)>, ReportError> {
            let Some(rows) = &mut left_rows else { return Ok(None) };
            while let Some(row) = rows.next().map_err(|e| self.failure(&e, left.table))? {
                let cells = RowCells::new(RowSource::Sqlite(row), &left, &self.warnings);
                if let Some(number) = cells.int(0) {
                    return Ok(Some((number, item(&cells))));
                }
            }
            Ok(None)
        };
        let to_error = |e: rusqlite::Error| self.failure(&e, right.table);
        let mut right_rows = right_statement.query([]).map_err(to_error)?;
        let mut current = read_next_left()?;
        let mut count = 0;
        while let Some(row) = right_rows.next().map_err(to_error)? {
            let cells = RowCells::new(RowSource::Sqlite(row), &right, &self.warnings);
            count += 1;
            if count > self.most_rows {
                return Err(self.damage(right.table, "more rows than a file of this size can hold"));
            }
            let Some(number) = cells.int(0) else { continue };
            while current.as_ref().is_some_and(|(left, _)| *left < number) {
                current = read_next_left()?;
            }
            let found = current.as_ref().filter(|(left, _)| *left == number);
            each(found.map(|(_, item)| item), &cells)?;
        }
        Ok(())
    }

    /// The integer that a PRAGMA answers; 0 if it gives none.
    fn pragma(&self, name: &str) -> i64 {
        lock(&self.connection).pragma_query_value(None, name, |row| row.get(0)).unwrap_or(0)
    }

    /// The application id in the header of the file.
    pub(super) fn application_id(&self) -> i64 {
        self.pragma("application_id")
    }

    /// The version in the header of the file.
    pub(super) fn user_version(&self) -> i64 {
        self.pragma("user_version")
    }

    /// The defects that SQLite finds in the structure of the file, ten at most.
    pub(super) fn broken_structure(&self) -> Vec<String> {
        self.budget.refill();
        let connection = lock(&self.connection);
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = connection.prepare("PRAGMA integrity_check(10)")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            lines.collect()
        };
        match read() {
            Ok(lines) => lines.into_iter().filter(|line| line != "ok").collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    /// An error about damage to `table`.
    pub(super) fn damage(&self, table: &str, problem: &str) -> ReportError {
        ReportError::damaged(format!("table {table}: {problem}"), &self.path)
    }

    fn failure(&self, error: &rusqlite::Error, table: &str) -> ReportError {
        if self.is_cancelled() {
            return ReportError::Cancelled;
        }
        ReportError::sqlite_reading(error, &format!("table {table}"), &self.path)
    }
}

/// Raw bytes that rows of a packed table may have: a fixed number, plus a number per byte of the
/// file.
const MOST_RAW_BYTES: u64 = 64 << 20;
const MOST_RAW_PER_BYTE: u64 = 64;
fn sql(select: &SelectQuery, existing: &[String]) -> String {
    let mut columns: Vec<String> = select
        .columns
        .iter()
        .map(|name| {
            if *name == "rowid" || existing.iter().any(|e| e == name) {
                format!("\"{name}\"")
            } else {
                "NULL".to_owned()
            }
        })
        .collect();
    if columns.is_empty() {
        columns.push("1".to_owned());
    }
    format!("SELECT {} FROM \"{}\" {}", columns.join(", "), select.table, select.clauses)
}
