//! Interaction on the lanes: pointer and key input as events.

mod actions;
mod context_menu;
mod pointer;

pub(super) use actions::{action_events, is_for_strip};
pub(super) use context_menu::{LaneMenuChoice, LaneMenuTarget, menu_ui};
pub(super) use pointer::{LanePointer, LanePointerInput, hover_ui};
