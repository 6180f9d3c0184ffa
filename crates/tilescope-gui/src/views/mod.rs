//! The views of a report. Each has a file or folder and one line in [`VIEWS`].

pub(crate) mod compare;
mod cycle_axis;
mod exchange_code;
mod execution_trace;
pub(crate) mod insights;
mod limits;
mod liveness;
mod mechanism_links;
mod memory;
mod operations;
mod operations_graph;
mod program_tree;
pub(crate) mod search_panel;
#[cfg(test)]
mod seen_is_saved;
pub(crate) mod series;
mod summary;
mod tile_mapping;
mod tile_selection;
mod topics;
mod trace_jump;
pub(crate) mod what_if;

use crate::model::command::{AppCommand, CommandQueue, ViewAction};
use crate::model::message::StatusMessage;
use crate::model::open_report::OpenReport;
use crate::model::preferences::UserPreferences;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::model::view_state::{ViewState, from_view_state, to_view_state};
use crate::views::what_if::spec_keys::SpecQueries;
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::heat_scale::HeatScale;
use crate::widgets::icons::Icon;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use compare::ComparedPane;
use cycle_axis::cycles_on_screen;
use egui::{Rect, Ui};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use tilescope_report::units::{CycleRange, Cycles, IpuId};
use tilescope_report::{Report, ReportError};
pub(crate) use trace_jump::TraceJump;

/// The inputs of a view, and the queue for its commands. A view cannot change the state itself: it
/// pushes commands, and the session applies them after the frame.
#[derive(Clone, Copy)]
pub(crate) struct ViewContext<'a> {
    pub opened: &'a OpenReport,
    pub selection: &'a Selection,
    pub prefs: &'a UserPreferences,
    /// The counter of background work.
    pub workers: &'a BackgroundWorkers,
    /// The actions from keys and menus since the last frame, which the view performs.
    pub actions: &'a [ViewAction],
    /// The commands to apply after the frame.
    pub commands: &'a CommandQueue,
    /// The queries to the simulator.
    pub spec_queries: SpecQueries,
    /// The properties shared with the same view of another report beside it; `None` without a
    /// comparison.
    pub pane: Option<ComparedPane>,
}

impl ViewContext<'_> {
    /// Queries the report off the UI thread, unless the answer is known already.
    pub(crate) fn ask<K, T>(
        &self,
        ui: &egui::Context,
        query: &mut BackgroundQuery<K, T>,
        key: &K,
        question: impl FnOnce(&Report, &K) -> Result<T, ReportError> + Send + 'static,
    ) -> QueryState<T>
    where
        K: Clone + PartialEq + Send + 'static,
        T: Send + Sync + 'static,
    {
        let report = self.opened.report.clone();
        query.ask(ui, self.workers, key, move |key| question(&report, key))
    }

    /// Reads data that depends only on the report, off the UI thread.
    pub(crate) fn read<T: Send + Sync + 'static>(
        &self,
        ui: &egui::Context,
        query: &mut BackgroundQuery<(), T>,
        question: impl FnOnce(&Report) -> Result<T, ReportError> + Send + 'static,
    ) -> QueryState<T> {
        self.ask(ui, query, &(), |report, ()| question(report))
    }

    /// Makes the session show a message.
    pub(crate) fn tell(&self, message: StatusMessage) {
        self.commands.push(AppCommand::ShowMessage(message));
    }

    /// The value that graphs must include, so that those side by side have one scale.
    pub(crate) fn least_graph_top(&self) -> u64 {
        self.pane.map_or(0, |pane| pane.graph_top)
    }

    /// The colour scale of this view, extended to the values of the view beside it.
    pub(crate) fn shared_scale(&self, own: HeatScale) -> HeatScale {
        self.pane.and_then(|pane| pane.heat_scale).map_or(own, |both| own.joined(both))
    }
}

/// The visible cycles and their position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VisibleTimeline {
    pub axis: PanZoomAxis,
    /// The width of the cycles in points.
    pub width: f32,
    /// The area of the lanes on the screen, with the ruler above them.
    pub lanes: Rect,
    /// The cycles of the report's run.
    pub run: CycleRange,
}

impl VisibleTimeline {
    /// The visible cycles, including those outside the run.
    pub(crate) fn cycles(&self) -> CycleRange {
        cycles_on_screen(self.axis, self.width)
    }
}

/// The filter for lanes and bars of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneFilter {
    /// The visible IPUs; empty for all of them.
    pub ipus: BTreeSet<IpuId>,
    /// The text that names of bars must contain.
    pub text: String,
}

/// The scales of a view, which two views side by side can share.
#[derive(Clone, Copy, Default)]
pub(crate) struct ViewScales {
    /// The highest value of its graph.
    pub graph_top: Option<u64>,
    /// The meaning of its colours, and the scale of its own amounts.
    pub heat: Option<(&'static str, HeatScale)>,
}

/// The settings of a view as stored in places: its fields that are not skipped.
pub(crate) trait SavedSettings {
    /// Returns the settings that differ from a new view of its kind.
    fn state(&self) -> ViewState;

    /// Applies a state. Returns the names of unknown settings.
    fn take_state(&mut self, state: &ViewState) -> Vec<String>;
}

impl<V: Default + Serialize + DeserializeOwned> SavedSettings for V {
    fn state(&self) -> ViewState {
        to_view_state(self)
    }

    fn take_state(&mut self, state: &ViewState) -> Vec<String> {
        let strange;
        (*self, strange) = from_view_state(state);
        strange
    }
}

/// The state and appearance of a view of one report.
pub(crate) trait ReportView: SavedSettings + Send {
    /// Shows the view in all of `ui`.
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>);

    /// Notifies the view that its settings were restored together with `selection`.
    fn notice_restored(&mut self, _selection: &Selection) {}

    /// Restores a state together with `selection`. Returns the names of unknown settings.
    fn restore(&mut self, state: &ViewState, selection: &Selection) -> Vec<String> {
        let strange = self.take_state(state);
        self.notice_restored(selection);
        strange
    }

    /// Returns the commands that clear this view's selection.
    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        Vec::new()
    }

    /// Returns the scales of the last frame.
    fn scales(&self) -> ViewScales {
        ViewScales::default()
    }

    /// Returns the view itself if it has lanes over time.
    fn as_timeline(&mut self) -> Option<&mut dyn TimelineView> {
        None
    }
}

/// A view with lanes over time, which can be stacked with those of another report.
pub(crate) trait TimelineView {
    /// Returns the visible cycles, once the view has been painted.
    fn timeline(&self) -> Option<VisibleTimeline>;

    /// Shows these cycles from the next frame on. Zooming out covers `reach`.
    fn show_timeline(&mut self, axis: PanZoomAxis, reach: CycleRange);

    /// Returns the cycles per pixel from which its lanes show shares.
    fn narrow_steps(&self) -> Option<Cycles>;

    /// Returns the filter of lanes and bars.
    fn lane_filter(&self) -> LaneFilter;

    /// Sets the filter of lanes and bars.
    fn filter_lanes(&mut self, filter: LaneFilter);

    /// Shows the details of the selection.
    fn details_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, open: &mut bool);
}

/// The description of a view for menus.
pub(crate) struct ViewDescriptor {
    /// The id of the view.
    pub id: ViewId,
    /// The help text: a heading, a sentence, then more.
    pub help: &'static str,
    /// The icon in the menu.
    pub icon: Icon,
    /// The parts of its state that describe appearance rather than position. They are applied to a
    /// report that is opened for a comparison.
    pub settings: &'static [&'static str],
    /// Creates the state of the view for a report.
    pub create: fn() -> Box<dyn ReportView>,
}

impl ViewDescriptor {
    /// Returns the part of a state that applies to another report.
    pub(crate) fn settings_of(&self, mut state: ViewState) -> ViewState {
        state.retain(|name, _| self.settings.contains(&name.as_str()));
        state
    }

    /// Returns the sentence below the heading of its help.
    pub(crate) fn about(&self) -> &'static str {
        self.help.split("\n\n").nth(1).unwrap_or_default()
    }
}

/// All views, in menu order.
pub(crate) static VIEWS: &[ViewDescriptor] = &[
    summary::VIEW,
    insights::VIEW,
    memory::VIEW,
    liveness::VIEW,
    program_tree::VIEW,
    operations::VIEW,
    limits::VIEW,
    operations_graph::VIEW,
    execution_trace::VIEW,
    exchange_code::VIEW,
    tile_mapping::VIEW,
    topics::VIEW,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_is_listed_in_the_order_of_its_id() {
        assert!(VIEWS.iter().map(|info| info.id).eq(ViewId::all()));
    }
}
