//! Writing rows into tables, with checks of their values.

use crate::error::ReportError;
use crate::schema;
use crate::strided_tile_runs::StridedTileRuns;
use crate::table_checksums::TableChecksums;
use crate::units::{IpuId, Quantity, ReplicaClassId, TileId};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ToSql};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

#[derive(Clone, Copy)]
pub(super) struct RowWriter<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    /// The checksums of the rows; none for rows outside of a report.
    pub(super) checksums: Option<&'a RefCell<TableChecksums>>,
}

impl<'a> RowWriter<'a> {
    /// Writes rows without checksums.
    pub(super) fn plain(connection: &'a Connection, path: &'a Path) -> Self {
        Self { connection, path, checksums: None }
    }

    /// Inserts a row of all columns.
    pub(super) fn insert(
        &self,
        table: &'static str,
        row: &[&dyn ToSql],
    ) -> Result<(), ReportError> {
        self.table(table)?.insert(row)
    }

    /// An inserter for many rows of one table.
    pub(super) fn table(&self, name: &'static str) -> Result<TableInserter<'a>, ReportError> {
        let statement = self
            .connection
            .prepare_cached(insert_into(name))
            .map_err(|e| ReportError::sqlite_writing(&e, self.path))?;
        Ok(TableInserter { statement, name, rows: *self })
    }

    /// Executes statements without parameters.
    pub(super) fn execute(&self, sql: &str) -> Result<(), ReportError> {
        self.connection.execute_batch(sql).map_err(|e| ReportError::sqlite_writing(&e, self.path))
    }
}

/// Inserts into one table, with a statement that is prepared once.
pub(super) struct TableInserter<'a> {
    statement: CachedStatement<'a>,
    name: &'static str,
    rows: RowWriter<'a>,
}

impl TableInserter<'_> {
    /// Inserts a row of all columns.
    pub(super) fn insert(&mut self, row: &[&dyn ToSql]) -> Result<(), ReportError> {
        let to_error = |e: rusqlite::Error| ReportError::sqlite_writing(&e, self.rows.path);
        // The checksum covers the values that SQLite stores, because a reader finds those.
        if let Some(checksums) = self.rows.checksums {
            let values: Vec<ToSqlOutput> = row
                .iter()
                .map(|value| value.to_sql())
                .collect::<Result<_, _>>()
                .map_err(to_error)?;
            checksums.borrow_mut().add(self.name, values.iter().map(stored));
        }
        self.statement.execute(row).map(|_| ()).map_err(to_error)
    }
}

/// A value as SQLite stores it.
pub(super) fn stored<'v>(value: &'v ToSqlOutput) -> ValueRef<'v> {
    match value {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => ValueRef::from(value),
        // Zero blobs, and variants of a later rusqlite: no code here writes them.
        _ => ValueRef::Null,
    }
}

/// Tiles, IPUs and classes of replicas are their numbers in the file.
impl ToSql for TileId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl ToSql for ReplicaClassId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl ToSql for IpuId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// The `INSERT` statement of `table`, built once: a trace has millions of rows.
fn insert_into(table: &str) -> &'static str {
    static STATEMENTS: LazyLock<BTreeMap<&str, String>> =
        LazyLock::new(|| schema::TABLES.iter().map(|table| (table.name, table.insert())).collect());
    STATEMENTS.get(table).map_or("", String::as_str)
}

/// `value` as the file stores it; refused above `most`. `what` is only called for an error message.
///
/// Inlined: seven numbers of every executed step pass here.
#[inline]
pub(super) fn checked_i64<Q: Quantity>(
    value: Q,
    most: Q,
    what: impl FnOnce() -> String,
) -> Result<i64, ReportError> {
    let value = value.number();
    let most = most.number();
    if value > most {
        return Err(ReportError::invalid_input(format!("{} is {value}, above {most}", what())));
    }
    Ok(value as i64)
}

/// Refuses an id that is not in a table of `count` rows.
pub(super) fn resolve(
    id: u32,
    count: usize,
    what: impl FnOnce() -> String,
) -> Result<u32, ReportError> {
    if id as usize >= count {
        return Err(ReportError::invalid_input(format!(
            "{} is {id}, but the report has {count}",
            what()
        )));
    }
    Ok(id)
}

/// Refuses tiles that the replica does not have.
pub(super) fn check_tiles_exist(
    tiles: &StridedTileRuns,
    count: u32,
    what: impl FnOnce() -> String,
) -> Result<(), ReportError> {
    let first = tiles.first;
    let end = tiles.last_run_end();
    if first >= end || end > TileId(count) {
        let what = what();
        return Err(ReportError::invalid_input(format!(
            "{what} is on tiles {first}..{end} of a replica of {count}"
        )));
    }
    Ok(())
}
