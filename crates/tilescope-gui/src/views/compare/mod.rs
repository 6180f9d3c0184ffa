//! The comparison of two reports in one window: every view twice, side by side or in one graph,
//! with tables of differences below. A selection on one side is repeated on the other.

mod compared_pane;
mod cycle_delta_lane;
mod difference_tables;
mod offset_handle;
mod overlay_graph;
mod overview_page;
mod selection_mapping;
mod side_colours;
mod time_link;

use crate::model::command::{AppCommand, CommandQueue, SelectedStep, ViewAction};
use crate::model::navigation::TargetNavigationState;
use crate::model::open_report::OpenReport;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::model::view_state::{ViewState, from_view_state, to_view_state};
use crate::theme::{ThemePalette, spacing};
use crate::views::{self, ReportView, ViewContext};
use crate::widgets::background_query::{BackgroundQuery, QueryState, Versioned};
use crate::widgets::bottom_panel::BottomPanel;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui};
use crate::widgets::{central_ui, tables_height};
pub(crate) use compared_pane::ComparedPane;
use egui::{Color32, Event, Rect, RichText, Ui, UiBuilder, pos2};
use selection_mapping::{OtherSideMapper, is_selection_command, step_counterpart};
use serde::{Deserialize, Serialize};
use side_colours::SideColours;
use tilescope_analysis::calibration::is_measured;
use tilescope_analysis::compare::{ReportAlignment, WorkNormalization, WorkUnit};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{Report, ReportError};

/// The alignment of both reports.
pub(crate) type SharedAlignment = Versioned<ReportAlignment>;

/// A side of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ComparisonSide {
    /// The report on the left, which is compared.
    #[default]
    Source,
    /// The report on the right, which it is compared with.
    Target,
}

/// The layout above the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ComparisonLayout {
    /// One page with the changes, for the first view; side by side for other views.
    #[default]
    Overview,
    /// The views of both reports side by side; traces are above each other.
    SideBySide,
    /// Both reports in one graph, for views that support it.
    Overlay,
    /// No views: the tables take all space.
    Tables,
}

/// The layout and settings of both sides, as stored in links.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ComparisonSettings {
    layout: ComparisonLayout,
    /// The unit of work for figures of the run.
    unit: WorkUnit,
    /// True if the details of both traces are shown; `None` until the user has chosen.
    details: Option<bool>,
    /// The cycles by which the target is shifted.
    offset: i64,
    /// The selected table of differences; `None` until the user has chosen.
    table: Option<usize>,
    /// The settings of the common graph.
    graph: overlay_graph::OverlayGraphZoom,
}

/// The report that another one is compared with, and the state of the comparison.
pub struct ComparisonTarget {
    /// The report on the right.
    pub target: OpenReport,
    /// The selection in the target.
    pub selection: Selection,
    views: Vec<(ViewId, Box<dyn ReportView>)>,
    alignment: BackgroundQuery<(), ReportAlignment>,
    /// The first cycles of the steps selected on both sides.
    starts: BackgroundQuery<(SelectedStep, SelectedStep), Option<(Cycles, Cycles)>>,
    /// A step selected on one side, until its counterpart is selected on the other.
    chosen_step: Option<(ComparisonSide, SelectedStep)>,
    counterpart: BackgroundQuery<(ComparisonSide, SelectedStep), Option<SelectedStep>>,
    layout: ComparisonLayout,
    unit: WorkUnit,
    /// The normalization of figures of both runs.
    normalization: BackgroundQuery<WorkUnit, WorkNormalization>,
    overview: overview_page::OverviewPage,
    difference_tables: difference_tables::DifferenceTablesPanel,
    tables_panel: BottomPanel,
    /// The panel with details of both traces.
    details_panel: BottomPanel,
    overlay_graph: overlay_graph::OverlayGraphPanel,
    delta_lane: cycle_delta_lane::CycleDeltaLane,
    time_link: time_link::TimeLink,
    /// The side that receives keys.
    active_side: ComparisonSide,
}

impl ComparisonTarget {
    /// Creates a comparison with a report.
    pub(crate) fn new(target: OpenReport) -> Self {
        let views = views::VIEWS.iter().map(|info| (info.id, (info.create)())).collect();
        Self {
            target,
            selection: Selection::default(),
            views,
            alignment: BackgroundQuery::default(),
            starts: BackgroundQuery::default(),
            chosen_step: None,
            counterpart: BackgroundQuery::default(),
            layout: ComparisonLayout::default(),
            unit: WorkUnit::default(),
            normalization: BackgroundQuery::default(),
            overview: overview_page::OverviewPage::default(),
            difference_tables: difference_tables::DifferenceTablesPanel::default(),
            tables_panel: BottomPanel::default(),
            details_panel: BottomPanel::default(),
            overlay_graph: overlay_graph::OverlayGraphPanel::default(),
            delta_lane: cycle_delta_lane::CycleDeltaLane::default(),
            time_link: time_link::TimeLink::default(),
            active_side: ComparisonSide::default(),
        }
    }

    /// The part of a place that describes the target, for a view.
    pub(crate) fn target_navigation_state(&self, view: ViewId) -> TargetNavigationState {
        let report = &self.target.path;
        let shown = self.views.iter().find(|(name, _)| *name == view);
        let arrangement = ComparisonSettings {
            layout: self.layout,
            unit: self.unit,
            details: self.details_panel.choice(),
            offset: self.time_link.offset(),
            table: self.difference_tables.chosen(view),
            graph: self.overlay_graph.shown(),
        };
        TargetNavigationState {
            report: tilescope_report::remote::absolute_path(report),
            selection: Selection { cycles: None, ..self.selection.clone() },
            state: shown.map(|(_, view)| view.state()).unwrap_or_default(),
            layout: to_view_state(&arrangement),
        }
    }

    /// Restores the target from a place, as far as `selection` exists. Returns the names of unknown
    /// settings.
    pub(crate) fn restore(
        &mut self,
        view: ViewId,
        selection: Selection,
        place: &TargetNavigationState,
    ) -> Vec<String> {
        let mut strange = self.restore_settings(view, &place.layout);
        if let Some((_, shown)) = self.views.iter_mut().find(|(name, _)| *name == view) {
            strange.extend(shown.restore(&place.state, &selection));
        }
        self.selection = selection;
        strange
    }

    fn restore_settings(&mut self, view: ViewId, layout: &ViewState) -> Vec<String> {
        let (arrangement, strange) = from_view_state::<ComparisonSettings>(layout);
        self.layout = arrangement.layout;
        self.unit = arrangement.unit;
        self.details_panel = BottomPanel::of(arrangement.details);
        self.time_link = time_link::TimeLink::with_offset(arrangement.offset);
        self.difference_tables.choose(view, arrangement.table);
        self.overlay_graph.show(arrangement.graph);
        strange
    }

    /// Continues from an earlier comparison of the same reports. `selection` is the valid remainder
    /// of the earlier selection.
    pub(crate) fn inherit_from(&mut self, before: &Self, selection: &Selection) {
        self.layout = before.layout;
        self.unit = before.unit;
        self.details_panel = BottomPanel::of(before.details_panel.choice());
        self.time_link = time_link::TimeLink::with_offset(before.time_link.offset());
        self.overlay_graph.show(before.overlay_graph.shown());
        self.selection = selection.clone();
        for ((name, fresh), (_, old)) in self.views.iter_mut().zip(&before.views) {
            self.difference_tables.choose(*name, before.difference_tables.chosen(*name));
            fresh.restore(&old.state(), selection);
        }
    }

    /// The titles of the visible tables of differences.
    pub fn tables(&self) -> Vec<&'static str> {
        self.difference_tables.titles()
    }

    /// The unit of work for figures of the run.
    pub(crate) fn unit(&self) -> WorkUnit {
        self.unit
    }

    /// The layout of a view: side by side if it does not support the selected one.
    fn layout_of(&self, view: ViewId) -> ComparisonLayout {
        let known = layouts(view).into_iter().any(|(layout, _)| layout == self.layout);
        if known { self.layout } else { ComparisonLayout::SideBySide }
    }

    /// The visible cycles of both traces.
    pub fn cycles(&self) -> Option<(CycleRange, CycleRange)> {
        self.time_link.windows()
    }

    /// Shows a view of both reports. `view` belongs to the source, and `context` describes the
    /// source.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        name: ViewId,
        view: &mut dyn ReportView,
        context: &ViewContext<'_>,
    ) {
        let layout = self.layout_of(name);
        let aligned = match layout {
            // The overview of changes needs no alignment of single steps.
            ComparisonLayout::Overview => QueryState::Waiting { overdue: false },
            _ => self.align(ui, context),
        };
        toolbar_ui(ui, "comparison", |bar| self.controls_ui(bar, name, context, &aligned));
        if layout == ComparisonLayout::Overview {
            central_ui(ui, |ui| self.overview_ui(ui, context));
            return;
        }
        if layout == ComparisonLayout::Tables {
            central_ui(ui, |ui| {
                self.difference_tables_ui(ui, name, context, &aligned, &mut true);
            });
            return;
        }
        self.tables_panel = self.tables_panel.ui(
            ui,
            "differences",
            (tables_height(ui, 0.28), 560.0),
            |ui, open| {
                self.difference_tables_ui(ui, name, context, &aligned, open);
            },
        );
        central_ui(ui, |ui| {
            let overlaid = layout == ComparisonLayout::Overlay;
            match (aligned.answer(), overlaid) {
                (Some(aligned), true) => {
                    let target = (&self.target, &self.selection);
                    if let Some((side, command)) = self.overlay_graph.ui(ui, name, context, target)
                    {
                        self.dispatch_to_both_sides(context, side, vec![command], Some(aligned));
                    }
                }
                (aligned, _) => self.panes_ui(ui, name, view, context, aligned),
            }
        });
    }

    /// The alignment, once it is computed.
    fn align(&mut self, ui: &Ui, context: &ViewContext<'_>) -> QueryState<ReportAlignment> {
        let source = context.opened.report.clone();
        let target = self.target.report.clone();
        self.alignment
            .ask(ui.ctx(), context.workers, &(), move |()| ReportAlignment::read(&source, &target))
    }

    fn controls_ui(
        &mut self,
        bar: &mut ToolbarBuilder<'_>,
        name: ViewId,
        context: &ViewContext<'_>,
        aligned: &QueryState<ReportAlignment>,
    ) {
        let source = context.opened.name();
        let target = self.target.name();
        let [of_source, of_target] = side_labels(&context.opened.report, &self.target.report);
        bar.add(of_source, |ui| side_colours::side_ui(ui, ComparisonSide::Source, &source));
        bar.add(of_target, |ui| side_colours::side_ui(ui, ComparisonSide::Target, &target));
        let layout = self.layout_of(name);
        if let Some(layout) = bar.choice("Layout", &layouts(name), layout) {
            self.layout = layout;
        }
        if of_runs(name) {
            self.unit_ui(bar, context);
        }
        if layout == ComparisonLayout::Overlay {
            self.overlay_graph.controls_ui(bar, name, context);
        }
        if name == ViewId::ExecutionTrace && layout == ComparisonLayout::SideBySide {
            let selected = match aligned.answer() {
                Some(_) => self.selected_starts(bar.context(), context),
                None => None,
            };
            self.time_link.controls_ui(bar, selected);
        }
        if bar.button("Swap", "Swap source and target") {
            context.commands.push(AppCommand::SwapSides);
        }
        if bar.button("End comparison", "Close the target and keep the source") {
            context.commands.push(AppCommand::EndComparison);
        }
        if aligned.is_overdue() {
            bar.add("Aligning", |ui| {
                ui.spinner();
                ui.label("Aligning…");
            });
        }
    }

    /// The choice of the unit of work, and the reason if the selected unit does not apply.
    fn unit_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let units = WorkUnit::ALL.map(|unit| (unit, unit.title()));
        if let Some(unit) = bar.choice("Figures", &units, self.unit) {
            self.unit = unit;
        }
        let source = context.opened.report.clone();
        let target = self.target.report.clone();
        let question = move |unit: &WorkUnit| WorkNormalization::read(&source, &target, *unit);
        let asked = self.normalization.ask(bar.context(), context.workers, &self.unit, question);
        let note = asked.answer().and_then(|found| found.note.clone());
        if let Some(note) = note {
            bar.add("Note", |ui| {
                let text = RichText::new("per run").color(ThemePalette::for_ui(ui).warning);
                ui.label(text).on_hover_text(note);
            });
        }
    }

    fn overview_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let reports = (context.opened, &self.target);
        let clicked = self.overview.ui(ui, context.workers, reports, self.unit);
        let Some(places) = clicked else { return };
        self.select_on_both_sides(&places, context);
        let view = places.iter().flatten().next().and_then(|place| place.view.parse().ok());
        context.commands.extend(view.map(AppCommand::ShowView));
    }

    /// The first cycles of the steps selected on both sides.
    fn selected_starts(
        &mut self,
        ui: &egui::Context,
        context: &ViewContext<'_>,
    ) -> Option<(Cycles, Cycles)> {
        let chosen = (context.selection.step?, self.selection.step?);
        let source = context.opened.report.clone();
        let target = self.target.report.clone();
        match self.starts.ask(ui, context.workers, &chosen, move |(in_source, in_target)| {
            let starts = (start_of(&source, *in_source)?, start_of(&target, *in_target)?);
            Ok::<_, ReportError>(starts.0.zip(starts.1))
        }) {
            QueryState::Fresh(starts) => *starts,
            // Without both steps nothing can be aligned.
            _ => None,
        }
    }

    fn difference_tables_ui(
        &mut self,
        ui: &mut Ui,
        name: ViewId,
        context: &ViewContext<'_>,
        aligned: &QueryState<ReportAlignment>,
        open: &mut bool,
    ) {
        let texts = QueryTexts { waiting: "Aligning…", failed: "The reports cannot be compared" };
        let reports = (context.opened, &self.target);
        let clicked = aligned.show(ui, texts, |ui, aligned| {
            let shown = (name, self.unit);
            self.difference_tables.ui(ui, context.workers, shown, reports, (aligned, open))
        });
        if let Some(places) = clicked.flatten() {
            self.select_on_both_sides(&places, context);
        }
    }

    /// Selects places on both sides and aligns their first cycles.
    fn select_on_both_sides(
        &mut self,
        places: &[Option<ViewLocation>; 2],
        context: &ViewContext<'_>,
    ) {
        let start =
            |place: &Option<ViewLocation>| place.as_ref()?.cycles.map(|cycles| cycles.start);
        self.chosen_step = None;
        if let (Some(source), Some(target)) = (start(&places[0]), start(&places[1])) {
            self.time_link.line_up(source, target);
        }
        for (side, place) in difference_tables::locations_by_side(places) {
            let commands = AppCommand::select_insight_location(place).into_iter();
            context.commands.extend(commands.map(|command| match side {
                ComparisonSide::Source => command,
                ComparisonSide::Target => AppCommand::ApplyToTarget(Box::new(command)),
            }));
        }
    }

    fn panes_ui(
        &mut self,
        ui: &mut Ui,
        name: ViewId,
        view: &mut dyn ReportView,
        context: &ViewContext<'_>,
        aligned: Option<&SharedAlignment>,
    ) {
        let stacked = name == ViewId::ExecutionTrace;
        let from_source = CommandQueue::default();
        let from_target = CommandQueue::default();
        let Some(other) = self.views.iter_mut().find(|(known, _)| *known == name) else { return };
        let other = other.1.as_mut();
        let mut pane = |side| Some(ComparedPane::of(side, [&mut *view, &mut *other]));
        let panes = [pane(ComparisonSide::Source), pane(ComparisonSide::Target)];
        // Keys and menu actions go to the pane under the pointer. Arrow keys move the focused
        // handle.
        let held = self.time_link.has_focus();
        let arrows = [
            ViewAction::SelectNext,
            ViewAction::SelectPrevious,
            ViewAction::AddNextToSelection,
            ViewAction::AddPreviousToSelection,
        ];
        let actions = context.actions.iter().filter(|action| !(held && arrows.contains(action)));
        let actions = &*actions.copied().collect::<Vec<ViewAction>>();
        let source = ViewContext { commands: &from_source, pane: panes[0], ..*context };
        let target = ViewContext {
            opened: &self.target,
            selection: &self.selection,
            commands: &from_target,
            pane: panes[1],
            ..*context
        };
        if stacked {
            self.details_panel =
                self.details_panel.ui(ui, "step details", (200.0, 760.0), |ui, open| {
                    let area = ui.available_rect_before_wrap();
                    let (left, right) = halves(area);
                    let SideColours { source: red, target: blue } = side_colours::side_colours(ui);
                    for (half, colour) in [(left, red), (right, blue)] {
                        edge_ui(ui, half, colour);
                    }
                    for (half, view, context, name) in [
                        (left, &mut *view, &source, "source"),
                        (right, &mut *other, &target, "target"),
                    ] {
                        let inner = half.with_min_x(half.left() + spacing::M);
                        let half = UiBuilder::new().id_salt(name).max_rect(inner);
                        let Some(view) = view.as_timeline() else { continue };
                        ui.scope_builder(half, |ui| view.details_ui(ui, context, open));
                    }
                });
        }
        let mut area = ui.available_rect_before_wrap();
        let timeline = view.as_timeline().and_then(|view| view.timeline());
        if let (true, Some(aligned), Some(timeline)) = (stacked, aligned, timeline) {
            let reports = (context.opened, &self.target);
            let ipu = context.selection.step.map(|step| step.at.ipu).or(context.selection.ipu);
            let lane = Rect::from_min_max(
                pos2(area.left(), area.bottom() - cycle_delta_lane::HEIGHT),
                area.max,
            );
            area.max.y = lane.top();
            self.delta_lane.ui(ui, lane, context.workers, reports, aligned, (timeline, ipu));
        }
        let (first, second) = if stacked { above_and_below(area) } else { halves(area) };
        let line = ui.visuals().widgets.noninteractive.bg_stroke;
        if stacked {
            ui.painter().hline(area.x_range(), second.top() - 1.0, line);
        } else {
            ui.painter().vline(second.left() - 1.0, area.y_range(), line);
        }
        if let Some(at) = ui.input(|i| i.pointer.hover_pos()).filter(|at| area.contains(*at)) {
            let in_second = second.contains(at);
            self.active_side =
                if in_second { ComparisonSide::Target } else { ComparisonSide::Source };
        }
        let active = self.active_side;
        let low = stacked && second.height() < LOW;
        let (for_source, for_target): (&[ViewAction], &[ViewAction]) =
            if active == ComparisonSide::Source { (actions, &[]) } else { (&[], actions) };
        let source = ViewContext {
            actions: for_source,
            pane: source.pane.map(|pane| ComparedPane { low, ..pane }),
            ..source
        };
        show_pane(ui, first, ComparisonSide::Source, active, |ui| view.ui(ui, &source));
        if let (Some(view), Some(other)) = (view.as_timeline(), other.as_timeline()) {
            other.filter_lanes(view.lane_filter());
        }
        let target = ViewContext {
            actions: for_target,
            pane: target.pane.map(|pane| ComparedPane { low, ..pane }),
            ..target
        };
        show_pane(ui, second, ComparisonSide::Target, active, |ui| other.ui(ui, &target));
        if let (Some(source), Some(target)) = (view.as_timeline(), other.as_timeline()) {
            self.time_link.synchronise(source, target);
            if let Some(timeline) = target.timeline() {
                self.time_link.grip_ui(ui, second, timeline);
            }
        }
        let common = ComparedPane::of(ComparisonSide::Source, [&mut *view, &mut *other]);
        if source.pane != Some(ComparedPane { low, ..common }) {
            // The common properties are known only now.
            ui.request_repaint();
        }
        self.dispatch_to_both_sides(context, ComparisonSide::Source, from_source.take(), aligned);
        self.dispatch_to_both_sides(context, ComparisonSide::Target, from_target.take(), aligned);
        self.select_counterpart(ui.ctx(), context, aligned);
    }

    /// Selects the counterpart of a selected step on the other side, once it is known.
    fn select_counterpart(
        &mut self,
        ui: &egui::Context,
        context: &ViewContext<'_>,
        aligned: Option<&SharedAlignment>,
    ) {
        let (Some(alignment), Some(chosen)) = (aligned, self.chosen_step) else { return };
        let there = if chosen.0 == ComparisonSide::Source { &self.target } else { context.opened };
        let alignment = alignment.clone();
        let there = there.report.clone();
        let question = move |chosen: &_| step_counterpart(&alignment, &there, chosen);
        let Some(found) = self.counterpart.ask(ui, context.workers, &chosen, question).finished()
        else {
            return;
        };
        self.chosen_step = None;
        // A step without a counterpart leaves the other side unchanged.
        let Some(step) = found.ok().and_then(|found| *found) else { return };
        let select = AppCommand::SelectStep(Some(step));
        context.commands.push(match chosen.0 {
            ComparisonSide::Source => AppCommand::ApplyToTarget(Box::new(select)),
            ComparisonSide::Target => select,
        });
    }

    /// Pushes the commands of one side, and the equivalent commands for the other side if they
    /// exist.
    fn dispatch_to_both_sides(
        &mut self,
        context: &ViewContext<'_>,
        from: ComparisonSide,
        commands: Vec<AppCommand>,
        aligned: Option<&SharedAlignment>,
    ) {
        let opened = if from == ComparisonSide::Source { &self.target } else { context.opened };
        let other = aligned.map(|alignment| OtherSideMapper { alignment, from, opened });
        for command in commands {
            if let AppCommand::SelectStep(step) = &command {
                self.chosen_step = step.map(|step| (from, step));
            }
            let there = other.as_ref().and_then(|other| other.command(&command));
            match from {
                ComparisonSide::Source => {
                    context.commands.push(command);
                    context.commands.extend(there.map(applied_to_target));
                }
                ComparisonSide::Target => {
                    let own = is_selection_command(&command);
                    context.commands.push(if own { applied_to_target(command) } else { command });
                    context.commands.extend(there);
                }
            }
        }
    }
}

fn applied_to_target(command: AppCommand) -> AppCommand {
    AppCommand::ApplyToTarget(Box::new(command))
}

/// The first cycle of a step, if it is in the report.
fn start_of(report: &Report, chosen: SelectedStep) -> Result<Option<Cycles>, ReportError> {
    let trace = report.trace()?;
    let lane = trace.as_ref().and_then(|trace| trace.lane_at(chosen.at, chosen.sub_lane));
    let step = lane.map(|lane| lane.step(chosen.position)).transpose()?.flatten();
    Ok(step.map(|step| step.range.start))
}

/// The line that marks the side of a pane.
fn edge_ui(ui: &Ui, rect: Rect, colour: Color32) {
    ui.painter().vline(rect.left() + EDGE / 2.0, rect.y_range(), (EDGE, colour));
}

/// The width of the coloured line along a pane.
const EDGE: f32 = 3.0;
/// The height below which two traces have no marks.
const LOW: f32 = 320.0;
/// The height above the ruler of the upper trace: controls and the overview of the run.
const UPPER_CONTROLS: f32 = 60.0;

/// The layouts that a view supports.
fn layouts(view: ViewId) -> Vec<(ComparisonLayout, &'static str)> {
    let beside = (ComparisonLayout::SideBySide, "Side by side");
    let tables = (ComparisonLayout::Tables, "Tables only");
    match view {
        ViewId::Summary => vec![(ComparisonLayout::Overview, "What changed"), beside, tables],
        _ if overlay_graph::has_overlay_graph(view) => {
            vec![beside, (ComparisonLayout::Overlay, "One graph"), tables]
        }
        _ => vec![beside, tables],
    }
}

/// Returns true if the tables of a view have figures of the run.
fn of_runs(view: ViewId) -> bool {
    matches!(view, ViewId::Summary | ViewId::Operations | ViewId::ExecutionTrace)
}

/// The left and the right half of an area, with a line between them.
fn halves(area: Rect) -> (Rect, Rect) {
    let middle = area.center().x.round();
    let left = Rect::from_min_max(area.min, pos2(middle - 1.0, area.bottom()));
    (left, Rect::from_min_max(pos2(middle + 1.0, area.top()), area.max))
}

/// The areas of two traces with lanes of equal height.
fn above_and_below(area: Rect) -> (Rect, Rect) {
    let middle = (area.center().y + UPPER_CONTROLS / 2.0).min(area.bottom()).round();
    let above = Rect::from_min_max(area.min, pos2(area.right(), middle - 1.0));
    (above, Rect::from_min_max(pos2(area.left(), middle + 1.0), area.max))
}

/// Shows one side; keys reach only the active one.
fn show_pane(
    ui: &mut Ui,
    rect: Rect,
    side: ComparisonSide,
    active: ComparisonSide,
    contents: impl FnOnce(&mut Ui),
) {
    let mut taken = None;
    if side != active {
        taken = Some(ui.input(|input| input.events.clone()));
        ui.input_mut(|input| {
            input.events.retain(|event| !matches!(event, Event::Key { .. } | Event::Text(_)));
        });
    }
    let salt = if side == ComparisonSide::Source { "source" } else { "target" };
    ui.scope_builder(UiBuilder::new().id_salt(salt).max_rect(rect), |ui| {
        ui.set_clip_rect(rect.intersect(ui.clip_rect()));
        contents(ui);
        // Painted over the view, so that a picture alone shows which side it is.
        let colours = side_colours::side_colours(ui);
        let source = side == ComparisonSide::Source;
        let colour = if source { colours.source } else { colours.target };
        edge_ui(ui, rect, colour);
    });
    if let Some(events) = taken {
        ui.input_mut(|input| input.events = events);
    }
}

/// The labels of the sides above their names.
fn side_labels(source: &Report, target: &Report) -> [&'static str; 2] {
    match [source, target].map(is_measured) {
        [true, false] => ["Source (measured)", "Target (simulated)"],
        [false, true] => ["Source (simulated)", "Target (measured)"],
        _ => ["Source", "Target"],
    }
}
