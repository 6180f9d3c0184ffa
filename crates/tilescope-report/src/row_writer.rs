//! Rows into tables, with values checked on the way.

use crate::error::ReportError;
use crate::schema;
use crate::strided_tile_runs::StridedTileRuns;
use crate::units::{IpuId, Quantity, TileId};
use rusqlite::types::ToSqlOutput;
use rusqlite::{CachedStatement, Connection, Params, ToSql};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

pub(super) struct RowWriter<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
}

impl RowWriter<'_> {
    /// Inserts a row of all columns.
    pub(super) fn insert(&self, table: &str, row: impl Params) -> Result<(), ReportError> {
        self.table(table)?.insert(row)
    }

    /// A table that many rows go into.
    pub(super) fn table(&self, name: &str) -> Result<TableInserter<'_>, ReportError> {
        let failed = |e: rusqlite::Error| ReportError::sqlite_writing(&e, self.path);
        let statement = self.connection.prepare_cached(insert_into(name)).map_err(failed)?;
        Ok(TableInserter { statement, path: self.path })
    }

    /// Executes statements without parameters.
    pub(super) fn execute(&self, sql: &str) -> Result<(), ReportError> {
        let failed = |e: rusqlite::Error| ReportError::sqlite_writing(&e, self.path);
        self.connection.execute_batch(sql).map_err(failed)
    }
}

/// Where rows of one table go: what inserts them is looked up once.
pub(super) struct TableInserter<'a> {
    statement: CachedStatement<'a>,
    path: &'a Path,
}

impl TableInserter<'_> {
    /// Inserts a row of all columns.
    pub(super) fn insert(&mut self, row: impl Params) -> Result<(), ReportError> {
        let failed = |e: rusqlite::Error| ReportError::sqlite_writing(&e, self.path);
        self.statement.execute(row).map(|_| ()).map_err(failed)
    }
}

/// Tiles and IPUs are their numbers in the file.
impl ToSql for TileId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl ToSql for IpuId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// The statement that inserts into `table`, put together once: a trace has millions of rows.
fn insert_into(table: &str) -> &'static str {
    static STATEMENTS: LazyLock<BTreeMap<&str, String>> =
        LazyLock::new(|| schema::TABLES.iter().map(|table| (table.name, table.insert())).collect());
    STATEMENTS.get(table).map_or("", String::as_str)
}

/// `value` as the file keeps it; refused beyond `most`. `what` is put into words on refusal only.
///
/// Inlined: seven numbers of every executed step pass here.
#[inline]
pub(super) fn checked_i64<Q: Quantity>(
    value: Q,
    most: Q,
    what: impl FnOnce() -> String,
) -> Result<i64, ReportError> {
    let (value, most) = (value.number(), most.number());
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
            "{} is {id}, but there are {count}",
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
    let (first, end) = (tiles.first, tiles.last_run_end());
    if first >= end || end > TileId(count) {
        let what = what();
        return Err(ReportError::invalid_input(format!(
            "{what} lies on tiles {first}..{end} of a replica of {count}"
        )));
    }
    Ok(())
}
