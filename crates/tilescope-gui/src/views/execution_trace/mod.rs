//! The execution trace view: the activity of every IPU, cycle by cycle.
//!
//! The view consists of the settings of the user ([`TraceSettings`], which are saved), the data
//! read for them ([`TraceQueries`]), a pure layout ([`layout`]) that turns both into positions,
//! layers ([`layers`]) that are painted there, and interaction: pointer, keys and controls emit
//! changes as [`TraceEvent`]s, which the settings apply.

pub(super) mod bar_colours;
mod bar_raster;
mod details_panel;
pub(super) mod details_tables;
mod events;
mod interaction;
mod lanes_ui;
mod layers;
mod layout;
mod loaded_trace;
mod mark_walk;
mod measured_raster;
mod path_tables;
mod places;
mod queries;
mod replica_row;
mod samples_panel;
mod scene;
mod schedule_panel;
mod selected_bar;
mod settings;
mod share_graph;
mod step_details;
mod step_statistics;
mod step_walk;
mod tiles_panel;
mod toolbar;
mod why_links;

use super::compare::ComparisonSide;
use super::{
    LaneFilter, ReportView, SavedSettings, TimelineView, ViewContext, ViewDescriptor,
    VisibleTimeline,
};
use crate::model::command::AppCommand;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::model::view_state::{ViewState, from_view_state, to_view_state};
use crate::theme::spacing;
use crate::widgets::background_query::{QueryState, Versioned};
use crate::widgets::bottom_panel::BottomPanel;
use crate::widgets::icons::Icon;
use crate::widgets::overview_strip::OverviewDrag;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::toolbar::toolbar_ui;
use crate::widgets::{central_ui, empty_state_ui};
use details_panel::tables_ui;
use egui::{Id, Rect, Ui};
use events::TraceEvent;
use interaction::{LaneMenuTarget, LanePointer};
use layers::TraceTextures;
use layers::followed::FollowedMicroBatch;
use loaded_trace::LoadedTrace;
use mark_walk::MarkWalk;
use queries::TraceQueries;
use settings::TraceSettings;
use step_walk::StepWalk;
use tilescope_report::ProgramOutcome;
use tilescope_report::units::{CycleRange, Cycles};
use toolbar::controls_ui;

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::ExecutionTrace,
    help: include_str!("../../../../../assets/help/execution-trace.md"),
    icon: Icon::Trace,
    settings: &["tab"],
    create: || Box::<ExecutionTraceView>::default(),
};

/// The view and its parts.
#[derive(Default)]
struct ExecutionTraceView {
    settings: TraceSettings,
    queries: TraceQueries,
    walk: StepWalk,
    mark_walk: MarkWalk,
    followed: FollowedMicroBatch,
    textures: TraceTextures,
    input: TraceInputState,
    panel: BottomPanel,
    painted: Option<PaintedLanes>,
}

/// The state of interactions between two frames.
#[derive(Default)]
struct TraceInputState {
    pointer: LanePointer,
    strip_drag: Option<OverviewDrag>,
    strip_has_focus: bool,
    /// True if the filter takes the focus in the next frame.
    focus_filter: bool,
    /// The item that the menu of the lanes was opened on.
    menu: Option<LaneMenuTarget>,
}

/// The position and contents of the lanes in the last frame.
#[derive(Clone, Copy)]
struct PaintedLanes {
    /// The rectangle of lanes and ruler.
    rect: Rect,
    /// The cycles of this report.
    run: CycleRange,
}

impl SavedSettings for ExecutionTraceView {
    fn state(&self) -> ViewState {
        to_view_state(&self.settings)
    }

    fn take_state(&mut self, state: &ViewState) -> Vec<String> {
        let (settings, strange) = from_view_state(state);
        *self = Self { settings, ..Self::default() };
        strange
    }
}

impl ReportView for ExecutionTraceView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let prepared = self.queries.ask_prepared(ui, context);
        if matches!(prepared, QueryState::Waiting { .. }) {
            ui.ctx().request_repaint_after_secs(0.1);
        }
        let waiting = self.queries.progress_text();
        let texts = QueryTexts { waiting: &waiting, failed: "The trace cannot be read" };
        let overdue = prepared.is_overdue();
        prepared.show(ui, texts, |ui, prepared| match prepared.as_ref() {
            Some(prepared) => self.trace_ui(ui, context, prepared),
            None => {
                let (heading, sentence) = why_empty(context.opened.outcome);
                empty_state_ui(ui, heading, sentence);
                if matches!(context.opened.outcome, ProgramOutcome::OutOfMemory { .. }) {
                    show_memory_ui(ui, context);
                }
            }
        });
        if overdue && ui.vertical_centered(|ui| ui.button("Cancel")).inner.clicked() {
            self.queries.prepared.cancel();
            context.commands.push(AppCommand::ShowView(ViewId::Summary));
        }
    }

    fn notice_restored(&mut self, selection: &Selection) {
        self.settings.followed_step = selection.step;
    }

    fn as_timeline(&mut self) -> Option<&mut dyn TimelineView> {
        Some(self)
    }
}

impl TimelineView for ExecutionTraceView {
    fn timeline(&self) -> Option<VisibleTimeline> {
        let (axis, limits) = self.settings.shown()?;
        let painted = self.painted?;
        Some(VisibleTimeline { axis, width: limits.width, lanes: painted.rect, run: painted.run })
    }

    fn show_timeline(&mut self, axis: PanZoomAxis, reach: CycleRange) {
        self.settings.axis = Some(axis);
        self.settings.reach = Some(reach);
    }

    fn narrow_steps(&self) -> Option<Cycles> {
        self.queries.prepared.latest()?.as_ref()?.narrow_steps
    }

    fn lane_filter(&self) -> LaneFilter {
        let TraceSettings { ipus, filter, .. } = &self.settings;
        LaneFilter { ipus: ipus.clone(), text: filter.clone() }
    }

    fn filter_lanes(&mut self, LaneFilter { ipus, text }: LaneFilter) {
        self.settings.ipus = ipus;
        self.settings.filter = text;
    }

    fn details_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, open: &mut bool) {
        let prepared = self.queries.prepared.latest().and_then(|prepared| prepared.as_ref());
        let Some(prepared) = prepared.cloned() else { return };
        let events = tables_ui(ui, context, &prepared, (&self.settings, &mut self.queries), open);
        self.apply(context, events);
    }
}

/// Shows a link to the tiles that need more memory than they have.
fn show_memory_ui(ui: &mut Ui, context: &ViewContext<'_>) {
    ui.vertical_centered(|ui| {
        ui.add_space(spacing::XS);
        if ui.link("Show these tiles in Memory").clicked() {
            context.commands.push(AppCommand::ShowView(ViewId::Memory));
        }
    });
}

fn why_empty(outcome: ProgramOutcome) -> (&'static str, &'static str) {
    match outcome {
        ProgramOutcome::OutOfMemory { .. } => (
            "Nothing was executed",
            "Some tiles need more memory than they have, so the program could not run.",
        ),
        ProgramOutcome::CompiledOnly => (
            "Nothing was executed",
            "This report holds the compiled program only. Profile a run to see its trace: \
             with Poplar, switch on autoReport.outputExecutionProfile.",
        ),
        ProgramOutcome::Executed => {
            ("No steps", "The program was executed, but no step of it was recorded.")
        }
    }
}

impl ExecutionTraceView {
    /// Applies events in order. All user actions change the settings only here.
    fn apply(&mut self, context: &ViewContext<'_>, events: impl IntoIterator<Item = TraceEvent>) {
        for event in events {
            if let TraceEvent::GoToPosition { lane, position } = event {
                self.walk.start_at(lane, position);
            }
            if let Some(command) = self.settings.apply(event, context.selection.step) {
                context.commands.push(command);
            }
        }
    }

    fn trace_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        if self.settings.follow(context.selection) {
            context.commands.push(AppCommand::ZoomToCycles(None));
        }
        // Above or below another trace, lanes take precedence; both share one toolbar.
        if context.pane.is_none_or(|pane| pane.side == ComparisonSide::Source) {
            self.toolbar_ui(ui, context, prepared);
        }
        if context.pane.is_none() {
            self.panel_ui(ui, context, prepared);
        }
        // If two traces share little height, lanes need it more than marks above them.
        let without_marks = context.pane.filter(|pane| pane.low).map(|_| {
            let mut prefs = context.prefs.clone();
            prefs.trace.marks = false;
            prefs
        });
        let prefs = without_marks.as_ref().unwrap_or(context.prefs);
        let lanes = ViewContext { prefs, ..*context };
        central_ui(ui, |ui| self.lanes_ui(ui, &lanes, prepared));
        self.actions_ui(ui, context, prepared);
    }

    fn toolbar_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, prepared: &LoadedTrace) {
        let mut events = Vec::new();
        let settings = &self.settings;
        let focus_filter = &mut self.input.focus_filter;
        toolbar_ui(ui, VIEW.id.name(), |bar| {
            events = controls_ui(bar, context, prepared, settings, focus_filter);
        });
        self.apply(context, events);
    }

    /// The tables below the lanes.
    fn panel_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        let size = (ui.available_height() * 0.32).clamp(90.0, 300.0);
        let mut events = Vec::new();
        let parts = (&self.settings, &mut self.queries);
        self.panel = self.panel.ui(ui, "trace details", (size, 420.0), |ui, open| {
            events = tables_ui(ui, context, prepared, parts, open);
        });
        self.apply(context, events);
    }
}

/// The egui id of a part of this view.
fn id(ui: &Ui, part: &'static str) -> Id {
    ui.scope_id().with(("execution trace", part))
}
