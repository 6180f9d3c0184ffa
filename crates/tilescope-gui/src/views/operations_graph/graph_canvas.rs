//! The nodes and arrows on the screen: pan, zoom, select, fold.

use super::Metric;
use crate::model::preferences::OperationsGraphPrefs;
use crate::theme::{ThemePalette, mix, spacing, text_size};
use crate::widgets::elided_text::{elided, without_middle};
use crate::widgets::heat_scale::HeatScale;
use crate::widgets::{focus_ui, legend_ui};
use egui::accesskit::Role;
use egui::epaint::CubicBezierShape;
use egui::{
    Align2, Color32, CornerRadius, CursorIcon, FontId, Galley, Key, Label, Painter, Pos2, Rect,
    Response, RichText, Sense, Shape, Stroke, StrokeKind, Ui, Vec2, WidgetInfo, pos2, vec2,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::operations_graph::{LayoutPoint, OpGraph, OpGraphEdge, OpGraphNode};
use tilescope_report::TrainingPass;
use tilescope_report::units::{OperationId, grouped};

/// The distance between the centres of adjacent nodes, and between layers, in points at scale 1.
const PITCH: Vec2 = vec2(184.0, 74.0);
/// The size of a node at scale 1.
const SIZE: Vec2 = vec2(160.0, 42.0);
/// The space above the first layer, for the names of lanes.
const HEAD: f32 = 34.0;
/// The smallest and largest scale.
const SCALES: (f32, f32) = (0.02, 2.5);
/// The scale below which boxes have no text and arrows no head.
const READABLE: f32 = 0.42;
/// The initial scale of a graph that does not fit.
const STARTING: f32 = 0.8;
/// The number of readers of a node above which its arrows are paler.
const MANY_READERS: usize = 8;
/// The largest number of nodes exposed to screen readers.
const MAX_NODES: usize = 400;

/// Input of the user on the canvas.
pub(crate) enum GraphCanvasEvent {
    /// A click on a node, or on the background.
    Select(Option<usize>),
    /// A request to fold or unfold a node.
    ToggleFold(usize),
}

/// The state of the canvas.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GraphCanvas {
    /// The scale, and the point of the graph in the upper left corner; `None` until the graph is
    /// fitted.
    view: Option<(f32, [f32; 2])>,
}

/// The transform from graph points to screen points.
#[derive(Clone, Copy)]
struct GraphViewport {
    rect: Rect,
    scale: f32,
    corner: Vec2,
}

impl GraphViewport {
    fn screen(&self, at: Vec2) -> Pos2 {
        self.rect.min + (at - self.corner) * self.scale
    }

    fn graph(&self, at: Pos2) -> Vec2 {
        (at - self.rect.min) / self.scale + self.corner
    }

    fn node(&self, node: &OpGraphNode) -> Rect {
        let middle = self.place(node.x, node.layer);
        Rect::from_center_size(middle, SIZE * self.scale)
    }

    /// The centre of a place in a row.
    fn place(&self, x: f64, row: usize) -> Pos2 {
        self.screen(vec2(x as f32 * PITCH.x, HEAD + (row as f32 + 0.5) * PITCH.y))
    }
}

impl GraphCanvas {
    /// Shows the whole graph again.
    pub(crate) fn fit(&mut self) {
        self.view = None;
    }

    /// Shows the graph in the available space. Returns the event of the user, if any.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        graph: &OpGraph,
        (prefs, heat_scale): (OperationsGraphPrefs, Option<HeatScale>),
        chosen: Option<OperationId>,
    ) -> Option<GraphCanvasEvent> {
        let metric = prefs.metric;
        let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::click_and_drag());
        let known = self.view.map(|(scale, corner)| (scale, Vec2::from(corner)));
        let (scale, corner) = known.unwrap_or_else(|| fitting(graph, rect));
        let frame = GraphViewport { rect, scale, corner };
        let moved = moved(ui, &response, frame);
        if (moved.scale, moved.corner) != (frame.scale, frame.corner) {
            self.view = Some((moved.scale, moved.corner.into()));
        }
        let hovered = response.hover_pos().and_then(|at| hit(graph, moved, at));
        let holds = |node: &OpGraphNode| {
            let rows = node.operations.iter().filter_map(|row| graph.rows.get(*row));
            chosen.is_some() && rows.into_iter().any(|row| row.operation == chosen)
        };
        let chosen = graph.nodes.iter().position(holds);
        paint(ui, graph, moved, (metric, heat_scale), (chosen, hovered));
        if prefs.edge_labels && moved.scale >= READABLE {
            edge_labels(ui, graph, moved);
        }
        describe_ui(ui, graph, moved, &response);
        legend(ui, rect, heat_scale);
        if let Some(node) = hovered
            && !response.dragged()
        {
            call_out_ui(&response, graph, node, metric);
        }
        if response.double_clicked() {
            return hovered.map(GraphCanvasEvent::ToggleFold);
        }
        if response.clicked() {
            return Some(GraphCanvasEvent::Select(hovered));
        }
        keys(ui, &response, graph, chosen)
    }
}

/// The scale at which the graph fits. A graph that would be too small to read starts at the upper
/// left.
fn fitting(graph: &OpGraph, rect: Rect) -> (f32, Vec2) {
    let size = vec2(graph.width() as f32 * PITCH.x, HEAD + graph.layers as f32 * PITCH.y + 30.0);
    let size = size.max(vec2(1.0, 1.0));
    let fits = (rect.width() / size.x).min(rect.height() / size.y);
    let scale = if fits < READABLE { STARTING } else { fits.min(1.6) };
    let spare = (rect.size() / scale - size) / 2.0;
    (scale, vec2(-spare.x.max(0.0), -spare.y.max(0.0)))
}

fn moved(ui: &Ui, response: &Response, frame: GraphViewport) -> GraphViewport {
    let mut moved = frame;
    if response.dragged() {
        ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
        moved.corner -= response.drag_delta() / frame.scale;
    }
    if let Some(at) = response.hover_pos() {
        let (delta, zoom) = ui.input(|input| (input.smooth_scroll_delta(), input.zoom_delta()));
        let factor = zoom * (delta.y * 0.004).exp();
        if factor != 1.0 {
            let under = frame.graph(at);
            moved.scale = (frame.scale * factor).clamp(SCALES.0, SCALES.1);
            moved.corner = under - (at - frame.rect.min) / moved.scale;
        }
        moved.corner.x -= delta.x / moved.scale;
    }
    moved
}

/// Arrow keys follow arrows: up to the inputs of a node, down to its readers.
fn keys(
    ui: &Ui,
    response: &Response,
    graph: &OpGraph,
    chosen: Option<usize>,
) -> Option<GraphCanvasEvent> {
    if !response.has_focus() {
        return None;
    }
    let filter = egui::EventFilter { vertical_arrows: true, ..egui::EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let (up, down) = ui.input(|i| (i.key_pressed(Key::ArrowUp), i.key_pressed(Key::ArrowDown)));
    if !up && !down {
        return None;
    }
    let Some(node) = chosen else {
        let first = if graph.nodes.is_empty() { None } else { Some(0) };
        return Some(GraphCanvasEvent::Select(first));
    };
    let next = if up {
        graph.edges.iter().find(|edge| edge.to == node)?.from
    } else {
        graph.edges.iter().find(|edge| edge.from == node)?.to
    };
    Some(GraphCanvasEvent::Select(Some(next)))
}

fn hit(graph: &OpGraph, frame: GraphViewport, at: Pos2) -> Option<usize> {
    graph.nodes.iter().position(|node| frame.node(node).contains(at))
}

fn paint(
    ui: &Ui,
    graph: &OpGraph,
    frame: GraphViewport,
    (metric, scale): (Metric, Option<HeatScale>),
    (chosen, hovered): (Option<usize>, Option<usize>),
) {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter_at(frame.rect);
    lanes(&painter, graph, frame, palette);
    let lit = chosen.or(hovered);
    let mut readers = vec![0; graph.nodes.len()];
    graph.edges.iter().for_each(|edge| readers[edge.from] += 1);
    let mut lit_routes = Vec::new();
    for (edge, bends) in graph.edges.iter().zip(&graph.bends) {
        let route = route(graph, frame, edge, bends);
        if lit == Some(edge.from) || lit == Some(edge.to) {
            lit_routes.push(route);
        } else if Rect::from_points(&route).intersects(frame.rect) {
            // Arrows from a value that is read everywhere would cover everything.
            let many = readers[edge.from] > MANY_READERS;
            let width = if many { 0.5 } else { 1.0 };
            arrow(&painter, &route, frame.scale, (palette.edge, width));
        }
    }
    // Painted over the others.
    for route in lit_routes {
        arrow(&painter, &route, frame.scale, (palette.accent, 2.0));
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        let rect = frame.node(node);
        if !rect.intersects(frame.rect) {
            continue;
        }
        let colour = match metric.node_value(graph, node).zip(scale) {
            Some((value, scale)) => heat(palette, value as f32 / scale.most().max(1) as f32),
            None => pass_colour(palette, node.pass),
        };
        paint_node(&painter, rect, node, frame.scale, colour, palette);
        if chosen == Some(index) || hovered == Some(index) {
            let width = if chosen == Some(index) { 2.5 } else { 1.5 };
            let stroke = Stroke::new(width, palette.selection);
            painter.rect_stroke(rect, CornerRadius::same(5), stroke, StrokeKind::Outside);
        }
    }
}

/// The label of each arrow: the shape of the results of the operation it comes from.
fn edge_labels(ui: &Ui, graph: &OpGraph, frame: GraphViewport) {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter_at(frame.rect);
    for (edge, bends) in graph.edges.iter().zip(&graph.bends) {
        // The results of a folded block have different shapes.
        let [operation] = graph.nodes[edge.from].operations[..] else { continue };
        let shapes = graph.rows.get(operation).map_or("", |row| row.shapes.as_str());
        let Some((_, shape)) = shapes.rsplit_once("->") else { continue };
        let route = route(graph, frame, edge, bends);
        let half = route.len() / 2;
        let middle = match route.get(half - 1..=half) {
            Some(&[before, after]) => before + (after - before) * 0.5,
            _ => continue,
        };
        if !frame.rect.contains(middle) {
            continue;
        }
        let font = FontId::proportional(text_size::CAPTION);
        let text = elided(&painter, shape.trim(), font, palette.weak_text, SIZE.x * frame.scale);
        let ground = Rect::from_center_size(middle, text.size()).expand(1.0);
        painter.rect_filled(ground, CornerRadius::same(2), palette.page);
        painter.galley(ground.shrink(1.0).min, text, palette.weak_text);
    }
}

fn lanes(painter: &Painter, graph: &OpGraph, frame: GraphViewport, palette: &ThemePalette) {
    for (index, lane) in graph.lanes.iter().enumerate() {
        let top = lane.top as f32 * PITCH.y;
        let size = vec2(lane.width as f32 * PITCH.x, HEAD + lane.rows as f32 * PITCH.y);
        let corner = vec2(lane.left as f32 * PITCH.x, top);
        let band = Rect::from_two_pos(frame.screen(corner), frame.screen(corner + size));
        if index % 2 == 0 {
            painter.rect_filled(band, 0.0, palette.stripe);
        }
        painter.rect_stroke(band, 0.0, Stroke::new(1.0, palette.rule), StrokeKind::Inside);
        let Some(ipu) = lane.ipu else { continue };
        // The name stays visible while its lane is.
        let top = (band.top() + 8.0 * frame.scale).max(frame.rect.top() + 4.0);
        let at = pos2(band.center().x, top.min(band.bottom() - text_size::SMALL));
        let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
        painter.text(at, Align2::CENTER_TOP, format!("IPU {ipu}"), font, palette.weak_text);
    }
}

/// The points of an arrow: from an edge of one box, past the boxes between, to an edge of the
/// other.
fn route(
    graph: &OpGraph,
    frame: GraphViewport,
    edge: &OpGraphEdge,
    bends: &[LayoutPoint],
) -> Vec<Pos2> {
    let from = frame.node(&graph.nodes[edge.from]);
    let to = frame.node(&graph.nodes[edge.to]);
    let list_bends = || bends.iter().map(|bend| frame.place(bend.x, bend.row));
    let start = edge_towards(from, list_bends().next().unwrap_or(to.center()));
    let end = edge_towards(to, list_bends().next_back().unwrap_or(from.center()));
    std::iter::once(start).chain(list_bends()).chain([end]).collect()
}

/// The middle of the side of a box that faces a point.
fn edge_towards(node: Rect, point: Pos2) -> Pos2 {
    if point.y > node.bottom() {
        node.center_bottom()
    } else if point.y < node.top() {
        node.center_top()
    } else if point.x > node.center().x {
        node.right_center()
    } else {
        node.left_center()
    }
}

/// A curve through the points of a route, with a head at its end. Between two points it is vertical
/// at both ends, or horizontal if they are side by side.
fn arrow(painter: &Painter, route: &[Pos2], scale: f32, (colour, width): (Color32, f32)) {
    let stroke = Stroke::new(width, colour);
    let mut arrives = vec2(0.0, 1.0);
    for pair in route.windows(2) {
        let &[start, end] = pair else { continue };
        let across = end - start;
        let bend = if across.y.abs() < 1.0 {
            vec2(across.x * 0.5, 0.0)
        } else {
            vec2(0.0, across.y * 0.5)
        };
        arrives = bend.normalized();
        if scale < READABLE {
            painter.line_segment([start, end], stroke);
            continue;
        }
        let points = [start, start + bend, end - bend, end];
        let fill = Color32::TRANSPARENT;
        painter.add(CubicBezierShape::from_points_stroke(points, false, fill, stroke));
    }
    let Some(end) = route.last().copied().filter(|_| scale >= READABLE) else { return };
    let length = 7.0 * scale.min(1.2);
    let side = arrives.rot90() * length * 0.5;
    let back = end - arrives * length;
    let head = vec![end, back + side, back - side];
    painter.add(Shape::convex_polygon(head, colour, Stroke::NONE));
}

fn paint_node(
    painter: &Painter,
    rect: Rect,
    node: &OpGraphNode,
    scale: f32,
    colour: Color32,
    palette: &ThemePalette,
) {
    let several = node.operations.len() > 1;
    let corner = CornerRadius::same((5.0 * scale).clamp(1.0, 8.0) as u8);
    let line = Stroke::new(1.0, mix(colour, palette.text, 0.35));
    if several {
        // A second edge behind the box stands for the contents.
        let behind = rect.translate(vec2(3.0, 3.0) * scale);
        painter.rect(behind, corner, mix(colour, palette.page, 0.4), line, StrokeKind::Inside);
    }
    painter.rect(rect, corner, colour, line, StrokeKind::Inside);
    if scale < READABLE {
        return;
    }
    let ink = palette.label_text_on(colour);
    let room = rect.width() - 8.0;
    // Text never becomes smaller than other small text: less of it is shown.
    let font = FontId::proportional((text_size::BODY * scale).clamp(text_size::CAPTION, 22.0));
    let small = FontId::proportional((text_size::CAPTION * scale).clamp(text_size::CAPTION, 22.0));
    // The colour shows the pass too.
    let mut title = node.title.clone();
    if several && let Some(pass) = node.pass {
        let full = format!("{title} {}", pass.name());
        if width_of(painter, &full, &font, ink) <= room {
            title = full;
        }
    }
    let title = fitted(painter, &title, (font, ink), room);
    let about = fitted(painter, &node.about, (small, ink), room);
    let both = title.size().y + about.size().y <= rect.height();
    let tall = title.size().y + if both { about.size().y } else { 0.0 };
    let top = rect.center().y - tall / 2.0;
    let below = top + title.size().y;
    painter.galley(pos2(rect.center().x - title.size().x / 2.0, top), title, ink);
    if both {
        painter.galley(pos2(rect.center().x - about.size().x / 2.0, below), about, ink);
    }
}

fn pass_colour(palette: &ThemePalette, pass: Option<TrainingPass>) -> Color32 {
    match pass {
        Some(TrainingPass::Forward) | None => palette.forward,
        Some(TrainingPass::Backward) => palette.backward,
        Some(TrainingPass::Update) => palette.update,
    }
}

fn width_of(painter: &Painter, text: &str, font: &FontId, ink: Color32) -> f32 {
    painter.layout_no_wrap(text.to_owned(), font.clone(), ink).size().x
}

/// Lays out a name in `room`. The last parts of a name are the most specific, so those that fit are
/// kept.
fn fitted(painter: &Painter, text: &str, (font, ink): (FontId, Color32), room: f32) -> Arc<Galley> {
    let mut shown = text.to_owned();
    if width_of(painter, text, &font, ink) > room {
        let mut ends = text.match_indices('/').map(|(at, _)| format!("…{}", &text[at..]));
        let end = ends.find(|end| width_of(painter, end, &font, ink) <= room);
        let short = end.or_else(|| without_middle(painter, text, font.clone(), ink, room));
        shown = short.unwrap_or(shown);
    }
    painter.layout_no_wrap(shown, font, ink)
}

/// Pale to strong, as a share of the largest. The square root makes small shares distinguishable.
fn heat(palette: &ThemePalette, share: f32) -> Color32 {
    mix(palette.lane, palette.compute, share.clamp(0.0, 1.0).sqrt())
}

fn describe_ui(ui: &Ui, graph: &OpGraph, frame: GraphViewport, response: &Response) {
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Graph of operations"));
    let value = format!("{} nodes, {} arrows", graph.nodes.len(), graph.edges.len());
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
    focus_ui(ui, response, frame.rect);
    let shown =
        graph.nodes.iter().enumerate().filter(|(_, node)| frame.node(node).intersects(frame.rect));
    for (index, node) in shown.take(MAX_NODES) {
        let rect = frame.node(node).intersect(frame.rect);
        ui.ctx().accesskit_node_builder(response.id.with(index), |access| {
            access.set_role(Role::GraphicsObject);
            access.set_label(node.title.clone());
            access.set_value(node.about.clone());
            access.set_bounds(egui::accesskit::Rect {
                x0: rect.left().into(),
                y0: rect.top().into(),
                x1: rect.right().into(),
                y1: rect.bottom().into(),
            });
        });
    }
}

/// The legend of the colours: shares of the maximum of a scale, or passes.
fn legend(ui: &mut Ui, rect: Rect, scale: Option<HeatScale>) {
    let palette = ThemePalette::for_ui(ui);
    let foot = Rect::from_min_max(pos2(rect.left() + 10.0, rect.bottom() - 26.0), rect.max);
    ui.painter().rect_filled(foot.expand2(vec2(10.0, 0.0)), 0.0, palette.page);
    ui.scope_builder(egui::UiBuilder::new().max_rect(foot), |ui| {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = spacing::S;
            match scale {
                None => {
                    for (pass, name) in [
                        (TrainingPass::Forward, "Forward"),
                        (TrainingPass::Backward, "Backward"),
                        (TrainingPass::Update, "Weight update"),
                    ] {
                        legend_ui(ui, pass_colour(palette, Some(pass)), name);
                        ui.add_space(spacing::M);
                    }
                }
                Some(scale) => {
                    let most = scale.most();
                    legend_ui(ui, heat(palette, 0.0), "0");
                    legend_ui(ui, heat(palette, 0.5), &grouped(most / 2));
                    legend_ui(ui, heat(palette, 1.0), &grouped(most));
                    ui.add_space(spacing::M);
                }
            }
            let text = "Double-click a block to unfold it, or one of its operations to fold it.";
            let text = RichText::new(text).weak().size(text_size::SMALL);
            ui.add(Label::new(text).truncate());
        });
    });
}

fn call_out_ui(response: &Response, graph: &OpGraph, index: usize, metric: Metric) {
    let node = &graph.nodes[index];
    response.clone().on_hover_ui_at_pointer(|ui| {
        let title: String = node.title.chars().take(200).collect();
        ui.label(crate::theme::fonts::strong(title));
        let on = node.ipu.map_or(String::new(), |ipu| format!(" on IPU {ipu}"));
        ui.weak(format!("{}{on}", node.about));
        if let [only] = node.operations[..]
            && let Some(row) = graph.rows.get(only).filter(|row| !row.shapes.is_empty())
        {
            ui.label(&row.shapes);
        }
        if let Some(value) = metric.node_value(graph, node) {
            let name = Metric::ALL.iter().find(|(known, _)| *known == metric);
            let name = name.map_or("", |(_, name)| name);
            ui.label(format!("{name}: {}", grouped(value)));
        }
    });
}
