//! Coming back to what was seen: places, links to them, bookmarks with notes, undo and redo.

mod here;
mod history;
mod link;
mod notes;
mod place;
mod watch;

pub(crate) use history::NavigationHistory;
pub use link::{ReportLink, ReportLinkError};
pub(crate) use notes::{ReportBookmark, ReportNotes, SimulatedVariant};
pub(crate) use place::{NavigationState, TargetNavigationState, carry_over_selection};
pub(crate) use watch::ReportFileWatcher;
