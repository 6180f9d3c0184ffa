//! Figures of topics, drawn with `egui_plot`.

use super::elided_text::shortened;
use super::fixed_plot::fixed_plot;
use super::log_plot::{decade_label, decade_marks, log_position};
use super::plot_axis::{titled_x_axis, width_of_words, y_axis_for};
use super::plot_marker::{OUTLINE, RADIUS, marker_label_ui, marker_shape};
use super::{focus_ui, node_ui};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use egui::accesskit::Role;
use egui::{Align2, Color32, FontId, Rangef, Rect, RichText, Ui, WidgetInfo, vec2};
use egui_plot::{Bar, BarChart, GridMark, Line, Plot, PlotPoint, PlotResponse, Points, Text};
use tilescope_analysis::figures::{
    Figure, FigureAxis, FigureBar, FigureLine, FigureMarks, FigurePoint, FigureUnit, Marker, Shade,
    peaks, round_step,
};
use tilescope_report::units::{NumberFormat, grouped, percent, with_prefix};

/// Least and most room for numbers behind bars, as a share of the axis, and the gap in front of them.
const NUMBER_ROOM: (f64, f64) = (0.28, 1.5);
const NUMBER_GAP: f64 = 0.012;
/// Height of a bar; rows are one apart.
const BAR_HEIGHT: f64 = 0.72;
/// Fewest points between two rows in which their names can be read.
const LEAST_ROW: f32 = 16.0;
/// Points between marks of a vertical axis from which on their words are drawn, and from which on in
/// full: `egui_plot` would fade words that are less than two lines apart, and leaves out by itself what
/// would overlap.
const WORDS_SPACING: Rangef = Rangef { min: 12.0, max: 14.0 };
/// Letters of a name beside a bar.
const NAME_LETTERS: usize = 36;
/// Room beside values, as a share of what is between them.
const EDGE: f64 = 0.05;
/// How near the pointer has to come to a point.
const REACH: f32 = 14.0;
/// Points that are drawn at most: the first lie on top.
const MOST_POINTS: usize = 4_000;
/// Nodes of the accessibility tree.
const MOST_NODES: usize = 200;

/// The colour of a shade.
fn colour(palette: &ThemePalette, shade: Shade) -> Color32 {
    match shade {
        Shade::Whole => palette.outline,
        Shade::Plain => palette.balance,
        Shade::Nth(place) => palette.categorical_colour(place.into()),
        Shade::Class(class) => palette.cycle_class(class),
        Shade::Waterfall(step) => palette.waterfall(step),
        Shade::Activity(activity) => palette.activity(activity),
    }
}

/// The height that a figure takes where there is room for it.
pub(crate) fn height_of(figure: &Figure) -> f32 {
    match &figure.marks {
        FigureMarks::Bars(bars) => 60.0 + 22.0 * bars.len() as f32,
        FigureMarks::Points(_) | FigureMarks::Lines(_) => 260.0,
    }
}

/// Draws a figure into all of the room, with its legend above it.
pub(crate) fn figure_ui(ui: &mut Ui, figure: &Figure) {
    let palette = ThemePalette::for_ui(ui);
    legend_ui(ui, figure, palette);
    let shown = match &figure.marks {
        FigureMarks::Bars(bars) => bars_ui(ui, figure, bars),
        FigureMarks::Points(points) => points_ui(ui, figure, points),
        FigureMarks::Lines(lines) => lines_ui(ui, figure, lines),
    };
    let response = &shown.response;
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, &figure.title));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(figure.words()));
    focus_ui(ui, response, *shown.transform.frame());
}

/// Names of series with their colours, where names of bars do not say the same.
fn legend_ui(ui: &mut Ui, figure: &Figure, palette: &ThemePalette) {
    if !figure.has_legend() {
        return;
    }
    let has_markers = matches!(figure.marks, FigureMarks::Points(_));
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(spacing::M, 0.0);
        for series in figure.used_series().into_iter().filter_map(|at| figure.series.get(at)) {
            let marker = if has_markers { series.marker } else { Marker::Square };
            marker_label_ui(ui, marker, colour(palette, series.shade), &series.name);
        }
    });
}

fn bars_ui(ui: &mut Ui, figure: &Figure, bars: &[FigureBar]) -> PlotResponse<()> {
    let palette = ThemePalette::for_ui(ui);
    let last = bars.len() as f64 - 1.0;
    let names: Vec<String> = bars.iter().map(|bar| shortened(&bar.name, NAME_LETTERS)).collect();
    let (low, high) = figure.bounds(0);
    let span = high - low;
    let names_width = width_of_words(ui, names.clone());
    let y_axis = y_axis_for(ui, "", names.clone()).formatter(move |mark: GridMark, _| {
        let at = mark.value.round();
        let is_row = (mark.value - at).abs() < 1e-6 && at >= 0.0;
        let name = if is_row { names.get(at as usize) } else { None };
        name.cloned().unwrap_or_default()
    });
    let unit = figure.x.unit;
    let step = match unit {
        FigureUnit::Share => span / 4.0,
        unit => round_step(span / 4.0, unit == FigureUnit::Bytes),
    };
    let x_axis = titled_x_axis(ui, figure.x.title.clone())
        .formatter(move |mark: GridMark, _| tick_text(unit, mark.value));
    // A row for each name that can be read; the others are in the table and on hover.
    let rows = (ui.available_height() / LEAST_ROW).max(1.0);
    let each = (bars.len() as f32 / rows).ceil().max(1.0) as usize;
    let room = number_room(ui, bars, (low, high), ui.available_width() - names_width);
    let bounds = [(low, high + span * room), (-0.7, last + 0.7)];
    let plot = fixed_plot(&figure.title, bounds, palette)
        .custom_x_axes(vec![x_axis.tick_label_color(palette.weak_text)])
        .custom_y_axes(vec![y_axis.tick_label_color(palette.text).label_spacing(WORDS_SPACING)])
        .x_grid_spacer(move |_| marks_between(low, high, step))
        .y_grid_spacer(move |_| marks_between(0.0, last, each as f64))
        .show_grid([true, false])
        .invert_y(true)
        // Other rows: the bounds of the last frame are no longer those.
        .reset();
    let shown = plot.show(ui, |plot| {
        let mut drawn = Vec::new();
        for (row, bar) in bars.iter().enumerate() {
            for part in &bar.parts {
                let colour = shade_of(figure, part.series, palette);
                drawn.push(
                    Bar::new(row as f64, part.to - part.from)
                        .base_offset(part.from)
                        .width(BAR_HEIGHT)
                        .fill(colour)
                        // A part of less than a pixel is still seen.
                        .stroke((1.0, colour)),
                );
            }
        }
        plot.bar_chart(BarChart::new("", drawn).horizontal().allow_hover(false));
        // Without room for them, numbers would lie on each other.
        let row_height = plot.transform().dpos_dvalue_y().abs();
        if row_height < f64::from(text_size::SMALL) + 2.0 {
            return;
        }
        for (row, bar) in bars.iter().enumerate() {
            let place = PlotPoint::new(end_of(bar) + span * NUMBER_GAP, row as f64);
            let words = RichText::new(&bar.value).size(text_size::SMALL);
            plot.text(
                Text::new("", place, words)
                    .color(palette.text)
                    .anchor(Align2::LEFT_CENTER)
                    .allow_hover(false),
            );
        }
    });
    let pointed = shown.response.hover_pos();
    let pointed = pointed.map(|at| shown.transform.value_from_position(at).y.round());
    if let Some(bar) = pointed.filter(|at| *at >= 0.0).and_then(|at| bars.get(at as usize)) {
        shown.response.clone().on_hover_ui_at_pointer(|ui| bar_words_ui(ui, figure, bar));
    }
    for (row, bar) in bars.iter().enumerate().take(MOST_NODES) {
        let start = bar.parts.first().map_or(0.0, |part| part.from);
        let corner = |value: f64, side: f64| {
            let place = PlotPoint::new(value, row as f64 + side * BAR_HEIGHT / 2.0);
            shown.transform.position_from_point(&place)
        };
        let rect = Rect::from_two_pos(corner(start, -1.0), corner(end_of(bar), 1.0));
        node_ui(ui, shown.response.id.with(("bar", row)), rect, Role::GraphicsObject, || {
            (bar.name.clone(), bar.value.clone())
        });
    }
    shown
}

/// Room behind the longest bar as a share of the axis, so that the number behind each bar is within a
/// plot that is so many points wide.
fn number_room(ui: &Ui, bars: &[FigureBar], (low, high): (f64, f64), plot_width: f32) -> f64 {
    let font = FontId::proportional(text_size::SMALL);
    let colour = ui.visuals().text_color();
    let width = f64::from(plot_width);
    let (mut room, most) = NUMBER_ROOM;
    for bar in bars {
        let number = ui.painter().layout_no_wrap(bar.value.clone(), font.clone(), colour).size().x;
        let end = (end_of(bar) - low) / (high - low) + 2.0 * NUMBER_GAP;
        room = room.max(end * width / (width - f64::from(number)).max(1.0) - 1.0);
    }
    room.min(most)
}

fn bar_words_ui(ui: &mut Ui, figure: &Figure, bar: &FigureBar) {
    ui.label(strong(&bar.name));
    match bar.parts.as_slice() {
        [_] => {}
        parts => {
            for part in parts {
                let name = figure.series.get(part.series).map_or("", |series| &series.name);
                let amount = figure.x.unit.text(part.to - part.from);
                ui.label(format!("{name}: {amount}"));
            }
        }
    }
    if bar.about.is_empty() {
        ui.label(&bar.value);
    } else {
        ui.label(RichText::new(&bar.about).color(ThemePalette::for_ui(ui).weak_text));
    }
}

fn points_ui(ui: &mut Ui, figure: &Figure, points: &[FigurePoint]) -> PlotResponse<()> {
    let palette = ThemePalette::for_ui(ui);
    let drawn = &points[..points.len().min(MOST_POINTS)];
    let place = |point: &FigurePoint| [place_of(&figure.x, point.x), place_of(&figure.y, point.y)];
    let shown = plot_of(ui, figure).show(ui, |plot| {
        for guide in &figure.guides {
            let ends = [guide.from, guide.to]
                .map(|[x, y]| [place_of(&figure.x, x), place_of(&figure.y, y)]);
            let line = Line::new("", ends.to_vec()).color(palette.weak_text).width(1.0);
            plot.line(line.allow_hover(false));
            let words = RichText::new(&guide.name).size(text_size::CAPTION);
            // Level lines have their names at the right, slanted ones at the left: there they are
            // apart.
            let (end, anchor) = if ends[0][1] == ends[1][1] {
                (ends[1], Align2::RIGHT_BOTTOM)
            } else {
                (ends[0], Align2::LEFT_BOTTOM)
            };
            let place = PlotPoint::new(end[0], end[1]);
            plot.text(
                Text::new("", place, words)
                    .color(palette.weak_text)
                    .anchor(anchor)
                    .allow_hover(false),
            );
        }
        for at in figure.used_series() {
            let own = drawn.iter().filter(|point| point.series == at);
            let own: Vec<[f64; 2]> = own.map(place).collect();
            let marker = figure.series.get(at).map_or(Marker::Circle, |series| series.marker);
            let layers =
                [(RADIUS + OUTLINE, palette.weak_text), (RADIUS, shade_of(figure, at, palette))];
            for (radius, colour) in layers {
                let points = Points::new("", own.clone()).shape(marker_shape(marker));
                plot.points(points.radius(radius).color(colour).allow_hover(false));
            }
        }
    });
    let screen = |point: &FigurePoint| {
        let [x, y] = place(point);
        shown.transform.position_from_point(&PlotPoint::new(x, y))
    };
    if let Some(pointer) = shown.response.hover_pos() {
        let near = drawn.iter().map(|point| (screen(point).distance(pointer), point));
        let near = near.filter(|(distance, _)| *distance <= REACH);
        if let Some((_, point)) = near.min_by(|one, other| one.0.total_cmp(&other.0)) {
            shown.response.clone().on_hover_ui_at_pointer(|ui| {
                ui.label(&point.about);
            });
        }
    }
    for (number, point) in drawn.iter().enumerate().take(MOST_NODES) {
        let rect = Rect::from_center_size(screen(point), vec2(RADIUS, RADIUS) * 2.0);
        node_ui(ui, shown.response.id.with(("point", number)), rect, Role::GraphicsObject, || {
            (point.about.clone(), String::new())
        });
    }
    shown
}

fn lines_ui(ui: &mut Ui, figure: &Figure, lines: &[FigureLine]) -> PlotResponse<()> {
    let palette = ThemePalette::for_ui(ui);
    let pixels = ui.available_width().max(1.0) as usize;
    let shown = plot_of(ui, figure).show(ui, |plot| {
        for line in lines {
            let mut points = peaks(&line.points, pixels);
            for point in &mut points {
                *point = [place_of(&figure.x, point[0]), place_of(&figure.y, point[1])];
            }
            let colour = shade_of(figure, line.series, palette);
            plot.line(Line::new("", points).color(colour).width(1.5).allow_hover(false));
        }
    });
    if let Some(pointer) = shown.response.hover_pos().filter(|_| !figure.x.logarithmic) {
        let x = shown.transform.value_from_position(pointer).x;
        shown.response.clone().on_hover_ui_at_pointer(|ui| {
            for line in lines {
                let at = line.points.partition_point(|point| point[0] < x.round());
                let Some([at, value]) = line.points.get(at) else { continue };
                let name = figure.series.get(line.series).map_or("", |series| &series.name);
                let (x, y) = (figure.x.unit.text(*at), figure.y.unit.text(*value));
                ui.label(format!("{name} at {x}: {y}"));
            }
        });
    }
    shown
}

/// An empty plot with the axes of points and lines.
fn plot_of<'a>(ui: &Ui, figure: &Figure) -> Plot<'a> {
    let palette = ThemePalette::for_ui(ui);
    let bounds = [(&figure.x, 0), (&figure.y, 1)].map(|(axis, at)| {
        let (low, high) = figure.bounds(at);
        let (low, high) = (place_of(axis, low), place_of(axis, high));
        let room = (high - low).max(f64::MIN_POSITIVE) * EDGE;
        (low - if low == 0.0 { 0.0 } else { room }, high + room)
    });
    let (_, highest) = figure.bounds(1);
    let y_words = [tick_text(figure.y.unit, highest), "000.0 MiB".to_owned()];
    let mut x_axis = titled_x_axis(ui, figure.x.title.clone());
    let mut y_axis = y_axis_for(ui, &figure.y.title, y_words);
    x_axis = match (figure.x.logarithmic, figure.x.unit) {
        (true, _) => x_axis.formatter(|mark, _| decade_label(mark)),
        (false, unit) => x_axis.formatter(move |mark, _| tick_text(unit, mark.value)),
    };
    y_axis = match (figure.y.logarithmic, figure.y.unit) {
        (true, _) => y_axis.formatter(|mark, _| decade_label(mark)),
        (false, unit) => y_axis.formatter(move |mark, _| tick_text(unit, mark.value)),
    };
    let mut plot = fixed_plot(&format!("{} {bounds:?}", figure.title), bounds, palette)
        .custom_x_axes(vec![x_axis.tick_label_color(palette.weak_text)])
        .custom_y_axes(vec![
            y_axis.tick_label_color(palette.weak_text).label_spacing(WORDS_SPACING),
        ]);
    let (left, right) = figure.bounds(0);
    let (foot, top) = figure.bounds(1);
    plot = match (figure.x.logarithmic, figure.x.unit == FigureUnit::Bytes) {
        (true, _) => plot.x_grid_spacer(decade_marks),
        (false, of_bytes) => {
            let step = round_step((right - left) / 6.0, of_bytes);
            plot.x_grid_spacer(move |_| marks_between(left, right, step))
        }
    };
    plot = match (figure.y.logarithmic, figure.y.unit == FigureUnit::Bytes) {
        (true, _) => plot.y_grid_spacer(decade_marks),
        (false, of_bytes) => {
            let step = round_step((top - foot) / 4.0, of_bytes);
            plot.y_grid_spacer(move |_| marks_between(foot, top, step))
        }
    };
    plot
}

fn place_of(axis: &FigureAxis, value: f64) -> f64 {
    if axis.logarithmic { log_position(value) } else { value }
}

fn shade_of(figure: &Figure, series: usize, palette: &ThemePalette) -> Color32 {
    figure.series.get(series).map_or(palette.other, |series| colour(palette, series.shade))
}

fn end_of(bar: &FigureBar) -> f64 {
    bar.parts.iter().map(|part| part.to).fold(0.0, f64::max)
}

/// A number at an axis, in few letters.
fn tick_text(unit: FigureUnit, value: f64) -> String {
    match unit {
        _ if value < 0.0 => String::new(),
        FigureUnit::Share => percent(value).replace(".0 %", " %"),
        FigureUnit::Bytes => NumberFormat::default().bytes(value as u64),
        _ if value >= 1e5 => with_prefix(value, "").trim_end().to_owned(),
        _ => grouped(value as u64),
    }
}

fn marks_between(low: f64, high: f64, step: f64) -> Vec<GridMark> {
    let mut marks = Vec::new();
    if step <= 0.0 || !step.is_finite() {
        return marks;
    }
    let count = ((high - low) / step + 1e-9) as usize;
    for at in 0..=count {
        marks.push(GridMark { value: low + at as f64 * step, step_size: step });
    }
    marks
}
