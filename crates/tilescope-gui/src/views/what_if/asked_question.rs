//! A question about a spec that takes a while: asked with a button, worked on until somebody stops
//! it, and answered until another one is asked.

use crate::widgets::background_query::{
    BackgroundQuery, BackgroundQueryError, BackgroundWorkers, QueryState, Versioned,
};
use crate::widgets::error_ui;
use egui::Ui;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What was asked last, and what has come of it.
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
    /// Asks, in place of what is worked on.
    pub(super) fn ask(&mut self, question: Q) {
        self.answer.retry();
        self.asked = Some(question);
    }

    /// The answer once it is there, below a line where `is_current` says that it is about another
    /// spec; until then `waiting` with a button to stop, or why there is none.
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
