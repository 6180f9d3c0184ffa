//! A tab as plain data.

use crate::model::navigation::{NavigationHistory, ReportNotes};
use crate::model::open_report::OpenReport;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;

/// The state of a tab without the views themselves: place, history, notes.
pub(crate) struct ReportTab {
    pub opened: OpenReport,
    /// The visible view.
    pub view: ViewId,
    pub selection: Selection,
    /// Undo and redo history of places.
    pub history: NavigationHistory,
    /// The bookmarks and the simulated spec changes.
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
