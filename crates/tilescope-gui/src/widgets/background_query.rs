//! Slow queries off the UI thread.
//!
//! A [`BackgroundQuery`] holds the answer to one changing query. Views call it in every frame. It
//! works on one query at a time, skips those that were replaced while it worked, and keeps the last
//! answer until a newer one is available, so that a view never becomes empty again.
//!
//! The result is a [`QueryState`]. It owns its answer, so the view can change while it shows it,
//! and [`QueryState::show`] draws the available data. Answers are [`Versioned`]: derived data, such
//! as a texture or a sorted table, is cached under the version.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tilescope_report::ReportError;

/// The time without an answer after which views show that they are waiting.
const OVERDUE_AFTER: Duration = Duration::from_millis(150);

/// The number of running queries, shared by all queries of a window.
#[derive(Clone, Default)]
pub struct BackgroundWorkers(Arc<BackgroundWorkerState>);

#[derive(Default)]
struct BackgroundWorkerState {
    busy: AtomicUsize,
    lock: Mutex<()>,
    finished: Condvar,
}

impl BackgroundWorkers {
    /// Returns true while a query is running.
    pub fn busy(&self) -> bool {
        self.0.busy.load(Ordering::SeqCst) > 0
    }

    /// Waits until no query is running, or until `limit` has passed.
    pub fn wait(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Checked under the lock that workers hold to count down: no end is missed before the wait.
        while self.busy() {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return };
            guard = match self.0.finished.wait_timeout(guard, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    fn start(&self) -> RunningQueryGuard {
        self.0.busy.fetch_add(1, Ordering::SeqCst);
        RunningQueryGuard(self.0.clone())
    }
}

/// Counts down when dropped, however the work ended.
struct RunningQueryGuard(Arc<BackgroundWorkerState>);

impl Drop for RunningQueryGuard {
    fn drop(&mut self) {
        let _guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
        self.0.finished.notify_all();
    }
}

/// A shared value with a version that distinguishes it from every other value.
///
/// The address of a value would not work: another one may have it once the first is freed.
pub(crate) struct Versioned<T> {
    version: u64,
    value: Arc<T>,
}

impl<T> Versioned<T> {
    /// Wraps a value and gives it a new version.
    pub(crate) fn new(value: T) -> Self {
        // Versions only have to differ; they order no other memory, so `Relaxed` is enough.
        static NEXT_VERSION: AtomicU64 = AtomicU64::new(1);
        Self { version: NEXT_VERSION.fetch_add(1, Ordering::Relaxed), value: Arc::new(value) }
    }

    /// The version, which no other value has.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

impl<T> Clone for Versioned<T> {
    fn clone(&self) -> Self {
        Self { version: self.version, value: self.value.clone() }
    }
}

impl<T> Deref for Versioned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Versioned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}: {:?}", self.version, self.value)
    }
}

/// The reason that a query has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum BackgroundQueryError {
    /// The work failed with an error.
    #[error("{0}")]
    Failed(Arc<dyn std::error::Error + Send + Sync>),
    /// The answer is no longer needed.
    #[error("Cancelled.")]
    Cancelled,
    /// The work panicked, which is a bug of ours.
    #[error("Internal error. Please report this bug.")]
    Panicked,
}

impl From<ReportError> for BackgroundQueryError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Cancelled => Self::Cancelled,
            error => Self::failed(error),
        }
    }
}

impl BackgroundQueryError {
    /// An error from the work.
    pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Failed(Arc::new(error))
    }
}

/// The state of a query.
#[derive(Debug)]
pub(crate) enum QueryState<T> {
    /// The answer to the current query.
    Fresh(Versioned<T>),
    /// The answer to an earlier query, while the current one is running.
    Stale {
        /// The earlier answer.
        answer: Versioned<T>,
        /// True if the query has run long enough to show that.
        overdue: bool,
    },
    /// No answer is available yet.
    Waiting {
        /// True if the query has run long enough to show that.
        overdue: bool,
    },
    /// The current query has no answer, for this reason.
    Failed(BackgroundQueryError),
}

impl<T> QueryState<T> {
    /// The newest available answer.
    pub(crate) fn answer(&self) -> Option<&Versioned<T>> {
        match self {
            Self::Fresh(answer) | Self::Stale { answer, .. } => Some(answer),
            Self::Waiting { .. } | Self::Failed(_) => None,
        }
    }

    /// The outcome of the current query; `None` while it is running.
    pub(crate) fn finished(self) -> Option<Result<Versioned<T>, BackgroundQueryError>> {
        match self {
            Self::Fresh(answer) => Some(Ok(answer)),
            Self::Failed(error) => Some(Err(error)),
            Self::Stale { .. } | Self::Waiting { .. } => None,
        }
    }

    /// The same state without stale answers, for queries whose earlier answers must not stand in.
    pub(crate) fn fresh_only(self) -> Self {
        match self {
            Self::Stale { overdue, .. } => Self::Waiting { overdue },
            state => state,
        }
    }

    /// Returns true if there has been nothing to show for so long that the view says so.
    pub(crate) fn is_overdue(&self) -> bool {
        matches!(self, Self::Waiting { overdue: true })
    }
}

/// A running query.
struct PendingQuery<K, T> {
    key: K,
    since: Instant,
    receiver: Receiver<Result<Versioned<T>, BackgroundQueryError>>,
    cancelled: Arc<AtomicBool>,
}

impl<K, T> PendingQuery<K, T> {
    fn is_overdue(&self) -> bool {
        self.since.elapsed() >= OVERDUE_AFTER
    }
}

/// Cancels the work, because its answer is no longer needed.
impl<K, T> Drop for PendingQuery<K, T> {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }
}

/// A query key, and the outcome of the work.
type AnsweredQuery<K, T> = (K, Result<Versioned<T>, BackgroundQueryError>);

/// One changing query and its newest answer.
pub(crate) struct BackgroundQuery<K, T> {
    answer: Option<AnsweredQuery<K, T>>,
    pending: Option<PendingQuery<K, T>>,
}

impl<K, T> Default for BackgroundQuery<K, T> {
    fn default() -> Self {
        Self { answer: None, pending: None }
    }
}

impl<K, T> BackgroundQuery<K, T> {
    /// The newest answer, even if it belongs to an earlier query.
    pub(crate) fn latest(&self) -> Option<&Versioned<T>> {
        self.answer.as_ref().and_then(|(_, answer)| answer.as_ref().ok())
    }

    /// The error of the last answered query, if it failed.
    pub(crate) fn latest_error(&self) -> Option<&BackgroundQueryError> {
        self.answer.as_ref().and_then(|(_, answer)| answer.as_ref().err())
    }
}

impl<K, T> BackgroundQuery<K, T>
where
    K: Clone + PartialEq + Send + 'static,
    T: Send + Sync + 'static,
{
    /// Runs `question` for `key`, unless the answer is known already or other work is running.
    pub(crate) fn ask<E: Into<BackgroundQueryError>>(
        &mut self,
        context: &egui::Context,
        workers: &BackgroundWorkers,
        key: &K,
        question: impl FnOnce(&K) -> Result<T, E> + Send + 'static,
    ) -> QueryState<T> {
        self.ask_cancellable(context, workers, key, |key, _| question(key))
    }

    /// Runs a query that cannot fail.
    pub(crate) fn compute(
        &mut self,
        context: &egui::Context,
        workers: &BackgroundWorkers,
        key: &K,
        question: impl FnOnce(&K) -> T + Send + 'static,
    ) -> QueryState<T> {
        self.ask(context, workers, key, |key| Ok::<T, BackgroundQueryError>(question(key)))
    }

    /// Runs a query that checks from time to time if its answer is still needed.
    pub(crate) fn ask_cancellable<E: Into<BackgroundQueryError>>(
        &mut self,
        context: &egui::Context,
        workers: &BackgroundWorkers,
        key: &K,
        question: impl FnOnce(&K, &Arc<AtomicBool>) -> Result<T, E> + Send + 'static,
    ) -> QueryState<T> {
        self.receive();
        let known = self.answer.as_ref().is_some_and(|(answered, _)| answered == key);
        // One query at a time: panning asks faster than answers arrive, and a queue would only hold
        // outdated work.
        if !known && self.pending.is_none() {
            self.start(context, workers, key.clone(), question);
        }
        if let Some(pending) = &self.pending {
            let wait = OVERDUE_AFTER.saturating_sub(pending.since.elapsed());
            // Without input egui paints no frame, and the overdue state would never show.
            if !wait.is_zero() {
                context.request_repaint_after(wait);
            }
        }
        self.state_of(key)
    }

    /// Runs a query that the user is still typing. It cancels the running query.
    pub(crate) fn ask_newest<E: Into<BackgroundQueryError>>(
        &mut self,
        context: &egui::Context,
        workers: &BackgroundWorkers,
        key: &K,
        question: impl FnOnce(&K, &Arc<AtomicBool>) -> Result<T, E> + Send + 'static,
    ) -> QueryState<T> {
        self.receive();
        self.pending.take_if(|pending| pending.key != *key);
        self.ask_cancellable(context, workers, key, question)
    }

    /// Cancels the running query. It stays unanswered until [`Self::retry`].
    pub(crate) fn cancel(&mut self) {
        if let Some(pending) = self.pending.take() {
            // Stored as an answer: views call this in every frame and would restart the same work
            // at once.
            self.answer = Some((pending.key.clone(), Err(BackgroundQueryError::Cancelled)));
        }
    }

    /// Returns true if the last query was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self.latest_error(), Some(BackgroundQueryError::Cancelled))
    }

    /// Discards the last error, so that the query runs again.
    pub(crate) fn retry(&mut self) {
        self.answer.take_if(|(_, answer)| answer.is_err());
    }

    fn state_of(&self, key: &K) -> QueryState<T> {
        let overdue = self.pending.as_ref().is_some_and(PendingQuery::is_overdue);
        match &self.answer {
            Some((answered, Ok(answer))) if answered == key => QueryState::Fresh(answer.clone()),
            Some((answered, Err(error))) if answered == key => QueryState::Failed(error.clone()),
            Some((_, Ok(answer))) => QueryState::Stale { answer: answer.clone(), overdue },
            // Also after an earlier query failed: its error does not apply to this one.
            _ => QueryState::Waiting { overdue },
        }
    }

    fn receive(&mut self) {
        let Some(pending) = &self.pending else { return };
        match pending.receiver.try_recv() {
            Ok(answer) => {
                // Freeing a large answer may take longer than painting a frame.
                let overtaken = self.answer.replace((pending.key.clone(), answer));
                in_background(move || drop(overtaken));
            }
            Err(TryRecvError::Empty) => return,
            // The work ended without a result: run it again instead of waiting forever.
            Err(TryRecvError::Disconnected) => {}
        }
        self.pending = None;
    }

    fn start<E: Into<BackgroundQueryError>>(
        &mut self,
        context: &egui::Context,
        workers: &BackgroundWorkers,
        key: K,
        question: impl FnOnce(&K, &Arc<AtomicBool>) -> Result<T, E> + Send + 'static,
    ) {
        let (sender, receiver) = channel();
        let context = context.clone();
        let job = workers.start();
        let cancelled = Arc::new(AtomicBool::new(false));
        let asked = key.clone();
        let flag = cancelled.clone();
        self.pending = Some(PendingQuery { key, since: Instant::now(), receiver, cancelled });
        in_background(move || {
            // A panic inside rayon would take down the whole app.
            let ended = catch_unwind(AssertUnwindSafe(|| question(&asked, &flag)));
            let answer = match ended {
                Ok(Ok(answer)) => Ok(Versioned::new(answer)),
                Ok(Err(error)) => Err(error.into()),
                Err(_) => Err(BackgroundQueryError::Panicked),
            };
            // The receiver is gone once the view is closed.
            let _ = sender.send(answer);
            // Only after the answer was sent: a caller that waits for the workers finds it in the
            // channel.
            drop(job);
            context.request_repaint();
        });
    }
}

/// Runs work on a separate pool with one thread fewer than there are processors: the window keeps
/// one.
fn in_background(work: impl FnOnce() + Send + 'static) {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        // Not rayon's global pool: it has a thread for every processor, and frames would stutter.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.saturating_sub(1).max(1);
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()
    });
    match pool {
        Some(pool) => pool.spawn(work),
        None => rayon::spawn(work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query and its workers.
    struct Asking {
        context: egui::Context,
        workers: BackgroundWorkers,
        query: BackgroundQuery<u32, u32>,
    }

    impl Asking {
        fn new() -> Self {
            let context = egui::Context::default();
            let workers = BackgroundWorkers::default();
            Self { context, workers, query: BackgroundQuery::default() }
        }

        fn tenfold(&mut self, key: u32) -> QueryState<u32> {
            self.query.compute(&self.context, &self.workers, &key, |key| key * 10)
        }

        fn settle(&self) {
            settled(&self.workers);
        }
    }

    fn settled(workers: &BackgroundWorkers) {
        workers.wait(Duration::from_secs(10));
        assert!(!workers.busy());
    }

    #[test]
    fn an_answer_stays_until_a_newer_one_arrives() {
        let mut asking = Asking::new();
        assert!(matches!(asking.tenfold(1), QueryState::Waiting { .. }));
        asking.settle();
        assert!(matches!(asking.tenfold(1), QueryState::Fresh(answer) if *answer == 10));
        let stale = asking.tenfold(2);
        assert!(matches!(&stale, QueryState::Stale { answer, .. } if **answer == 10));
        assert!(matches!(stale.fresh_only(), QueryState::Waiting { .. }));
        asking.settle();
        assert!(matches!(asking.tenfold(2), QueryState::Fresh(answer) if *answer == 20));
    }

    #[test]
    fn versions_change_only_with_answers() {
        let mut asking = Asking::new();
        let mut version = |key| {
            asking.tenfold(key);
            asking.settle();
            let state = asking.tenfold(key);
            state.answer().map(Versioned::version).expect("an answer")
        };
        let first = version(1);
        assert_eq!(version(1), first);
        let second = version(2);
        assert_ne!(second, first);
        // A forgotten answer is computed again.
        assert!(![first, second].contains(&version(1)));
    }

    #[test]
    fn outdated_queries_are_skipped() {
        let mut asking = Asking::new();
        let count = Arc::new(AtomicUsize::new(0));
        let mut ask = |key| {
            let count = count.clone();
            asking.query.compute(&asking.context, &asking.workers, &key, move |key| {
                std::thread::sleep(Duration::from_millis(50));
                count.fetch_add(1, Ordering::SeqCst);
                *key
            })
        };
        (0..100).for_each(|key| drop(ask(key)));
        asking.settle();
        assert!(count.load(Ordering::SeqCst) < 10);
        // The last query has not run yet.
        assert!(!matches!(asking.tenfold(99), QueryState::Fresh(_)));
        asking.settle();
        assert!(matches!(asking.tenfold(99), QueryState::Fresh(answer) if *answer == 990));
    }

    #[test]
    fn an_error_applies_only_to_its_own_query() {
        let mut asking = Asking::new();
        let mut ask = |key| {
            let question = |_: &u32| {
                let error = std::io::Error::other("no such thing");
                Err(BackgroundQueryError::Failed(Arc::new(error)))
            };
            asking.query.ask(&asking.context, &asking.workers, &key, question)
        };
        ask(1);
        settled(&asking.workers);
        let QueryState::Failed(error) = ask(1) else { panic!("an error") };
        assert_eq!(error.to_string(), "no such thing");
        assert!(matches!(ask(2), QueryState::Waiting { .. }));
    }

    #[test]
    fn a_panic_is_an_answer_too() {
        let mut asking = Asking::new();
        let question = |_: &u32| std::panic::resume_unwind(Box::new("test"));
        asking.query.compute(&asking.context, &asking.workers, &1, question);
        asking.settle();
        let state = asking.tenfold(1);
        assert!(matches!(state, QueryState::Failed(BackgroundQueryError::Panicked)));
    }

    #[test]
    fn a_cancelled_query_ends_and_can_be_retried() {
        let mut asking = Asking::new();
        let until_cancelled = |_: &u32, cancelled: &Arc<AtomicBool>| -> Result<u32, ReportError> {
            while !cancelled.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(ReportError::Cancelled)
        };
        asking.query.ask_cancellable(&asking.context, &asking.workers, &1, until_cancelled);
        assert!(!asking.query.is_cancelled());
        asking.query.cancel();
        asking.settle();
        assert!(asking.query.is_cancelled());
        let state = asking.tenfold(1);
        assert!(matches!(state, QueryState::Failed(BackgroundQueryError::Cancelled)));
        asking.query.retry();
        assert!(matches!(asking.tenfold(1), QueryState::Waiting { .. }));
        asking.settle();
        assert!(matches!(asking.tenfold(1), QueryState::Fresh(answer) if *answer == 10));
    }

    #[test]
    fn a_newer_query_cancels_an_older_one() {
        let mut asking = Asking::new();
        let until_cancelled =
            |key: &u32, cancelled: &Arc<AtomicBool>| -> Result<u32, ReportError> {
                while *key == 1 && !cancelled.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(key * 10)
            };
        let mut ask = |key: u32| {
            asking.query.ask_newest(&asking.context, &asking.workers, &key, until_cancelled)
        };
        ask(1);
        assert!(matches!(ask(2), QueryState::Waiting { .. }));
        settled(&asking.workers);
        assert!(matches!(ask(2), QueryState::Fresh(answer) if *answer == 20));
    }

    #[test]
    fn a_running_query_can_be_dropped() {
        let mut asking = Asking::new();
        asking.query.compute(&asking.context, &asking.workers, &1, |_| {
            std::thread::sleep(Duration::from_millis(20));
            1
        });
        drop(asking.query);
        settled(&asking.workers);
    }
}
