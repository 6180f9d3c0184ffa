//! Reports on other machines: the user's own `ssh` runs `tilescope serve --stdio` where the report
//! is, and what is looked at travels over that pipe.
//!
//! | file | what is in it |
//! |---|---|
//! | `address` | `ssh://[user@]host[:port]/path` |
//! | `ssh` | starts `ssh`, and says what it means when it ends |
//! | `command` | a command that is run where the report is |
//! | `messages` | frames, requests, answers, rows |
//! | `session` | asks, from any number of threads; keeps rows that were looked at |
//! | `clauses` | the conditions that can be asked over the pipe |
//! | `small_tables` | tables that travel whole when a report is opened |
//! | `server` | the far side |
//!
//! The reader asks the same questions as of a file here (see `database`), so that every answer is the
//! same. What takes all rows (an index of a foreign file, the laws) is made on the far side.

mod address;
mod clauses;
mod command;
mod messages;
mod server;
mod session;
mod small_tables;
mod ssh;

pub use address::{RemoteAddress, RemoteAddressError, absolute_path, is_remote};
pub use command::{RemoteCommandError, run_there};
pub(crate) use messages::{DatabaseFacts, DatabaseKind, TableFacts, TableNumber};
pub use server::{ServeError, serve};
pub use session::RemoteTraffic;
pub use ssh::RemoteSettings;

use crate::database::lock;
use crate::error::ReportError;
use crate::reader::{InvariantViolation, TraceState};
use crate::trace::LaneQuestion;
use messages::{Ask, FileFacts, Greeting, OpenedReport, PROTOCOL, RowsRequest, Said};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use session::{Incoming, PendingAnswers, RemoteSession};
use ssh::Transport;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A database of a report on another machine.
pub(crate) struct RemoteDatabase {
    session: Arc<RemoteSession>,
    kind: DatabaseKind,
    pub(crate) facts: Arc<DatabaseFacts>,
    /// Small tables, which came whole, and as they came.
    copies: Mutex<Connection>,
    cells: Arc<Vec<u8>>,
}

impl RemoteDatabase {
    fn new(
        session: Arc<RemoteSession>,
        kind: DatabaseKind,
        facts: Arc<DatabaseFacts>,
        cells: Arc<Vec<u8>>,
    ) -> Result<Self, ReportError> {
        let copies = small_tables::unpack(&facts, &cells);
        let copies = Mutex::new(copies.ok_or_else(|| session.not_understood())?);
        Ok(Self { session, kind, facts, copies, cells })
    }

    /// The same tables, asked beside this one: what takes long there holds up nothing here.
    pub(crate) fn beside(&self, kind: DatabaseKind) -> Result<Self, ReportError> {
        Self::new(self.session.clone(), kind, self.facts.clone(), self.cells.clone())
    }

    /// Whether there is a copy of a table: of the small ones.
    pub(crate) fn has_copy(&self, table: &str) -> bool {
        self.facts.tables.get(table).is_some_and(|table| table.rows.is_some())
    }

    /// The copies of small tables.
    pub(crate) fn copies(&self) -> MutexGuard<'_, Connection> {
        lock(&self.copies)
    }

    /// Hands rows to `each`, cell by cell, until it breaks off; `most` are enough.
    pub(crate) fn rows(
        &self,
        select: &crate::database::SelectQuery,
        most: Option<u64>,
        cancel: &AtomicBool,
        each: impl FnMut(&[ValueRef]) -> Result<ControlFlow<()>, ReportError>,
    ) -> Result<(), ReportError> {
        self.session.rows(self.request(select, most), cancel, each)
    }

    /// Asks for rows that will be looked at, all at once, each with how many of them are enough.
    pub(crate) fn rows_ahead(
        &self,
        selects: &[(crate::database::SelectQuery, Option<u64>)],
        cancel: &AtomicBool,
    ) {
        let travels = selects.iter().filter(|(select, _)| !self.has_copy(select.table));
        let requests = travels.map(|(select, most)| self.request(select, *most)).collect();
        self.session.rows_ahead(requests, cancel);
    }

    fn request(&self, select: &crate::database::SelectQuery, most: Option<u64>) -> RowsRequest {
        RowsRequest {
            database: self.kind,
            table: select.table.to_owned(),
            columns: select.columns.iter().map(|&column| column.to_owned()).collect(),
            clauses: select.clauses.to_owned(),
            params: select.params.to_vec(),
            most,
        }
    }

    /// What the far side answers to a question about a lane of the trace.
    pub(crate) fn lane(
        &self,
        lane: u32,
        question: &LaneQuestion,
        cancel: &AtomicBool,
    ) -> Result<Vec<u8>, ReportError> {
        self.session.lane(lane, question, cancel)
    }

    /// Asks lanes at once all that they will be asked: questions, each with the lanes it is for.
    pub(crate) fn lanes_ahead(&self, asked: &[(Vec<u32>, LaneQuestion)], cancel: &AtomicBool) {
        self.session.lanes_ahead(asked, cancel);
    }

    /// A number over the rows of a table.
    pub(crate) fn number(
        &self,
        table: &str,
        number: &TableNumber,
        cancel: &AtomicBool,
    ) -> Result<Option<i64>, ReportError> {
        let (table, number) = (table.to_owned(), number.clone());
        let said =
            self.session.answer(Ask::Number { database: self.kind, table, number }, cancel)?;
        match said {
            Said::Number(number) => Ok(number),
            _ => Err(self.session.not_understood()),
        }
    }
}

/// What a report on another machine is asked beside its tables.
pub(crate) struct RemoteReport {
    session: Arc<RemoteSession>,
    files: FileFacts,
}

/// A report on another machine that was opened.
pub(crate) struct OpenedRemote {
    pub(crate) report: RemoteReport,
    pub(crate) database: RemoteDatabase,
    /// Where the file is, as an address.
    pub(crate) address: RemoteAddress,
    pub(crate) warnings: Vec<String>,
}

/// Opens a report over the user's `ssh`. `cancel` ends that; `progress` is told how far it is.
pub(crate) fn open(
    address: &RemoteAddress,
    progress: &mut dyn FnMut(&str),
    cancel: &AtomicBool,
) -> Result<OpenedRemote, ReportError> {
    progress(&format!("connecting to {}", address.host()));
    open_through(ssh::connect(address, &RemoteSettings::current())?, address, progress, cancel)
}

fn open_through(
    transport: Transport,
    address: &RemoteAddress,
    progress: &mut dyn FnMut(&str),
    cancel: &AtomicBool,
) -> Result<OpenedRemote, ReportError> {
    let path = address.to_path();
    let session = Arc::new(RemoteSession::start(transport, &path)?);
    // Asked before the far side has said who it is: that saves a delay of the link.
    let mut pending = session.ask(Ask::Open { path: address.path().to_owned() })?;
    let theirs = session.greeting(cancel)?;
    check(&theirs, &session, address)?;
    progress(&format!("opening the report on {}", address.host()));
    let opened = match pending.next(cancel)? {
        Incoming::Said(Said::Opened(opened)) => opened,
        Incoming::Said(Said::Failed(messages::Failure::UnknownFormat(format))) => {
            let Greeting { tilescope, format: (major, minor), .. } = theirs;
            let host = address.host();
            return Err(session.error(&format!(
                "written in format {format}, which tilescope {tilescope} on {host} cannot read (it \
                 reads up to {major}.{minor}): update it there"
            )));
        }
        Incoming::Said(Said::Failed(failure)) => return Err(failure.error(&path)),
        _ => return Err(session.not_understood()),
    };
    let OpenedReport { path, database, warnings, files } = *opened;
    let database = take_database(&session, DatabaseKind::Report, database, pending, cancel)?;
    let report = RemoteReport { session: session.clone(), files };
    Ok(OpenedRemote { report, database, address: address.with_path(path), warnings })
}

/// Takes the rows of small tables, which come behind what is known of a database.
fn take_database(
    session: &Arc<RemoteSession>,
    kind: DatabaseKind,
    facts: DatabaseFacts,
    mut pending: PendingAnswers<'_>,
    cancel: &AtomicBool,
) -> Result<RemoteDatabase, ReportError> {
    let Incoming::Rows { is_last: true, cells } = pending.next(cancel)? else {
        return Err(session.not_understood());
    };
    pending.done();
    RemoteDatabase::new(session.clone(), kind, Arc::new(facts), Arc::new(cells))
}

/// Whether both sides understand each other.
fn check(
    theirs: &Greeting,
    session: &RemoteSession,
    address: &RemoteAddress,
) -> Result<(), ReportError> {
    let own = Greeting::own();
    if theirs.protocol == PROTOCOL {
        return Ok(());
    }
    let (age, place) = match theirs.protocol < PROTOCOL {
        true => ("older", "there"),
        false => ("newer", "here"),
    };
    let host = address.host();
    Err(session.error(&format!(
        "tilescope {} on {host} is {age} than this one ({}), and they do not understand each other \
         (protocols {} and {PROTOCOL}): update it {place}",
        theirs.tilescope, own.tilescope, theirs.protocol
    )))
}

impl RemoteReport {
    /// What went over the pipe so far.
    pub(crate) fn traffic(&self) -> RemoteTraffic {
        self.session.traffic()
    }

    /// Why nothing can be asked any more, if that is so.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.session.lost()
    }

    /// Whether the trace can be shown at once.
    pub(crate) fn trace_state(&self) -> Result<TraceState, ReportError> {
        match self.session.answer(Ask::TraceState, &AtomicBool::new(false))? {
            Said::TraceState(state) => Ok(state),
            _ => Err(self.session.not_understood()),
        }
    }

    /// Has the trace made ready there; gives the database of its index, and what was odd.
    pub(crate) fn prepare_trace(
        &self,
        progress: &mut dyn FnMut(f64),
        cancel: &AtomicBool,
    ) -> Result<(Option<RemoteDatabase>, Vec<String>), ReportError> {
        self.prepare(Ask::PrepareTrace, DatabaseKind::Trace, progress, cancel)
    }

    /// The same for sync points; none where there is no execution, or where only those that are
    /// known are asked for and they are not.
    pub(crate) fn prepare_sync_points(
        &self,
        only_known: bool,
        progress: &mut dyn FnMut(f64),
        cancel: &AtomicBool,
    ) -> Result<(Option<RemoteDatabase>, Vec<String>), ReportError> {
        let ask = Ask::PrepareSyncPoints { only_known };
        self.prepare(ask, DatabaseKind::SyncPoints, progress, cancel)
    }

    fn prepare(
        &self,
        ask: Ask,
        kind: DatabaseKind,
        progress: &mut dyn FnMut(f64),
        cancel: &AtomicBool,
    ) -> Result<(Option<RemoteDatabase>, Vec<String>), ReportError> {
        let mut pending = self.session.ask(ask)?;
        loop {
            match pending.next(cancel)? {
                Incoming::Said(Said::Progress(share)) => progress(share.clamp(0.0, 1.0)),
                Incoming::Said(Said::Prepared { database: Some(facts), warnings }) => {
                    let taken = take_database(&self.session, kind, facts, pending, cancel)?;
                    return Ok((Some(taken), warnings));
                }
                Incoming::Said(Said::Prepared { database: None, warnings }) => {
                    pending.done();
                    return Ok((None, warnings));
                }
                Incoming::Said(Said::Failed(failure)) => {
                    pending.done();
                    return Err(failure.error(self.session.path()));
                }
                _ => return Err(self.session.not_understood()),
            }
        }
    }

    /// Has the laws checked there; gives what was found, and what was odd.
    pub(crate) fn verify(
        &self,
        apart: bool,
        progress: &mut dyn FnMut(f64),
        cancel: &AtomicBool,
    ) -> Result<(Vec<InvariantViolation>, Vec<String>), ReportError> {
        match self.session.answer_with(Ask::Verify { apart }, progress, cancel)? {
            Said::Violations { found, warnings } => {
                let violation =
                    |(law, text): (String, String)| InvariantViolation { law: law.into(), text };
                Ok((found.into_iter().map(violation).collect(), warnings))
            }
            _ => Err(self.session.not_understood()),
        }
    }

    /// The text of a file beside the report.
    pub(crate) fn sidecar_text(&self, name: &str) -> Result<Option<String>, ReportError> {
        let ask = Ask::SidecarText { name: name.to_owned() };
        match self.session.answer(ask, &AtomicBool::new(false))? {
            Said::Text(text) => Ok(text),
            _ => Err(self.session.not_understood()),
        }
    }

    /// When the report was changed last before it was opened.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.files.modified.and_then(time)
    }

    /// Bytes of a file beside the report, and when it was changed; none if there is none.
    pub(crate) fn sidecar(&self, name: &str) -> Option<(u64, Option<SystemTime>)> {
        let found = self.files.sidecars.iter().find(|(known, ..)| known == name)?;
        Some((found.1, found.2.and_then(time)))
    }
}

fn time(nanoseconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanoseconds))
}

/// Answers of a far side as frames that are not compressed, for tests.
#[doc(hidden)]
pub fn plain_frames(answers: &[u8]) -> Vec<Vec<u8>> {
    let behind = answers.windows(messages::MAGIC.len()).position(|bytes| bytes == messages::MAGIC);
    let start = behind.map_or(0, |at| at + messages::MAGIC.len());
    messages::plain_frames(answers.get(start..).unwrap_or_default())
}

/// A pipe to a `tilescope serve` in this very program, for tests.
#[doc(hidden)]
pub fn open_through_pipes(
    path: &Path,
    input: impl std::io::Read + Send + 'static,
    output: impl std::io::Write + Send + 'static,
) -> Result<crate::Report, ReportError> {
    let problem = |error: RemoteAddressError| ReportError::Remote {
        problem: error.to_string(),
        path: path.to_owned(),
    };
    let address = RemoteAddress::of_path(path).map_err(problem)?;
    let address = address.ok_or_else(|| ReportError::NotFound { path: path.to_owned() })?;
    let transport = Transport {
        input: Box::new(input),
        output: Box::new(output),
        end: Box::new(|| ()),
        explain: Box::new(|_, problem| match problem {
            Some(problem) => format!("the connection was lost: {problem}"),
            None => "the connection was lost".to_owned(),
        }),
    };
    let opened = open_through(transport, &address, &mut |_| {}, &AtomicBool::new(false))?;
    crate::Report::from_remote(opened)
}
