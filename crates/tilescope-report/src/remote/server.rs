//! The far side of the pipe: answers questions about one report, and nothing else.
//!
//! Nothing that comes in is run or written anywhere: tables and columns are looked up, clauses are
//! read and written down anew, names of files are names. What is asked is answered by one thread for
//! each database, as those who read a report here share its connections; what takes long has threads
//! of its own. It ends with its input.

// Everything here reads bytes that anybody may have sent.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::address::is_remote;
use super::clauses::understood;
use super::messages::{
    Answer, Ask, DatabaseFacts, DatabaseKind, Failure, FileFacts, Frame, FrameError, Greeting,
    MAGIC, MAX_ANSWER, MAX_COLUMNS, MAX_REQUEST, OpenedReport, PIECE_BYTES, PIECES_AHEAD, PROTOCOL,
    Request, RowsPiece, RowsRequest, Said, read_frame, write_cell, write_rows, write_words,
};
use super::session::GREETING;
use super::small_tables;
use crate::database::{ReportDatabase, SelectQuery, lock};
use crate::error::ReportError;
use crate::reader::Report;
use crate::trace::LaneQuestion;
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// Questions to one database that may wait.
const MAX_WAITING: usize = 512;
/// What takes long, at a time.
const MAX_JOBS: usize = 4;
/// Progress is told when it is so much more.
const PROGRESS_STEP: f64 = 0.005;

/// Why serving ended before its input did.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The other side sent what no tilescope sends.
    #[error("{0} came in: this is a pipe for another tilescope, which opens ssh://host/path")]
    Input(String),
    /// The answers could not be written.
    #[error("cannot write answers: {0}")]
    Output(#[from] io::Error),
    /// The directory to stay in is none.
    #[error("cannot serve {}: {problem}", path.display())]
    Root { problem: io::Error, path: PathBuf },
}

impl From<FrameError> for ServeError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) => Self::Output(error),
            other => Self::Input(other.to_string()),
        }
    }
}

/// Answers questions about one report from `input` to `output` until the input ends. With a `root`,
/// only reports below that directory are opened.
///
/// # Errors
/// The input is not that of a tilescope, or the output breaks.
pub fn serve(
    mut input: impl Read,
    mut output: impl Write + Send + 'static,
    root: Option<&Path>,
) -> Result<(), ServeError> {
    let root = root.map(|path| {
        let failed = |problem| ServeError::Root { problem, path: path.to_owned() };
        path.canonicalize().map_err(failed)
    });
    let root = root.transpose()?;
    output.write_all(MAGIC)?;
    let greeting = Said::Greeting(Greeting::own());
    write_words(&mut output, &Answer { id: GREETING, said: greeting })?;
    let Some(Frame::Words(theirs)) = read_frame::<Greeting>(&mut input, MAX_REQUEST)? else {
        return Ok(());
    };
    // They have read our greeting, and tell their user.
    if theirs.protocol != PROTOCOL {
        return Ok(());
    }
    let Some(first) = next_request(&mut input)? else { return Ok(()) };
    let Ask::Open { path } = &first.ask else {
        return Err(ServeError::Input("a question before any report is open".to_owned()));
    };
    let answers = Answers { output: Arc::new(Mutex::new(Box::new(output))), id: first.id };
    let report = match open(path, root.as_deref()) {
        Ok(report) => Arc::new(report),
        Err(failure) => {
            answers.say(Said::Failed(failure));
            return Ok(());
        }
    };
    if let Err(failure) = tell_opened(&report, &answers) {
        answers.say(Said::Failed(failure));
        return Ok(());
    }
    let mut desk = Desk::new(report, answers)?;
    while let Some(request) = next_request(&mut input)? {
        desk.take(request)?;
    }
    Ok(())
}

fn next_request(input: &mut impl Read) -> Result<Option<Request>, ServeError> {
    match read_frame::<Request>(input, MAX_REQUEST)? {
        Some(Frame::Words(request)) => Ok(Some(request)),
        Some(Frame::Rows(_)) => Err(ServeError::Input("an answer".to_owned())),
        None => Ok(None),
    }
}

/// Opens the report at a path, which may begin in the home directory.
fn open(path: &str, root: Option<&Path>) -> Result<Report, Failure> {
    let home = || std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let path =
        path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| home().join(rest));
    let path = match root {
        Some(root) => root.join(path),
        None => path,
    };
    if is_remote(&path) {
        return Err(Failure::Refused("a report on a third machine is not opened here".to_owned()));
    }
    // Looked at before anything of it is opened: what lies elsewhere is told apart from nothing by
    // nobody.
    if let Some(root) = root
        && !is_below(&path, root)
    {
        return Err(Failure::Refused(
            "only reports in the served directory can be opened".to_owned(),
        ));
    }
    let report = Report::open(&path).map_err(|error| Failure::of(&error))?;
    // A directory may hold a link to a file elsewhere.
    match root {
        Some(root) if !is_below(report.path(), root) => {
            Err(Failure::Refused("only reports in the served directory can be opened".to_owned()))
        }
        _ => Ok(report),
    }
}

fn is_below(path: &Path, root: &Path) -> bool {
    path.canonicalize().is_ok_and(|whole| whole.starts_with(root))
}

/// Says what there is, and the rows of small tables.
fn tell_opened(report: &Report, answers: &Answers) -> Result<(), Failure> {
    let failed = |error: ReportError| Failure::of(&error);
    let (database, cells) = facts(report.database()).map_err(failed)?;
    answers.say(Said::Opened(Box::new(OpenedReport {
        path: report.path().to_string_lossy().into_owned(),
        database,
        warnings: report.warnings(),
        files: files(report),
    })));
    answers.rows(true, 0, cells);
    Ok(())
}

/// What is known of a database, and the rows of its small tables.
fn facts(database: &ReportDatabase) -> Result<(DatabaseFacts, Vec<u8>), ReportError> {
    let mut facts = database.facts();
    let cells = small_tables::pack(database, &mut facts)?;
    Ok((facts, cells))
}

fn files(report: &Report) -> FileFacts {
    let nanoseconds = |time: std::time::SystemTime| {
        u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
    };
    let sidecars = report.sidecar_files().into_iter().filter_map(|file| {
        let (bytes, changed) = file.found?;
        Some((file.name.to_owned(), bytes.0, changed.and_then(nanoseconds)))
    });
    FileFacts { modified: report.modified().and_then(nanoseconds), sidecars: sidecars.collect() }
}

/// Where the answers to a request go.
#[derive(Clone)]
struct Answers {
    output: Arc<Mutex<Box<dyn Write + Send>>>,
    id: u64,
}

impl Answers {
    fn to(&self, id: u64) -> Self {
        Self { output: self.output.clone(), id }
    }

    fn say(&self, said: Said) {
        // Nobody listens any more: the input ends, too.
        let _ = write_words(&mut *lock(&self.output), &Answer { id: self.id, said });
    }

    fn rows(&self, is_last: bool, width: usize, cells: Vec<u8>) {
        let rows = RowsPiece { id: self.id, is_last, width, cells };
        let _ = write_rows(&mut *lock(&self.output), &rows);
    }
}

/// How far a question may be answered.
struct Flow {
    pieces: Mutex<u32>,
    changed: Condvar,
    stopped: Arc<AtomicBool>,
}

impl Flow {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            pieces: Mutex::new(PIECES_AHEAD),
            changed: Condvar::new(),
            stopped: Arc::default(),
        })
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        let _pieces = lock(&self.pieces);
        self.stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn more(&self) {
        let mut pieces = lock(&self.pieces);
        // Whoever says it a thousand times gets no more ahead.
        *pieces = (*pieces + 1).min(PIECES_AHEAD);
        self.changed.notify_all();
    }

    /// Waits until a piece may be sent; false if none is wanted any more.
    fn wait(&self) -> bool {
        let mut pieces = lock(&self.pieces);
        while *pieces == 0 && !self.is_stopped() {
            pieces = self.changed.wait(pieces).unwrap_or_else(PoisonError::into_inner);
        }
        *pieces = pieces.saturating_sub(1);
        !self.is_stopped()
    }
}

type Flows = Mutex<BTreeMap<u64, Arc<Flow>>>;

/// A question to a database.
enum Question {
    Rows(RowsRequest),
    Number(String, super::messages::TableNumber),
    Lanes(Vec<u32>, LaneQuestion),
}

/// Hands requests to those who answer them.
struct Desk {
    report: Arc<Report>,
    answers: Answers,
    flows: Arc<Flows>,
    databases: BTreeMap<DatabaseKind, SyncSender<(u64, Question)>>,
    jobs: Arc<AtomicUsize>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        for flow in std::mem::take(&mut *lock(&self.flows)).into_values() {
            flow.stop();
        }
    }
}

impl Desk {
    fn new(report: Arc<Report>, answers: Answers) -> Result<Self, ServeError> {
        let flows = Arc::<Flows>::default();
        let mut databases = BTreeMap::new();
        for kind in DatabaseKind::ALL {
            let (sender, receiver) = sync_channel(MAX_WAITING);
            let (report, answers, flows) = (report.clone(), answers.clone(), flows.clone());
            std::thread::Builder::new()
                .spawn(move || answer_all(&report, kind, &receiver, &answers, &flows))?;
            databases.insert(kind, sender);
        }
        Ok(Self { report, answers, flows, databases, jobs: Arc::default() })
    }

    fn take(&mut self, request: Request) -> Result<(), ServeError> {
        let Request { id, ask } = request;
        match ask {
            Ask::More => {
                if let Some(flow) = lock(&self.flows).get(&id) {
                    flow.more();
                }
                Ok(())
            }
            Ask::Stop => {
                if let Some(flow) = lock(&self.flows).get(&id) {
                    flow.stop();
                }
                Ok(())
            }
            Ask::Rows(rows) => self.ask(id, rows.database, Question::Rows(rows)),
            Ask::Number { database, table, number } => {
                self.ask(id, database, Question::Number(table, number))
            }
            Ask::Lanes { lanes, question } => {
                self.ask(id, DatabaseKind::Trace, Question::Lanes(lanes, question))
            }
            Ask::Open { .. } => Err(ServeError::Input("a second report to open".to_owned())),
            job => self.start(id, job),
        }
    }

    fn ask(&self, id: u64, database: DatabaseKind, question: Question) -> Result<(), ServeError> {
        lock(&self.flows).insert(id, Flow::new());
        let sender = self.databases.get(&database);
        match sender.is_some_and(|sender| sender.try_send((id, question)).is_ok()) {
            true => Ok(()),
            // No tilescope has so many threads that wait.
            false => {
                Err(ServeError::Input("more questions at once than can be answered".to_owned()))
            }
        }
    }

    /// Starts what may take long.
    fn start(&self, id: u64, job: Ask) -> Result<(), ServeError> {
        let answers = self.answers.to(id);
        if self.jobs.fetch_add(1, Ordering::Relaxed) >= MAX_JOBS {
            self.jobs.fetch_sub(1, Ordering::Relaxed);
            answers.say(Said::Failed(Failure::Refused("too much is asked at once".to_owned())));
            return Ok(());
        }
        let flow = Flow::new();
        lock(&self.flows).insert(id, flow.clone());
        let (report, flows, jobs) = (self.report.clone(), self.flows.clone(), self.jobs.clone());
        std::thread::Builder::new().spawn(move || {
            let done = do_job(&report, &job, &answers, &flow.stopped);
            if let Err(error) = done {
                answers.say(Said::Failed(Failure::of(&error)));
            }
            lock(&flows).remove(&id);
            jobs.fetch_sub(1, Ordering::Relaxed);
        })?;
        Ok(())
    }
}

/// Answers the questions to one database, one after the other.
fn answer_all(
    report: &Report,
    kind: DatabaseKind,
    questions: &Receiver<(u64, Question)>,
    answers: &Answers,
    flows: &Flows,
) {
    while let Ok((id, question)) = questions.recv() {
        let flow = lock(flows).get(&id).cloned();
        let answers = answers.to(id);
        let answered = match flow {
            Some(flow) if !flow.is_stopped() => answer(report, kind, question, &flow, &answers),
            _ => Ok(()),
        };
        if let Err(error) = answered {
            answers.say(Said::Failed(Failure::of(&error)));
        }
        lock(flows).remove(&id);
    }
}

fn answer(
    report: &Report,
    kind: DatabaseKind,
    question: Question,
    flow: &Flow,
    answers: &Answers,
) -> Result<(), ReportError> {
    match question {
        Question::Rows(request) => {
            report.with_database(kind, |database| match select_of(database, &request) {
                Ok(clauses) => rows(database, &request, &clauses, flow, answers),
                Err(problem) => {
                    answers.say(Said::Failed(Failure::Refused(problem.to_owned())));
                    Ok(())
                }
            })
        }
        Question::Number(table, number) => {
            let number = report.with_database(kind, |database| database.number(&table, &number))?;
            answers.say(Said::Number(number));
            Ok(())
        }
        Question::Lanes(lanes, question) => {
            ask_lanes(report, &lanes, &question, Pieces::new(1, flow, answers))
        }
    }
}

/// Asks some lanes of the trace the same, and sends what each answers.
fn ask_lanes(
    report: &Report,
    lanes: &[u32],
    question: &LaneQuestion,
    mut pieces: Pieces,
) -> Result<(), ReportError> {
    let trace = report.trace()?;
    for lane in lanes {
        let answer = trace.as_ref().map(|trace| trace.answer(*lane, question)).transpose()?;
        let Some(answer) = answer.flatten() else {
            let refused = "a lane that is not there was asked, or something that no lane is asked";
            pieces.answers.say(Said::Failed(Failure::Refused(refused.to_owned())));
            return Ok(());
        };
        write_cell(&mut pieces.cells, ValueRef::Blob(&answer));
        if !pieces.send_full() {
            break;
        }
    }
    pieces.finish();
    Ok(())
}

/// Rows on their way to who asked.
struct Pieces<'a> {
    width: usize,
    flow: &'a Flow,
    answers: &'a Answers,
    cells: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn new(width: usize, flow: &'a Flow, answers: &'a Answers) -> Self {
        Self { width, flow, answers, cells: Vec::new() }
    }

    /// Sends what there is, if that is enough, once it may be sent; false if no more is wanted.
    fn send_full(&mut self) -> bool {
        if self.cells.len() >= PIECE_BYTES && self.flow.wait() {
            self.answers.rows(false, self.width, std::mem::take(&mut self.cells));
        }
        !self.flow.is_stopped()
    }

    /// Sends the rest.
    fn finish(self) {
        if !self.flow.is_stopped() {
            self.answers.rows(true, self.width, self.cells);
        }
    }
}

/// The clauses of a request as they are asked, if all of it makes sense.
fn select_of(database: &ReportDatabase, request: &RowsRequest) -> Result<String, &'static str> {
    let is_plain = |name: &String| name.chars().all(|l| l.is_ascii_alphanumeric() || l == '_');
    if !request.columns.iter().all(is_plain) || request.columns.len() > MAX_COLUMNS {
        return Err("columns that no table has were asked for");
    }
    let known = database.columns(&request.table);
    understood(&request.clauses, known, request.params.len())
        .ok_or("conditions that no reader has were asked for")
}

fn rows(
    database: &ReportDatabase,
    request: &RowsRequest,
    clauses: &str,
    flow: &Flow,
    answers: &Answers,
) -> Result<(), ReportError> {
    let columns: Vec<&str> = request.columns.iter().map(String::as_str).collect();
    let select =
        SelectQuery::all(&request.table, &columns).clauses(clauses).params(&request.params);
    let mut pieces = Pieces::new(columns.len().max(1), flow, answers);
    let mut left = request.most.unwrap_or(u64::MAX);
    database.stream(select, |row| {
        if left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        left -= 1;
        let before = pieces.cells.len();
        if columns.is_empty() {
            write_cell(&mut pieces.cells, ValueRef::Integer(1));
        }
        row.values().for_each(|value| write_cell(&mut pieces.cells, value));
        if pieces.cells.len() - before > MAX_ANSWER - PIECE_BYTES {
            return Err(database.damage(&request.table, "a row is too large"));
        }
        let goes_on = pieces.send_full() && left > 0;
        Ok(if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    pieces.finish();
    Ok(())
}

fn do_job(
    report: &Report,
    job: &Ask,
    answers: &Answers,
    cancel: &Arc<AtomicBool>,
) -> Result<(), ReportError> {
    let mut told = 0.0;
    let mut progress = |share: f64| {
        if share - told >= PROGRESS_STEP {
            told = share;
            answers.say(Said::Progress(share));
        }
    };
    match job {
        Ask::TraceState => answers.say(Said::TraceState(report.trace_state()?)),
        Ask::PrepareTrace => {
            report.prepare_trace(&mut progress, cancel)?;
            prepared(report, DatabaseKind::Trace, answers)?;
        }
        Ask::PrepareSyncPoints { only_known: true } => {
            report.known_critical_path()?;
            prepared(report, DatabaseKind::SyncPoints, answers)?;
        }
        Ask::PrepareSyncPoints { only_known: false } => {
            report.critical_path_with(&mut progress, cancel)?;
            prepared(report, DatabaseKind::SyncPoints, answers)?;
        }
        Ask::Verify { apart } => {
            let found = match apart {
                true => report.verify_apart(cancel)?,
                false => report.verify_with(&mut progress, cancel)?,
            };
            let found = found.into_iter().map(|found| (found.law.to_string(), found.text));
            answers.say(Said::Violations { found: found.collect(), warnings: report.warnings() });
        }
        Ask::SidecarText { name } => {
            answers.say(Said::Text(sidecar_text(report, name)?));
        }
        Ask::Files => answers.say(Said::Files(files(report))),
        _ => answers.say(Said::Failed(Failure::Refused("this cannot be asked".to_owned()))),
    }
    Ok(())
}

/// Says that a database can be asked, and sends the rows of its small tables.
fn prepared(report: &Report, kind: DatabaseKind, answers: &Answers) -> Result<(), ReportError> {
    let found = report.with_database(kind, facts);
    let (database, cells) = match found {
        Ok((database, cells)) => (Some(database), cells),
        Err(ReportError::Cancelled) => return Err(ReportError::Cancelled),
        // There is none: nothing was executed.
        Err(_) => (None, Vec::new()),
    };
    answers.say(Said::Prepared { database, warnings: report.warnings() });
    answers.rows(true, 0, cells);
    Ok(())
}

/// A text beside the report: of its name no other place can be made.
fn sidecar_text(report: &Report, name: &str) -> Result<Option<String>, ReportError> {
    let mut parts = Path::new(name).components();
    let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let is_text = name.ends_with(".json") && !name.contains(['\0', '/', '\\', ':']);
    let beside = report.path().parent().unwrap_or(Path::new("."));
    let stays = std::fs::symlink_metadata(beside.join(name)).is_ok_and(|found| found.is_file());
    if is_name && is_text && stays { report.sidecar_text(name) } else { Ok(None) }
}
