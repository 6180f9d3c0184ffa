//! This side of the pipe: asks for what is looked at, from as many threads as there are.
//!
//! Questions do not wait for each other's answers, so that a slow link costs its delay once for all
//! that is asked at a time: whoever knows what it will need asks ahead. Answers that fit are kept:
//! what was looked at once does not travel again.

// Everything here reads bytes that anybody may have sent.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::messages::{
    Answer, Ask, CellReader, Frame, FrameError, Greeting, MAGIC, MAX_ANSWER, MAX_NOISE,
    PIECES_AHEAD, Request, RowsRequest, Said, read_frame, write_words,
};
use super::ssh::Transport;
use crate::database::lock;
use crate::error::ReportError;
use crate::trace::LaneQuestion;
use rusqlite::types::ValueRef;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// How often it is looked whether somebody still waits.
const PERIOD: Duration = Duration::from_millis(50);
/// Answers to one question that may wait to be taken, what is said beside rows among them.
const WAITING: usize = PIECES_AHEAD as usize + 8;
/// Bytes of rows that are kept, in all and of one question.
const KEPT_BYTES: usize = 64 << 20;
const MAX_KEPT: usize = 4 << 20;
/// Questions that are asked at a time by one who asks ahead: the far side lets some hundred wait.
const MAX_AHEAD: usize = 256;
/// Lanes that are asked the same in one question.
const MAX_LANES: usize = 1024;

/// The number of what the far side says first, to no question.
pub(super) const GREETING: u64 = 0;

/// What has come for a question.
#[derive(Debug)]
pub(super) enum Incoming {
    Said(Said),
    Rows { is_last: bool, cells: Vec<u8> },
}

/// What went over the pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteTraffic {
    pub questions: u64,
    /// How often the delay of the link was waited for: questions that are asked together count once.
    pub round_trips: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

/// What the thread that reads shares with those who ask.
#[derive(Default)]
struct Inbox {
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Why nothing comes any more.
    lost: OnceLock<String>,
    received: AtomicU64,
}

/// Who waits for an answer.
struct Waiting {
    sender: SyncSender<Incoming>,
    /// Whether progress was told that nobody has taken yet: more of it would take the place of the
    /// answer.
    has_progress: Arc<AtomicBool>,
}

impl Inbox {
    fn lose(&self, why: String) {
        // The first reason is the one.
        let _ = self.lost.set(why);
        // Whoever waits finds that nobody sends.
        lock(&self.waiting).clear();
    }

    /// Hands an answer to who waits for it; answers that nobody waits for any more are dropped.
    fn hand_over(&self, id: u64, incoming: Incoming) -> Result<(), FrameError> {
        let mut waiting = lock(&self.waiting);
        let Some(Waiting { sender, has_progress }) = waiting.get(&id) else { return Ok(()) };
        let is_progress = matches!(incoming, Incoming::Said(Said::Progress(_)));
        if is_progress && has_progress.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        match sender.try_send(incoming) {
            Ok(()) => Ok(()),
            Err(_) if is_progress => Ok(()),
            Err(std::sync::mpsc::TrySendError::Disconnected(_)) => {
                waiting.remove(&id);
                Ok(())
            }
            // More than was asked for: memory would fill up.
            Err(std::sync::mpsc::TrySendError::Full(_)) => Err(FrameError::NotUnderstood),
        }
    }
}

/// A question whose answer is kept.
#[derive(Clone, PartialEq, Eq, Hash)]
enum KeptQuestion {
    Rows(RowsRequest),
    Lane(u32, LaneQuestion),
}

/// Rows of questions that were answered, the least recently used of which go first.
#[derive(Default)]
struct KeptRows {
    rows: HashMap<KeptQuestion, KeptAnswer>,
    bytes: usize,
    clock: u64,
}

/// Rows, and when they were used last.
type KeptAnswer = (Arc<Vec<Vec<u8>>>, u64);

impl KeptRows {
    fn get(&mut self, question: &KeptQuestion) -> Option<Arc<Vec<Vec<u8>>>> {
        self.clock += 1;
        let (rows, used) = self.rows.get_mut(question)?;
        *used = self.clock;
        Some(rows.clone())
    }

    fn put(&mut self, question: KeptQuestion, rows: Vec<Vec<u8>>) {
        let size = |rows: &[Vec<u8>]| rows.iter().map(Vec::len).sum::<usize>() + 256;
        self.clock += 1;
        self.bytes += size(&rows);
        if let Some((replaced, _)) = self.rows.insert(question, (Arc::new(rows), self.clock)) {
            self.bytes -= size(&replaced);
        }
        if self.bytes <= KEPT_BYTES {
            return;
        }
        // Some at once: parts of a picture are thousands of small answers, and to look for the oldest
        // of all with each of them would take longer than to ask again.
        #[expect(clippy::disallowed_methods, reason = "sorted next")]
        let mut oldest: Vec<(u64, usize)> =
            self.rows.values().map(|(rows, used)| (*used, size(rows))).collect();
        oldest.sort_unstable();
        let mut dropped = 0;
        for (used, bytes) in oldest {
            if self.bytes <= KEPT_BYTES / 4 * 3 {
                break;
            }
            (self.bytes, dropped) = (self.bytes - bytes, used);
        }
        self.rows.retain(|_, (_, used)| *used > dropped);
    }
}

/// A connection to a machine that has a report.
pub(crate) struct RemoteSession {
    /// The address, as errors tell it.
    path: PathBuf,
    output: Mutex<Box<dyn Write + Send>>,
    greeting: Mutex<Receiver<Incoming>>,
    inbox: Arc<Inbox>,
    /// What ends the connection, once.
    end: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    next_id: AtomicU64,
    sent: AtomicU64,
    round_trips: AtomicU64,
    /// Held by who asks ahead: not all threads at once, of which each asks many things.
    ahead: Mutex<()>,
    kept: Mutex<KeptRows>,
}

impl RemoteSession {
    /// Begins to read what comes, and says who we are. Whom we speak to is found by
    /// [`greeting`](Self::greeting).
    pub(super) fn start(transport: Transport, path: &Path) -> Result<Self, ReportError> {
        let Transport { input, output, end, explain } = transport;
        let inbox = Arc::new(Inbox::default());
        let (sender, greeting) = sync_channel(1);
        let has_progress = Arc::default();
        lock(&inbox.waiting).insert(GREETING, Waiting { sender, has_progress });
        let session = Self {
            path: path.to_owned(),
            output: Mutex::new(output),
            greeting: Mutex::new(greeting),
            inbox: inbox.clone(),
            end: Mutex::new(Some(end)),
            next_id: AtomicU64::new(1),
            sent: AtomicU64::new(0),
            round_trips: AtomicU64::new(0),
            ahead: Mutex::default(),
            kept: Mutex::default(),
        };
        let reading = move || {
            let mut has_greeted = false;
            let error = read_all(input, &inbox, &mut has_greeted).err();
            inbox.lose(explain(has_greeted, error));
        };
        let thread = std::thread::Builder::new().name("remote report".to_owned()).spawn(reading);
        thread.map_err(|error| session.error(&format!("no thread to read it: {error}")))?;
        session.write(&Greeting::own())?;
        Ok(session)
    }

    /// Who the far side says it is, once.
    pub(super) fn greeting(&self, cancel: &AtomicBool) -> Result<Greeting, ReportError> {
        match self.next(&lock(&self.greeting), cancel)? {
            Incoming::Said(Said::Greeting(greeting)) => Ok(greeting),
            _ => Err(self.not_understood()),
        }
    }

    /// Waits for what comes next.
    fn next(
        &self,
        receiver: &Receiver<Incoming>,
        cancel: &AtomicBool,
    ) -> Result<Incoming, ReportError> {
        loop {
            match receiver.recv_timeout(PERIOD) {
                Ok(incoming) => return Ok(incoming),
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost_error()),
                Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::Relaxed) => {
                    return Err(ReportError::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// A failure of the connection, in words.
    pub(super) fn error(&self, problem: &str) -> ReportError {
        ReportError::Remote { problem: problem.to_owned(), path: self.path.clone() }
    }

    /// Why nothing comes any more, if that is so.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.inbox.lost.get().map(String::as_str)
    }

    fn lost_error(&self) -> ReportError {
        self.error(self.lost().unwrap_or("the connection has ended"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn traffic(&self) -> RemoteTraffic {
        RemoteTraffic {
            questions: self.next_id.load(Ordering::Relaxed) - 1,
            round_trips: self.round_trips.load(Ordering::Relaxed),
            bytes_sent: self.sent.load(Ordering::Relaxed),
            bytes_received: self.inbox.received.load(Ordering::Relaxed),
        }
    }

    fn write(&self, words: &impl serde::Serialize) -> Result<(), ReportError> {
        match write_words(&mut *lock(&self.output), words) {
            Ok(bytes) => {
                self.sent.fetch_add(bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                // The thread that reads knows better why, a little later.
                let mut waited = Duration::ZERO;
                while self.lost().is_none() && waited < Duration::from_secs(3) {
                    std::thread::sleep(PERIOD);
                    waited += PERIOD;
                }
                Err(self.error(self.lost().unwrap_or(&format!("the connection broke: {error}"))))
            }
        }
    }

    /// Asks something; answers are taken one after the other.
    pub(super) fn ask(&self, ask: Ask) -> Result<PendingAnswers<'_>, ReportError> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.send(ask)
    }

    /// The same for who asks more before it waits.
    fn send(&self, ask: Ask) -> Result<PendingAnswers<'_>, ReportError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = sync_channel(WAITING);
        let has_progress = Arc::<AtomicBool>::default();
        let waiting = Waiting { sender, has_progress: has_progress.clone() };
        lock(&self.inbox.waiting).insert(id, waiting);
        let pending = PendingAnswers { session: self, id, receiver, has_progress, is_done: false };
        if self.lost().is_some() {
            return Err(self.lost_error());
        }
        self.write(&Request { id, ask })?;
        Ok(pending)
    }

    /// The one answer to a question.
    pub(super) fn answer(&self, ask: Ask, cancel: &AtomicBool) -> Result<Said, ReportError> {
        self.answer_with(ask, &mut |_| {}, cancel)
    }

    /// The answer to a question that takes long. `progress` gets a share from 0 to 1.
    pub(super) fn answer_with(
        &self,
        ask: Ask,
        progress: &mut dyn FnMut(f64),
        cancel: &AtomicBool,
    ) -> Result<Said, ReportError> {
        let mut pending = self.ask(ask)?;
        loop {
            match pending.next(cancel)? {
                Incoming::Said(Said::Progress(share)) if (0.0..=1.0).contains(&share) => {
                    progress(share);
                }
                Incoming::Said(said) => {
                    pending.is_done = true;
                    return match said {
                        Said::Failed(failure) => Err(failure.error(&self.path)),
                        said => Ok(said),
                    };
                }
                Incoming::Rows { .. } => return Err(self.not_understood()),
            }
        }
    }

    pub(super) fn not_understood(&self) -> ReportError {
        self.error("the far side answers something else than it was asked")
    }

    /// Hands the rows that are asked for to `each`, cell by cell, until it breaks off.
    pub(crate) fn rows(
        &self,
        request: RowsRequest,
        cancel: &AtomicBool,
        mut each: impl FnMut(&[ValueRef]) -> Result<ControlFlow<()>, ReportError>,
    ) -> Result<(), ReportError> {
        let width = request.columns.len().max(1);
        let question = KeptQuestion::Rows(request.clone());
        if let Some(kept) = lock(&self.kept).get(&question) {
            for cells in kept.iter() {
                if self.each_row(cells, width, &mut each)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let mut pending = self.ask(Ask::Rows(request))?;
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while !pending.is_done {
            let cells = pending.next_rows(cancel)?;
            if self.each_row(&cells, width, &mut each)?.is_break() && !pending.is_done {
                return Ok(());
            }
            bytes += cells.len();
            if bytes <= MAX_KEPT {
                pieces.push(cells);
            }
        }
        if bytes <= MAX_KEPT {
            lock(&self.kept).put(question, pieces);
        }
        Ok(())
    }

    /// Asks for rows that will be looked at, all at once. What goes wrong is told to who looks.
    pub(crate) fn rows_ahead(&self, requests: Vec<RowsRequest>, cancel: &AtomicBool) {
        let is_new = |request: &RowsRequest| {
            lock(&self.kept).get(&KeptQuestion::Rows(request.clone())).is_none()
        };
        let _ahead = lock(&self.ahead);
        let requests: Vec<RowsRequest> = requests.into_iter().filter(is_new).collect();
        for some in requests.chunks(MAX_AHEAD) {
            self.round_trips.fetch_add(1, Ordering::Relaxed);
            let sent: Result<Vec<_>, ReportError> =
                some.iter().map(|request| self.send(Ask::Rows(request.clone()))).collect();
            let Ok(sent) = sent else { return };
            for (request, pending) in some.iter().zip(sent) {
                if let Ok(Some(pieces)) = pending.all_rows(cancel) {
                    lock(&self.kept).put(KeptQuestion::Rows(request.clone()), pieces);
                }
            }
        }
    }

    /// What is answered to a question about a lane.
    pub(crate) fn lane(
        &self,
        lane: u32,
        question: &LaneQuestion,
        cancel: &AtomicBool,
    ) -> Result<Vec<u8>, ReportError> {
        let of_lane = KeptQuestion::Lane(lane, question.clone());
        let kept = lock(&self.kept).get(&of_lane);
        if let Some(answer) = kept.and_then(|kept| kept.first().cloned()) {
            return Ok(answer);
        }
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.send_lanes(&[lane], question)?.lane_answers(1, cancel)?;
        let answer = answers.pop().ok_or_else(|| self.not_understood())?;
        if answer.len() <= MAX_KEPT {
            lock(&self.kept).put(of_lane, vec![answer.clone()]);
        }
        Ok(answer)
    }

    /// Asks lanes at once all that they will be asked: questions, each with the lanes it is for. What
    /// goes wrong is told to who asks then.
    pub(crate) fn lanes_ahead(&self, asked: &[(Vec<u32>, LaneQuestion)], cancel: &AtomicBool) {
        asked.chunks(MAX_AHEAD).for_each(|some| self.some_lanes_ahead(some, cancel));
    }

    fn some_lanes_ahead(&self, asked: &[(Vec<u32>, LaneQuestion)], cancel: &AtomicBool) {
        let mut sent = Vec::new();
        for (lanes, question) in asked {
            let of = |lane: u32| KeptQuestion::Lane(lane, question.clone());
            let is_new = |lane: &u32| lock(&self.kept).get(&of(*lane)).is_none();
            let lanes: Vec<u32> = lanes.iter().copied().filter(is_new).collect();
            for some in lanes.chunks(MAX_LANES) {
                let Ok(pending) = self.send_lanes(some, question) else { return };
                sent.push((some.iter().map(|lane| of(*lane)).collect::<Vec<_>>(), pending));
            }
        }
        self.round_trips.fetch_add(u64::from(!sent.is_empty()), Ordering::Relaxed);
        for (asked, pending) in sent {
            let Ok(answers) = pending.lane_answers(asked.len(), cancel) else { continue };
            for (of_lane, answer) in asked.into_iter().zip(answers) {
                if answer.len() <= MAX_KEPT {
                    lock(&self.kept).put(of_lane, vec![answer]);
                }
            }
        }
    }

    fn send_lanes(
        &self,
        lanes: &[u32],
        question: &LaneQuestion,
    ) -> Result<PendingAnswers<'_>, ReportError> {
        self.send(Ask::Lanes { lanes: lanes.to_vec(), question: question.clone() })
    }

    fn each_row(
        &self,
        cells: &[u8],
        width: usize,
        each: &mut impl FnMut(&[ValueRef]) -> Result<ControlFlow<()>, ReportError>,
    ) -> Result<ControlFlow<()>, ReportError> {
        let mut cells = CellReader::new(cells);
        let mut row = Vec::with_capacity(width);
        while !cells.is_done() {
            row.clear();
            for _ in 0..width {
                row.push(cells.take().ok_or_else(|| self.not_understood())?);
            }
            if each(&row)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        if let Some(end) = lock(&self.end).take() {
            end();
        }
        if std::env::var_os(STATISTICS).is_some() {
            let RemoteTraffic { questions, round_trips, bytes_sent, bytes_received } =
                self.traffic();
            let place = self.path.display();
            let words = format!(
                "{place}: {questions} questions in {round_trips} round trips, {bytes_sent} B sent, \
                 {bytes_received} B received"
            );
            // There is nobody to tell that it cannot be told.
            let _ = writeln!(io::stderr(), "{words}");
        }
    }
}

/// Set to anything, it has each connection tell at its end what went over it.
const STATISTICS: &str = "TILESCOPE_REMOTE_STATISTICS";

/// Answers to a question that are still to come.
pub(super) struct PendingAnswers<'a> {
    session: &'a RemoteSession,
    id: u64,
    receiver: Receiver<Incoming>,
    has_progress: Arc<AtomicBool>,
    is_done: bool,
}

impl PendingAnswers<'_> {
    /// Waits for the next answer.
    pub(super) fn next(&mut self, cancel: &AtomicBool) -> Result<Incoming, ReportError> {
        let next = self.session.next(&self.receiver, cancel)?;
        if matches!(next, Incoming::Said(Said::Progress(_))) {
            self.has_progress.store(false, Ordering::Relaxed);
        }
        Ok(next)
    }

    pub(super) fn done(mut self) {
        self.is_done = true;
    }

    /// Waits for the next rows, and has more sent unless they are the last.
    fn next_rows(&mut self, cancel: &AtomicBool) -> Result<Vec<u8>, ReportError> {
        match self.next(cancel)? {
            Incoming::Rows { is_last, cells } => {
                self.is_done = is_last;
                if !is_last {
                    // Before the rows are looked at, so that the next ones are on their way
                    // meanwhile.
                    self.session.write(&Request { id: self.id, ask: Ask::More })?;
                }
                Ok(cells)
            }
            Incoming::Said(Said::Failed(failure)) => {
                self.is_done = true;
                Err(failure.error(&self.session.path))
            }
            Incoming::Said(_) => Err(self.session.not_understood()),
        }
    }

    /// One answer for each of so many lanes.
    fn lane_answers(
        mut self,
        lanes: usize,
        cancel: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, ReportError> {
        let mut answers = Vec::with_capacity(lanes);
        while !self.is_done {
            let cells = self.next_rows(cancel)?;
            let mut cells = CellReader::new(&cells);
            while !cells.is_done() {
                let Some(ValueRef::Blob(answer)) = cells.take().filter(|_| answers.len() < lanes)
                else {
                    return Err(self.session.not_understood());
                };
                answers.push(answer.to_vec());
            }
        }
        if answers.len() == lanes { Ok(answers) } else { Err(self.session.not_understood()) }
    }

    /// All rows, if they are few enough to be kept.
    fn all_rows(mut self, cancel: &AtomicBool) -> Result<Option<Vec<Vec<u8>>>, ReportError> {
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while !self.is_done {
            let cells = self.next_rows(cancel)?;
            bytes += cells.len();
            if bytes > MAX_KEPT {
                return Ok(None);
            }
            pieces.push(cells);
        }
        Ok(Some(pieces))
    }
}

impl Drop for PendingAnswers<'_> {
    fn drop(&mut self) {
        lock(&self.session.inbox.waiting).remove(&self.id);
        if !self.is_done && self.session.lost().is_none() {
            // A link that broke meanwhile needs no word.
            let _ = write_words(
                &mut *lock(&self.session.output),
                &Request { id: self.id, ask: Ask::Stop },
            );
        }
    }
}

/// Reads everything that comes, until it ends.
fn read_all(
    input: Box<dyn Read + Send>,
    inbox: &Inbox,
    has_greeted: &mut bool,
) -> Result<(), FrameError> {
    let mut input = CountedReader { input: io::BufReader::new(input), count: &inbox.received };
    pass_over_noise(&mut input)?;
    while let Some(frame) = read_frame::<Answer>(&mut input, MAX_ANSWER)? {
        *has_greeted = true;
        match frame {
            Frame::Words(Answer { id, said }) => inbox.hand_over(id, Incoming::Said(said))?,
            Frame::Rows(rows) => {
                let (is_last, cells) = (rows.is_last, rows.cells);
                inbox.hand_over(rows.id, Incoming::Rows { is_last, cells })?;
            }
        }
    }
    Ok(())
}

/// Reads up to the end of what the far side says first; what login scripts print comes before that.
fn pass_over_noise(input: &mut impl Read) -> Result<(), FrameError> {
    let mut last = Vec::with_capacity(MAX_NOISE);
    while !last.ends_with(MAGIC) {
        let mut byte = [0];
        if last.len() >= MAX_NOISE {
            return Err(FrameError::NotUnderstood);
        }
        input.read_exact(&mut byte).map_err(|_| FrameError::CutOff)?;
        last.extend(byte);
    }
    Ok(())
}

struct CountedReader<'a, R> {
    input: R,
    count: &'a AtomicU64,
}

impl<R: Read> Read for CountedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::StepId;

    #[test]
    fn kept_answers_have_a_bound_and_the_last_ones_stay() {
        let of = |step| KeptQuestion::Lane(0, LaneQuestion::Find { step: StepId(step) });
        let (mut kept, count) = (KeptRows::default(), 2 * (KEPT_BYTES / MAX_KEPT) as u64);
        for step in 0..count {
            kept.put(of(step), vec![vec![0; MAX_KEPT]]);
            assert!(kept.bytes <= KEPT_BYTES, "{}", kept.bytes);
            assert!(kept.get(&of(step)).is_some() && kept.get(&of(0)).is_some(), "{step}");
        }
        assert!(kept.get(&of(1)).is_none(), "the least recently used go first");
        let bytes: usize = kept.rows.len() * (MAX_KEPT + 256);
        assert_eq!(kept.bytes, bytes);
    }
}
