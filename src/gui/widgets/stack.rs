//! A graph of values that stand on each other, place by place: bytes over program steps, cycles
//! over tiles.
//!
//! Place `n` takes the room from `n` to `n + 1` of the axis, and its label stands below its
//! middle. A column of pixels that holds several places shows the largest of them.

use super::axis::{Axis, Limits, tick_step};
use super::legend_ui;
use super::overview::{Grip, overview_ui};
use super::tiled::{Pieces, Tiled};
use crate::gui::theme::{Palette, mix};
use crate::units::{Bytes, CycleRange, grouped};
use egui::accesskit::Role;
use egui::epaint::Vertex;
use egui::{
    Align2, Color32, ColorImage, CursorIcon, EventFilter, FontId, Key, Mesh, Painter, Pos2, Rect,
    Response, RichText, Sense, Shape, Stroke, Ui, WidgetInfo, pos2, vec2,
};
use std::ops::Range;
use std::sync::Arc;

/// Height of the strip above the graph.
const STRIP: f32 = 30.0;
/// Height of the legend below it.
const LEGEND: f32 = 24.0;
/// Room for the names of values.
const AXIS_WIDTH: f32 = 74.0;
/// Room for the numbers and the title below the graph.
const FOOT: f32 = 36.0;
/// Most places that get a node of their own for readers of the screen.
const MAX_NODES: usize = 256;

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; the axis is marked in powers of two.
    Bytes,
    /// Plain numbers of anything.
    Count(&'static str),
}

impl Unit {
    /// A value in words.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::Bytes => Bytes(value).to_string(),
            Self::Count(what) => format!("{} {what}", grouped(value)),
        }
    }

    /// Distance between marks for about `count` of them up to `top`.
    fn step(self, top: f64, count: f64) -> f64 {
        let least = (top / count).max(1.0);
        match self {
            Self::Bytes => 2f64.powf(least.log2().ceil()),
            Self::Count(_) => tick_step(least, 1.0) as f64,
        }
    }
}

/// Values of one meaning, by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// What they are.
    pub title: String,
    /// One value per place.
    pub values: Vec<u64>,
}

/// Layers with their sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    layers: Vec<Layer>,
    /// Sums of the first layers, place by place: one list per layer.
    sums: Vec<Vec<u64>>,
    places: usize,
}

impl Stack {
    /// Layers from the bottom to the top.
    pub fn new(layers: Vec<Layer>) -> Self {
        let places = layers.iter().map(|layer| layer.values.len()).max().unwrap_or(0);
        let mut sum = vec![0u64; places];
        let mut sums = Vec::with_capacity(layers.len());
        for layer in &layers {
            for (sum, value) in sum.iter_mut().zip(&layer.values) {
                *sum = sum.saturating_add(*value);
            }
            sums.push(sum.clone());
        }
        Self { layers, sums, places }
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Sum of all layers at a place.
    pub fn total(&self, place: usize) -> u64 {
        self.sums.last().and_then(|sums| sums.get(place)).copied().unwrap_or(0)
    }

    /// The largest sum in a range of places.
    fn highest(&self, places: Range<usize>) -> u64 {
        let end = places.end.min(self.places);
        let sums = self.sums.last().map_or(&[][..], |sums| &sums[places.start.min(end)..end]);
        sums.iter().copied().max().unwrap_or(0)
    }
}

/// How a graph looks and what stands on it.
pub struct Look<'a> {
    /// Name for readers of the screen.
    pub name: &'a str,
    /// What a place is: `Program step`.
    pub place: &'a str,
    /// What values are.
    pub unit: Unit,
    /// One colour per layer.
    pub colours: &'a [Color32],
    /// Places that are chosen.
    pub chosen: &'a [usize],
    /// Places that something covers, with its name.
    pub spans: &'a [(Range<usize>, String)],
    /// A place with a word beside it.
    pub flag: Option<(usize, &'a str)>,
    /// A line across, with its name.
    pub level: Option<(u64, &'a str)>,
    /// Number shown for the first place.
    pub first: u64,
}

/// What the user did.
pub struct Answer {
    /// The graph, for call-outs.
    pub response: Response,
    /// Place under the pointer.
    pub hovered: Option<usize>,
    /// Place that was clicked, and whether it is to be added to those chosen before.
    pub clicked: Option<(usize, bool)>,
}

/// What is zoomed to, and what is drawn already.
#[derive(Default)]
pub struct StackGraph {
    axis: Option<Axis>,
    limits: Option<Limits>,
    grip: Option<Grip>,
    strip: Option<(usize, usize, bool, Tiled)>,
}

/// Where things are in this frame.
struct Places<'a> {
    stack: &'a Stack,
    frame: Rect,
    axis: Axis,
    top: f64,
}

impl Places<'_> {
    fn x(&self, place: usize) -> f32 {
        self.frame.left() + self.axis.x_from_cycle(place as u64)
    }

    fn y(&self, value: u64) -> f32 {
        let share = (value as f64 / self.top).min(1.0) as f32;
        self.frame.bottom() - share * self.frame.height()
    }

    fn place(&self, at: Pos2) -> Option<usize> {
        let place = self.axis.cycle_from_x(at.x - self.frame.left());
        let place = usize::try_from(place).ok()?;
        (self.frame.contains(at) && place < self.stack.places).then_some(place)
    }

    fn window(&self) -> Range<usize> {
        let window = self.axis.window(self.frame.width());
        let end = (window.end as usize).min(self.stack.places);
        (window.start as usize).min(end)..end
    }
}

impl StackGraph {
    /// Shows all places again.
    pub fn reset(&mut self) {
        self.axis = None;
    }

    /// Shows the graph in the room there is.
    pub fn ui(&mut self, ui: &mut Ui, stack: &Arc<Stack>, look: &Look<'_>) -> Answer {
        let area = ui.available_rect_before_wrap();
        let (area, _) = ui.allocate_exact_size(area.size(), Sense::hover());
        let left = area.left() + AXIS_WIDTH;
        let width = (area.right() - 14.0 - left).max(20.0);
        let strip = Rect::from_min_size(pos2(left, area.top() + 8.0), vec2(width, STRIP));
        let bottom = (area.bottom() - LEGEND - FOOT).max(strip.bottom() + 30.0);
        let frame =
            Rect::from_min_max(pos2(left, strip.bottom() + 8.0), pos2(left + width, bottom));
        let limits = Limits { range: CycleRange::new(0, stack.places.max(1) as u64), width };
        self.keep_axis(limits);
        self.strip_ui(ui, stack, strip, limits);
        let axis = self.axis.unwrap_or_else(|| Axis::fitting_exactly(limits.range, width));
        let mut places = Places { stack, frame, axis, top: 1.0 };
        let highest = stack.highest(places.window()).max(look.level.map_or(0, |level| level.0));
        places.top = highest.max(1) as f64 * 1.08;
        let response = ui.interact(frame, ui.scope_id().with(look.name), Sense::click_and_drag());
        paint(ui, &places, look);
        let (hovered, clicked) = self.pointer_ui(ui, &places, look, limits, &response);
        nodes_ui(ui, &places, look, &response);
        let foot = Rect::from_min_max(pos2(left, frame.bottom() + FOOT), area.max);
        legends_ui(ui, foot, stack, look);
        Answer { response, hovered, clicked }
    }

    fn keep_axis(&mut self, limits: Limits) {
        let known = self.limits.filter(|old| old.range == limits.range);
        self.axis = match (self.axis, known) {
            (Some(axis), Some(old)) if (old.width - limits.width).abs() < 0.5 => Some(axis),
            (Some(axis), Some(old)) => {
                let window = axis.window(old.width).intersection(limits.range);
                Some(Axis::fitting_exactly(window, limits.width))
            }
            _ => None,
        };
        self.limits = Some(limits);
    }

    fn strip_ui(&mut self, ui: &mut Ui, stack: &Arc<Stack>, rect: Rect, limits: Limits) {
        let pixels = ui.pixels_per_point();
        let key = ((rect.width() * pixels) as usize, Arc::as_ptr(stack) as usize);
        let dark = ui.visuals().dark_mode;
        let known =
            self.strip.as_ref().is_some_and(|(w, id, d, _)| (*w, *id, *d) == (key.0, key.1, dark));
        if !known {
            let palette = Palette::of(ui.visuals());
            let size = [key.0.max(1), ((rect.height() * pixels) as usize).max(1)];
            let image = Pieces::cut(silhouette(stack, size, palette));
            self.strip = Some((key.0, key.1, dark, Tiled::new(ui.ctx(), "stack overview", &image)));
        }
        let image = self.strip.as_ref().map(|(_, _, _, texture)| texture);
        let axis = self.axis.unwrap_or_else(|| Axis::fitting_exactly(limits.range, limits.width));
        if let Some(moved) = overview_ui(ui, rect, image, axis, limits, &mut self.grip) {
            self.axis = Some(moved);
        }
    }

    fn pointer_ui(
        &mut self,
        ui: &Ui,
        places: &Places<'_>,
        look: &Look<'_>,
        limits: Limits,
        response: &Response,
    ) -> (Option<usize>, Option<(usize, bool)>) {
        let (mut hovered, mut clicked) = (None, None);
        let at = response.hover_pos().filter(|at| places.frame.contains(*at));
        if !response.dragged() {
            hovered = at.and_then(|at| places.place(at));
        }
        if response.double_clicked() {
            self.axis = None;
            return (hovered, clicked);
        }
        if response.clicked() {
            let place = response.interact_pointer_pos().and_then(|at| places.place(at));
            let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
            clicked = place.map(|place| (place, add));
        }
        if let Some(place) = arrows(ui, response, look.chosen, places.stack.places) {
            clicked = Some(place);
        }
        let mut moved = places.axis;
        if response.dragged() {
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            moved = moved.panned(response.drag_delta().x);
        }
        if let Some(at) = at {
            let (delta, zoom) = ui.input(|input| (input.smooth_scroll_delta(), input.zoom_delta()));
            let factor = f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
            if factor != 1.0 {
                moved = moved.zoomed(factor, at.x - places.frame.left(), limits);
            }
            if delta.x != 0.0 {
                moved = moved.panned(delta.x);
            }
        }
        if moved != places.axis {
            let whole = moved.window(limits.width).length() >= limits.range.length();
            self.axis = (!whole).then(|| moved.kept(limits));
        }
        (hovered, clicked)
    }
}

/// The place that an arrow key leads to from the last one chosen.
fn arrows(ui: &Ui, response: &Response, chosen: &[usize], places: usize) -> Option<(usize, bool)> {
    if !response.has_focus() || places == 0 {
        return None;
    }
    let filter = EventFilter { horizontal_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let (left, right, add) = ui.input(|input| {
        let pressed = |key| input.key_pressed(key);
        (pressed(Key::ArrowLeft), pressed(Key::ArrowRight), input.modifiers.shift)
    });
    let from = chosen.last().copied();
    let place = match (left, right) {
        (true, false) => from.map_or(places - 1, |place| place.saturating_sub(1)),
        (false, true) => from.map_or(0, |place| (place + 1).min(places - 1)),
        _ => return None,
    };
    Some((place, add))
}

fn paint(ui: &Ui, places: &Places<'_>, look: &Look<'_>) {
    let palette = Palette::of(ui.visuals());
    let painter = ui.painter();
    grid(painter, places, look, palette);
    let inside = ui.painter_at(places.frame);
    let mut below = columns(places, None);
    for (index, colour) in look.colours.iter().enumerate().take(places.stack.layers.len()) {
        let above = columns(places, Some(index));
        fill(&inside, places, &below, &above, mix(*colour, palette.page, 0.55));
        outline(&inside, places, &above, *colour);
        below = above;
    }
    spans(&inside, places, look, palette);
    for place in look.chosen {
        let (from, to) = (places.x(*place), places.x(place + 1));
        let middle = (from + to) / 2.0;
        if to - from > 3.0 {
            let band = Rect::from_x_y_ranges(from..=to, places.frame.y_range());
            inside.rect_filled(band, 0.0, palette.selection.gamma_multiply(0.16));
        }
        inside.vline(middle, places.frame.y_range(), Stroke::new(1.5, palette.selection));
    }
    if let Some((value, _)) = look.level {
        let line = Stroke::new(1.5, palette.max_memory);
        inside.hline(places.frame.x_range(), places.y(value), line);
    }
    flag(&inside, places, look, palette);
    painter.hline(places.frame.x_range(), places.frame.bottom(), Stroke::new(1.0, palette.outline));
}

/// Left edge, right edge and height of each column of pixels, or of each place where those are
/// wider.
fn columns(places: &Places<'_>, layer: Option<usize>) -> Vec<(f32, f32, f32)> {
    let window = places.window();
    let per_column = window.len().div_ceil((places.frame.width() as usize).max(1)).max(1);
    let sums = layer.and_then(|layer| places.stack.sums.get(layer));
    let mut found = Vec::with_capacity(window.len() / per_column + 1);
    let mut first = window.start;
    while first < window.end {
        let end = (first + per_column).min(window.end);
        let highest = sums.map_or(0, |sums| sums[first..end].iter().copied().max().unwrap_or(0));
        found.push((places.x(first), places.x(end), places.y(highest)));
        first = end;
    }
    found
}

fn fill(
    painter: &Painter,
    places: &Places<'_>,
    below: &[(f32, f32, f32)],
    above: &[(f32, f32, f32)],
    colour: Color32,
) {
    let mut mesh = Mesh::default();
    for ((left, right, bottom), (_, _, top)) in below.iter().zip(above) {
        if *left >= places.frame.right() || bottom - top <= 0.0 {
            continue;
        }
        let index = mesh.vertices.len() as u32;
        for pos in
            [pos2(*left, *top), pos2(*right, *top), pos2(*right, *bottom), pos2(*left, *bottom)]
        {
            mesh.vertices.push(Vertex { pos, uv: egui::epaint::WHITE_UV, color: colour });
        }
        mesh.indices.extend([0, 1, 2, 0, 2, 3].map(|corner| index + corner));
    }
    painter.add(Shape::mesh(mesh));
}

fn outline(painter: &Painter, places: &Places<'_>, above: &[(f32, f32, f32)], colour: Color32) {
    let mut points = Vec::with_capacity(above.len() * 2);
    for (left, right, y) in above {
        points.push(pos2(left.max(places.frame.left() - 2.0), *y));
        points.push(pos2(right.min(places.frame.right() + 2.0), *y));
    }
    points.dedup();
    painter.add(Shape::line(points, Stroke::new(1.3, colour)));
}

fn grid(painter: &Painter, places: &Places<'_>, look: &Look<'_>, palette: &Palette) {
    let frame = places.frame;
    let font = FontId::proportional(11.0);
    let step = look.unit.step(places.top, f64::from(frame.height() / 38.0).clamp(2.0, 10.0));
    let line = Stroke::new(1.0, palette.rule);
    for index in 0..32 {
        let value = (f64::from(index) * step) as u64;
        if value as f64 > places.top {
            break;
        }
        let y = places.y(value);
        painter.hline(frame.x_range(), y, line);
        let text = match look.unit {
            Unit::Bytes => Bytes(value).to_string(),
            Unit::Count(_) => grouped(value),
        };
        let at = pos2(frame.left() - 8.0, y);
        painter.text(at, Align2::RIGHT_CENTER, text, font.clone(), palette.weak_text);
    }
    let step = tick_step(places.axis.scale(), 80.0) as usize;
    let window = places.window();
    let mut place = window.start.div_ceil(step) * step;
    while place < window.end {
        let x = (places.x(place) + places.x(place + 1)) / 2.0;
        if x <= frame.right() && x >= frame.left() {
            painter.vline(
                x,
                frame.bottom()..=frame.bottom() + 4.0,
                Stroke::new(1.0, palette.outline),
            );
            let text = grouped(look.first + place as u64);
            let at = pos2(x, frame.bottom() + 6.0);
            painter.text(at, Align2::CENTER_TOP, text, font.clone(), palette.weak_text);
        }
        place += step;
    }
    let at = pos2(frame.center().x, frame.bottom() + 21.0);
    painter.text(at, Align2::CENTER_TOP, look.place, FontId::proportional(11.5), palette.weak_text);
}

/// What covers a part of the axis: bars along the top, each with its name.
fn spans(painter: &Painter, places: &Places<'_>, look: &Look<'_>, palette: &Palette) {
    for (index, (covered, name)) in look.spans.iter().enumerate() {
        let (left, right) = (places.x(covered.start), places.x(covered.end));
        let right = right.max(left + 2.0);
        let area = Rect::from_x_y_ranges(left..=right, places.frame.y_range());
        painter.rect_filled(area, 0.0, palette.accent.gamma_multiply(0.10));
        let top = places.frame.top() + 4.0 + index as f32 * 18.0;
        let bar = Rect::from_min_max(pos2(left, top), pos2(right, top + 4.0));
        painter.rect_filled(bar, 2.0, palette.accent);
        let from = left.clamp(
            places.frame.left() + 2.0,
            (places.frame.right() - 120.0).max(places.frame.left() + 2.0),
        );
        let room = places.frame.right() - from - 4.0;
        let text =
            super::elided::elided(painter, name, FontId::proportional(11.5), palette.text, room);
        let at = pos2(from, top + 5.0);
        painter.rect_filled(Rect::from_min_size(at, text.size()).expand(1.0), 2.0, palette.page);
        painter.galley(at, text, palette.text);
    }
}

fn flag(painter: &Painter, places: &Places<'_>, look: &Look<'_>, palette: &Palette) {
    let Some((place, word)) = look.flag else { return };
    let x = (places.x(place) + places.x(place + 1)) / 2.0;
    if !places.frame.x_range().contains(x) {
        return;
    }
    let y = places.y(places.stack.total(place));
    let dashes = Shape::dashed_line(
        &[pos2(x, places.frame.bottom()), pos2(x, y)],
        Stroke::new(1.0, palette.text),
        4.0,
        3.0,
    );
    painter.extend(dashes);
    painter.circle_filled(pos2(x, y), 3.0, palette.text);
    let text = painter.layout_no_wrap(word.to_owned(), FontId::proportional(11.5), palette.text);
    let right = x + 8.0 + text.size().x > places.frame.right();
    let left = if right { x - 8.0 - text.size().x } else { x + 8.0 };
    let top = (y - text.size().y / 2.0).max(places.frame.top() + 1.0);
    let ground = Rect::from_min_size(pos2(left, top), text.size()).expand(2.0);
    painter.rect_filled(ground, 3.0, palette.page.gamma_multiply(0.85));
    painter.galley(pos2(left, top), text, palette.text);
}

/// The graph and its places for readers of the screen.
fn nodes_ui(ui: &Ui, places: &Places<'_>, look: &Look<'_>, response: &Response) {
    let stack = places.stack;
    let value = format!("highest {}", look.unit.text(stack.highest(0..stack.places)));
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, look.name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
    super::focus_ui(ui, response, places.frame);
    let window = places.window();
    if window.len() > MAX_NODES {
        return;
    }
    for place in window {
        let rect =
            Rect::from_x_y_ranges(places.x(place)..=places.x(place + 1), places.frame.y_range());
        let id = response.id.with(place);
        let name = format!("{} {}", look.place, grouped(look.first + place as u64));
        ui.ctx().accesskit_node_builder(id, |node| {
            node.set_role(Role::GraphicsObject);
            node.set_label(name);
            node.set_value(look.unit.text(stack.total(place)));
            let edge = |value: f32| f64::from(value);
            node.set_bounds(egui::accesskit::Rect {
                x0: edge(rect.left()),
                y0: edge(rect.top()),
                x1: edge(rect.right()),
                y1: edge(rect.bottom()),
            });
        });
    }
}

fn legends_ui(ui: &mut Ui, rect: Rect, stack: &Stack, look: &Look<'_>) {
    let palette = Palette::of(ui.visuals());
    ui.scope_builder(egui::UiBuilder::new().max_rect(rect), |ui| {
        ui.spacing_mut().item_spacing.x = 6.0;
        egui::ScrollArea::horizontal().id_salt("legend").auto_shrink(false).show(ui, |ui| {
            ui.horizontal(|ui| {
                for (layer, colour) in stack.layers.iter().zip(look.colours) {
                    legend_ui(ui, *colour, &layer.title);
                    ui.add_space(8.0);
                }
                if let Some((value, name)) = look.level {
                    legend_ui(ui, palette.max_memory, name);
                    let text = look.unit.text(value);
                    ui.label(RichText::new(text).size(12.0).color(palette.weak_text));
                }
            });
        });
    });
}

/// All places as a grey shape.
fn silhouette(stack: &Stack, [width, height]: [usize; 2], palette: &Palette) -> ColorImage {
    let mut image = ColorImage::filled([width, height], palette.raised);
    let places = stack.places.max(1);
    let highest = stack.highest(0..places).max(1) as f64;
    let lowest = (0..places).map(|place| stack.total(place)).min().unwrap_or(0) as f64;
    // What is the same everywhere would hide what differs.
    let base = if lowest * 2.0 > highest { lowest - (highest - lowest) * 0.2 } else { 0.0 };
    let top = (highest - base).max(1.0) * 1.06;
    for x in 0..width {
        let first = x * places / width;
        let end = ((x + 1) * places).div_ceil(width).max(first + 1);
        let value = stack.highest(first..end) as f64 - base;
        let filled = (value / top * height as f64).round() as usize;
        for y in height - filled.min(height)..height {
            image.pixels[y * width + x] = palette.outline;
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_stand_on_each_other() {
        let layer = |values: &[u64]| Layer { title: String::new(), values: values.to_vec() };
        let stack = Stack::new(vec![layer(&[5, 5, 5]), layer(&[0, 7, 1])]);
        assert_eq!(stack.places(), 3);
        assert_eq!([0, 1, 2, 3].map(|place| stack.total(place)), [5, 12, 6, 0]);
        assert_eq!(stack.highest(0..9), 12);
        assert_eq!(stack.highest(2..3), 6);
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(Unit::Bytes.step(100_000.0, 7.0), 16_384.0);
        assert_eq!(Unit::Count("cycles").step(100_000.0, 7.0), 20_000.0);
        assert_eq!(Unit::Count("cycles").step(3.0, 7.0), 1.0);
    }
}
