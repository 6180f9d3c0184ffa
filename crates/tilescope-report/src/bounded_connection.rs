//! A connection to an untrusted SQLite file: its settings, a bound on the work of a query, and the
//! tables that can be read without running code from the file.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::limits::MAX_VALUE_BYTES;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// SQLite instructions between two checks of the budget.
const INSTRUCTIONS_PER_LOOK: i32 = 10_000;

/// A bound on the work of a query; shared with SQLite's progress handler.
#[derive(Clone)]
pub(super) struct QueryBudget {
    left: Arc<AtomicU64>,
    full: u64,
    pub(super) cancel: Arc<AtomicBool>,
}

impl QueryBudget {
    /// The budget for a file of this size. The smallest row takes about six bytes of the file, and
    /// a scan spends at most a few hundred instructions on a row.
    pub(super) fn for_file(bytes: u64) -> Self {
        // A remote machine may report any size for its file.
        let full = bytes.saturating_mul(64).saturating_add(50_000_000);
        Self { left: Arc::new(AtomicU64::new(full)), full, cancel: Arc::default() }
    }

    pub(super) fn refill(&self) {
        self.left.store(self.full, Ordering::Relaxed);
    }

    fn is_spent(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(INSTRUCTIONS_PER_LOOK as u64), Ordering::Relaxed);
        left == 0 || self.cancel.load(Ordering::Relaxed)
    }

    /// Interrupts queries of a connection that exceed the budget.
    pub(super) fn watch(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let budget = self.clone();
        connection.progress_handler(INSTRUCTIONS_PER_LOOK, Some(move || budget.is_spent()))
    }
}

/// Applies the settings that SQLite's documentation advises for untrusted files.
pub(super) fn harden_connection(
    connection: &mut Connection,
    budget: &QueryBudget,
) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 16)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, 64)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1)?;
    connection.set_limit(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_prepared_statement_cache_capacity(64);
    // No memory mapping: a mapped file that shrinks ends the process. The heap limit covers all
    // connections of the process and exceeds the needs of twenty reports.
    connection.execute_batch(
        "PRAGMA cell_size_check = ON; PRAGMA query_only = ON; PRAGMA mmap_size = 0;
         PRAGMA cache_size = -8192; PRAGMA hard_heap_limit = 402653184;",
    )?;
    budget.watch(connection)
}

/// The plain tables among `known`, each with its plain columns.
pub(super) fn plain_tables(
    connection: &Connection,
    known: &[&str],
) -> rusqlite::Result<BTreeMap<String, Vec<String>>> {
    let mut is_plain = connection.prepare(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE
         AND rootpage > 0",
    )?;
    let mut columns =
        connection.prepare("SELECT lower(name) FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
    let mut tables = BTreeMap::new();
    for name in known {
        if is_plain.exists([name])? {
            let names = columns.query_map([name], |row| row.get::<_, String>(0))?;
            tables.insert((*name).to_owned(), names.collect::<rusqlite::Result<Vec<_>>>()?);
        }
    }
    Ok(tables)
}
