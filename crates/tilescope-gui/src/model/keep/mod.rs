//! Coming back to what was seen: places, links to them, bookmarks with notes, undo and redo.

mod history;
mod link;
mod notes;
mod place;

pub(crate) use history::History;
pub use link::{Link, LinkError};
pub(crate) use notes::{Bookmark, NOTES_FILE, Notes, Tried};
pub(crate) use place::{Beside, Place, carried, existing, set_view_prefs, view_prefs};
