//! The display of a query's state, identical in every view.

use super::{empty_state_ui, waiting_ui};
use crate::widgets::background_query::{QueryState, Versioned};
use egui::Ui;

/// The texts of a view without an answer.
#[derive(Clone, Copy)]
pub(crate) struct QueryTexts<'a> {
    /// The current activity, shown once it takes long.
    pub waiting: &'a str,
    /// The heading above the reason of a failure.
    pub failed: &'a str,
}

/// The texts of lists.
pub(crate) const LIST_TEXTS: QueryTexts<'static> =
    QueryTexts { waiting: "Reading…", failed: "The list cannot be read" };

impl<T> QueryState<T> {
    /// Shows the newest answer with `contents`, or that it is pending, or the error. Returns the
    /// result of `contents`.
    ///
    /// A stale answer looks like a fresh one: it is about to be replaced, and a sign for it would
    /// only flicker. If stale data would mislead, see [`QueryState::fresh_only`].
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
