//! Coming back to what was seen: places, links to them, bookmarks with notes, undo and redo.

mod history;
mod link;
mod notes;
mod place;

pub(crate) use history::NavigationHistory;
pub use link::{ReportLink, ReportLinkError};
pub(crate) use notes::{NOTES_FILE, ReportBookmark, ReportNotes, SimulatedVariant};
pub(crate) use place::{
    NavigationState, TargetNavigationState, carry_over_selection, existing_selection,
    set_view_prefs, view_prefs,
};
