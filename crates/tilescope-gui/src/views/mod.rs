//! The views of a report: one file and one line in [`VIEWS`] each.

mod exchange_code;
mod execution_trace;
mod insights;
mod jump;
mod liveness;
mod memory;
mod operations;
mod operations_graph;
mod program_tree;
#[cfg(test)]
mod seen_is_saved;
mod state;
mod summary;
mod tile_mapping;

use super::action::Wish;
use super::command::Command;
use super::icons::Icon;
use super::opening::Opened;
use super::prefs::Prefs;
use super::session::Selection;
use super::widgets::axis::Axis;
use super::worker::Workers;
use egui::{Rect, Ui};
pub(crate) use jump::TraceJump;
pub(crate) use state::{State, kept, restored};
use tilescope_report::units::CycleRange;

/// What a view may look at, and where it says what the user wants.
pub struct ViewContext<'a> {
    /// The report.
    pub opened: &'a Opened,
    /// What the user has chosen.
    pub selection: &'a Selection,
    /// What is remembered.
    pub prefs: &'a Prefs,
    /// Counts background work.
    pub workers: &'a Workers,
    /// What keys and menus have asked the view for since the last frame.
    pub wishes: &'a [Wish],
    /// What is to be done once the frame is painted.
    pub commands: &'a mut Vec<Command>,
}

impl ViewContext<'_> {
    /// The same once more, for a while.
    pub(crate) fn again(&mut self) -> ViewContext<'_> {
        ViewContext { commands: self.commands, ..*self }
    }
}

/// The cycles that are on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeline {
    /// Where they are.
    pub axis: Axis,
    /// Points that they take.
    pub width: f32,
    /// Where they are on the screen, with the ruler above them.
    pub lanes: Rect,
    /// The run of the report.
    pub run: CycleRange,
}

/// State and looks of a view of one report.
pub trait View: Send {
    /// Shows the view in all of `ui`.
    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>);

    /// What it shows and how, as far as that differs from a fresh view of its kind.
    fn state(&self) -> State;

    /// Shows what a state says, where `selection` is chosen; names of what it does not understand.
    fn restore(&mut self, state: &State, selection: &Selection) -> Vec<String>;

    /// What chooses nothing any more of what can be chosen here.
    fn clears(&self) -> Vec<Command> {
        Vec::new()
    }

    /// Which cycles are on the screen, of a view over time that has been painted.
    fn timeline(&self) -> Option<Timeline> {
        None
    }

    /// Shows these cycles from the next frame on; zooming out reaches `reach`.
    fn show_timeline(&mut self, _axis: Axis, _reach: CycleRange) {}
}

/// A view as menus see it.
pub(crate) struct ViewInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// Words in the menu.
    pub title: &'static str,
    /// What there is to know about it: a heading, a sentence, then more.
    pub help: &'static str,
    /// Drawing in the menu.
    pub icon: Icon,
    /// Parts of its state that say how to look rather than at what: a report that is opened beside
    /// another one is looked at in the same way.
    pub settings: &'static [&'static str],
    /// Makes its state for a report.
    pub create: fn() -> Box<dyn View>,
}

impl ViewInfo {
    /// What of a state is kept for another report.
    pub(crate) fn settings_of(&self, mut state: State) -> State {
        state.retain(|name, _| self.settings.contains(&name.as_str()));
        state
    }

    /// The sentence below the heading of its help.
    pub(crate) fn about(&self) -> &'static str {
        self.help.split("\n\n").nth(1).unwrap_or_default()
    }
}

/// Every view, in the order of the menu.
pub(crate) static VIEWS: &[ViewInfo] = &[
    summary::VIEW,
    insights::VIEW,
    memory::VIEW,
    liveness::VIEW,
    program_tree::VIEW,
    operations::VIEW,
    operations_graph::VIEW,
    execution_trace::VIEW,
    exchange_code::VIEW,
    tile_mapping::VIEW,
];
