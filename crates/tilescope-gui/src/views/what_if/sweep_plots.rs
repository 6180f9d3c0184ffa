//! What `tilescope sweep` found, as plots: time over the values of a key, and time beside memory.

use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::fixed_plot::fixed_plot;
use crate::widgets::plot_axis::titled_x_axis;
use crate::widgets::plot_marker::{OUTLINE, RADIUS, marker_label_ui};
use egui::{Align2, Label, RichText, Ui, Vec2, vec2};
use egui_plot::{AxisHints, GridMark, Line, MarkerShape, Plot, PlotPoint, Points, Text};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tilescope_report::units::{NumberFormat, grouped, seconds};

/// Size of a plot.
const SIZE: Vec2 = vec2(520.0, 400.0);

/// Shapes of the points of lines, so that colours are not needed to tell them apart; of more lines
/// there is no plot.
const SHAPES: [MarkerShape; 8] = [
    MarkerShape::Circle,
    MarkerShape::Square,
    MarkerShape::Up,
    MarkerShape::Diamond,
    MarkerShape::Cross,
    MarkerShape::Down,
    MarkerShape::Plus,
    MarkerShape::Left,
];

/// Most points of the front that have a number and a line below the plots.
const MOST_NUMBERED: usize = 9;

/// Room beside the first and last value, as a share of what is between them.
const EDGE: f64 = 0.08;

/// What the program says of a sweep.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SweepAnswer {
    spec: String,
    /// Paths of the keys that vary.
    keys: Vec<String>,
    points: Vec<SweepPoint>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct SweepPoint {
    changes: BTreeMap<String, Value>,
    seconds_per_sample: Option<f64>,
    /// Bytes of the fullest tile.
    memory: Option<f64>,
    ipus: Option<u64>,
    pareto_front: bool,
}

impl SweepPoint {
    /// Kilobytes and time, where it fits.
    fn place(&self, unit: TimeUnit) -> Option<[f64; 2]> {
        Some([self.memory? / 1024.0, self.seconds_per_sample? * unit.scale])
    }

    fn words(&self) -> String {
        let time = self.seconds_per_sample.map_or_else(String::new, seconds);
        let memory = self.memory.unwrap_or(0.0).max(0.0) as u64;
        let memory = NumberFormat::default().bytes(memory);
        let ipus = match self.ipus {
            Some(1) => "1 IPU".to_owned(),
            ipus => format!("{} IPUs", grouped(ipus.unwrap_or(0))),
        };
        let words = changes_words(self.changes.iter());
        format!("{words}: {time} a sample, fullest tile {memory}, {ipus}")
    }
}

/// The unit in which times are of few digits.
#[derive(Clone, Copy)]
pub(super) struct TimeUnit {
    pub scale: f64,
    pub name: &'static str,
}

impl TimeUnit {
    pub(super) fn of(largest: f64) -> Self {
        let units = [(1.0, "s"), (1e3, "ms"), (1e6, "us")];
        let found = units.into_iter().find(|(scale, _)| largest * scale >= 1.0);
        let (scale, name) = found.unwrap_or((1e9, "ns"));
        Self { scale, name }
    }

    fn axis(self) -> String {
        format!("Time per sample ({})", self.name)
    }
}

/// Points with one value for each key but the first.
struct SweepLine {
    name: String,
    points: Vec<[f64; 2]>,
}

/// `num_io_tiles 32, overlap_io loops`
pub(super) fn changes_words<'a>(changes: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let words = changes.map(|(path, value)| {
        let name = path.rsplit('.').next().unwrap_or(path);
        match value {
            Value::String(word) => format!("{name} {word}"),
            value => format!("{name} {value}"),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Both plots, and the points of the front below them.
pub(crate) fn sweep_page_ui(ui: &mut Ui, answer: &SweepAnswer) {
    let palette = ThemePalette::for_ui(ui);
    ui.label(strong(format!("Sweep of {}", answer.spec)).size(text_size::TITLE));
    ui.add_space(spacing::S);
    let times = answer.points.iter().filter_map(|point| point.seconds_per_sample);
    let largest = times.fold(0.0, f64::max);
    if largest <= 0.0 {
        ui.label("No point fits in memory.");
        return;
    }
    let unit = TimeUnit::of(largest);
    let front: Vec<&SweepPoint> = answer.points.iter().filter(|point| point.pareto_front).collect();
    let lines = match answer.keys.first() {
        Some(key) => lines(answer, key, &values_of(answer, key), unit),
        None => Vec::new(),
    };
    ui.horizontal(|ui| {
        lines_ui(ui, answer, &lines, unit);
        front_ui(ui, answer, &front, unit);
    });
    if (2..=SHAPES.len()).contains(&lines.len()) {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(spacing::M, 0.0);
            for (place, (line, shape)) in lines.iter().zip(SHAPES).enumerate() {
                marker_label_ui(ui, shape, palette.categorical_colour(place), &line.name);
            }
        });
    }
    ui.add_space(spacing::S);
    let words = "Nothing is better than these in time, memory and IPUs at once:";
    ui.label(RichText::new(words).color(palette.weak_text).size(text_size::SMALL));
    for (number, point) in (1..).zip(&front).take(MOST_NUMBERED) {
        let words = format!("{number}  {}", point.words());
        ui.add(Label::new(RichText::new(words).size(text_size::SMALL)).wrap());
    }
    if front.len() > MOST_NUMBERED {
        let more = format!("and {} more", front.len() - MOST_NUMBERED);
        ui.label(RichText::new(more).color(palette.weak_text).size(text_size::SMALL));
    }
}

/// An empty plot with named axes, that nothing moves.
pub(super) fn plot_with_axes<'a>(
    name: &str,
    (x, y): (AxisHints<'a>, String),
    bounds: [(f64, f64); 2],
    size: Vec2,
    palette: &ThemePalette,
) -> Plot<'a> {
    let y_axis = AxisHints::new_y().label(y).tick_label_color(palette.weak_text);
    fixed_plot(name, bounds, palette)
        .width(size.x)
        .height(size.y)
        .custom_x_axes(vec![x.tick_label_color(palette.weak_text)])
        .custom_y_axes(vec![y_axis])
}

/// Room around values.
fn around(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    let (low, high) = ends.unwrap_or((0.0, 1.0));
    let room = if high > low { (high - low) * EDGE } else { high.abs().max(1.0) * EDGE };
    (low - room, high + room)
}

/// Time over the values of the first key, a line for each combination of the others.
fn lines_ui(ui: &mut Ui, answer: &SweepAnswer, lines: &[SweepLine], unit: TimeUnit) {
    let palette = ThemePalette::for_ui(ui);
    let Some(key) = answer.keys.first() else { return };
    let values = values_of(answer, key);
    if lines.len() > SHAPES.len() {
        let words = format!("{} lines are too many to be told apart.", lines.len());
        ui.add_sized(SIZE, Label::new(words));
        return;
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let highest = all().map(|point| point[1]).fold(0.0, f64::max);
    let bounds = [around(all().map(|point| point[0])), (0.0, highest * (1.0 + EDGE))];
    let names: Vec<String> = values.iter().map(changes_value).collect();
    // One beside the other, since most are doubled each time.
    let count = values.len();
    let x_axis = titled_x_axis(ui, key.clone()).formatter(move |mark: GridMark, _| {
        names.get(mark.value.round().max(0.0) as usize).cloned().unwrap_or_default()
    });
    let every =
        move |_| (0..count).map(|place| GridMark { value: place as f64, step_size: 1.0 }).collect();
    let shown = plot_with_axes("sweep lines", (x_axis, unit.axis()), bounds, SIZE, palette)
        .x_grid_spacer(every);
    shown.show(ui, |plot| {
        for (place, (line, shape)) in lines.iter().zip(SHAPES).enumerate() {
            let colour = palette.categorical_colour(place);
            let points = || line.points.clone();
            plot.line(Line::new("", points()).color(colour).width(1.5).allow_hover(false));
            for (radius, colour) in [(RADIUS + OUTLINE, palette.weak_text), (RADIUS, colour)] {
                let marks = Points::new("", points()).shape(shape);
                plot.points(marks.radius(radius).color(colour).allow_hover(false));
            }
        }
    });
}

/// The values of a key, each once, in their order.
fn values_of(answer: &SweepAnswer, key: &str) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for value in answer.points.iter().filter_map(|point| point.changes.get(key)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    if values.iter().all(Value::is_number) {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        values.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
    values
}

fn changes_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn lines(answer: &SweepAnswer, key: &str, values: &[Value], unit: TimeUnit) -> Vec<SweepLine> {
    let mut lines: Vec<SweepLine> = Vec::new();
    for point in &answer.points {
        let name = changes_words(point.changes.iter().filter(|(path, _)| *path != key));
        let place = values.iter().position(|value| Some(value) == point.changes.get(key));
        let (Some(place), Some(time)) = (place, point.seconds_per_sample) else { continue };
        let at = [place as f64, time * unit.scale];
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(at),
            None => lines.push(SweepLine { name, points: vec![at] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    }
    lines
}

/// All points by memory and time, those of the front with numbers.
fn front_ui(ui: &mut Ui, answer: &SweepAnswer, front: &[&SweepPoint], unit: TimeUnit) {
    let palette = ThemePalette::for_ui(ui);
    let places = |wanted: bool| -> Vec<[f64; 2]> {
        let own = answer.points.iter().filter(|point| point.pareto_front == wanted);
        own.filter_map(|point| point.place(unit)).collect()
    };
    let (on, off) = (places(true), places(false));
    let all = || on.iter().chain(&off);
    let bounds = [around(all().map(|at| at[0])), around(all().map(|at| at[1]))];
    let x_axis = titled_x_axis(ui, "Memory of the fullest tile (KiB)");
    plot_with_axes("sweep front", (x_axis, unit.axis()), bounds, SIZE, palette).show(ui, |plot| {
        plot.points(Points::new("", off).color(palette.outline).radius(4.0).allow_hover(false));
        let filled = Points::new("", on).color(palette.selection).shape(MarkerShape::Diamond);
        plot.points(filled.radius(6.0).allow_hover(false));
        for (number, point) in (1..).zip(front).take(MOST_NUMBERED) {
            let Some([x, y]) = point.place(unit) else { continue };
            let words = RichText::new(format!("  {number}")).size(text_size::SMALL);
            // Neighbours have theirs on two sides.
            let anchor = if number % 2 == 1 { Align2::LEFT_BOTTOM } else { Align2::LEFT_TOP };
            plot.text(
                Text::new("", PlotPoint::new(x, y), words)
                    .color(palette.text)
                    .anchor(anchor)
                    .allow_hover(false),
            );
        }
    });
}
