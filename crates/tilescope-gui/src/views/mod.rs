//! The views of a report: one file and one line in [`VIEWS`] each.

pub(crate) mod compare;
mod cycle_axis;
mod exchange_code;
mod execution_trace;
mod insights;
mod limits;
mod liveness;
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

/// What a view reads, and where its events go. Nothing in it can be changed: what a view wants done
/// it says, and the session does it once the frame is over.
#[derive(Clone, Copy)]
pub(crate) struct ViewContext<'a> {
    pub opened: &'a OpenReport,
    pub selection: &'a Selection,
    pub prefs: &'a UserPreferences,
    /// Counts background work.
    pub workers: &'a BackgroundWorkers,
    /// Actions from keys and menus since the last frame, for the view to perform.
    pub actions: &'a [ViewAction],
    /// Commands to apply after the frame.
    pub commands: &'a CommandQueue,
    /// How the simulator is asked.
    pub spec_queries: SpecQueries,
    /// What it matches of the same view of another report beside it; none where it is alone.
    pub pane: Option<ComparedPane>,
}

impl ViewContext<'_> {
    /// Asks a question about the report off the UI thread, unless it is answered already.
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

    /// Reads what depends on nothing but the report off the UI thread.
    pub(crate) fn read<T: Send + Sync + 'static>(
        &self,
        ui: &egui::Context,
        query: &mut BackgroundQuery<(), T>,
        question: impl FnOnce(&Report) -> Result<T, ReportError> + Send + 'static,
    ) -> QueryState<T> {
        self.ask(ui, query, &(), |report, ()| question(report))
    }

    /// Has the session show a message.
    pub(crate) fn tell(&self, message: StatusMessage) {
        self.commands.push(AppCommand::ShowMessage(message));
    }

    /// A value that graphs reach up to, so that those beside each other have one scale.
    pub(crate) fn least_graph_top(&self) -> u64 {
        self.pane.map_or(0, |pane| pane.graph_top)
    }

    /// The scale of colours of this view, over what the one beside it shows as well.
    pub(crate) fn shared_scale(&self, own: HeatScale) -> HeatScale {
        self.pane.and_then(|pane| pane.heat_scale).map_or(own, |both| own.joined(both))
    }
}

/// The cycles that are on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VisibleTimeline {
    pub axis: PanZoomAxis,
    /// Points that they take.
    pub width: f32,
    /// Where they are on the screen, with the ruler above them.
    pub lanes: Rect,
    /// The run of the report.
    pub run: CycleRange,
}

impl VisibleTimeline {
    /// The cycles on the screen, also those beside the run.
    pub(crate) fn cycles(&self) -> CycleRange {
        cycles_on_screen(self.axis, self.width)
    }
}

/// Which lanes and bars of a trace are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneFilter {
    /// None stands for all of them.
    pub ipus: BTreeSet<IpuId>,
    /// What the names of bars hold.
    pub text: String,
}

/// The scales of what a view shows, so that two views beside each other can share them.
#[derive(Clone, Copy, Default)]
pub(crate) struct ViewScales {
    /// The highest value of its graph.
    pub graph_top: Option<u64>,
    /// The meaning of its colours, and the scale of its own amounts.
    pub heat: Option<(&'static str, HeatScale)>,
}

/// The settings of a view, as places keep them: its fields that are not skipped.
pub(crate) trait SavedSettings {
    /// Its settings, as far as they differ from a fresh view of its kind.
    fn state(&self) -> ViewState;

    /// Takes over what a state says; names of what it does not understand.
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

/// State and looks of a view of one report.
pub(crate) trait ReportView: SavedSettings + Send {
    /// Shows the view in all of `ui`.
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>);

    /// Takes note that its settings were restored where `selection` is chosen.
    fn notice_restored(&mut self, _selection: &Selection) {}

    /// Shows what a state says, where `selection` is chosen; names of what it does not understand.
    fn restore(&mut self, state: &ViewState, selection: &Selection) -> Vec<String> {
        let strange = self.take_state(state);
        self.notice_restored(selection);
        strange
    }

    /// Commands that clear this view's selection.
    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        Vec::new()
    }

    /// The scales of what it shows, as of the last frame.
    fn scales(&self) -> ViewScales {
        ViewScales::default()
    }

    /// Itself, if it has lanes over time.
    fn as_timeline(&mut self) -> Option<&mut dyn TimelineView> {
        None
    }
}

/// A view with lanes over time, which can stand above those of another report.
pub(crate) trait TimelineView {
    /// The cycles on the screen, once it has been painted.
    fn timeline(&self) -> Option<VisibleTimeline>;

    /// Shows these cycles from the next frame on; zooming out reaches `reach`.
    fn show_timeline(&mut self, axis: PanZoomAxis, reach: CycleRange);

    /// Cycles of a pixel from which on its lanes are shares.
    fn narrow_steps(&self) -> Option<Cycles>;

    /// The lanes and bars that are shown.
    fn lane_filter(&self) -> LaneFilter;

    /// Shows the same lanes and bars as another one.
    fn filter_lanes(&mut self, filter: LaneFilter);

    /// Shows details of what is chosen.
    fn details_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, open: &mut bool);
}

/// A view as menus see it.
pub(crate) struct ViewDescriptor {
    /// Which it is.
    pub id: ViewId,
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
    /// The part of a state that carries over to another report.
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
