//! SQL queries on a report: read-only, limited in time and memory, for reports of any size.
//!
//! [`run`] passes the rows of an answer to a [`RowSink`] as they are computed; no part holds all of
//! them. The tables are those of the file (`docs/format.md`) and [`RECORDS`], which are computed
//! from the trace index. The permissions of a query are in `connection`, and error messages in
//! `problem`.

mod connection;
mod functions;
mod listing;
mod output;
mod problem;
mod ready;
mod record_tables;
mod spill;
mod view_tables;

pub use listing::{ListedColumn, ListedTable, function_document, list_tables};
pub use output::{CsvRows, JsonRows, TextRows, json_value};
pub use ready::{READY_QUERIES, ReadyQuery};
pub use rusqlite::types::Value as SqlValue;

use crate::records::{QueryClock, RECORDS};
use rusqlite::types::ValueRef;
use spill::DiskLimit;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use tilescope_report::units::grouped;
use tilescope_report::{Report, ReportError};

/// A query with its parameters and limits.
#[derive(Clone, Debug)]
pub struct SqlQuestion {
    /// A single `SELECT`.
    pub sql: String,
    /// Values of its parameters, by name or by position.
    pub parameters: Vec<(Option<String>, SqlValue)>,
    /// The time limit, not counting the time of the sink.
    pub time_limit: Duration,
    /// The limit of temporary files, in which rows are sorted that the memory does not hold.
    pub disk_limit: u64,
    /// True once the query is cancelled.
    pub cancel: Arc<AtomicBool>,
}

impl SqlQuestion {
    /// The default time limit.
    pub const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// The default limit of temporary files.
    pub const DISK_LIMIT: u64 = spill::DISK_LIMIT;

    /// Creates a query without parameters.
    pub fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            parameters: Vec::new(),
            time_limit: Self::TIME_LIMIT,
            disk_limit: Self::DISK_LIMIT,
            cancel: Arc::default(),
        }
    }
}

/// A consumer of an answer, row by row.
pub trait RowSink {
    /// Receives the declared types of the columns, as far as the report declares them; called
    /// before [`RowSink::columns`].
    ///
    /// # Errors
    /// As below.
    fn declared(&mut self, _types: &[Option<String>]) -> io::Result<()> {
        Ok(())
    }

    /// Receives the names of the columns, all different; called before the rows.
    ///
    /// # Errors
    /// An answer that cannot be passed on; this ends the query.
    fn columns(&mut self, names: &[String]) -> io::Result<()>;

    /// Receives a row with a value for each column.
    ///
    /// # Errors
    /// As above.
    fn row(&mut self, values: &[SqlValue]) -> io::Result<()>;

    /// Called after the last row.
    ///
    /// # Errors
    /// As above.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Statistics of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlSummary {
    pub rows: u64,
    /// Executed steps that were read one by one.
    pub steps_read: u64,
}

/// The number of steps from which a hint is given.
const MANY_STEPS: u64 = 5_000_000;

impl SqlSummary {
    /// A hint at faster queries, if a large number of steps was read one by one.
    pub fn hint(&self) -> Option<String> {
        if self.steps_read >= MANY_STEPS { Some(hint(self.steps_read)) } else { None }
    }
}

fn hint(steps: u64) -> String {
    format!(
        "{} steps were read one by one. For sums, use program_cycles and activity_cycles; to read \
         fewer steps, restrict step_id or ipu, or use steps_between(first_cycle, end_cycle)",
        grouped(steps)
    )
}

/// The reason that a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// An invalid query: the message, with marks below the position.
    #[error("{0}")]
    Question(String),
    /// The time limit was exceeded.
    #[error("no result within {} s{}", limit.as_secs_f64(), hint.as_ref().map_or(String::new(), |hint| format!("; {hint}")))]
    TooLong { limit: Duration, hint: Option<String> },
    /// The query was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The memory limit was exceeded.
    #[error(
        "the query needs more than {} MiB of memory: select fewer rows, or sort and group fewer \
         rows",
        connection::MEMORY_LIMIT >> 20
    )]
    TooMuchMemory,
    /// The limit of temporary files was exceeded.
    #[error(
        "the query needs more than {} MiB of temporary files: select fewer rows, or sort and group \
         fewer of them",
        limit >> 20
    )]
    TooMuchDisk { limit: u64 },
    /// There is no place for temporary files.
    #[error(
        "the query needs temporary files, but the disk has no space for them: {0}; set TMPDIR to \
         another directory"
    )]
    NoDisk(String),
    /// A value is too large.
    #[error("a value is larger than the limit of {} MiB", connection::VALUE_LIMIT >> 20)]
    TooLarge,
    /// Another error while computing the answer.
    #[error("{0}")]
    Failed(String),
    /// The report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The answer cannot be written.
    #[error("cannot write results: {0}")]
    Output(#[from] io::Error),
}

/// Rows that are passed on together, and their approximate bytes.
const ROWS_OF_PART: usize = 256;
const BYTES_OF_PART: usize = 256 << 10;
/// Number of parts that may wait for the sink.
const WAITING_PARTS: usize = 2;
/// Time beyond the limit after which a query that is stuck in one step of SQLite is abandoned.
const GRACE: Duration = Duration::from_millis(500);
/// Interval of checks for cancellation.
const LOOK: Duration = Duration::from_millis(100);
/// Stack for the nesting depth that SQLite allows; its parser is recursive.
const STACK_BYTES: usize = 16 << 20;

/// A part of an answer on its way to the sink.
enum AnswerPart {
    /// Names of columns, and their declared types.
    Columns(Vec<String>, Vec<Option<String>>),
    Rows(Vec<Vec<SqlValue>>),
    End(Result<(), SqlError>),
}

/// Answers a query on a report.
///
/// SQLite runs on a separate thread: a built-in function that processes megabytes in one step
/// cannot be interrupted, and must not block the caller.
///
/// # Errors
/// Invalid queries, exceeded limits of time or memory, reports that cannot be read, and errors of
/// the sink.
pub fn run(
    report: &Arc<Report>,
    question: &SqlQuestion,
    sink: &mut dyn RowSink,
) -> Result<SqlSummary, SqlError> {
    if names_a_function(&question.sql) {
        // The index of another tool's file is built once and kept, so its time does not count.
        report.prepare_trace(&mut |_| {}, &question.cancel)?;
    }
    let clock = Arc::new(QueryClock::new(question.time_limit, question.cancel.clone()));
    let (parts, taken) = sync_channel(WAITING_PARTS);
    let work = report.clone();
    let asked = question.clone();
    let time = clock.clone();
    let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || {
        let disk = Arc::new(DiskLimit::new(asked.disk_limit));
        let answer = Answer { clock: time, disk, parts };
        let done = answer.make(&work, &asked);
        // The receiver may be gone.
        let _ = answer.parts.send(AnswerPart::End(done));
    })?;
    let too_long = || {
        let steps = clock.steps();
        let hint = if steps >= MANY_STEPS { Some(hint(steps)) } else { None };
        SqlError::TooLong { limit: question.time_limit, hint }
    };
    let mut rows = 0;
    let mut take = || loop {
        if question.cancel.load(Ordering::Relaxed) {
            return Err(SqlError::Cancelled);
        }
        let left = clock.left();
        let wait = if left.is_zero() { GRACE } else { left.min(LOOK) };
        match taken.recv_timeout(wait) {
            Ok(AnswerPart::Columns(names, types)) => {
                clock.pause(|| sink.declared(&types).and_then(|()| sink.columns(&names)))?;
            }
            Ok(AnswerPart::Rows(part)) => {
                rows += part.len() as u64;
                clock.pause(|| part.iter().try_for_each(|row| sink.row(row)))?;
            }
            Ok(AnswerPart::End(Ok(()))) => return Ok(sink.end()?),
            Ok(AnswerPart::End(Err(_))) if question.cancel.load(Ordering::Relaxed) => {}
            Ok(AnswerPart::End(Err(_))) if clock.left().is_zero() => return Err(too_long()),
            Ok(AnswerPart::End(Err(error))) => return Err(error),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(too_long()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(SqlError::Failed("the query ended without a result".to_owned()));
            }
        }
    };
    let done = take();
    clock.stop();
    done.map(|()| SqlSummary { rows, steps_read: clock.steps() })
}

/// True if a query names a function of the run, which reads the trace index.
fn names_a_function(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    RECORDS.iter().any(|table| table.is_function() && sql.contains(table.name))
}

/// An answer under construction.
struct Answer {
    clock: Arc<QueryClock>,
    disk: Arc<DiskLimit>,
    parts: SyncSender<AnswerPart>,
}

impl Answer {
    fn make(&self, report: &Arc<Report>, question: &SqlQuestion) -> Result<(), SqlError> {
        let connection = connection::open(report, &self.clock, &self.disk, &question.sql)?;
        let failed = |error| {
            if self.disk.is_exceeded() {
                return SqlError::TooMuchDisk { limit: question.disk_limit };
            }
            problem::of(error, &question.sql, &connection)
        };
        let mut statement = connection.prepare(&question.sql).map_err(failed)?;
        if !statement.readonly() {
            return Err(SqlError::Question(problem::denied(
                "this statement would change the file",
            )));
        }
        if statement.column_count() == 0 {
            let problem = "a query must be a SELECT statement";
            return Err(SqlError::Question(problem.to_owned()));
        }
        bind(&mut statement, &question.parameters)?;
        let names = statement.column_names().map(str::to_owned).collect();
        let columns = statement.column_count();
        let types = statement.columns().map(|of| of.decl_type().map(str::to_owned));
        let types = types.collect();
        if !self.send(AnswerPart::Columns(unique(names), types)) {
            return Ok(());
        }
        let mut rows = statement.raw_query();
        let mut part = Vec::new();
        let mut bytes = 0;
        while let Some(row) = rows.next().map_err(failed)? {
            let mut values = Vec::with_capacity(columns);
            for column in 0..columns {
                let value = row.get_ref(column).map_err(failed)?;
                bytes += size_of::<SqlValue>() + length(value);
                values.push(owned(value));
            }
            part.push(values);
            if part.len() >= ROWS_OF_PART || bytes >= BYTES_OF_PART {
                bytes = 0;
                if !self.send(AnswerPart::Rows(std::mem::take(&mut part))) {
                    return Ok(());
                }
            }
        }
        self.send(AnswerPart::Rows(part));
        Ok(())
    }

    /// Sends a part; returns `false` if the receiver is gone.
    fn send(&self, part: AnswerPart) -> bool {
        self.parts.send(part).is_ok()
    }
}

fn length(value: ValueRef) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}

/// An owned copy of a value; bytes of a string that are not UTF-8 are replaced.
fn owned(value: ValueRef) -> SqlValue {
    match value {
        ValueRef::Text(bytes) => SqlValue::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Integer(value),
        ValueRef::Real(value) => SqlValue::Real(value),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}

/// Binds the values of the parameters.
fn bind(
    statement: &mut rusqlite::Statement,
    parameters: &[(Option<String>, SqlValue)],
) -> Result<(), SqlError> {
    let wanted = statement.parameter_count();
    let mut given = vec![false; wanted];
    for (place, (name, value)) in parameters.iter().enumerate() {
        let at = match name {
            None => {
                if place < wanted {
                    Some(place + 1)
                } else {
                    None
                }
            }
            Some(name) => [":", "@", "$"]
                .iter()
                .find_map(|sign| statement.parameter_index(&format!("{sign}{name}")).ok()?),
        };
        let Some(at) = at else {
            let name = name.as_ref().map_or_else(|| format!("number {}", place + 1), Clone::clone);
            return Err(SqlError::Question(format!("the query has no parameter {name}")));
        };
        let bound = statement.raw_bind_parameter(at, value);
        bound.map_err(|error| SqlError::Failed(error.to_string()))?;
        if let Some(given) = given.get_mut(at - 1) {
            *given = true;
        }
    }
    let missing = given.iter().position(|given| !given);
    missing.map_or(Ok(()), |at| {
        let name = statement
            .parameter_name(at + 1)
            .map_or_else(|| format!("number {}", at + 1), str::to_owned);
        Err(SqlError::Question(format!("parameter {name} has no value")))
    })
}

/// Names of columns, with numbers appended to repeated ones.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::with_capacity(names.len());
    let mut known = std::collections::HashSet::new();
    for name in names {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !known.contains(name));
        let free = free.unwrap_or(name);
        known.insert(free.clone());
        found.push(free);
    }
    found
}

#[cfg(test)]
mod tests;
