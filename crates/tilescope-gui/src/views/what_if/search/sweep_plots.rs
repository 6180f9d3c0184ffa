//! What `tilescope sweep` found, as plots: time over the values of a key, time beside memory, and
//! keys beside figures.

use super::found::{changes_words, point_words};
use super::parallel_plot::{ParallelScene, parallel_ui};
use super::plot_choice::{PlacedPoint, PlotChoice};
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::fixed_plot::fixed_plot;
use crate::widgets::plot_axis::{titled_x_axis, y_axis_for};
use crate::widgets::plot_marker::{OUTLINE, RADIUS, marker_label_ui, marker_shape};
use egui::{Align2, Label, RichText, Ui, Vec2, vec2};
use egui_plot::{AxisHints, GridMark, Line, MarkerShape, Plot, PlotPoint, Points, Text};
use std::collections::BTreeSet;
use tilescope_analysis::figures::Marker;
use tilescope_experiments::answers::{SweepAnswer, SweepPoint, value_text};

/// Largest and least size of a plot.
const SIZE: Vec2 = vec2(520.0, 400.0);
const LEAST_WIDTH: f32 = 360.0;

/// Shapes of the points of lines, so that colours are not needed to tell them apart; of more lines
/// there is no plot.
const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Up,
    Marker::Diamond,
    Marker::Cross,
    Marker::Down,
    Marker::Plus,
    Marker::Left,
];

/// Most points of the front that have a number and a line below the plots.
const MOST_NUMBERED: usize = 9;

/// Room beside the first and last value, as a share of what is between them.
const EDGE: f64 = 0.08;

/// Points that are nearer to each other than this share of a plot are drawn as one.
const CELLS: f64 = 400.0;

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
    points: Vec<PlacedPoint>,
}

/// What is drawn of a sweep: made once, however long it is looked at.
pub(crate) struct SweepScene {
    unit: TimeUnit,
    /// Words of the values of the first key.
    values: Vec<String>,
    lines: Vec<SweepLine>,
    /// Places of points of the front.
    front: Vec<usize>,
    /// Points of the front, and others, by memory and time.
    on: Vec<PlacedPoint>,
    off: Vec<PlacedPoint>,
    parallel: ParallelScene,
}

impl SweepScene {
    /// Nothing where no point fits in memory.
    pub(crate) fn new(answer: &SweepAnswer) -> Option<Self> {
        let times = answer.points.iter().filter_map(|found| found.point.seconds_per_sample());
        let largest = times.fold(0.0, f64::max);
        if largest <= 0.0 {
            return None;
        }
        let unit = TimeUnit::of(largest);
        let place = |SweepPoint { point, .. }: &SweepPoint| {
            Some([point.memory()? / 1024.0, point.seconds_per_sample()? * unit.scale])
        };
        let placed = |wanted: bool| {
            let own = answer.points.iter().enumerate();
            let own = own.filter(|(_, point)| point.pareto_front == wanted);
            own.filter_map(|(at, point)| Some((place(point)?, at))).collect::<Vec<_>>()
        };
        let (on, off) = (placed(true), thinned(placed(false)));
        let key = answer.keys.first();
        let values = key.map(|key| answer.values_of(key)).unwrap_or_default();
        let lines = key.map(|key| lines(answer, key, unit)).unwrap_or_default();
        Some(Self {
            unit,
            values: values.iter().map(|value| value_text(Some(value))).collect(),
            lines,
            front: on.iter().map(|(_, at)| *at).collect(),
            on,
            off,
            parallel: ParallelScene::new(answer, unit),
        })
    }
}

fn lines(answer: &SweepAnswer, key: &str, unit: TimeUnit) -> Vec<SweepLine> {
    let values = answer.values_of(key);
    let mut lines: Vec<SweepLine> = Vec::new();
    for (at, SweepPoint { point, .. }) in answer.points.iter().enumerate() {
        let name = changes_words(point.changes.iter().filter(|(path, _)| *path != key));
        let place = values.iter().position(|value| Some(value) == point.changes.get(key));
        let (Some(place), Some(time)) = (place, point.seconds_per_sample()) else { continue };
        let point = ([place as f64, time * unit.scale], at);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(SweepLine { name, points: vec![point] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
    }
    lines
}

/// The first of the points that would lie on each other.
fn thinned(points: Vec<PlacedPoint>) -> Vec<PlacedPoint> {
    let bounds = [0, 1].map(|axis| around(points.iter().map(|(at, _)| at[axis])));
    let mut taken = BTreeSet::new();
    let cell = |at: [f64; 2]| {
        [0, 1].map(|axis| {
            let (low, high) = bounds[axis];
            ((at[axis] - low) / (high - low) * CELLS) as i64
        })
    };
    points.into_iter().filter(|(at, _)| taken.insert(cell(*at))).collect()
}

/// The plots, and the points of the front below them; the point that was clicked.
pub(super) fn sweep_page_ui(
    ui: &mut Ui,
    answer: &SweepAnswer,
    scene: Option<&SweepScene>,
    chosen: Option<usize>,
) -> Option<usize> {
    let palette = ThemePalette::for_ui(ui);
    let Some(scene) = scene else {
        let words = match answer.points.is_empty() {
            true => "No point meets the conditions.",
            false => "No point fits in memory.",
        };
        ui.label(words);
        return None;
    };
    let point = |at: usize| Some(&answer.points.get(at)?.point);
    let mut choice = PlotChoice { point: &point, chosen, clicked: None };
    let (width, gap) = (ui.available_width(), ui.spacing().item_spacing.x);
    let half = ((width - gap) / 2.0).min(SIZE.x);
    let plots = |ui: &mut Ui, choice: &mut PlotChoice<'_>, width: f32| {
        let size = vec2(width, (width * SIZE.y / SIZE.x).min(SIZE.y));
        lines_ui(ui, answer, scene, size, choice);
        front_ui(ui, scene, size, choice);
    };
    match half >= LEAST_WIDTH {
        true => ui.horizontal(|ui| plots(ui, &mut choice, half)),
        false => ui.vertical(|ui| plots(ui, &mut choice, width.min(SIZE.x))),
    };
    let is_told_apart = (2..=MARKERS.len()).contains(&scene.lines.len());
    if is_told_apart {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(spacing::M, 0.0);
            for (place, (line, marker)) in scene.lines.iter().zip(MARKERS).enumerate() {
                marker_label_ui(ui, marker, palette.categorical_colour(place), &line.name);
            }
        });
    }
    ui.add_space(spacing::S);
    parallel_ui(ui, &scene.parallel, &mut choice);
    ui.add_space(spacing::S);
    let words = "Nothing is better than these in time, memory and IPUs at once:";
    ui.label(RichText::new(words).color(palette.weak_text).size(text_size::SMALL));
    let front = scene.front.iter().filter_map(|at| point(*at));
    for (number, point) in (1..).zip(front).take(MOST_NUMBERED) {
        let words = format!("{number}  {}", point_words(point));
        ui.add(Label::new(RichText::new(words).size(text_size::SMALL)).wrap());
    }
    if scene.front.len() > MOST_NUMBERED {
        let more = format!("and {} more", scene.front.len() - MOST_NUMBERED);
        ui.label(RichText::new(more).color(palette.weak_text).size(text_size::SMALL));
    }
    choice.clicked
}

/// An empty plot with named axes, that nothing moves.
pub(super) fn plot_with_axes<'a>(
    ui: &Ui,
    name: &str,
    (x, y): (AxisHints<'a>, &str),
    bounds: [(f64, f64); 2],
    size: Vec2,
) -> Plot<'a> {
    let palette = ThemePalette::for_ui(ui);
    let (_, top) = bounds[1];
    // The most digits that numbers up to the top have.
    let widest = format!("{:.1}", top);
    let y_axis = y_axis_for(ui, y, [widest]).tick_label_color(palette.weak_text);
    // A plot keeps the bounds that it began with: while points come, others are another plot.
    fixed_plot(&format!("{name} {bounds:?}"), bounds, palette)
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
fn lines_ui(
    ui: &mut Ui,
    answer: &SweepAnswer,
    scene: &SweepScene,
    size: Vec2,
    choice: &mut PlotChoice<'_>,
) {
    let palette = ThemePalette::for_ui(ui);
    let Some(key) = answer.keys.first() else { return };
    if scene.lines.len() > MARKERS.len() {
        let words = format!("{} lines are too many to be told apart.", scene.lines.len());
        match ui.layout().is_horizontal() {
            true => drop(ui.add_sized(size, Label::new(words))),
            false => drop(ui.label(words)),
        }
        return;
    }
    let drawn: Vec<PlacedPoint> =
        scene.lines.iter().flat_map(|line| line.points.iter().copied()).collect();
    let highest = drawn.iter().map(|(at, _)| at[1]).fold(0.0, f64::max);
    let bounds = [around(drawn.iter().map(|(at, _)| at[0])), (0.0, highest * (1.0 + EDGE))];
    let names = scene.values.clone();
    // One beside the other, since most are doubled each time.
    let count = names.len();
    let x_axis = titled_x_axis(ui, key.clone()).formatter(move |mark: GridMark, _| {
        names.get(mark.value.round().max(0.0) as usize).cloned().unwrap_or_default()
    });
    let every =
        move |_| (0..count).map(|place| GridMark { value: place as f64, step_size: 1.0 }).collect();
    let shown = plot_with_axes(ui, "sweep lines", (x_axis, &scene.unit.axis()), bounds, size)
        .x_grid_spacer(every);
    let shown = shown.show(ui, |plot| {
        for (place, (line, marker)) in scene.lines.iter().zip(MARKERS).enumerate() {
            let colour = palette.categorical_colour(place);
            let points = || line.points.iter().map(|(at, _)| *at).collect::<Vec<_>>();
            plot.line(Line::new("", points()).color(colour).width(1.5).allow_hover(false));
            for (radius, colour) in [(RADIUS + OUTLINE, palette.weak_text), (RADIUS, colour)] {
                let marks = Points::new("", points()).shape(marker_shape(marker));
                plot.points(marks.radius(radius).color(colour).allow_hover(false));
            }
        }
        choice.ring(palette, plot, &drawn);
    });
    choice.take(&shown, &format!("Time per sample over {key}"), &drawn);
}

/// All points by memory and time, those of the front with numbers.
fn front_ui(ui: &mut Ui, scene: &SweepScene, size: Vec2, choice: &mut PlotChoice<'_>) {
    let palette = ThemePalette::for_ui(ui);
    let drawn: Vec<PlacedPoint> = scene.on.iter().chain(&scene.off).copied().collect();
    let bounds = [0, 1].map(|axis| around(drawn.iter().map(|(at, _)| at[axis])));
    let x_axis = titled_x_axis(ui, "Memory of the fullest tile (KiB)");
    let plot = plot_with_axes(ui, "sweep front", (x_axis, &scene.unit.axis()), bounds, size);
    let shown = plot.show(ui, |plot| {
        let places = |points: &[PlacedPoint]| points.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        let off = Points::new("", places(&scene.off)).color(palette.outline);
        plot.points(off.radius(4.0).allow_hover(false));
        let on = Points::new("", places(&scene.on)).color(palette.selection);
        plot.points(on.shape(MarkerShape::Diamond).radius(6.0).allow_hover(false));
        for (number, ([x, y], _)) in (1..).zip(&scene.on).take(MOST_NUMBERED) {
            let words = RichText::new(format!("  {number}")).size(text_size::SMALL);
            // Neighbours have theirs on two sides.
            let anchor = if number % 2 == 1 { Align2::LEFT_BOTTOM } else { Align2::LEFT_TOP };
            plot.text(
                Text::new("", PlotPoint::new(*x, *y), words)
                    .color(palette.text)
                    .anchor(anchor)
                    .allow_hover(false),
            );
        }
        choice.ring(palette, plot, &drawn);
    });
    choice.take(&shown, "Time per sample over memory", &drawn);
}
