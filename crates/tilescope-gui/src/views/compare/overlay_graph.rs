//! The curves of both reports in one graph: memory and exchange code over tiles, liveness over
//! steps.

use super::ComparisonSide;
use super::side_colours::{self, SideColours};
use crate::model::command::AppCommand;
use crate::model::open_report::OpenReport;
use crate::model::preferences::UserPreferences;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers};
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::stack_graph::{
    GraphAnnotation, GraphLevelLine, StackGraph, StackGraphInput, StackGraphResponse as Done,
    StackLayer, StackedValues, is_near,
};
use crate::widgets::tile_picker::toggled_tiles;
use crate::widgets::toolbar::ToolbarBuilder;
use crate::widgets::{empty_state_ui, legend_ui};
use egui::{Color32, Ui};
use serde::{Deserialize, Serialize};
use tilescope_analysis::exchange_code::{self, ExchangeMeasure};
use tilescope_analysis::liveness::{LivenessScope, curve};
use tilescope_analysis::memory::{MemoryBreakdown, MemoryCurveKey, curves};
use tilescope_analysis::tile_curves::{TileAxisOrder, TileCurveStack, TileCurveUnit};
use tilescope_report::units::{NumberFormat, ProgramId, TileId, exact_bytes, grouped, percent};
use tilescope_report::{Report, ReportError};

/// The views whose graphs can be overlaid.
const VIEWS: [ViewId; 3] = [ViewId::Memory, ViewId::Liveness, ViewId::ExchangeCode];

/// Returns true if a view has a graph that can hold both reports.
pub(crate) fn has_overlay_graph(view: ViewId) -> bool {
    VIEWS.contains(&view)
}

/// The meaning of a curve, apart from its side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OverlayCurveKind {
    Total,
    AlwaysLive,
    NotAlwaysLive,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct OverlayGraphKey {
    view: ViewId,
    include_gaps: bool,
}

/// The curves of one report.
struct OverlayReportCurves {
    series: Vec<(&'static str, OverlayCurveKind, Vec<u64>)>,
    /// The capacity of a place; 0 if that has no meaning.
    capacity: u64,
    /// The position and height of the highest point, if it has a name.
    peak: Option<(usize, u64)>,
    /// The program of each place, if places are steps.
    programs: Vec<ProgramId>,
}

/// The curves of both reports, ready to be drawn.
struct OverlayGraphData {
    stack: Versioned<StackedValues>,
    kinds: Vec<(OverlayCurveKind, ComparisonSide)>,
    /// The capacities of source and target.
    capacities: [u64; 2],
    peaks: [Option<(usize, u64)>; 2],
    /// The programs of source and target.
    programs: [Vec<ProgramId>; 2],
}

/// The visible part of the graph, and the view it belongs to.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OverlayGraphZoom {
    view: Option<ViewId>,
    graph: StackGraph,
}

/// The state of the graph.
#[derive(Default)]
pub(crate) struct OverlayGraphPanel {
    graph: BackgroundQuery<OverlayGraphKey, OverlayGraphData>,
    shown: OverlayGraphZoom,
}

impl OverlayGraphPanel {
    /// The visible part. A fully visible graph stays fully visible at another window width.
    pub(crate) fn shown(&self) -> OverlayGraphZoom {
        if self.shown.graph.is_whole() { OverlayGraphZoom::default() } else { self.shown.clone() }
    }

    pub(crate) fn show(&mut self, shown: OverlayGraphZoom) {
        self.shown = shown;
    }

    /// The controls beside the names of the reports.
    pub(crate) fn controls_ui(
        &mut self,
        bar: &mut ToolbarBuilder<'_>,
        view: ViewId,
        context: &ViewContext<'_>,
    ) {
        if bar.button("All", "Show the whole graph") {
            self.shown.graph.reset();
        }
        let graph = self.graph.latest();
        let prefs = context.prefs;
        let line = "A line at the available memory.";
        let mut shown = graph.is_some_and(|graph| level_shown(Some(view), prefs, graph));
        match view {
            ViewId::Memory => {
                let mut memory = prefs.memory;
                let hint = "Count unused bytes below the last used address of a tile.";
                bar.checkbox("Include gaps", &mut memory.include_gaps, hint);
                if bar.checkbox("Show max memory", &mut shown, line) {
                    memory.max_memory = Some(shown);
                }
                if memory != prefs.memory {
                    context.commands.push(AppCommand::SetMemoryPrefs(memory));
                }
            }
            ViewId::Liveness => {
                let mut liveness = prefs.liveness;
                if bar.checkbox("Show max memory", &mut shown, line) {
                    liveness.max_memory = Some(shown);
                    context.commands.push(AppCommand::SetLivenessPrefs(liveness));
                }
            }
            _ => {}
        }
    }

    /// Shows the graph of a view in all of `ui`. Returns the selection and its side.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        view: ViewId,
        context: &ViewContext<'_>,
        (target, chosen): (&OpenReport, &Selection),
    ) -> Option<(ComparisonSide, AppCommand)> {
        let a = context.opened.report.clone();
        let b = target.report.clone();
        let read_graph = move |key: &OverlayGraphKey| graph(*key, &a, &b);
        let key = OverlayGraphKey { view, include_gaps: context.prefs.memory.include_gaps };
        let texts =
            QueryTexts { waiting: "Reading both reports…", failed: "The graph cannot be read" };
        let graph = self.graph.ask(ui.ctx(), context.workers, &key, read_graph).fresh_only();
        let toggled_tiles = graph.show(ui, texts, |ui, graph| {
            if graph.stack.places() == 0 {
                empty_state_ui(ui, "Nothing to draw", "Neither report records this data.");
                return None;
            }
            if self.shown.view != Some(view) {
                self.shown = OverlayGraphZoom { view: Some(view), ..OverlayGraphZoom::default() };
            }
            self.graph_ui(ui, context, graph, chosen)
        });
        toggled_tiles.flatten()
    }

    fn graph_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        graph: &OverlayGraphData,
        in_target: &Selection,
    ) -> Option<(ComparisonSide, AppCommand)> {
        let steps = self.shown.view == Some(ViewId::Liveness);
        let colours: Vec<Color32> =
            graph.kinds.iter().map(|(which, side)| colour(*which, *side, ui)).collect();
        let what = if steps { "Program step" } else { "Tile" };
        let label = |place: usize| format!("{what} {}", grouped(place as u64));
        let flags: Vec<GraphAnnotation> = flags(graph, numbers(ui)).collect();
        let shown = level_shown(self.shown.view, context.prefs, graph);
        let levels = if shown { levels(graph, ui) } else { Vec::new() };
        let chosen = if steps {
            let [source, target] = &graph.programs;
            let places =
                [selected_place(source, context.selection), selected_place(target, in_target)];
            places.into_iter().flatten().collect()
        } else {
            let tiles = context.selection.tiles.iter().chain(&in_target.tiles);
            let mut places: Vec<usize> = tiles.map(|tile| tile.index()).collect();
            places.sort_unstable();
            places.dedup();
            places
        };
        let look = StackGraphInput {
            name: "Both reports",
            axis: if steps { "Program steps" } else { "Tiles (software order)" },
            label: &label,
            unit: TileCurveUnit::Bytes,
            colours: &colours,
            chosen: &chosen,
            spans: &[],
            annotations: &flags,
            levels: &levels,
            least_top: 0,
            matching: None,
        };
        let Done { response, hovered, clicked } = self.shown.graph.ui(ui, &graph.stack, &look);
        if let Some(place) = hovered {
            let title = label(place);
            response.on_hover_ui_at_pointer(|ui| call_out_ui(ui, graph, &colours, &title, place));
        }
        let (place, add) = clicked?;
        if steps {
            let known = graph.programs.iter().zip([ComparisonSide::Source, ComparisonSide::Target]);
            let mut found = known.filter_map(|(of, side)| Some((side, *of.get(place)?)));
            return found.next().map(|(side, id)| (side, AppCommand::SelectProgram(Some(id))));
        }
        let tile = TileId(u32::try_from(place).ok()?);
        let here = context.opened.target.has_tile(tile);
        let (side, tiles) = if here {
            (ComparisonSide::Source, &context.selection.tiles)
        } else {
            (ComparisonSide::Target, &in_target.tiles)
        };
        Some((side, AppCommand::SelectTiles(toggled_tiles(tiles, tile, add))))
    }
}

fn selected_place(programs: &[ProgramId], selection: &Selection) -> Option<usize> {
    let chosen = selection.program?;
    programs.iter().position(|program| *program == chosen)
}

/// The colour of a curve.
fn colour(which: OverlayCurveKind, side: ComparisonSide, ui: &Ui) -> Color32 {
    let SideColours { source, target } = match which {
        OverlayCurveKind::Total => side_colours::side_colours(ui),
        OverlayCurveKind::AlwaysLive => side_colours::always_live_colours(ui),
        OverlayCurveKind::NotAlwaysLive => side_colours::not_always_live_colours(ui),
    };
    if side == ComparisonSide::Target { target } else { source }
}

/// Returns true if the memory capacity lines are shown: as chosen, or if a curve comes near one.
fn level_shown(view: Option<ViewId>, prefs: &UserPreferences, graph: &OverlayGraphData) -> bool {
    let chosen = match view {
        Some(ViewId::Memory) => prefs.memory.max_memory,
        Some(ViewId::Liveness) => prefs.liveness.max_memory,
        _ => Some(false),
    };
    let most = graph.stack.highest(0..graph.stack.places());
    chosen.unwrap_or_else(|| {
        graph.capacities.iter().any(|capacity| *capacity > 0 && is_near(*capacity, most))
    })
}

/// One line if both have the same memory, otherwise one for each.
fn levels(graph: &OverlayGraphData, ui: &Ui) -> Vec<GraphLevelLine> {
    let [source, target] = graph.capacities;
    if source == target || source == 0 || target == 0 {
        let value = source.max(target);
        let colour = ThemePalette::for_ui(ui).max_memory;
        let level = GraphLevelLine { value, name: "Max memory", colour };
        return Some(level).filter(|level| level.value > 0).into_iter().collect();
    }
    let sides = side_colours::side_colours(ui);
    let level = |name, value, colour| GraphLevelLine { value, name, colour };
    vec![
        level("Max memory (Source)", source, sides.source),
        level("Max memory (Target)", target, sides.target),
    ]
}

fn flags(graph: &OverlayGraphData, numbers: NumberFormat) -> impl Iterator<Item = GraphAnnotation> {
    let sides = graph.peaks.iter().zip(["Source", "Target"]);
    sides.filter_map(move |(peak, side)| {
        let (place, value) = (*peak)?;
        let words =
            format!("{side}: peak {} at step {}", numbers.bytes(value), grouped(place as u64));
        Some(GraphAnnotation { place, value, words })
    })
}

fn call_out_ui(
    ui: &mut Ui,
    graph: &OverlayGraphData,
    colours: &[Color32],
    title: &str,
    place: usize,
) {
    ui.label(strong(title));
    for (layer, title) in graph.stack.titles().iter().enumerate() {
        let value = graph.stack.value(layer, place);
        let capacity =
            graph.capacities[usize::from(graph.kinds[layer].1 == ComparisonSide::Target)];
        let share = match graph.kinds[layer].0 {
            OverlayCurveKind::AlwaysLive => String::new(),
            _ if capacity == 0 => String::new(),
            _ => {
                let share = percent(value as f64 / capacity as f64);
                format!(", {share} of {}", numbers(ui).bytes(capacity))
            }
        };
        ui.horizontal(|ui| {
            legend_ui(ui, colours[layer], &format!("{title}: {}{share}", exact_bytes(value)));
        });
    }
}

fn graph(
    key: OverlayGraphKey,
    source: &Report,
    target: &Report,
) -> Result<OverlayGraphData, ReportError> {
    let [mut a, mut b] = [report_curves(key, source)?, report_curves(key, target)?];
    let mut layers = Vec::new();
    let mut kinds = Vec::new();
    for (part, side) in [(&mut a, ComparisonSide::Source), (&mut b, ComparisonSide::Target)] {
        for (title, which, values) in part.series.drain(..) {
            let title = format!("{side:?}: {title}");
            layers.push(StackLayer { title, values });
            kinds.push((which, side));
        }
    }
    Ok(OverlayGraphData {
        stack: Versioned::new(StackedValues::overlaid(layers)),
        kinds,
        capacities: [a.capacity, b.capacity],
        peaks: [a.peak, b.peak],
        programs: [a.programs, b.programs],
    })
}

/// The curves of a report for the graph of a view.
fn report_curves(
    key: OverlayGraphKey,
    report: &Report,
) -> Result<OverlayReportCurves, ReportError> {
    let mut part =
        OverlayReportCurves { series: Vec::new(), capacity: 0, peak: None, programs: Vec::new() };
    match key.view {
        ViewId::Liveness => {
            let Some(curve) = curve(report, LivenessScope::Whole)? else { return Ok(part) };
            let all: Vec<u64> =
                curve.others.iter().map(|bytes| (curve.always + *bytes).0).collect();
            part.peak = curve.peak().map(|step| (step, curve.total(step).0));
            part.capacity = curve.capacity.0;
            let always = vec![curve.always.0; all.len()];
            part.series.push(("Not always live", OverlayCurveKind::NotAlwaysLive, all));
            part.series.push(("Always live", OverlayCurveKind::AlwaysLive, always));
            part.programs = curve.programs;
        }
        ViewId::ExchangeCode => {
            let curves = exchange_code::curves(
                report,
                ExchangeMeasure::Code,
                TileAxisOrder::default(),
                false,
            )?;
            part.series.push(("Exchange code", OverlayCurveKind::Total, totals(&curves)));
        }
        _ => {
            let OverlayGraphKey { include_gaps, .. } = key;
            let key = MemoryCurveKey {
                breakdown: MemoryBreakdown::None,
                include_gaps,
                ..MemoryCurveKey::default()
            };
            let curves = curves(report, &key)?;
            part.capacity = curves.capacity;
            let title = if include_gaps {
                "Tile memory (including gaps)"
            } else {
                "Tile memory (without gaps)"
            };
            part.series.push((title, OverlayCurveKind::Total, totals(&curves)));
        }
    }
    part.series.retain(|(_, _, values)| !values.is_empty());
    Ok(part)
}

fn totals(curves: &TileCurveStack) -> Vec<u64> {
    (0..curves.places).map(|place| curves.total(place)).collect()
}
