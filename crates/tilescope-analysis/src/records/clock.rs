//! The time limit of queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The clock of one query, shared by all its threads.
pub(crate) struct QueryClock {
    began: Instant,
    limit: Duration,
    /// Nanoseconds of waiting for the consumer of the rows, which do not count.
    waited: AtomicU64,
    stopped: AtomicBool,
    /// True after the query was cancelled.
    cancel: Arc<AtomicBool>,
    /// Executed steps that were read one by one.
    steps: AtomicU64,
}

impl QueryClock {
    pub(crate) fn new(limit: Duration, cancel: Arc<AtomicBool>) -> Self {
        Self {
            began: Instant::now(),
            limit,
            waited: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            cancel,
            steps: AtomicU64::new(0),
        }
    }

    /// The remaining time.
    pub(crate) fn left(&self) -> Duration {
        let waited = Duration::from_nanos(self.waited.load(Ordering::Relaxed));
        self.limit.saturating_add(waited).saturating_sub(self.began.elapsed())
    }

    /// Runs `work` without counting its time.
    pub(crate) fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.waited.fetch_add(nanos, Ordering::Relaxed);
        done
    }

    /// Ends the query early.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is_set(&self.stopped) || is_set(&self.cancel) || self.left().is_zero()
    }

    pub(crate) fn count_steps(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }
}
