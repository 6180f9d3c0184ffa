//! Curves of both reports in one graph: memory and exchange code over tiles, liveness over steps.

use super::colours::{self, SideColours};
use crate::analysis::exchange_code::{self, Measure};
use crate::analysis::liveness::{Source, curve};
use crate::analysis::memory::{Breakdown, CurveKey, curves};
use crate::analysis::tiles::{Curves, Order};
use crate::gui::opening::Opened;
use crate::gui::theme::Palette;
use crate::gui::widgets::axis::{Axis, Limits};
use crate::gui::widgets::{legend_ui, missing_ui, region_ui, waiting_ui};
use crate::gui::worker::{Asked, Slot, Workers};
use crate::report::{Report, ReportError};
use crate::units::{CycleRange, exact_bytes, grouped, short_bytes};
use egui::accesskit::Role;
use egui::{Align2, Color32, FontId, Rect, Sense, Shape, Stroke, Ui, Visuals, pos2, vec2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Views whose graphs can be laid over each other.
const VIEWS: [&str; 3] = ["memory", "liveness", "exchange-code"];

/// Whether a view has a graph that both reports fit into.
pub fn has(view: &str) -> bool {
    VIEWS.contains(&view)
}

/// Which of the two sides a curve belongs to, and whether it is always-live memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Plain,
    AlwaysLive,
    Live,
}

/// A curve: values over places.
struct Series {
    words: &'static str,
    which: Which,
    /// Whether it is of the target.
    target: bool,
    values: Vec<u64>,
}

impl Series {
    fn colour(&self, visuals: &Visuals) -> Color32 {
        let SideColours { source, target } = match self.which {
            Which::Plain => colours::sides(visuals),
            Which::AlwaysLive => colours::lower(visuals),
            Which::Live => colours::upper(visuals),
        };
        if self.target { target } else { source }
    }
}

/// The curves of one graph.
struct Graph {
    place: &'static str,
    series: Vec<Series>,
    places: usize,
}

type Answer = Result<Arc<Graph>, String>;

/// Which part of which graph is on the screen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    view: String,
    axis: Option<Axis>,
    limits: Option<Limits>,
}

/// State of the graph.
#[derive(Default)]
pub struct Overlay {
    graph: Slot<&'static str, Answer>,
    shown: Shown,
}

impl Overlay {
    /// Which part is on the screen.
    pub fn shown(&self) -> Shown {
        self.shown.clone()
    }

    /// Shows that part.
    pub fn show(&mut self, shown: Shown) {
        self.shown = shown;
    }

    /// Controls beside the name of the reports.
    pub fn controls_ui(&mut self, ui: &mut Ui) {
        if ui.button("All").on_hover_text("Show the whole graph").clicked() {
            self.shown.axis = None;
        }
    }

    /// Shows the graph of a view in all of `ui`.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &Workers,
        view: &'static str,
        (source, target): (&Opened, &Opened),
    ) {
        let (a, b) = (source.report.clone(), target.report.clone());
        let question = move |view: &&'static str| {
            graph(view, &a, &b).map(Arc::new).map_err(|error| error.to_string())
        };
        match self.graph.ask(ui.ctx(), workers, &view, question) {
            Asked::Fresh(Ok(graph)) if graph.places > 0 => {
                let graph = graph.clone();
                self.graph_ui(ui, view, &graph);
            }
            Asked::Fresh(Ok(_)) => {
                missing_ui(ui, "Nothing to draw", "Neither report has recorded this.");
            }
            Asked::Fresh(Err(problem)) => missing_ui(ui, "The graph cannot be read", problem),
            Asked::Failed => missing_ui(ui, "The graph cannot be read", "Please report this."),
            Asked::Stale(_) | Asked::Waiting => {
                if self.graph.is_slow() {
                    waiting_ui(ui, "Reading both reports…");
                }
            }
        }
    }

    fn graph_ui(&mut self, ui: &mut Ui, view: &'static str, graph: &Graph) {
        let area = ui.available_rect_before_wrap();
        let frame = Rect::from_min_max(area.min + vec2(84.0, 12.0), area.max - vec2(14.0, 52.0));
        if frame.width() < 20.0 || frame.height() < 20.0 {
            return;
        }
        let limits =
            Limits { range: CycleRange::new(0, graph.places as u64), width: frame.width() };
        let whole = Axis::fitting_exactly(limits.range, limits.width);
        let known = self.shown.limits.is_some_and(|old| old.range == limits.range);
        let axis = self.shown.axis.filter(|_| known && self.shown.view == view).unwrap_or(whole);
        let response = ui.interact(frame, ui.scope_id().with("overlay"), Sense::click_and_drag());
        let wheel = if response.hovered() { ui.input(|i| i.smooth_scroll_delta().y) } else { 0.0 };
        let mut moved = axis;
        if response.dragged() {
            moved = moved.panned(response.drag_delta().x).kept(limits);
        }
        if let (true, Some(at)) = (wheel != 0.0, response.hover_pos()) {
            let factor = f64::from(wheel * 0.004).exp();
            moved = moved.zoomed(factor, at.x - frame.left(), limits).kept(limits);
        }
        if response.double_clicked() {
            moved = whole;
        }
        // The whole graph stays whole in a window of another width.
        self.shown = match moved == whole {
            true => Shown::default(),
            false => Shown { view: view.to_owned(), axis: Some(moved), limits: Some(limits) },
        };
        let top = paint(ui, frame, graph, axis);
        let words = format!("{} curves, up to {}", graph.series.len(), exact_bytes(top));
        region_ui(ui, ui.scope_id().with("graph"), frame, Role::Image, "Both reports", &words);
        legends_ui(ui, area, frame, graph);
        let place = response.hover_pos().map(|at| axis.cycle_from_x(at.x - frame.left()));
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.filter(|place| *place < graph.places) {
            response.on_hover_ui_at_pointer(|ui| call_out_ui(ui, graph, place));
        }
    }
}

fn call_out_ui(ui: &mut Ui, graph: &Graph, place: usize) {
    ui.label(format!("{} {}", graph.place, grouped(place as u64)));
    for series in &graph.series {
        let value = series.values.get(place).map_or_else(|| "—".to_owned(), |v| exact_bytes(*v));
        ui.horizontal(|ui| {
            legend_ui(ui, series.colour(ui.visuals()), &format!("{}: {value}", series.words))
        });
    }
}

fn legends_ui(ui: &mut Ui, area: Rect, frame: Rect, graph: &Graph) {
    let rect = Rect::from_min_max(pos2(frame.left(), frame.bottom() + 26.0), area.max);
    ui.scope_builder(egui::UiBuilder::new().id_salt("legends").max_rect(rect), |ui| {
        ui.horizontal(|ui| {
            for series in &graph.series {
                legend_ui(ui, series.colour(ui.visuals()), series.words);
                ui.add_space(10.0);
            }
        });
    });
}

/// Paints axes and curves; the largest value in view.
fn paint(ui: &Ui, frame: Rect, graph: &Graph, axis: Axis) -> u64 {
    let palette = Palette::of(ui.visuals());
    let window = axis.window(frame.width());
    let (first, end) = (window.start as usize, (window.end as usize).min(graph.places));
    let values = graph.series.iter().flat_map(|series| {
        let end = end.min(series.values.len());
        series.values.get(first.min(end)..end).unwrap_or_default()
    });
    let top = values.copied().max().unwrap_or(0);
    let scale = (top.max(1) as f64 * 1.08) as f32;
    let painter = ui.painter();
    let font = FontId::proportional(11.0);
    for part in 0..=4u64 {
        let value = top * part / 4;
        let y = frame.bottom() - value as f32 / scale * frame.height();
        painter.hline(frame.x_range(), y, (1.0, palette.rule));
        let at = pos2(frame.left() - 8.0, y);
        painter.text(at, Align2::RIGHT_CENTER, short_bytes(value), font.clone(), palette.weak_text);
    }
    for (at, align, place) in [
        (frame.left_bottom(), Align2::LEFT_TOP, first),
        (frame.right_bottom(), Align2::RIGHT_TOP, end.saturating_sub(1)),
    ] {
        let text = format!("{} {}", graph.place, grouped(place as u64));
        painter.text(at + vec2(0.0, 5.0), align, text, font.clone(), palette.weak_text);
    }
    let painter = painter.with_clip_rect(frame);
    for series in &graph.series {
        let colour = series.colour(ui.visuals());
        paint_series(&painter, frame, series, axis, (scale, colour));
    }
    top
}

/// A filled outline: per column of pixels, the largest value in it.
fn paint_series(
    painter: &egui::Painter,
    frame: Rect,
    series: &Series,
    axis: Axis,
    (scale, colour): (f32, Color32),
) {
    let fill = colour.gamma_multiply(0.16);
    let columns = frame.width().ceil() as usize;
    let mut line = Vec::with_capacity(columns * 2);
    let mut mesh = egui::Mesh::default();
    for column in 0..columns {
        let first = axis.cycle_from_x(column as f32).max(0) as usize;
        let end = (axis.cycle_from_x(column as f32 + 1.0).max(0) as usize).max(first + 1);
        let end = end.min(series.values.len());
        let Some(most) = series.values.get(first..end).and_then(|part| part.iter().max()) else {
            continue;
        };
        let x = frame.left() + column as f32;
        let y = frame.bottom() - *most as f32 / scale * frame.height();
        mesh.add_colored_rect(Rect::from_min_max(pos2(x, y), pos2(x + 1.0, frame.bottom())), fill);
        line.extend([pos2(x, y), pos2(x + 1.0, y)]);
    }
    painter.add(Shape::mesh(mesh));
    painter.add(Shape::line(line, Stroke::new(1.3, colour)));
}

fn graph(view: &str, source: &Report, target: &Report) -> Result<Graph, ReportError> {
    let mut series = Vec::new();
    for (report, is_target) in [(source, false), (target, true)] {
        let words = |source, target| if is_target { target } else { source };
        let mut add = |words, which, values| {
            series.push(Series { words, which, target: is_target, values });
        };
        match view {
            "liveness" => {
                let Some(curve) = curve(report, Source::Whole)? else { continue };
                let always = vec![curve.always; curve.others.len()];
                let all = curve.others.iter().map(|bytes| curve.always + bytes).collect();
                let live = words("Source: Not always live", "Target: Not always live");
                add(live, Which::Live, all);
                let always_live = words("Source: Always live", "Target: Always live");
                add(always_live, Which::AlwaysLive, always);
            }
            "exchange-code" => {
                let curves = exchange_code::curves(report, Measure::Code, Order::default(), false)?;
                let code = words("Exchange code (Source)", "Exchange code (Target)");
                add(code, Which::Plain, totals(&curves));
            }
            _ => {
                let key = CurveKey { breakdown: Breakdown::None, ..CurveKey::default() };
                let memory = words("Tile memory (Source)", "Tile memory (Target)");
                add(memory, Which::Plain, totals(&curves(report, &key)?));
            }
        }
    }
    series.retain(|series| !series.values.is_empty());
    let places = series.iter().map(|series| series.values.len()).max().unwrap_or(0);
    let place = if view == "liveness" { "Program step" } else { "Tile" };
    Ok(Graph { place, series, places })
}

fn totals(curves: &Curves) -> Vec<u64> {
    (0..curves.places).map(|place| curves.total(place)).collect()
}
