//! A connection for queries: reads a single file, writes nothing, and has limits.

use super::SqlError;
use super::record_tables::BoundRecords;
use super::spill::{self, DiskLimit};
use super::{functions, view_tables};
use crate::records::{QueryClock, RECORDS, RecordReader};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use tilescope_report::Report;

/// Bytes that SQLite may allocate for queries, over all connections of the process.
pub(super) const MEMORY_LIMIT: u64 = 288 << 20;
/// The largest number of bytes of a value; no value of a report is larger.
pub(super) const VALUE_LIMIT: i32 = 32 << 20;
/// Number of SQLite instructions between two checks of the clock.
const INSTRUCTIONS_PER_LOOK: i32 = 4_000;

/// Allowed PRAGMAs, which describe the file.
const PRAGMAS: [&str; 9] = [
    "application_id",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Opens the file of a report for a query, with the tables of its run and those of views that the
/// query names.
pub(super) fn open(
    report: &Arc<Report>,
    clock: &Arc<QueryClock>,
    disk: &Arc<DiskLimit>,
    sql: &str,
) -> Result<Connection, SqlError> {
    let mut connection = report.another_sqlite_connection()?;
    let reader = Arc::new(RecordReader::new(report.clone(), clock.clone()));
    let failed =
        |error: rusqlite::Error| SqlError::Failed(format!("the report cannot be queried: {error}"));
    prepare(&mut connection, report, reader).map_err(failed)?;
    functions::register(&connection, report).map_err(failed)?;
    view_tables::make(&connection, report, sql)?;
    lock(&mut connection, clock, disk).map_err(failed)?;
    Ok(connection)
}

fn prepare(
    connection: &mut Connection,
    report: &Report,
    reader: Arc<RecordReader>,
) -> rusqlite::Result<()> {
    let limits = [
        (Limit::SQLITE_LIMIT_LENGTH, VALUE_LIMIT),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 200),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ];
    limits
        .into_iter()
        .try_for_each(|(limit, most)| connection.set_limit(limit, most).map(|_| ()))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    // An unknown name in double quotes is an error, not a string.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    // Sorting more rows than the cache holds uses files, if their space is limited.
    let temporary = if spill::is_limited() { "FILE" } else { "MEMORY" };
    connection.execute_batch(&format!(
        "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -16384;
         PRAGMA temp_store = {temporary}; PRAGMA hard_heap_limit = {MEMORY_LIMIT};"
    ))?;
    for table in RECORDS {
        let name = table.name;
        let stands_in = table.stands_in(report) && lacks_rows(connection, name)?;
        if !table.is_own() && !stands_in {
            continue;
        }
        let bound = Arc::new(BoundRecords { table, reader: reader.clone() });
        tilescope_vtab::register(connection, name, bound)?;
        if stands_in {
            // Created in the temp schema, which has priority over the file's tables.
            connection.execute_batch(&format!("CREATE VIRTUAL TABLE temp.{name} USING {name}"))?;
        }
    }
    Ok(())
}

/// Restricts the connection to reading, within the limits of time and disk space.
fn lock(
    connection: &mut Connection,
    clock: &Arc<QueryClock>,
    disk: &Arc<DiskLimit>,
) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA query_only = ON")?;
    let strange = virtual_tables_of_the_file(connection)?;
    let (time, space, mut last) = (clock.clone(), disk.clone(), Instant::now());
    let is_over = move || time.is_over() || space.look(&mut last);
    connection.progress_handler(INSTRUCTIONS_PER_LOOK, Some(is_over))?;
    connection.authorizer(Some(move |context: AuthContext| permission(&context, &strange)))
}

/// True if a table of the run has no rows, in a report that stores them as columns.
fn lacks_rows(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    // Such reports have a view with an explanation in its place; files before version 2.0 have rows
    // of marks.
    let sql = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1";
    let is_table = connection.prepare(sql)?.exists([name])?;
    let any = format!("SELECT 1 FROM main.{name} LIMIT 1");
    Ok(!is_table || !connection.prepare(&any)?.exists([])?)
}

/// Virtual tables declared by the file: they would run code that no report needs.
fn virtual_tables_of_the_file(connection: &Connection) -> rusqlite::Result<HashSet<String>> {
    let sql = "SELECT lower(name) FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0";
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// The permissions of a query: reading and computing.
fn permission(context: &AuthContext, strange: &HashSet<String>) -> Authorization {
    let allowed = match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } => {
            context.database_name != Some("main") || !strange.contains(&table_name.to_lowercase())
        }
        AuthAction::Function { function_name } => {
            !["load_extension", "fts3_tokenizer"].contains(&function_name)
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            // `table_info` takes the name of a table; a value would set the others.
            let is_list = pragma_name.ends_with("info") || pragma_name.ends_with("_list");
            PRAGMAS.contains(&pragma_name) && (is_list || pragma_value.is_none())
        }
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
