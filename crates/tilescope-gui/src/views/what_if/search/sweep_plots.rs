//! The figures of the points of `tilescope sweep`: time over the values of a key, time against
//! memory, and keys with figures.

use super::found::{all_changes_words, changes_words, figures_words, point_words};
use super::parallel_plot::{ParallelScene, parallel_ui};
use crate::theme::{spacing, text_size};
use crate::widgets::figure::{FigureLook, figure_ui};
use egui::{Align, Label, Layout, RichText, Ui, Vec2, vec2};
use tilescope_analysis::figures::{
    Figure, FigureAxis, FigureLabel, FigureLine, FigureMarks, FigurePoint, FigureSeries,
    FigureUnit, MarkWeight, Marker, Shade,
};
use tilescope_experiments::answers::{SweepAnswer, SweepPoint, value_text};
use tilescope_experiments::point::Point;

/// The largest size of a plot.
const SIZE: Vec2 = vec2(520.0, 400.0);
/// The smallest width of a plot.
const LEAST_WIDTH: f32 = 360.0;

/// The largest number of points of the front with a number and a line below the plots.
const MOST_NUMBERED: usize = 9;

/// The margin beside the first and last value, as a share of the distance between them.
const EDGE: f64 = 0.08;

/// The figures of a sweep, computed once.
pub(crate) struct SweepScene {
    /// The time over the values of the first key, with a line for each combination of the others.
    lines: Figure,
    /// The indices of the points of the front.
    front: Vec<usize>,
    /// All points by memory and time.
    memory: Figure,
    parallel: ParallelScene,
}

impl SweepScene {
    /// Creates the figures; `None` if no point fits in memory.
    pub(crate) fn new(answer: &SweepAnswer) -> Option<Self> {
        let times = answer.points.iter().filter_map(|found| found.point.seconds_per_sample());
        if times.fold(0.0, f64::max) <= 0.0 {
            return None;
        }
        let front = answer.points.iter().enumerate().filter(|(_, found)| found.pareto_front);
        let front = front.map(|(at, _)| at).collect();
        let lines = answer.keys.first().map(|key| lines(answer, key)).unwrap_or_default();
        Some(Self { lines, front, memory: memory(answer), parallel: ParallelScene::new(answer) })
    }
}

/// A point with its description, by its index among all points.
pub(super) fn figure_point([x, y]: [f64; 2], series: usize, id: usize, of: &Point) -> FigurePoint {
    FigurePoint { x, y, series, id, name: all_changes_words(of), about: figures_words(of) }
}

fn lines(answer: &SweepAnswer, key: &str) -> Figure {
    let values = answer.values_of(key);
    let mut series: Vec<FigureSeries> = Vec::new();
    let mut points = Vec::new();
    for (id, SweepPoint { point, .. }) in answer.points.iter().enumerate() {
        let name = changes_words(point.changes.iter().filter(|(path, _)| *path != key));
        let place = values.iter().position(|value| Some(value) == point.changes.get(key));
        let (Some(place), Some(time)) = (place, point.seconds_per_sample()) else { continue };
        let at = series.iter().position(|line| line.name == name).unwrap_or_else(|| {
            let shade = Shade::Nth(u8::try_from(series.len()).unwrap_or(u8::MAX));
            series.push(FigureSeries::new(name, shade));
            series.len() - 1
        });
        points.push(figure_point([place as f64, time], at, id, point));
    }
    let mut lines = Vec::new();
    for series in 0..series.len() {
        let own = points.iter().filter(|point| point.series == series);
        let mut places: Vec<[f64; 2]> = own.map(|point| [point.x, point.y]).collect();
        places.sort_by(|one, other| one[0].total_cmp(&other[0]));
        lines.push(FigureLine { series, points: places });
    }
    let highest = points.iter().map(|point| point.y).fold(0.0, f64::max);
    let names = values.iter().map(|value| value_text(Some(value))).collect();
    Figure {
        title: format!("Time per sample over {key}"),
        x: FigureAxis::of_names(key, names),
        y: FigureAxis::new("Time per sample", FigureUnit::Seconds)
            .between([0.0, highest * (1.0 + EDGE)]),
        series,
        marks: FigureMarks { lines, points, ..FigureMarks::default() },
        ..Figure::default()
    }
}

/// All points by memory and time; those of the front have numbers.
fn memory(answer: &SweepAnswer) -> Figure {
    let mut points = Vec::new();
    let mut labels = Vec::new();
    for (id, SweepPoint { point, pareto_front }) in answer.points.iter().enumerate() {
        let (Some(memory), Some(time)) = (point.memory(), point.seconds_per_sample()) else {
            continue;
        };
        points.push(figure_point([memory, time], usize::from(*pareto_front), id, point));
        if *pareto_front && labels.len() < MOST_NUMBERED {
            let text = (labels.len() + 1).to_string();
            labels.push(FigureLabel { at: [memory, time], text });
        }
    }
    let make_axis = |title, unit, values: fn(&FigurePoint) -> f64| {
        FigureAxis::new(title, unit).around(points.iter().map(values), EDGE)
    };
    let marker = Marker::Diamond;
    let weight = MarkWeight::Heavy;
    let front = FigureSeries { marker, weight, ..FigureSeries::new("", Shade::Selection) };
    Figure {
        title: "Time per sample over memory".to_owned(),
        x: make_axis("Memory of the fullest tile", FigureUnit::Bytes, |point| point.x),
        y: make_axis("Time per sample", FigureUnit::Seconds, |point| point.y),
        series: vec![FigureSeries::new("", Shade::Whole), front],
        labels,
        marks: FigureMarks { points, ..FigureMarks::default() },
        ..Figure::default()
    }
}

/// Shows the plots, with the points of the front below them. Returns the clicked point.
pub(super) fn sweep_page_ui(
    ui: &mut Ui,
    answer: &SweepAnswer,
    scene: Option<&SweepScene>,
    chosen: Option<usize>,
) -> Option<usize> {
    let Some(scene) = scene else {
        let words = if answer.points.is_empty() {
            "No point meets the conditions."
        } else {
            "No point fits in memory."
        };
        ui.label(words);
        return None;
    };
    let mut clicked = None;
    let width = ui.available_width();
    let gap = ui.spacing().item_spacing.x;
    let half = ((width - gap) / 2.0).min(SIZE.x);
    let mut show_plots = |ui: &mut Ui, width: f32| {
        let size = vec2(width, (width * SIZE.y / SIZE.x).min(SIZE.y));
        for figure in [&scene.lines, &scene.memory] {
            if figure.series.len() > Marker::ALL.len() {
                let words = format!("{} lines are too many to distinguish.", figure.series.len());
                ui.add_sized(vec2(size.x, text_size::BODY * 2.0), Label::new(words));
            } else if !figure.is_empty() {
                clicked = sized_figure_ui(ui, figure, size, (chosen, &[])).or(clicked);
            }
        }
    };
    if half >= LEAST_WIDTH {
        ui.horizontal_top(|ui| show_plots(ui, half))
    } else {
        ui.vertical(|ui| show_plots(ui, width.min(SIZE.x)))
    };
    ui.add_space(spacing::S);
    let clicked = parallel_ui(ui, &scene.parallel, chosen).or(clicked);
    ui.add_space(spacing::S);
    let words = "No point is better than these in time, memory and IPUs at the same time:";
    ui.label(RichText::new(words).weak().size(text_size::SMALL));
    let front = scene.front.iter().filter_map(|at| Some(&answer.points.get(*at)?.point));
    for (number, point) in (1..).zip(front).take(MOST_NUMBERED) {
        let words = format!("{number}  {}", point_words(point));
        ui.add(Label::new(RichText::new(words).size(text_size::SMALL)).wrap());
    }
    if scene.front.len() > MOST_NUMBERED {
        let more = format!("and {} more", scene.front.len() - MOST_NUMBERED);
        ui.label(RichText::new(more).weak().size(text_size::SMALL));
    }
    clicked
}

/// Shows a figure of a given size, with the selected point and the heights of a line through it.
/// Returns the clicked point.
pub(super) fn sized_figure_ui(
    ui: &mut Ui,
    figure: &Figure,
    size: Vec2,
    (chosen, path): (Option<usize>, &[f64]),
) -> Option<usize> {
    let look = FigureLook { chosen, path, chooses: true, ..FigureLook::default() };
    let layout = Layout::top_down(Align::Min);
    let shown = ui.allocate_ui_with_layout(size, layout, |ui| {
        ui.set_width(size.x);
        ui.set_max_height(size.y);
        figure_ui(ui, figure, look)
    });
    shown.inner
}
