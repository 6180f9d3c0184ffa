//! Navigation: places, links to them, bookmarks with notes, undo and redo.

mod history;
mod navigation_state;
mod report_link;
mod report_notes;

pub(crate) use history::NavigationHistory;
pub(crate) use navigation_state::{
    NavigationState, TargetNavigationState, carry_over_selection, existing_selection,
    set_view_prefs, view_prefs,
};
pub use report_link::{ReportLink, ReportLinkError};
pub(crate) use report_notes::{ReportBookmark, ReportNotes, SimulatedVariant, notes_name};
