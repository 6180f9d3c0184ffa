//! A tab as plain data.

use crate::model::navigation::{NavigationHistory, ReportNotes};
use crate::model::open_report::OpenReport;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;

/// What is looked at in a tab, and what is kept of it: everything but the views themselves.
pub(crate) struct ReportTab {
    pub opened: OpenReport,
    /// The view that is shown.
    pub view: ViewId,
    pub selection: Selection,
    /// Undo and redo history of places.
    pub history: NavigationHistory,
    /// Bookmarks, and what was tried with the spec.
    pub notes: ReportNotes,
}

impl ReportTab {
    pub(crate) fn new(
        opened: OpenReport,
        notes: ReportNotes,
        view: ViewId,
        selection: Selection,
    ) -> Self {
        Self { opened, view, selection, history: NavigationHistory::default(), notes }
    }
}
