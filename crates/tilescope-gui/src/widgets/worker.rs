//! Asking slow questions off the UI thread.
//!
//! A [`BackgroundQuery`] holds the answer to one changing question. Views ask on every frame; the slot works
//! on one question at a time, skips those that were overtaken while it worked, and keeps the last
//! answer until a newer one is there, so that a view never falls back to nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// After this long without an answer, views say that they are waiting.
const OVERDUE_AFTER: Duration = Duration::from_millis(150);

/// Counts questions being worked on; shared by all slots of a window.
#[derive(Clone, Default)]
pub struct BackgroundWorkers(Arc<BackgroundWorkerState>);

#[derive(Default)]
struct BackgroundWorkerState {
    busy: AtomicUsize,
    lock: Mutex<()>,
    finished: Condvar,
}

impl BackgroundWorkers {
    /// Whether a question is being worked on.
    pub fn busy(&self) -> bool {
        self.0.busy.load(Ordering::SeqCst) > 0
    }

    /// Waits until no question is being worked on, or `limit` has passed.
    pub fn wait(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Counts down when it goes out of scope, however the work ended.
struct RunningQueryGuard(Arc<BackgroundWorkerState>);

impl Drop for RunningQueryGuard {
    fn drop(&mut self) {
        let _guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
        self.0.finished.notify_all();
    }
}

/// State of a question.
pub(crate) enum QueryState<'a, T> {
    /// The answer to this very question.
    Fresh(&'a T),
    /// The answer to an earlier question, while this one is worked on.
    Stale(&'a T),
    Waiting,
    /// The worker panicked; a bug of ours.
    Failed,
}

impl<'a, T> QueryState<'a, T> {
    /// The newest answer there is.
    pub(crate) fn answer(&self) -> Option<&'a T> {
        match self {
            Self::Fresh(answer) | Self::Stale(answer) => Some(answer),
            Self::Waiting | Self::Failed => None,
        }
    }
}

/// Since when a question is worked on, and where its answer will come from.
type PendingQuery<K, T> = (Instant, Receiver<(K, Option<T>)>);

/// One changing question and its newest answer.
pub struct BackgroundQuery<K, T> {
    answer: Option<(K, Option<T>)>,
    pending: Option<PendingQuery<K, T>>,
}

impl<K, T> Default for BackgroundQuery<K, T> {
    fn default() -> Self {
        Self { answer: None, pending: None }
    }
}

impl<K, T> BackgroundQuery<K, T>
where
    K: Clone + PartialEq + Send + 'static,
    T: Send + 'static,
{
    /// Asks `question` about `key`, unless that is known already or other work is under way.
    pub(crate) fn ask(
        &mut self,
        context: &egui::Context,
        workers: &BackgroundWorkers,
        key: &K,
        question: impl FnOnce(&K) -> T + Send + 'static,
    ) -> QueryState<'_, T> {
        self.receive();
        let known = self.answer.as_ref().is_some_and(|(answered, _)| answered == key);
        if !known && self.pending.is_none() {
            self.start(context, workers, key.clone(), question);
        }
        if let Some((since, _)) = &self.pending {
            let wait = OVERDUE_AFTER.saturating_sub(since.elapsed());
            if !wait.is_zero() {
                context.request_repaint_after(wait);
            }
        }
        match &self.answer {
            Some((answered, Some(answer))) if answered == key => QueryState::Fresh(answer),
            Some((answered, None)) if answered == key => QueryState::Failed,
            Some((_, Some(answer))) => QueryState::Stale(answer),
            _ => QueryState::Waiting,
        }
    }

    /// Whether the work under way has taken long enough to say so.
    pub(crate) fn is_slow(&self) -> bool {
        self.pending.as_ref().is_some_and(|(since, _)| since.elapsed() >= OVERDUE_AFTER)
    }

    /// The newest answer, whatever was asked since.
    pub(crate) fn latest(&self) -> Option<&T> {
        self.answer.as_ref().and_then(|(_, answer)| answer.as_ref())
    }

    fn receive(&mut self) {
        let Some((_, receiver)) = &self.pending else { return };
        match receiver.try_recv() {
            Ok(answer) => {
                // Freeing a large answer takes longer than painting a frame.
                let overtaken = self.answer.replace(answer);
                in_background(move || drop(overtaken));
            }
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {}
        }
        self.pending = None;
    }

    fn start(
        &mut self,
        context: &egui::Context,
        workers: &BackgroundWorkers,
        key: K,
        question: impl FnOnce(&K) -> T + Send + 'static,
    ) {
        let (sender, receiver) = channel();
        let (context, job) = (context.clone(), workers.start());
        self.pending = Some((Instant::now(), receiver));
        in_background(move || {
            // A panic inside rayon would take the whole app along.
            let answer = catch_unwind(AssertUnwindSafe(|| question(&key))).ok();
            // Nobody listens any more once the view is closed.
            let _ = sender.send((key, answer));
            drop(job);
            context.request_repaint();
        });
    }
}

/// Runs work on threads of its own, one fewer than there are processors: the window keeps one.
fn in_background(work: impl FnOnce() + Send + 'static) {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
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

    fn settled(workers: &BackgroundWorkers) {
        workers.wait(Duration::from_secs(10));
        assert!(!workers.busy());
    }

    #[test]
    fn an_answer_stays_until_a_newer_one_is_there() {
        let (context, workers, mut slot) =
            (egui::Context::default(), BackgroundWorkers::default(), BackgroundQuery::default());
        assert!(matches!(slot.ask(&context, &workers, &1, |k| k * 10), QueryState::Waiting));
        settled(&workers);
        assert!(matches!(slot.ask(&context, &workers, &1, |k| k * 10), QueryState::Fresh(10)));
        assert!(matches!(slot.ask(&context, &workers, &2, |k| k * 10), QueryState::Stale(10)));
        settled(&workers);
        assert!(matches!(slot.ask(&context, &workers, &2, |k| k * 10), QueryState::Fresh(20)));
    }

    #[test]
    fn questions_overtaken_while_working_are_skipped() {
        let (context, workers, mut slot) =
            (egui::Context::default(), BackgroundWorkers::default(), BackgroundQuery::default());
        let count = Arc::new(AtomicUsize::new(0));
        for key in 0..100 {
            let count = count.clone();
            slot.ask(&context, &workers, &key, move |key| {
                std::thread::sleep(Duration::from_millis(50));
                count.fetch_add(1, Ordering::SeqCst);
                *key
            });
        }
        settled(&workers);
        assert!(count.load(Ordering::SeqCst) < 10);
    }

    #[test]
    fn a_question_that_panics_is_an_answer_too() {
        let (context, workers, mut slot) = (
            egui::Context::default(),
            BackgroundWorkers::default(),
            BackgroundQuery::<u32, u32>::default(),
        );
        slot.ask(&context, &workers, &1, |_| std::panic::resume_unwind(Box::new("test")));
        settled(&workers);
        assert!(matches!(slot.ask(&context, &workers, &1, |_| 1), QueryState::Failed));
    }

    #[test]
    fn a_slot_may_go_away_while_it_is_asked() {
        let (context, workers) = (egui::Context::default(), BackgroundWorkers::default());
        let mut slot = BackgroundQuery::default();
        slot.ask(&context, &workers, &1, |_| std::thread::sleep(Duration::from_millis(20)));
        drop(slot);
        settled(&workers);
    }
}
