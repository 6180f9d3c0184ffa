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

use super::action::ViewAction;
use super::command::AppCommand;
use super::icons::Icon;
use super::opening::OpenReport;
use super::prefs::UserPreferences;
use super::session::Selection;
use super::widgets::axis::PanZoomAxis;
use super::worker::BackgroundWorkers;
use egui::{Rect, Ui};
pub(crate) use jump::TraceJump;
pub(crate) use state::{ViewState, from_view_state, to_view_state};
use tilescope_report::units::CycleRange;

/// What a view may look at, and where it says what the user wants.
pub struct ViewContext<'a> {
    /// The report.
    pub opened: &'a OpenReport,
    /// What the user has chosen.
    pub selection: &'a Selection,
    /// What is remembered.
    pub prefs: &'a UserPreferences,
    /// Counts background work.
    pub workers: &'a BackgroundWorkers,
    /// What keys and menus have asked the view for since the last frame.
    pub actions: &'a [ViewAction],
    /// What is to be done once the frame is painted.
    pub commands: &'a mut Vec<AppCommand>,
}

impl ViewContext<'_> {
    /// The same once more, for a while.
    pub(crate) fn reborrow(&mut self) -> ViewContext<'_> {
        ViewContext { commands: self.commands, ..*self }
    }
}

/// The cycles that are on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VisibleTimeline {
    /// Where they are.
    pub axis: PanZoomAxis,
    /// Points that they take.
    pub width: f32,
    /// Where they are on the screen, with the ruler above them.
    pub lanes: Rect,
    /// The run of the report.
    pub run: CycleRange,
}

/// State and looks of a view of one report.
pub trait ReportView: Send {
    /// Shows the view in all of `ui`.
    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>);

    /// What it shows and how, as far as that differs from a fresh view of its kind.
    fn state(&self) -> ViewState;

    /// Shows what a state says, where `selection` is chosen; names of what it does not understand.
    fn restore(&mut self, state: &ViewState, selection: &Selection) -> Vec<String>;

    /// What chooses nothing any more of what can be chosen here.
    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        Vec::new()
    }

    /// Which cycles are on the screen, of a view over time that has been painted.
    fn timeline(&self) -> Option<VisibleTimeline> {
        None
    }

    /// Shows these cycles from the next frame on; zooming out reaches `reach`.
    fn show_timeline(&mut self, _axis: PanZoomAxis, _reach: CycleRange) {}
}

/// A view as menus see it.
pub(crate) struct ViewDescriptor {
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
    pub create: fn() -> Box<dyn ReportView>,
}

impl ViewDescriptor {
    /// What of a state is kept for another report.
    pub(crate) fn settings_of(&self, mut state: ViewState) -> ViewState {
        state.retain(|name, _| self.settings.contains(&name.as_str()));
        state
    }

    /// The sentence below the heading of its help.
    pub(crate) fn about(&self) -> &'static str {
        self.help.split("\n\n").nth(1).unwrap_or_default()
    }
}

/// Every view, in the order of the menu.
pub(crate) static VIEWS: &[ViewDescriptor] = &[
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
