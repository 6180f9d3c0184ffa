//! Questions to a report in SQL: read-only, bounded in time and memory, on reports of any size.
//!
//! [`run`] hands the rows of an answer to a [`RowSink`] as they come; nothing holds all of them. The
//! tables are those of the file (`docs/format.md`) and [`RECORDS`], which are made of the
//! trace index. What a question may do is in `connection`; what is wrong with one, in `problem`.

mod connection;
mod functions;
mod listing;
mod output;
mod problem;
mod ready;
mod record_tables;
mod view_tables;

pub use listing::{ListedColumn, ListedTable, function_document, list_tables};
pub use output::{CsvRows, JsonRows, TextRows, json_value};
pub use ready::{READY_QUERIES, ReadyQuery};
pub use rusqlite::types::Value as SqlValue;

use crate::records::{QueryClock, RECORDS};
use rusqlite::types::ValueRef;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use tilescope_report::units::grouped;
use tilescope_report::{Report, ReportError};

/// What is asked, and what the answer may take.
#[derive(Clone, Debug)]
pub struct SqlQuestion {
    /// One `SELECT`.
    pub sql: String,
    /// Values of its parameters: by name, or in order where they have none.
    pub parameters: Vec<(Option<String>, SqlValue)>,
    /// How long it may take, without what the sink takes.
    pub time_limit: Duration,
    /// Whether nobody wants the answer any more.
    pub cancel: Arc<AtomicBool>,
}

impl SqlQuestion {
    /// How long a question may take where nothing else is said.
    pub const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// A question without parameters.
    pub fn new(sql: impl Into<String>) -> Self {
        let cancel = Arc::default();
        Self { sql: sql.into(), parameters: Vec::new(), time_limit: Self::TIME_LIMIT, cancel }
    }
}

/// Takes an answer row by row.
pub trait RowSink {
    /// Takes what the report declares of the type of each column, if it declares something; comes
    /// before the names.
    ///
    /// # Errors
    /// As below.
    fn declared(&mut self, _types: &[Option<String>]) -> io::Result<()> {
        Ok(())
    }

    /// Takes the names of the columns, no two of them alike; comes before the rows.
    ///
    /// # Errors
    /// An answer that cannot be passed on ends the question.
    fn columns(&mut self, names: &[String]) -> io::Result<()>;

    /// Takes a row with a value for each column.
    ///
    /// # Errors
    /// As above.
    fn row(&mut self, values: &[SqlValue]) -> io::Result<()>;

    /// Takes that there are no more rows.
    ///
    /// # Errors
    /// As above.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an answer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlSummary {
    pub rows: u64,
    /// Executed steps that were read one by one.
    pub steps_read: u64,
}

/// Steps from which on reading them one by one is worth a word.
const MANY_STEPS: u64 = 5_000_000;

impl SqlSummary {
    /// What could be asked instead, where all steps were gone through one by one.
    pub fn hint(&self) -> Option<String> {
        (self.steps_read >= MANY_STEPS).then(|| hint(self.steps_read))
    }
}

fn hint(steps: u64) -> String {
    format!(
        "{} steps were read one by one; program_cycles and activity_cycles have their sums, and \
         bounds on step_id or ipu, or steps_between(first_cycle, end_cycle), read a part of them",
        grouped(steps)
    )
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The question cannot be meant: what is wrong, with marks below the place.
    #[error("{0}")]
    Question(String),
    /// It took too long.
    #[error("no answer within {} s{}", limit.as_secs_f64(), hint.as_ref().map_or(String::new(), |hint| format!("; {hint}")))]
    TooLong { limit: Duration, hint: Option<String> },
    /// Nobody wants it any more.
    #[error("cancelled")]
    Cancelled,
    /// It took too much memory.
    #[error(
        "the answer takes more than {} MiB of memory on the way: ask for fewer rows, or sort and \
         group fewer of them",
        connection::MEMORY_LIMIT >> 20
    )]
    TooMuchMemory,
    /// A value is too large.
    #[error("a value is larger than {} MiB, the most that one may be", connection::VALUE_LIMIT >> 20)]
    TooLarge,
    /// Something else went wrong on the way.
    #[error("{0}")]
    Failed(String),
    /// The report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The answer cannot be passed on.
    #[error("cannot write results: {0}")]
    Output(#[from] io::Error),
}

/// Rows that are handed over together, and about how many bytes.
const ROWS_OF_PART: usize = 256;
const BYTES_OF_PART: usize = 256 << 10;
/// Parts that wait for the sink.
const WAITING_PARTS: usize = 2;
/// How much longer than its limit a question may hang in one step of SQLite's before it is left
/// to itself.
const GRACE: Duration = Duration::from_millis(500);
/// How long nobody looks whether an answer is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// A question nests no deeper than SQLite allows; its parser recurses.
const STACK_BYTES: usize = 16 << 20;

/// Pieces of an answer on their way to the sink.
enum AnswerPart {
    /// Names, and declared types.
    Columns(Vec<String>, Vec<Option<String>>),
    Rows(Vec<Vec<SqlValue>>),
    End(Result<(), SqlError>),
}

/// Answers a question about a report.
///
/// SQLite works on a thread of its own: a function of it that goes through megabytes in one step
/// cannot be interrupted, and must not hold up whoever waits for the answer.
///
/// # Errors
/// Questions that cannot be meant, take too long or too much memory; reports that cannot be read;
/// those of the sink.
pub fn run(
    report: &Arc<Report>,
    question: &SqlQuestion,
    sink: &mut dyn RowSink,
) -> Result<SqlSummary, SqlError> {
    if names_a_function(&question.sql) {
        // The index of a file of another tool is made once, and then kept: not a part of the answer.
        report.prepare_trace(&mut |_| {}, &question.cancel)?;
    }
    let clock = Arc::new(QueryClock::new(question.time_limit, question.cancel.clone()));
    let (parts, taken) = sync_channel(WAITING_PARTS);
    let (work, asked, time) = (report.clone(), question.clone(), clock.clone());
    let answer = move || {
        let answer = Answer { clock: time, parts };
        let done = answer.make(&work, &asked);
        // Nobody may listen any more.
        let _ = answer.parts.send(AnswerPart::End(done));
    };
    let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(answer)?;
    let too_long = || {
        let steps = clock.steps();
        let hint = (steps >= MANY_STEPS).then(|| hint(steps));
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
                return Err(SqlError::Failed("the question ended without an answer".to_owned()));
            }
        }
    };
    let done = take();
    clock.stop();
    done.map(|()| SqlSummary { rows, steps_read: clock.steps() })
}

/// True if a question names a function of the run, which reads the trace index.
fn names_a_function(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    RECORDS.iter().any(|table| table.is_function() && sql.contains(table.name))
}

/// An answer in the making.
struct Answer {
    clock: Arc<QueryClock>,
    parts: SyncSender<AnswerPart>,
}

impl Answer {
    fn make(&self, report: &Arc<Report>, question: &SqlQuestion) -> Result<(), SqlError> {
        let connection = connection::open(report, &self.clock, &question.sql)?;
        let failed = |error| problem::of(error, &question.sql, &connection);
        let mut statement = connection.prepare(&question.sql).map_err(failed)?;
        if !statement.readonly() {
            return Err(SqlError::Question(problem::denied("this would change the file")));
        }
        if statement.column_count() == 0 {
            let problem = "a question is a SELECT, and this asks for nothing";
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
        let (mut part, mut bytes) = (Vec::new(), 0);
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

    /// Hands a part over; `false` if nobody wants it any more.
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

/// A value of its own; bytes of a text that are no UTF-8 are replaced.
fn owned(value: ValueRef) -> SqlValue {
    match value {
        ValueRef::Text(bytes) => SqlValue::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Integer(value),
        ValueRef::Real(value) => SqlValue::Real(value),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}

/// Gives each parameter its value.
fn bind(
    statement: &mut rusqlite::Statement,
    parameters: &[(Option<String>, SqlValue)],
) -> Result<(), SqlError> {
    let wanted = statement.parameter_count();
    let mut given = vec![false; wanted];
    for (place, (name, value)) in parameters.iter().enumerate() {
        let at = match name {
            None => (place < wanted).then_some(place + 1),
            Some(name) => [":", "@", "$"]
                .iter()
                .find_map(|sign| statement.parameter_index(&format!("{sign}{name}")).ok()?),
        };
        let Some(at) = at else {
            let name = name.as_ref().map_or_else(|| format!("number {}", place + 1), Clone::clone);
            return Err(SqlError::Question(format!("the question has no parameter {name}")));
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

/// Names of columns, numbered where several are alike.
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
