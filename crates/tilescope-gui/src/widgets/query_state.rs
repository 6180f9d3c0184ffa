//! How the state of a question is drawn: alike in every view.

use super::{empty_state_ui, waiting_ui};
use crate::widgets::background_query::{QueryState, Versioned};
use egui::Ui;

/// What a view says while there is no answer.
#[derive(Clone, Copy)]
pub(crate) struct QueryTexts<'a> {
    /// What is being done, once that takes long.
    pub waiting: &'a str,
    /// The heading above why there will be none.
    pub failed: &'a str,
}

/// What lists say.
pub(crate) const LIST_TEXTS: QueryTexts<'static> =
    QueryTexts { waiting: "Reading…", failed: "The list cannot be read" };

impl<T> QueryState<T> {
    /// Shows the newest answer by `contents`; or that it is being waited for, or why there is none.
    ///
    /// A stale answer is shown as a fresh one is: it is about to be replaced, and a sign that comes
    /// and goes would be all that anyone sees of it. Where it would mislead, see
    /// [`QueryState::fresh_only`].
    pub(crate) fn show<R>(
        &self,
        ui: &mut Ui,
        texts: QueryTexts<'_>,
        contents: impl FnOnce(&mut Ui, &Versioned<T>) -> R,
    ) -> Option<R> {
        match self {
            Self::Fresh(answer) | Self::Stale { answer, .. } => return Some(contents(ui, answer)),
            Self::Waiting { overdue: true } => waiting_ui(ui, texts.waiting),
            Self::Waiting { overdue: false } => {}
            Self::Failed(error) => empty_state_ui(ui, texts.failed, &error.to_string()),
        }
        None
    }
}
