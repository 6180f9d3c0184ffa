//! A long-running query about a spec. A button starts it, it can be stopped, and its answer stays
//! until the next query.

use crate::widgets::background_query::{
    BackgroundQuery, BackgroundQueryError, BackgroundWorkers, QueryState, Versioned,
};
use crate::widgets::error_ui;
use egui::Ui;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The last query and its result.
pub(super) struct AskedQuestion<Q, A> {
    asked: Option<Q>,
    answer: BackgroundQuery<Q, A>,
}

impl<Q, A> Default for AskedQuestion<Q, A> {
    fn default() -> Self {
        Self { asked: None, answer: BackgroundQuery::default() }
    }
}

impl<Q, A> AskedQuestion<Q, A>
where
    Q: Clone + PartialEq + Send + 'static,
    A: Send + Sync + 'static,
{
    /// Starts a query in place of the running one.
    pub(super) fn ask(&mut self, question: Q) {
        self.answer.retry();
        self.asked = Some(question);
    }

    /// Returns the answer once it is available, and shows a note if `is_current` is false for its
    /// query. Until then shows `waiting` with a stop button, or the error.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        waiting: &str,
        is_current: impl FnOnce(&Q) -> bool,
        work: impl FnOnce(&Q, &Arc<AtomicBool>) -> Result<A, BackgroundQueryError> + Send + 'static,
    ) -> Option<Versioned<A>> {
        let asked = self.asked.clone()?;
        match self.answer.ask_newest(ui.ctx(), workers, &asked, work).fresh_only() {
            QueryState::Fresh(answer) => {
                if !is_current(&asked) {
                    let words = "The spec has changed since.";
                    ui.weak(words);
                }
                return Some(answer);
            }
            QueryState::Failed(BackgroundQueryError::Cancelled) => self.asked = None,
            QueryState::Failed(error) => {
                error_ui(ui, error.to_string());
            }
            QueryState::Stale { .. } | QueryState::Waiting { .. } => {
                ui.horizontal(|ui| {
                    ui.spinner();
                    ui.label(waiting);
                    if ui.button("Stop").clicked() {
                        self.answer.cancel();
                    }
                });
            }
        }
        None
    }
}
