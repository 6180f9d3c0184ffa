//! Coming back to what was seen: places, links to them, bookmarks with notes, undo and redo.

mod here;
mod history;
mod link;
mod notes;
mod place;
mod watch;

pub use history::History;
pub use link::{Link, LinkError};
pub use notes::{Bookmark, Notes, Tried};
pub use place::{Beside, Place, carried};
pub use watch::Watch;
