//! What a window is about, as plain data: reports, selection, navigation, preferences, commands.
//! Nothing here knows how it is shown.

pub(crate) mod command;
pub mod keep;
pub(crate) mod measuring;
pub(crate) mod merge;
pub mod message;
pub(crate) mod opening;
pub(crate) mod prefs;
pub(crate) mod saving;
pub(crate) mod selection;
pub(crate) mod state;
pub(crate) mod view_id;
