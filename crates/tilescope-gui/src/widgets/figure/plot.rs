//! Layers, lines and points on the axes of `egui_plot`.

use super::guide_names::names_ui;
use super::{FigureLook, MOST_NODES, colour, shade_of};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, text_size};
use crate::widgets::elided_text::shortened;
use crate::widgets::plot_axis::{titled_x_axis, y_axis_for};
use crate::widgets::plot_marker::{OUTLINE, RADIUS, marker_shape};
use crate::widgets::{ALL_ARROWS, keeps_arrows, node_ui};
use egui::accesskit::Role;
use egui::{Align2, Key, Pos2, Rangef, Rect, Response, RichText, Ui, Vec2b, vec2};
use egui_plot::{
    AxisHints, FilledArea, GridInput, GridMark, Line, LineStyle, MarkerShape, Plot, PlotPoint,
    PlotTransform, PlotUi, Points, Text, VLine,
};
use std::collections::BTreeSet;
use tilescope_analysis::figures::{
    Figure, FigureAxis, FigureMarks, FigurePoint, MarkWeight, Marker, peaks,
};
use tilescope_report::units::grouped;

/// The distance in points between marks of a vertical axis from which their labels are drawn, and
/// from which they are fully opaque. `egui_plot` would fade labels that are less than two lines
/// apart, and omits overlapping ones itself.
const WORDS_SPACING: Rangef = Rangef { min: 12.0, max: 14.0 };
/// The distance in points between two ticks of each axis.
const TICKS: [f32; 2] = [90.0, 40.0];
/// The distance in points between two names on an axis.
const NAMES: f32 = 84.0;
/// The width of a character of a name, including the gap between names.
const LETTER: f32 = 8.0;
/// The margin beside the values of an axis without its own ends, as a share of the distance between
/// them.
const EDGE: f64 = 0.05;
/// The share of the width for points that are infinitely far to the right.
const STRIP: f64 = 0.06;
/// The largest distance at which the pointer hits a point.
const REACH: f32 = 14.0;
/// The number of points that names of guides avoid: the first ones.
const MOST_CLEAR: usize = 400;
/// The distance from the centre of a mark to the background of its label, in points.
const LABEL_GAP: f64 = 6.0;
/// The opacity of the background of labels.
const LABEL_GROUND: f32 = 0.85;

/// A figure with the positions of its axes.
struct PlotScene<'a> {
    figure: &'a Figure,
    look: FigureLook<'a>,
    /// The positions at the ends of both axes.
    ends: [(f64, f64); 2],
    /// The right end of finite points, if others are infinitely far to the right.
    strip: Option<f64>,
}

impl<'a> PlotScene<'a> {
    fn new(figure: &'a Figure, look: FigureLook<'a>) -> Self {
        let mut ends = [(&figure.x, 0), (&figure.y, 1)].map(|(axis, at)| {
            let (low, high) = figure.bounds(at);
            let low = axis.position(low);
            let high = axis.position(high);
            let is_plain = axis.ends.is_none() && figure.marks.layers.is_empty();
            let room = if is_plain { (high - low).max(f64::MIN_POSITIVE) * EDGE } else { 0.0 };
            (low - if low == 0.0 { 0.0 } else { room }, high + room)
        });
        let strip = if figure.has_strip() { Some(ends[0].1) } else { None };
        if strip.is_some() {
            ends[0].1 += (ends[0].1 - ends[0].0) * STRIP;
        }
        Self { figure, look, ends, strip }
    }

    fn place(&self, point: &FigurePoint) -> [f64; 2] {
        let far = self.strip.map_or(self.ends[0].1, |left| (left + self.ends[0].1) / 2.0);
        let is_far = point.x.is_infinite();
        let x = if is_far { far } else { self.figure.x.position(point.x) };
        [x, self.figure.y.position(point.y)]
    }

    fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [self.figure.x.position(x), self.figure.y.position(y)]
    }

    fn screen(&self, transform: &PlotTransform, point: &FigurePoint) -> Pos2 {
        screen(transform, self.place(point))
    }

    /// The radius of the points of a series, smaller if they do not fit side by side.
    fn radius(&self, series: usize, width: f32) -> f32 {
        let weight = self.figure.series.get(series).map_or(MarkWeight::Regular, |of| of.weight);
        let radius = match weight {
            MarkWeight::Light => 3.0,
            MarkWeight::Regular => RADIUS,
            MarkWeight::Heavy => 6.0,
        };
        let names = self.figure.x.names.len().max(1) as f32;
        radius.min((0.35 * width / names).max(1.5))
    }

    /// Returns true if each point is the only one of its name, so that a pointer anywhere in its
    /// column selects it.
    fn has_columns(&self) -> bool {
        let FigureMarks { lines, points, .. } = &self.figure.marks;
        let is_one = lines.iter().all(|line| line.series == lines[0].series);
        let at_names = points.iter().all(|point| point.x.fract() == 0.0);
        !self.figure.x.names.is_empty() && !lines.is_empty() && is_one && at_names
    }

    /// The point closest to a screen position.
    fn nearest(&self, transform: &PlotTransform, pointer: Pos2) -> Option<&'a FigurePoint> {
        let mut found: Option<(f32, &FigurePoint)> = None;
        let has_columns = self.has_columns();
        for point in &self.figure.marks.points {
            let from = self.screen(transform, point) - pointer;
            let distance = if has_columns { from.x.abs() } else { from.length() };
            if (has_columns || distance <= REACH) && found.is_none_or(|(best, _)| distance < best) {
                found = Some((distance, point));
            }
        }
        found.map(|(_, point)| point)
    }
}

fn screen(transform: &PlotTransform, at: [f64; 2]) -> Pos2 {
    transform.position_from_point(&PlotPoint::new(at[0], at[1]))
}

pub(super) fn plot_ui(
    ui: &mut Ui,
    figure: &Figure,
    look: FigureLook<'_>,
) -> (Response, Rect, Option<usize>) {
    let palette = ThemePalette::for_ui(ui);
    let scene = PlotScene::new(figure, look);
    let mut clear = Vec::new();
    let shown = plot_of(ui, &scene).show(ui, |plot| draw(plot, &scene, palette, &mut clear));
    let transform = &shown.transform;
    let frame = *transform.frame();
    let clear: Vec<Pos2> = clear.into_iter().map(|at| screen(transform, at)).collect();
    let mut guides = Vec::new();
    for guide in &figure.guides {
        if let Some(ends) = figure.guide_within(guide, seen(transform)) {
            guides.push((guide.name.as_str(), ends.map(|at| screen(transform, at))));
        }
    }
    names_ui(ui, frame, &guides, &clear);
    for (number, point) in figure.marks.points.iter().enumerate().take(MOST_NODES) {
        let place = scene.screen(transform, point);
        let rect = Rect::from_center_size(place, vec2(RADIUS, RADIUS) * 2.0);
        node_ui(ui, shown.response.id.with(("point", number)), rect, Role::GraphicsObject, || {
            (point.name.clone(), point.about.replace('\n', ", "))
        });
    }
    let response = shown.response;
    let mut clicked = None;
    if let Some(pointer) = response.hover_pos() {
        if let Some(point) = scene.nearest(transform, pointer) {
            point_words_ui(&response, &scene, transform, point);
            clicked = if look.chooses && response.clicked() { Some(point.id) } else { None };
        }
        let x = transform.value_from_position(pointer).x;
        layer_words_ui(&response, figure, x);
    }
    let clicked = clicked.or_else(|| stepped(&response, &scene));
    (response, frame, clicked)
}

/// The visible positions.
fn seen(transform: &PlotTransform) -> [(f64, f64); 2] {
    let bounds = transform.bounds();
    [0, 1].map(|axis| (bounds.min()[axis], bounds.max()[axis]))
}

/// An empty plot with its axes.
fn plot_of<'a>(ui: &Ui, scene: &PlotScene<'_>) -> Plot<'a> {
    let PlotScene { figure, look, ends, strip } = *scene;
    let palette = ThemePalette::for_ui(ui);
    let room = ui.available_size();
    let step = if figure.x.names.is_empty() { TICKS[0] } else { NAMES };
    let most = [(room.x / step).max(2.0) as usize, (room.y / TICKS[1]).max(2.0) as usize];
    let names = figure.x.names.len().clamp(1, most[0]);
    let letters = (room.x / names as f32 / LETTER) as usize;
    let words = figure.y.ticks(figure.bounds(1), most[1]).into_iter().map(|tick| tick.label);
    let x_axis = titled_x_axis(ui, figure.x.title.clone());
    let y_axis = y_axis_for(ui, &figure.y.title, words).label_spacing(WORDS_SPACING);
    let far = strip.map(|left| (left + ends[0].1) / 2.0);
    let x = figure.x.clone();
    let y = figure.y.clone();
    let format_x = move |mark: GridMark| match far {
        Some(place) if mark.value == place => "∞".to_owned(),
        _ => shortened(&mark_words(&x, mark), letters),
    };
    let style_axis = |axis: AxisHints<'a>| axis.tick_label_color(palette.weak_text);
    let x = figure.x.clone();
    let of_y = figure.y.clone();
    let bounds = ends.map(|(low, high)| (low.to_bits(), high.to_bits()));
    let drawn = Vec2b::new(figure.x.is_drawn(), figure.y.is_drawn());
    // A plot keeps its initial bounds, so other bounds need another plot id.
    let mut plot = Plot::new((figure.title.as_str(), bounds))
        .custom_x_axes(vec![style_axis(x_axis.formatter(move |mark, _| format_x(mark)))])
        .custom_y_axes(vec![style_axis(y_axis.formatter(move |mark, _| mark_words(&y, mark)))])
        .x_grid_spacer(move |input| {
            let mut marks = marks(&x, input, most[0]);
            marks.retain(|mark| strip.is_none_or(|left| mark.value < left));
            marks.extend(far.map(|value| GridMark { value, step_size: 1.0 }));
            marks
        })
        .y_grid_spacer(move |input| marks(&of_y, input, most[1]))
        .show_axes(drawn)
        .show_grid(drawn.and(Vec2b::new(figure.x.names.is_empty(), true)))
        .grid_color(palette.rule)
        .default_x_bounds(ends[0].0, ends[0].1)
        .default_y_bounds(ends[1].0, ends[1].1)
        .show_crosshair(false)
        .show_x(false)
        .show_y(false)
        .allow_boxed_zoom(false)
        .allow_axis_zoom_drag(false)
        .label_formatter(|_| None);
    if !look.zooms {
        plot = plot.allow_zoom(false).allow_drag(false).allow_scroll(false);
        plot = plot.allow_double_click_reset(false);
    }
    if look.reset { plot.reset() } else { plot }
}

/// The marks of an axis at its ticks. `egui_plot` labels those that are a step apart.
fn marks(axis: &FigureAxis, input: GridInput, most: usize) -> Vec<GridMark> {
    let (low, high) = input.bounds;
    let value = |position: f64| if axis.logarithmic { 10f64.powf(position) } else { position };
    let ticks = axis.ticks((value(low), value(high)), most);
    let step = match ticks.as_slice() {
        [one, other, ..] => other.value - one.value,
        _ => high - low,
    };
    let mut marks = Vec::new();
    for tick in ticks {
        let fine = if tick.label.is_empty() { 0.1 } else { 1.0 };
        let step_size = if axis.logarithmic { fine } else { step };
        marks.push(GridMark { value: axis.position(tick.value), step_size });
    }
    marks
}

/// The label of a mark; empty between powers of ten.
fn mark_words(axis: &FigureAxis, mark: GridMark) -> String {
    if !axis.names.is_empty() {
        return axis.names.get(mark.value.max(0.0) as usize).cloned().unwrap_or_default();
    }
    if !axis.logarithmic {
        return axis.unit.tick(mark.value, mark.step_size);
    }
    let power = 10f64.powf(mark.value.round());
    let is_whole = (mark.value - mark.value.round()).abs() < 1e-6;
    if is_whole { axis.unit.tick(power, power) } else { String::new() }
}

fn draw(
    plot: &mut PlotUi<'_>,
    scene: &PlotScene<'_>,
    palette: &ThemePalette,
    clear: &mut Vec<[f64; 2]>,
) {
    let PlotScene { figure, look, .. } = *scene;
    let ends = seen(plot.transform());
    let frame = plot.transform().frame().size();
    draw_layers(plot, figure, palette, frame.x);
    if let Some(left) = scene.strip {
        plot.vline(VLine::new("", left).color(palette.outline).width(1.0).allow_hover(false));
    }
    for guide in &figure.guides {
        let Some(line) = figure.guide_within(guide, ends) else { continue };
        let width = if guide.name.is_empty() { 1.0 } else { 1.5 };
        let line = Line::new("", line.to_vec()).color(colour(palette, guide.shade)).width(width);
        plot.line(style(line, guide.dashed).allow_hover(false));
    }
    for line in &figure.marks.lines {
        let points = peaks(&line.points, frame.x.max(1.0) as usize);
        let points: Vec<[f64; 2]> = points.into_iter().map(|at| scene.at(at)).collect();
        let series = figure.series.get(line.series);
        let width = match series.map_or(MarkWeight::Regular, |of| of.weight) {
            MarkWeight::Light => 1.0,
            MarkWeight::Regular => 1.5,
            MarkWeight::Heavy => 2.5,
        };
        let drawn = Line::new("", points).color(shade_of(figure, line.series, palette));
        let drawn = style(drawn.width(width), series.is_some_and(|of| of.dashed));
        plot.line(drawn.allow_hover(false));
    }
    // A cell is a pixel: more points on it would be indistinguishable.
    let pixel = [frame.x, frame.y];
    let pixel = [0, 1].map(|at| (ends[at].1 - ends[at].0) / f64::from(pixel[at].max(1.0)));
    let points = thinned(scene, pixel, 2 * frame.x.max(1.0) as usize);
    clear.extend(points.iter().take(MOST_CLEAR).map(|point| scene.place(point)));
    for at in figure.used_series() {
        let mut own = Vec::new();
        for point in points.iter().filter(|point| point.series == at) {
            own.push(scene.place(point));
        }
        let marker = figure.series.get(at).map_or(Marker::Circle, |series| series.marker);
        let radius = scene.radius(at, frame.x);
        let outline = if radius < RADIUS { 0.0 } else { OUTLINE };
        let layers =
            [(radius + outline, palette.weak_text), (radius, shade_of(figure, at, palette))];
        for (radius, colour) in layers {
            let points = Points::new("", own.clone()).shape(marker_shape(marker));
            plot.points(points.radius(radius).color(colour).allow_hover(false));
        }
    }
    let path: Vec<[f64; 2]> = (0..).map(f64::from).zip(look.path).map(|(x, y)| [x, *y]).collect();
    if !path.is_empty() {
        let line = Line::new("", path.clone()).color(palette.text).width(2.5);
        plot.line(line.allow_hover(false));
        plot.points(Points::new("", path).color(palette.text).radius(4.5).allow_hover(false));
    }
    let chosen = figure.marks.points.iter().filter(|point| Some(point.id) == look.chosen);
    let chosen: Vec<[f64; 2]> = chosen.map(|point| scene.place(point)).collect();
    let ring = Points::new("", chosen).shape(MarkerShape::Circle).filled(false);
    plot.points(ring.radius(RADIUS + 4.0).color(palette.selection).allow_hover(false));
    // Lines that pass behind a label leave it readable.
    let ground = plot.ctx().global_style().visuals.extreme_bg_color.gamma_multiply(LABEL_GROUND);
    for label in &figure.labels {
        let [x, y] = scene.at(label.at);
        // Beside the mark of a point.
        let x = x + LABEL_GAP * pixel[0];
        let y = y + LABEL_GAP / 2.0 * pixel[1];
        let words = RichText::new(format!(" {} ", label.text));
        let words = words.size(text_size::SMALL).background_color(ground);
        let text = Text::new("", PlotPoint::new(x, y), words).color(palette.text);
        plot.text(text.anchor(Align2::LEFT_BOTTOM).allow_hover(false));
    }
}

fn style(line: Line<'_>, dashed: bool) -> Line<'_> {
    if dashed { line.style(LineStyle::dashed_loose()) } else { line }
}

/// Stacked areas. A column of pixels that covers several places shows the fullest one.
fn draw_layers(plot: &mut PlotUi<'_>, figure: &Figure, palette: &ThemePalette, width: f32) {
    let (each, places) = figure.columns(width.max(1.0) as usize);
    let mut feet = vec![0.0; 2 * places.len()];
    let mut xs = Vec::with_capacity(feet.len());
    for at in 0..places.len() {
        xs.extend([at, at + 1].map(|at| (at * each) as f64));
    }
    for layer in &figure.marks.layers {
        let mut tops = feet.clone();
        for (at, place) in places.iter().enumerate() {
            let value = layer.values.get(*place).copied().unwrap_or(0.0);
            tops[2 * at] += value;
            tops[2 * at + 1] += value;
        }
        let area = FilledArea::new("", &xs, &feet, &tops);
        let area = area.fill_color(shade_of(figure, layer.series, palette));
        plot.add(area.allow_hover(false));
        feet = tops;
    }
}

/// The first points of each cell. Cells are enlarged if there are too many points.
fn thinned<'a>(scene: &PlotScene<'a>, mut cell: [f64; 2], most: usize) -> Vec<&'a FigurePoint> {
    loop {
        let mut taken = BTreeSet::new();
        let mut drawn = Vec::new();
        for point in &scene.figure.marks.points {
            let at = scene.place(point);
            let [x, y] = [0, 1].map(|axis| (at[axis] / cell[axis].max(1e-12)).floor() as i64);
            if taken.insert((x, y, point.series)) {
                drawn.push(point);
            }
        }
        if drawn.len() <= most {
            return drawn;
        }
        cell = cell.map(|side| side.max(1e-12) * 2.0);
    }
}

fn point_words_ui(
    response: &Response,
    scene: &PlotScene<'_>,
    transform: &PlotTransform,
    point: &FigurePoint,
) {
    let place = scene.screen(transform, point);
    let is_near = |of: &&FigurePoint| scene.screen(transform, of).distance(place) < 1.0;
    let others = scene.figure.marks.points.iter().filter(is_near).count().saturating_sub(1);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(strong(point.name.chars().take(200).collect::<String>()));
        ui.label(&point.about);
        if others > 0 {
            let words = format!("and {} more here", grouped(others as u64));
            ui.weak(words);
        }
    });
}

/// The values of a place of layers, from the top down.
fn layer_words_ui(response: &Response, figure: &Figure, x: f64) {
    let place = x.max(0.0) as usize;
    let layers = &figure.marks.layers;
    if x < 0.0 || layers.iter().all(|layer| layer.values.len() <= place) {
        return;
    }
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(strong(format!("{} {}", figure.x.title, grouped(place as u64))));
        for layer in layers.iter().rev() {
            let name = figure.series.get(layer.series).map_or("", |series| &series.name);
            let value = layer.values.get(place).copied().unwrap_or(0.0);
            ui.label(format!("{name}: {}", figure.y.unit.text(value)));
        }
    });
}

/// The subject that an arrow key moves to, from left to right.
fn stepped(response: &Response, scene: &PlotScene<'_>) -> Option<usize> {
    if !scene.look.chooses || !keeps_arrows(response, ALL_ARROWS) {
        return None;
    }
    let is_any_pressed = |keys: [Key; 2]| {
        response.ctx.input(|input| keys.into_iter().any(|key| input.key_pressed(key)))
    };
    let forward = is_any_pressed([Key::ArrowRight, Key::ArrowUp]);
    let back = is_any_pressed([Key::ArrowLeft, Key::ArrowDown]);
    if forward == back {
        return None;
    }
    let mut order: Vec<&FigurePoint> = scene.figure.marks.points.iter().collect();
    order.sort_by(|one, other| {
        let by_place = one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y));
        by_place.then(one.id.cmp(&other.id))
    });
    let current = order.iter().position(|point| Some(point.id) == scene.look.chosen);
    let next = match current {
        None => 0,
        Some(at) if forward => at + 1,
        Some(at) => at.checked_sub(1)?,
    };
    order.get(next).map(|point| point.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_analysis::figures::{FigureSeries, Shade};

    #[test]
    fn points_on_one_pixel_are_drawn_once_and_never_too_many() {
        let point = |id: usize| {
            let name = String::new();
            let about = String::new();
            FigurePoint { x: id as f64 / 10.0, y: 0.0, series: 0, id, name, about }
        };
        let figure = Figure {
            series: vec![FigureSeries::new("", Shade::Plain)],
            marks: FigureMarks { points: (0..1000).map(point).collect(), ..Default::default() },
            ..Figure::default()
        };
        let scene = PlotScene::new(&figure, FigureLook::default());
        assert_eq!(thinned(&scene, [1.0, 1.0], 1000).len(), 100);
        let few = thinned(&scene, [1.0, 1.0], 30);
        assert!(few.len() <= 30 && few[0].id == 0, "{}", few.len());
    }
}
