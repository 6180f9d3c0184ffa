//! Coming back to what was seen: places, links to them, bookmarks with notes, undo and redo.

mod here;
mod history;
mod link;
mod notes;
mod place;
mod watch;

pub(crate) use history::History;
pub use link::{Link, LinkError};
pub(crate) use notes::{Bookmark, Notes, Tried};
pub(crate) use place::{Beside, Place, carried};
pub(crate) use watch::Watch;
