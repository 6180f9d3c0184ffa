//! The liveness view: the live variables at each step of the compiled program.

mod by_address;
pub(super) mod tables;

use super::trace_jump::TraceJump;
use super::{ReportView, ViewContext, ViewDescriptor, ViewScales};
use crate::model::command::AppCommand;
use crate::model::preferences::LivenessPrefs;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing};
use crate::widgets::background_query::{BackgroundQuery, QueryState, Versioned};
use crate::widgets::bottom_panel::{BottomPanel, LOW, tabs_row_ui};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::stack_graph::{
    GraphAnnotation, GraphLevelLine, MatchedPlaces, StackGraph, StackGraphInput,
    StackGraphResponse, StackLayer, StackedValues, is_near,
};
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui, weak_ui};
use crate::widgets::{
    central_ui, empty_state_ui, find_ui, ipu_names, tables_height, waiting_tabs_ui,
};
use by_address::{AddressInput, AddressPanel, ChosenAddress};
use egui::Ui;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use tables::{LivenessTab, LivenessTables};
use tilescope_analysis::liveness::{LivenessCurve, LivenessScope, curve};
use tilescope_analysis::tile_curves::TileCurveUnit;
use tilescope_report::units::{
    Bytes, ProgramId, TileId, VariableId, exact_bytes, grouped, percent,
};
use tilescope_report::{ProgramKind, ProgramNodeTable, Report, ReportError};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Liveness,
    help: include_str!("../../../../../assets/help/liveness.md"),
    icon: Icon::Steps,
    settings: &["show", "tab"],
    create: || Box::<LivenessView>::default(),
};

/// The largest number of steps compared in columns.
const MAX_COLUMNS: usize = 8;

/// The curve of a scope, ready to be drawn.
struct LivenessGraphData {
    curve: LivenessCurve,
    stack: Versioned<StackedValues>,
    /// The description of each step.
    labels: Vec<String>,
    programs: Arc<ProgramNodeTable>,
}

/// The graph in the upper half of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LivenessGraphMode {
    /// The live bytes at each step.
    #[default]
    Bytes,
    /// The memory of one tile by address.
    Addresses,
}

/// A curve, once it is known.
type LivenessGraphAnswer = Option<Versioned<LivenessGraphData>>;
/// The name of a variable and its live steps; `None` if it is always live.
type VariableLifetime = (String, Option<Range<u32>>);

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LivenessView {
    source: LivenessScope,
    #[serde(skip)]
    curve: BackgroundQuery<(LivenessScope, bool), LivenessGraphAnswer>,
    show: LivenessGraphMode,
    graph: StackGraph,
    addresses: AddressPanel,
    tables: LivenessTables,
    panel: BottomPanel,
    tab: LivenessTab,
    /// The selected steps, in the order of selection.
    steps: Vec<u32>,
    /// The program of the last selected step, as stored in the selection.
    #[serde(skip)]
    program: Option<ProgramId>,
    #[serde(skip)]
    lifetime: BackgroundQuery<VariableId, Option<VariableLifetime>>,
    filter: String,
    /// The steps that match the filter, by the version of the curve and the filter text.
    #[serde(skip)]
    matching: BackgroundQuery<(u64, String), MatchedPlaces>,
    #[serde(skip)]
    jump: TraceJump,
}

impl ReportView for LivenessView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        self.source = available_source(self.source, context);
        let key = (self.source, context.prefs.liveness.always_live);
        let texts =
            QueryTexts { waiting: "Reading liveness…", failed: "Liveness cannot be read" };
        let found = context.ask(ui, &mut self.curve, &key, |report, (source, always)| {
            load_graph(report, *source, *always)
        });
        found.show(ui, texts, |ui, answer| {
            let Some(shown) = answer.as_ref().filter(|shown| shown.stack.places() > 0) else {
                let sentence = "This report has no curve: it does not record the lifetimes of \
                                variables.";
                return empty_state_ui(ui, "No liveness recorded", sentence);
            };
            self.notice_selection(context, &shown.curve);
            toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context, shown));
            self.panels_ui(ui, context, shown);
            self.jump.update(ui.ctx(), context);
        });
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        vec![AppCommand::SelectProgram(None), AppCommand::SelectVariable(None)]
    }

    fn scales(&self) -> ViewScales {
        let in_bytes = self.show == LivenessGraphMode::Bytes;
        let graph_top = if in_bytes { self.graph.highest() } else { None };
        ViewScales { graph_top, heat: None }
    }

    fn notice_restored(&mut self, selection: &Selection) {
        self.program = selection.program;
    }
}

/// The scope, or another one if this report does not have it.
fn available_source(source: LivenessScope, context: &ViewContext<'_>) -> LivenessScope {
    let target = &context.opened.target;
    match source {
        LivenessScope::Ipu(ipu) if !target.has_ipu(ipu) => LivenessScope::Whole,
        LivenessScope::Tile(tile) if !target.has_tile(tile) => LivenessScope::Whole,
        source => source,
    }
}

fn load_graph(
    report: &Report,
    source: LivenessScope,
    always: bool,
) -> Result<LivenessGraphAnswer, ReportError> {
    let Some(curve) = curve(report, source)? else { return Ok(None) };
    let programs = report.programs()?;
    let mut labels = Vec::new();
    for id in &curve.programs {
        labels.push(match programs.get(*id) {
            Some(program) if program.name.is_empty() => program.kind.name().to_owned(),
            Some(program) => format!("{} ({})", program.kind.name(), program.name),
            None => "Unknown program".to_owned(),
        });
    }
    let below = if always { curve.always } else { Bytes::ZERO };
    let layers = vec![
        StackLayer { title: "Always live".to_owned(), values: vec![below.0; curve.others.len()] },
        StackLayer {
            title: "Not always live".to_owned(),
            values: curve.others.iter().map(|bytes| bytes.0).collect(),
        },
    ];
    let stack =
        Versioned::new(StackedValues::new(if always { layers } else { layers[1..].to_vec() }));
    Ok(Some(Versioned::new(LivenessGraphData { curve, stack, labels, programs })))
}

impl LivenessView {
    /// Shows the step of a program selected elsewhere.
    fn notice_selection(&mut self, context: &ViewContext<'_>, curve: &LivenessCurve) {
        let count = curve.others.len() as u32;
        self.steps.retain(|step| *step < count);
        if self.program == context.selection.program {
            return;
        }
        self.program = context.selection.program;
        let step = curve.programs.iter().position(|program| Some(*program) == self.program);
        self.steps = step.map(|step| step as u32).into_iter().collect();
    }

    fn choose(&mut self, context: &ViewContext<'_>, curve: &LivenessCurve, step: u32, add: bool) {
        match self.steps.iter().position(|known| *known == step) {
            Some(at) if add => drop(self.steps.remove(at)),
            _ if add => {
                self.steps.truncate(MAX_COLUMNS - 1);
                self.steps.push(step);
            }
            _ => self.steps = vec![step],
        }
        if self.tab == LivenessTab::Always {
            self.tab = LivenessTab::Others;
        }
        let last = self.steps.last().and_then(|step| curve.programs.get(*step as usize));
        self.program = last.copied();
        context.commands.push(AppCommand::SelectProgram(self.program));
    }

    fn panels_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &LivenessGraphData) {
        let room = (tables_height(ui, 0.44), LOW);
        self.panel = self.panel.ui(ui, "liveness tables", room, |ui, open| {
            self.tables_ui(ui, context, shown, open);
        });
        central_ui(ui, |ui| match self.show {
            LivenessGraphMode::Bytes => self.graph_ui(ui, context, shown),
            LivenessGraphMode::Addresses => self.addresses_ui(ui, context, shown),
        });
    }

    /// The tile whose memory is shown by address: the tile of the scope, or the last selected one;
    /// `None` for the fullest one.
    fn tile(&self, context: &ViewContext<'_>) -> Option<TileId> {
        match self.source {
            LivenessScope::Tile(tile) => Some(tile),
            _ => context.selection.tiles.last().copied(),
        }
    }

    fn addresses_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &LivenessGraphData) {
        let input = AddressInput {
            tile: self.tile(context),
            step: self.steps.last().copied(),
            labels: &shown.labels,
            max_memory: context.prefs.liveness.max_memory,
        };
        let ChosenAddress { step, add, variable } = self.addresses.ui(ui, context, &input);
        if let Some(step) = step {
            self.choose(context, &shown.curve, step, add);
        }
        if variable.is_some() {
            context.commands.push(AppCommand::SelectVariable(variable));
        }
    }

    fn graph_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &LivenessGraphData) {
        let palette = ThemePalette::for_ui(ui);
        let wanted = !self.filter.trim().is_empty();
        let matching = self.matching.latest().filter(|_| wanted).cloned();
        let matching = matching.as_deref();
        let spans = self.lifetimes(ui, context, shown.curve.others.len());
        let chosen: Vec<usize> = self.steps.iter().map(|step| *step as usize).collect();
        let peak = shown.curve.peak();
        let numbers = numbers(ui);
        let annotate = |place: usize| GraphAnnotation {
            place,
            value: shown.stack.total(place),
            words: format!(
                "Peak {} at step {}",
                numbers.bytes(shown.stack.total(place)),
                grouped(place as u64)
            ),
        };
        let flags: Vec<GraphAnnotation> = peak.map(annotate).into_iter().collect();
        let value = shown.curve.capacity;
        let colour = palette.max_memory;
        let level = self.max_memory(context.prefs.liveness, &shown.curve);
        let level = if level {
            Some(GraphLevelLine { value: value.0, name: "Capacity", colour })
        } else {
            None
        };
        let levels: Vec<GraphLevelLine> = level.into_iter().collect();
        let own = [palette.always_live, palette.not_always_live];
        let colours = context.pane.map_or(own, |pane| pane.liveness_colours(ui));
        let always = context.prefs.liveness.always_live;
        let look = StackGraphInput {
            name: "Liveness by program step",
            axis: "Program steps",
            label: &step_label,
            unit: TileCurveUnit::Bytes,
            colours: if always { &colours } else { &colours[1..] },
            chosen: &chosen,
            spans: &spans,
            annotations: &flags,
            levels: &levels,
            least_top: context.least_graph_top(),
            matching,
        };
        let StackGraphResponse { hovered, clicked, response } =
            self.graph.ui(ui, &shown.stack, &look);
        if let Some(step) = hovered {
            response.on_hover_ui_at_pointer(|ui| call_out_ui(ui, shown, step));
        }
        if let Some((step, add)) = clicked {
            self.choose(context, &shown.curve, step as u32, add);
        }
    }

    /// The lifetime of the selected variable, as a range of places.
    fn lifetimes(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        steps: usize,
    ) -> Vec<(Range<usize>, String)> {
        let Some(variable) = context.selection.variable else { return Vec::new() };
        let found = context.ask(ui, &mut self.lifetime, &variable, |report, id| {
            let found = report.variable(*id)?;
            Ok(found.map(|variable| (variable.name, variable.lifetime)))
        });
        // A stale answer may be the lifetime of another variable.
        let QueryState::Fresh(found) = found else { return Vec::new() };
        let Some((name, life)) = found.as_ref() else { return Vec::new() };
        let range = match life {
            Some(life) => life.start as usize..life.end as usize,
            None => 0..steps,
        };
        vec![(range, name.clone())]
    }

    /// Returns true if the line of the available memory is shown: as chosen, or if the curve comes
    /// near it.
    fn max_memory(&self, prefs: LivenessPrefs, curve: &LivenessCurve) -> bool {
        let most = curve.peak().map_or(Bytes::ZERO, |step| curve.total(step));
        let near = prefs.always_live && is_near(curve.capacity.0, most.0);
        curve.capacity > Bytes::ZERO && prefs.max_memory.unwrap_or(near)
    }

    fn tables_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        shown: &LivenessGraphData,
        open: &mut bool,
    ) {
        *open |= tabs_row_ui(ui, |ui| {
            let none = self.steps.is_empty();
            let waits =
                |tab: LivenessTab| (none && tab.needs_step()).then_some("Select a step first");
            waiting_tabs_ui(ui, VIEW.id.name(), &LivenessTab::ALL, &mut self.tab, waits)
        });
        if !*open {
            return;
        }
        ui.add_space(spacing::XS);
        if self.tab.needs_step() && self.steps.is_empty() {
            return self.ask_for_step_ui(ui, context, shown);
        }
        if self.tab == LivenessTab::Step {
            let steps = self.steps.iter().filter_map(|step| {
                shown.curve.programs.get(*step as usize).map(|program| (*step, *program))
            });
            let steps: Vec<(u32, ProgramId)> = steps.collect();
            return tables::steps_ui(ui, context, &steps, shown, &mut self.jump);
        }
        let key = tables::LivenessTableKey {
            tab: self.tab,
            source: match self.tab {
                LivenessTab::Free => self.tile(context).map_or(self.source, LivenessScope::Tile),
                _ => self.source,
            },
            steps: if self.tab == LivenessTab::Always { Vec::new() } else { self.steps.clone() },
        };
        self.tables.ui(ui, context, key);
    }

    fn ask_for_step_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        shown: &LivenessGraphData,
    ) {
        ui.vertical_centered(|ui| {
            ui.add_space(spacing::XL);
            let text = "Click on a step in the graph to list its live variables; Shift + click \
                        adds another step as a column.";
            ui.weak(text);
            if let Some(peak) = shown.curve.peak()
                && ui.button("Select the peak").clicked()
            {
                self.choose(context, &shown.curve, peak as u32, false);
            }
        });
    }

    fn controls_ui(
        &mut self,
        bar: &mut ToolbarBuilder<'_>,
        context: &ViewContext<'_>,
        shown: &Versioned<LivenessGraphData>,
    ) {
        let shows = [
            (LivenessGraphMode::Bytes, "Live bytes"),
            (LivenessGraphMode::Addresses, "By address"),
        ];
        if let Some(show) = bar.choice("Graph", &shows, self.show) {
            self.show = show;
        }
        self.source_ui(bar, context);
        if self.show == LivenessGraphMode::Bytes {
            self.filter_ui(bar, context, shown);
        }
        self.layers_ui(bar, context, shown);
        bar.align_right();
        if bar.button("All steps", "Show the whole program") {
            self.graph.reset();
            self.addresses.reset();
        }
        let peak = match self.show {
            LivenessGraphMode::Bytes => shown.curve.peak().map(|step| step as u32),
            LivenessGraphMode::Addresses => self.addresses.peak(),
        };
        if bar.button("Peak", "Select the step with the most live bytes")
            && let Some(peak) = peak
        {
            self.choose(context, &shown.curve, peak, false);
        }
    }

    /// The choice of lines drawn beside the curve. The choice is stored.
    fn layers_ui(
        &self,
        bar: &mut ToolbarBuilder<'_>,
        context: &ViewContext<'_>,
        shown: &LivenessGraphData,
    ) {
        let old = context.prefs.liveness;
        let mut prefs = old;
        let mut level = match self.show {
            LivenessGraphMode::Bytes => {
                let hint = "Show always-live memory as a band below the rest.";
                bar.checkbox("Include always live", &mut prefs.always_live, hint);
                self.max_memory(old, &shown.curve)
            }
            LivenessGraphMode::Addresses => {
                prefs.max_memory.unwrap_or(self.addresses.shows_max_memory())
            }
        };
        let hint = "A line at the memory of the tiles shown: bytes per tile x tiles.";
        if bar.checkbox("Show max memory", &mut level, hint) {
            prefs.max_memory = Some(level);
        }
        if prefs != old {
            context.commands.push(AppCommand::SetLivenessPrefs(prefs));
        }
    }

    /// The text box that finds steps by name and veils the others. Enter moves from one to the
    /// next.
    fn filter_ui(
        &mut self,
        bar: &mut ToolbarBuilder<'_>,
        context: &ViewContext<'_>,
        shown: &Versioned<LivenessGraphData>,
    ) {
        let wanted = !self.filter.trim().is_empty();
        let mut next = false;
        bar.add_box("Filter steps", |ui| {
            let shown = find_ui(ui, &mut self.filter, ("Filter steps", 160.0), wanted);
            next = shown.1;
            shown.0
        });
        let wanted = self.filter.trim().to_lowercase();
        if wanted.is_empty() {
            return;
        }
        let shared = shown.clone();
        let key = (shown.version(), wanted);
        let asked =
            self.matching.compute(bar.context(), context.workers, &key, move |(_, wanted)| {
                MatchedPlaces::new(
                    shared.labels.iter().map(|label| label.to_lowercase().contains(wanted)),
                )
            });
        let Some(matching) = asked.answer() else { return };
        let text = format!("{} steps", grouped(matching.count().into()));
        bar.add("Found", |ui| weak_ui(ui, text));
        let last = self.steps.last().map(|step| *step as usize);
        if next && let Some(step) = matching.next(last) {
            self.choose(context, &shown.curve, step as u32, false);
        }
    }

    fn source_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let mut sources = vec![(LivenessScope::Whole, "Whole program".to_owned())];
        let ipus = context.opened.target.ipus_per_replica;
        if ipus > 1 {
            sources.extend(ipu_names(ipus).map(|(ipu, name)| (LivenessScope::Ipu(ipu), name)));
        }
        let tile =
            |tile: TileId| (LivenessScope::Tile(tile), format!("Tile {}", grouped(tile.into())));
        sources.extend(context.selection.tiles.iter().map(|known| tile(*known)));
        if let LivenessScope::Tile(shown) = self.source
            && !context.selection.tiles.contains(&shown)
        {
            sources.push(tile(shown));
        }
        let names: Vec<(LivenessScope, &str)> =
            sources.iter().map(|(source, name)| (*source, name.as_str())).collect();
        if let Some(source) = bar.choice("Source", &names, self.source) {
            self.source = source;
            if let LivenessScope::Ipu(ipu) = source {
                context.commands.push(AppCommand::SelectIpu(Some(ipu)));
            }
        }
        let tiles = context.opened.target.tiles_per_replica();
        let mut tile = if let LivenessScope::Tile(tile) = self.source { tile } else { TileId(0) };
        bar.add_box("Tile", |ui| {
            let drag = egui::DragValue::new(&mut tile.0).prefix("Tile ").speed(0.2);
            let drag = ui.add(drag.range(0..=tiles.saturating_sub(1))).accessible_name("Tile");
            let drag = drag.on_hover_text("Show one tile: drag or type its number");
            if drag.changed() {
                self.source = LivenessScope::Tile(tile);
            }
            drag
        });
    }
}

fn step_label(step: usize) -> String {
    format!("Program step {}", grouped(step as u64))
}

fn call_out_ui(ui: &mut Ui, shown: &LivenessGraphData, step: usize) {
    let label: String =
        shown.labels.get(step).map_or("", String::as_str).chars().take(160).collect();
    ui.label(strong(format!("Step {}", grouped(step as u64))));
    ui.label(label);
    let curve = &shown.curve;
    let others = curve.others.get(step).copied().unwrap_or(Bytes::ZERO);
    egui::Grid::new("liveness call-out").num_columns(2).show(ui, |ui| {
        for (name, bytes) in [
            ("Not always live", others),
            ("Always live", curve.always),
            ("Total", curve.total(step)),
        ] {
            ui.label(name);
            ui.label(exact_bytes(bytes.0));
            ui.end_row();
        }
    });
    if curve.capacity > Bytes::ZERO {
        let share = percent(curve.total(step).as_f64() / curve.capacity.as_f64());
        let text = format!("{share} of {}", numbers(ui).bytes(curve.capacity.0));
        ui.weak(text);
    }
}

/// The label of a kind of program that runs vertices or moves data.
fn activity_label(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::OnTileExecute => "runs vertices",
        ProgramKind::DoExchange => "moves data between tiles",
        ProgramKind::GlobalExchange => "moves data between IPUs",
        ProgramKind::StreamCopyBegin | ProgramKind::StreamCopyMid | ProgramKind::StreamCopyEnd => {
            "moves data from or to the host"
        }
        ProgramKind::Sync => "waits",
        _ => "controls the program flow",
    }
}
