//! The execution trace: what every IPU did, cycle by cycle.

pub(super) mod bar_colours;
mod bar_raster;
mod bsp_raster;
mod details_panel;
pub(super) mod details_tables;
mod exchange_arrows;
mod lane_interaction;
mod lane_layout;
mod lane_painting;
mod lanes;
mod ruler;
mod scene;
mod selected_bar;
mod step_details;
mod toolbar;
mod user_marks;

use super::cycle_axis::{cycles_on_screen, fitting_cycles};
use super::{ReportView, ViewContext, ViewDescriptor, VisibleTimeline};
use crate::model::command::{AppCommand, SelectedStep, ViewAction};
use crate::model::message::StatusMessage;
use crate::model::preferences::{TraceDragMode, TracePrefs};
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::model::view_state::{ViewState, from_view_state, to_view_state};
use crate::theme::{ColourScheme, ThemePalette};
use crate::widgets::background_query::Versioned;
use crate::widgets::background_query::{BackgroundQuery, QueryState};
use crate::widgets::bottom_panel::BottomPanel;
use crate::widgets::empty_state_ui;
use crate::widgets::icons::Icon;
use crate::widgets::overview_strip;
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::split_texture::{SplitImage, SplitTexture};
use crate::widgets::toolbar::toolbar_ui;
use egui::{CentralPanel, Frame, Id, Margin, Rect, Ui};
use scene::{LoadedTrace, TraceScene, TraceSceneKey, prepare};
use selected_bar::SelectedBar;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tilescope_analysis::trace::{StepDetailReport, TraceStepGrouping, WindowSummary};
use tilescope_report::ReportError;
use tilescope_report::units::{CycleRange, Cycles, NumberFormat, StepId};
use tilescope_report::{ProgramOutcome, Report};

/// This view, for the list.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::ExecutionTrace,
    help: include_str!("../../../../../assets/help/execution-trace.md"),
    icon: Icon::Trace,
    settings: &["tab"],
    create: || Box::<ExecutionTraceView>::default(),
};

/// The tables below the lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TraceDetailsTab {
    #[default]
    Summary,
    Details,
    Statistics,
}

/// A step to look up beside another one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NeighbourStepKey {
    from: SelectedStep,
    forwards: bool,
    /// Whether it is chosen beside what is chosen already.
    add: bool,
    /// Tells one key press from the next.
    press: u64,
}

/// State of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ExecutionTraceView {
    #[serde(skip)]
    prepared: BackgroundQuery<(), Option<Versioned<LoadedTrace>>>,
    #[serde(skip)]
    progress: Arc<AtomicU64>,
    #[serde(skip)]
    scene: BackgroundQuery<TraceSceneKey, TraceScene>,
    #[serde(skip)]
    overview: BackgroundQuery<(usize, usize, ColourScheme), SplitImage>,
    #[serde(skip)]
    summary: BackgroundQuery<(CycleRange, Vec<u32>), WindowSummary>,
    #[serde(skip)]
    details: BackgroundQuery<(Vec<SelectedStep>, NumberFormat), Vec<StepDetailReport>>,
    #[serde(skip)]
    neighbour: BackgroundQuery<NeighbourStepKey, Option<(SelectedStep, CycleRange)>>,
    #[serde(skip)]
    asked_neighbour: Option<NeighbourStepKey>,
    #[serde(skip)]
    presses: u64,
    axis: Option<PanZoomAxis>,
    limits: Option<AxisLimits>,
    #[serde(skip)]
    textures: Option<(u64, Vec<[Option<SplitTexture>; 2]>)>,
    #[serde(skip)]
    overview_texture: Option<((usize, usize, ColourScheme), SplitTexture)>,
    #[serde(skip)]
    grip: Option<overview_strip::OverviewDrag>,
    /// What dragging without Shift does.
    #[serde(skip)]
    drag: TraceDragMode,
    /// First point of a range being drawn.
    #[serde(skip)]
    range_from: Option<i64>,
    bar: Option<SelectedBar>,
    /// Steps that are chosen beside the one that all tabs know, in the order in which they were.
    also: Vec<SelectedStep>,
    /// What the user has marked, in order.
    marks: Vec<CycleRange>,
    #[serde(skip)]
    measured: BackgroundQuery<user_marks::TraceStatisticsKey, user_marks::TraceStatisticsAnswer>,
    /// The cycles of this report.
    #[serde(skip)]
    run: Option<CycleRange>,
    /// Where lanes and ruler were painted.
    #[serde(skip)]
    lanes: Option<Rect>,
    /// Cycles that zooming out reaches, where that is more than the run.
    reach: Option<CycleRange>,
    /// IPUs that are shown; none stands for all of them.
    ipus: BTreeSet<u32>,
    filter: String,
    tab: TraceDetailsTab,
    #[serde(skip)]
    seen_step: Option<SelectedStep>,
    /// Points that the lanes are scrolled down.
    scroll: f64,
    #[serde(skip)]
    strip_has_focus: bool,
    #[serde(skip)]
    focus_filter: bool,
    #[serde(skip)]
    below: BottomPanel,
}

impl ReportView for ExecutionTraceView {
    fn timeline(&self) -> Option<VisibleTimeline> {
        let (axis, limits) = (self.axis?, self.limits?);
        Some(VisibleTimeline { axis, width: limits.width, lanes: self.lanes?, run: self.run? })
    }

    fn show_timeline(&mut self, axis: PanZoomAxis, reach: CycleRange) {
        self.axis = Some(axis);
        self.reach = Some(reach);
    }

    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        // Coming back to this view begins anew.
        if self.prepared.is_cancelled() {
            self.prepared.retry();
        }
        let report = context.opened.report.clone();
        let progress = self.progress.clone();
        let question = move |(): &(), cancelled: &Arc<AtomicBool>| {
            prepare(&report, &progress, cancelled).map(|found| found.map(Versioned::new))
        };
        let prepared = self.prepared.ask_cancellable(ui.ctx(), context.workers, &(), question);
        if matches!(prepared, QueryState::Waiting { .. }) {
            ui.ctx().request_repaint_after_secs(0.1);
        }
        let share = self.progress.load(Ordering::Relaxed) as f64 / 1000.0;
        let waiting = match share {
            0.0 => "Reading the trace…".to_owned(),
            share => format!("Indexing this trace once: {:.0} %", share * 100.0),
        };
        let texts = QueryTexts { waiting: &waiting, failed: "The trace cannot be read" };
        let overdue = prepared.is_overdue();
        prepared.show(ui, texts, |ui, prepared| match prepared.as_ref() {
            Some(prepared) => {
                self.drag = context.prefs.look.drag;
                self.notice_selection(context);
                self.trace_ui(ui, context, prepared);
            }
            None => {
                let (heading, sentence) = why_empty(context.opened.outcome);
                empty_state_ui(ui, heading, sentence);
            }
        });
        if overdue && ui.vertical_centered(|ui| ui.button("Cancel")).inner.clicked() {
            self.prepared.cancel();
            context.commands.push(AppCommand::ShowView(ViewId::Summary));
        }
    }

    fn state(&self) -> ViewState {
        to_view_state(self)
    }

    fn restore(&mut self, state: &ViewState, selection: &Selection) -> Vec<String> {
        let strange;
        (*self, strange) = from_view_state(state);
        self.seen_step = selection.step;
        strange
    }
}

fn why_empty(outcome: ProgramOutcome) -> (&'static str, &'static str) {
    match outcome {
        ProgramOutcome::OutOfMemory { .. } => (
            "Nothing was executed",
            "Some tiles need more memory than they have, so the program could not run. \
             The Memory view shows which tiles, and what fills them.",
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
    /// A step chosen elsewhere, or by a key, is shown with its details.
    fn notice_selection(&mut self, context: &ViewContext<'_>) {
        if let (Some(range), Some(limits)) = (context.selection.cycles, self.limits) {
            self.axis = Some(zoomed_to(range, limits));
            context.commands.push(AppCommand::ZoomToCycles(None));
        }
        if self.seen_step != context.selection.step {
            self.seen_step = context.selection.step;
            self.also.clear();
            if self.seen_step.is_some() {
                self.bar = None;
                self.tab = TraceDetailsTab::Details;
            }
        }
    }

    fn trace_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context, prepared));
        let palette = ThemePalette::for_ui(ui);
        let height = ui.available_height();
        let frame = Frame::new().fill(palette.page).inner_margin(Margin::same(0));
        let mut below = std::mem::take(&mut self.below);
        let size = (height * 0.32).clamp(90.0, 300.0);
        below.ui(ui, "trace details", (size, 420.0), |ui, open| {
            self.tables_ui(ui, context, prepared, open);
        });
        self.below = below;
        CentralPanel::default().frame(frame).show(ui, |ui| {
            self.lanes_ui(ui, context, prepared);
        });
        for wish in context.actions {
            self.perform_action(ui, context, prepared, *wish);
        }
        self.look_up_neighbour(ui, context, prepared);
    }

    /// IPUs that are shown: all of them, or those that are chosen.
    fn shown_ipus(&self, prepared: &LoadedTrace) -> Vec<u32> {
        let all = prepared.ipus.iter().map(|lanes| lanes.ipu);
        all.filter(|ipu| self.ipus.is_empty() || self.ipus.contains(ipu)).collect()
    }

    fn perform_action(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        wish: ViewAction,
    ) {
        let (Some(axis), Some(limits)) = (self.axis, self.limits) else { return };
        let pointer = ui.input(|i| i.pointer.hover_pos());
        let middle = limits.width / 2.0;
        let x = pointer.map_or(middle, |at| at.x - self.lanes_left(ui));
        // With the pointer elsewhere, keys zoom around the middle of the lanes.
        let x = if (0.0..=limits.width).contains(&x) { x } else { middle };
        let shown = |axis: PanZoomAxis| Some(axis.clamped_to(limits));
        if self.strip_has_focus && arrow_pressed(ui) {
            // The arrow is meant for the strip.
            return;
        }
        match wish {
            ViewAction::ZoomIn => self.axis = shown(axis.zoomed(1.3, x, limits)),
            ViewAction::ZoomOut => self.axis = shown(axis.zoomed(1.0 / 1.3, x, limits)),
            ViewAction::PanLeft => self.axis = shown(axis.panned(limits.width * 0.08)),
            ViewAction::PanRight => self.axis = shown(axis.panned(-limits.width * 0.08)),
            ViewAction::ZoomToSelection => self.focus(context, limits),
            ViewAction::SelectNext => self.select_neighbour_step(context, prepared, (true, false)),
            ViewAction::SelectPrevious => {
                self.select_neighbour_step(context, prepared, (false, false))
            }
            ViewAction::AddNextToSelection => {
                self.select_neighbour_step(context, prepared, (true, true))
            }
            ViewAction::AddPreviousToSelection => {
                self.select_neighbour_step(context, prepared, (false, true))
            }
            ViewAction::FocusFilter => self.focus_filter = true,
            ViewAction::ClearSelection => {
                self.bar = None;
                self.also.clear();
                self.marks.clear();
                self.filter.clear();
                if context.selection.step.is_some() {
                    context.commands.push(AppCommand::SelectStep(None));
                }
            }
            ViewAction::MarkSelection | ViewAction::AddMark => {
                let at = pointer.map(|at| at.x - self.lanes_left(ui));
                let at = at.filter(|x| (0.0..=limits.width).contains(x));
                let under = at.map(|x| axis.position_from_x(x).max(0) as u64);
                self.mark(context, under, wish == ViewAction::AddMark);
            }
            ViewAction::PanUp | ViewAction::PanDown => {}
        }
    }

    /// Zooms to the selection; to the whole run if there is none, or if it is shown already.
    fn focus(&mut self, context: &ViewContext<'_>, limits: AxisLimits) {
        let chosen = self.chosen_range(context);
        self.axis = chosen.and_then(|range| {
            let target = zoomed_to(range, limits);
            // Exact comparison is right: the same range gives the same axis, bit by bit.
            let there = self.axis.is_some_and(|axis| axis == target);
            (!there).then_some(target)
        });
    }

    fn select_neighbour_step(
        &mut self,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        (forwards, add): (bool, bool),
    ) {
        self.presses += 1;
        let press = self.presses;
        if let Some(of) = context.selection.step {
            self.asked_neighbour = Some(NeighbourStepKey { from: of, forwards, add, press });
            return;
        }
        // Nothing is chosen: begin with what is on the screen.
        let first = self.scene.latest().and_then(|scene| {
            let window = cycles_on_screen(self.axis?, self.limits?.width);
            let lanes = scene.ipus.iter().flat_map(|ipu| &ipu.lanes);
            lanes.filter_map(|lane| first_step(lane, window)).next()
        });
        // Without a scene, or with none of single steps, the first lane begins the walk.
        let fallback = || {
            let lanes = prepared.ipus.first()?;
            let sub_lane = *lanes.sub_lanes.first()?;
            Some(SelectedStep { ipu: lanes.ipu, sub_lane, position: 0, step: StepId(0) })
        };
        match first {
            Some(step) => context.commands.push(AppCommand::SelectStep(Some(step))),
            None => {
                self.asked_neighbour =
                    fallback().map(|of| NeighbourStepKey { from: of, forwards, add, press });
            }
        }
    }

    fn look_up_neighbour(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        let Some(wanted) = self.asked_neighbour else { return };
        let shared = prepared.clone();
        let question = move |wanted: &NeighbourStepKey| neighbour(&shared, wanted);
        let asked = self.neighbour.ask(ui.ctx(), context.workers, &wanted, question);
        let Some(found) = asked.finished() else { return };
        self.asked_neighbour = None;
        match found.map(|found| *found) {
            Ok(Some((step, range))) => {
                self.select_step(context, step, wanted.add);
                self.bring_into_view(range);
            }
            Ok(None) => {}
            Err(error) => context
                .commands
                .push(AppCommand::ShowMessage(StatusMessage::error(error.to_string()))),
        }
    }

    /// Pans so that a step chosen by a key is on the screen.
    fn bring_into_view(&mut self, range: CycleRange) {
        let (Some(axis), Some(limits)) = (self.axis, self.limits) else { return };
        let (left, right) =
            (axis.x_from_position(range.start.0), axis.x_from_position(range.end.0));
        if left < 0.0 || right > limits.width {
            // A step wider than the lanes is shown from its start.
            let middle = (left + right.min(left + limits.width)) / 2.0 - limits.width / 2.0;
            self.axis = Some(axis.panned(-middle).clamped_to(limits));
        }
    }
}

/// Whether an arrow to a side is pressed.
fn arrow_pressed(ui: &Ui) -> bool {
    let arrows = [egui::Key::ArrowLeft, egui::Key::ArrowRight];
    ui.input(|input| arrows.into_iter().any(|arrow| input.key_pressed(arrow)))
}

fn first_step(
    lane: &tilescope_analysis::trace::LaneItemList,
    window: CycleRange,
) -> Option<SelectedStep> {
    let inside = |item: &&tilescope_analysis::trace::LaneItem| item.range.start >= window.start;
    let (item, step) = lane
        .items
        .iter()
        .filter(inside)
        .filter_map(|item| item.step().map(|step| (item, step)))
        .min_by_key(|(item, _)| item.range.start)?;
    let position = item.first_position();
    Some(SelectedStep { ipu: lane.ipu, sub_lane: lane.sub_lane, position, step })
}

fn neighbour(
    prepared: &LoadedTrace,
    wanted: &NeighbourStepKey,
) -> Result<Option<(SelectedStep, CycleRange)>, ReportError> {
    let SelectedStep { ipu, sub_lane, position, .. } = wanted.from;
    let Some(lane) = prepared.trace.lane_of(ipu, sub_lane) else { return Ok(None) };
    let found = if wanted.forwards { lane.next(position)? } else { lane.previous(position)? };
    Ok(found.map(|found| {
        let step = SelectedStep { ipu, sub_lane, position: found.position, step: found.step };
        (step, found.range)
    }))
}

/// The axis that shows a bar with what is around it.
fn zoomed_to(range: CycleRange, limits: AxisLimits) -> PanZoomAxis {
    // A sixth on both sides; at least one cycle, or a step of no cycles would fill nothing.
    let around = range.length() / 6 + Cycles(1);
    let wider = CycleRange::new(range.start.saturating_sub(around), range.end + around);
    fitting_cycles(wider, limits.width).clamped_to(limits)
}

/// How the parts of an operation are put together.
fn grouping(prefs: &TracePrefs) -> TraceStepGrouping {
    TraceStepGrouping { executions: prefs.group_executions, syncs: prefs.group_syncs }
}

/// The cycles of the scene for what is on the screen, with more on both sides: whole blocks, so that
/// panning inside of one asks for nothing new, and so that what is on the screen has the same pixels
/// whatever way led there.
fn scene_window(axis: PanZoomAxis, width: f32) -> CycleRange {
    let length = ((axis.scale() * f64::from(width)).ceil() as u64).max(1);
    let block = length.div_ceil(4);
    let window = cycles_on_screen(axis, width);
    let start = (window.start / block * block).saturating_sub(Cycles(block / 2));
    let end = start
        .saturating_add(Cycles(block.saturating_mul(6)))
        .max(window.end.saturating_add(Cycles(1)));
    CycleRange::new(start, end)
}

/// Identifies parts of this view to egui.
fn id(ui: &Ui, part: &'static str) -> Id {
    ui.scope_id().with(("execution trace", part))
}

fn ask_scene(
    report: Arc<Report>,
    prepared: Versioned<LoadedTrace>,
) -> impl FnOnce(&TraceSceneKey) -> Result<TraceScene, ReportError> {
    move |key| scene::build_scene(&report, &prepared, key)
}
