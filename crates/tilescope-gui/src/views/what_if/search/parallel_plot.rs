//! Parallel coordinates: an axis for each varied key and each figure, a line for each point.

use super::found::last_name;
use super::sweep_plots::{figure_point, sized_figure_ui};
use crate::widgets::remark_ui;
use egui::{Ui, vec2};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use tilescope_analysis::figures::{
    Figure, FigureAxis, FigureGuide, FigureLabel, FigureLine, FigureMarks, FigureSeries,
    FigureUnit, MarkWeight, Marker, Shade,
};
use tilescope_experiments::answers::{SweepAnswer, SweepPoint, value_text};
use tilescope_experiments::point::Point;
use tilescope_report::units::{binary_bytes, grouped, seconds};

/// The height of the plot.
const HEIGHT: f32 = 340.0;
/// The largest width of the plot.
const WIDEST: f32 = 1048.0;

/// The smallest distance between axes, in points, at which numbers are readable.
const LEAST_GAP: f32 = 84.0;

/// The largest number of axes for keys; more would be crowded on any screen.
const MOST_KEYS: usize = 9;

/// The largest number of values of a key that are all shown at its axis; of more, only the first
/// and the last one are.
const MOST_VALUES: usize = 12;

/// The height of points that do not fit, on the axis of times, which ends at 1.
const UNFIT: f64 = 1.14;

/// The number of distinguishable heights on an axis: lines with equal ends are drawn once.
const CELLS: f64 = 300.0;

/// An axis: its name, and labels at heights from 0 to 1.
struct ParallelAxis {
    name: String,
    words: Vec<(f64, String)>,
}

/// The series: points beside the front, points that do not fit in memory, and points on the front,
/// which are drawn last.
const BESIDE: usize = 0;
const DOES_NOT_FIT: usize = 1;
const ON_FRONT: usize = 2;

/// The plot as a figure.
pub(super) struct ParallelScene {
    figure: Figure,
    /// The heights of whole lines by index, for points that can be selected.
    heights: Vec<Option<Vec<f64>>>,
}

/// A scale from the smallest to the largest value.
struct ValueScale {
    low: f64,
    high: f64,
}

impl ValueScale {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        Self { low, high }
    }

    /// The height of a value: 0 for the smallest, 1 for the largest, in the middle if all are
    /// equal.
    fn height(&self, value: f64) -> f64 {
        if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 }
    }

    /// The labels at the ends of an axis.
    fn words(&self, text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        if self.high > self.low {
            vec![(0.0, text(self.low)), (1.0, text(self.high))]
        } else if self.high.is_finite() {
            vec![(0.5, text(self.low))]
        } else {
            Vec::new()
        }
    }
}

/// The positions of the values of a key, side by side. Points that leave the key unchanged come
/// first.
struct KeyScale {
    path: String,
    values: Vec<Option<Value>>,
}

impl KeyScale {
    fn new(answer: &SweepAnswer, path: &str) -> Self {
        let unset = answer.points.iter().any(|found| !found.point.changes.contains_key(path));
        let values = answer.values_of(path).into_iter().map(Some);
        let values = unset.then_some(None).into_iter().chain(values).collect();
        Self { path: path.to_owned(), values }
    }

    fn place(&self, at: usize) -> f64 {
        match self.values.len() {
            0 | 1 => 0.5,
            count => at as f64 / (count - 1) as f64,
        }
    }

    fn height(&self, point: &Point) -> f64 {
        let value = point.changes.get(&self.path);
        let at = self.values.iter().position(|own| own.as_ref() == value);
        self.place(at.unwrap_or(0))
    }

    fn axis(&self) -> ParallelAxis {
        let last = self.values.len().saturating_sub(1);
        let is_shown = |at: usize| last < MOST_VALUES || at == 0 || at == last;
        let words = self.values.iter().enumerate().filter(|(at, _)| is_shown(*at));
        let words = words.map(|(at, value)| {
            let text = match value {
                None => "unchanged".to_owned(),
                value => value_text(value.as_ref()),
            };
            (self.place(at), text)
        });
        ParallelAxis { name: last_name(&self.path).to_owned(), words: words.collect() }
    }
}

impl ParallelScene {
    /// The plot of a sweep with at least one point that fits.
    pub(super) fn new(answer: &SweepAnswer) -> Self {
        let keys = answer.keys.iter().map(|path| KeyScale::new(answer, path));
        let varied: Vec<KeyScale> = keys.filter(|key| key.values.len() > 1).collect();
        let left_out = varied.len().saturating_sub(MOST_KEYS);
        let keys = &varied[..varied.len() - left_out];
        let list_points = || answer.points.iter().map(|found| &found.point);
        let count_ipus = |point: &Point| Some(f64::from(point.figures()?.ipus));
        let time = ValueScale::of(list_points().filter_map(Point::seconds_per_sample));
        let memory = ValueScale::of(list_points().filter_map(Point::memory));
        let ipus = ValueScale::of(list_points().filter_map(count_ipus));
        let heights = |point: &Point| -> Option<Vec<f64>> {
            let figures = [
                point.seconds_per_sample().map_or(UNFIT, |seconds| time.height(seconds)),
                memory.height(point.memory()?),
                ipus.height(count_ipus(point)?),
            ];
            Some(keys.iter().map(|key| key.height(point)).chain(figures).collect())
        };
        let heights: Vec<Option<Vec<f64>>> = list_points().map(heights).collect();
        let mut time_words = time.words(seconds);
        if list_points().any(|point| !point.fits() && point.figures().is_some()) {
            time_words.push((UNFIT, "does not fit".to_owned()));
        }
        let figures = [
            ("time/sample", time_words),
            ("memory", memory.words(|bytes| binary_bytes(bytes as u64))),
            ("IPUs", ipus.words(|ipus| grouped(ipus as u64))),
        ];
        let figures = figures.map(|(name, words)| ParallelAxis { name: name.to_owned(), words });
        let axes: Vec<ParallelAxis> = keys.iter().map(KeyScale::axis).chain(figures).collect();
        let mut note = String::new();
        let without = heights.iter().filter(|line| line.is_none()).count();
        if without > 0 {
            let count = grouped(without as u64);
            let (plural, verb) = if without == 1 { ("", "has") } else { ("s", "have") };
            note = format!("{count} point{plural} failed and {verb} no figures. ");
        }
        if left_out > 0 {
            let _ = write!(note, "{left_out} more keys vary and have no axis.");
        }
        Self { figure: figure(answer, &axes, &heights, note), heights }
    }
}

/// The series of a point.
fn series_of(found: &SweepPoint) -> usize {
    match (found.pareto_front, found.point.fits()) {
        (true, _) => ON_FRONT,
        (false, true) => BESIDE,
        (false, false) => DOES_NOT_FIT,
    }
}

/// The cell of a height; heights that look the same share one.
fn cell(height: f64) -> i64 {
    (height * CELLS).round() as i64
}

fn figure(
    answer: &SweepAnswer,
    axes: &[ParallelAxis],
    heights: &[Option<Vec<f64>>],
    note: String,
) -> Figure {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    // If lines meet at an axis, the pointer selects a point of the front, or else one that fits.
    order.sort_by_key(|at| [1, 2, 0][series_of(&answer.points[*at])]);
    let mut drawn = BTreeSet::new();
    let mut taken = BTreeSet::new();
    let mut lines = Vec::new();
    let mut points = Vec::new();
    let mut counts = [0u64; 3];
    for id in order {
        let Some(line) = &heights[id] else { continue };
        let found = &answer.points[id];
        let series = series_of(found);
        counts[series] += 1;
        for (axis, ends) in (0..).map(f64::from).zip(line.windows(2)) {
            if drawn.insert((series, axis as usize, cell(ends[0]), cell(ends[1]))) {
                let stretch = vec![[axis, ends[0]], [axis + 1.0, ends[1]]];
                lines.push(FigureLine { series, points: stretch });
            }
        }
        for (axis, height) in line.iter().enumerate() {
            if taken.insert((axis, cell(*height))) {
                points.push(figure_point([axis as f64, *height], series, id, &found.point));
            }
        }
    }
    // Lines of the front are drawn over the others.
    lines.sort_by_key(|line| line.series);
    let mut guides = Vec::new();
    let mut labels = Vec::new();
    for (at, axis) in (0..).map(f64::from).zip(axes) {
        let [from, to] = [-1.0, 2.0].map(|height| [at, height]);
        let name = String::new();
        let shade = Shade::Whole;
        let dashed = false;
        guides.push(FigureGuide { name, from, to, shade, dashed });
        for (height, text) in &axis.words {
            labels.push(FigureLabel { at: [at, *height], text: text.clone() });
        }
    }
    let series = [
        ("others that fit", Shade::Whole, Marker::Circle, MarkWeight::Light, false),
        ("do not fit in memory (dashed)", Shade::Error, Marker::Cross, MarkWeight::Light, true),
        ("on the Pareto front", Shade::Selection, Marker::Diamond, MarkWeight::Heavy, false),
    ];
    let series = series.into_iter().zip(counts);
    let series = series.map(|((name, shade, marker, weight, dashed), count)| {
        let name = format!("{name}: {}", grouped(count));
        FigureSeries { marker, weight, dashed, ..FigureSeries::new(name, shade) }
    });
    let last = axes.len() as f64 - 1.0;
    let names = axes.iter().map(|axis| axis.name.clone()).collect();
    Figure {
        title: "Keys beside time per sample, memory and IPUs".to_owned(),
        note,
        x: FigureAxis::of_names("", names).between([-0.5, last + 0.7]),
        y: FigureAxis::new("", FigureUnit::None).between([-0.08, UNFIT + 0.08]),
        series: series.collect(),
        guides,
        labels,
        marks: FigureMarks { lines, points, ..FigureMarks::default() },
    }
}

/// Shows the plot with its legend. Returns the clicked point.
pub(super) fn parallel_ui(
    ui: &mut Ui,
    scene: &ParallelScene,
    chosen: Option<usize>,
) -> Option<usize> {
    let size = vec2(ui.available_width().min(WIDEST), HEIGHT);
    if size.x < LEAST_GAP * scene.figure.x.names.len() as f32 {
        remark_ui(ui, "Keys beside figures: this window is too narrow for their axes.");
        return None;
    }
    let path = chosen.and_then(|at| scene.heights.get(at)?.as_deref()).unwrap_or_default();
    let clicked = sized_figure_ui(ui, &scene.figure, size, (chosen, path));
    if !scene.figure.note.is_empty() {
        remark_ui(ui, scene.figure.note.as_str());
    }
    clicked
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer() -> SweepAnswer {
        let point = |tiles: u64, time: Option<f64>, memory: Option<u64>, front: bool| {
            let outcome = match (time, memory) {
                (Some(_), _) => "fits",
                (None, Some(_)) => "does_not_fit",
                (None, None) => "refused",
            };
            let cycles = time.map(|time| (time * 1e9) as u64);
            json!({
                "changes": { "options.num_io_tiles": tiles, "model.same": 1 },
                "outcome": outcome, "problem": null, "cycles": cycles, "seconds": time,
                "samples": 1, "memory": memory, "ipus": 4, "pareto_front": front,
            })
        };
        let points = [
            point(32, Some(1e-3), Some(1024), true),
            point(64, Some(2e-3), Some(3072), false),
            point(64, Some(2e-3), Some(3072), false),
            point(128, None, Some(5120), false),
            point(256, None, None, false),
        ];
        let answer = json!({
            "spec": "a", "text": "", "keys": ["options.num_io_tiles", "model.same"], "points": points,
        });
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn every_point_with_figures_is_a_line_through_all_axes() {
        let answer = answer();
        let scene = ParallelScene::new(&answer);
        let figure = &scene.figure;
        // A key that does not vary has no axis.
        assert_eq!(figure.x.names, ["num_io_tiles", "time/sample", "memory", "IPUs"]);
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        let expected =
            ["others that fit: 2", "do not fit in memory (dashed): 1", "on the Pareto front: 1"];
        assert_eq!(names, expected);
        assert!(figure.note.starts_with("1 point failed and has no figures"), "{}", figure.note);
        // Equal points are drawn once.
        for series in 0..3 {
            let stretches = figure.marks.lines.iter().filter(|line| line.series == series);
            assert_eq!(stretches.count(), 3, "{series}");
        }
        let heights = |at: usize| scene.heights[at].clone().unwrap();
        assert_eq!(heights(0), [0.0, 0.0, 0.0, 0.5]);
        assert_eq!(heights(3), [2.0 / 3.0, UNFIT, 1.0, 0.5]);
        // Where lines meet, the pointer selects the point of the front.
        let at_ipus = figure.marks.points.iter().find(|point| point.x == 3.0).unwrap();
        assert_eq!(at_ipus.id, 0);
    }

    #[test]
    fn axes_are_labelled_at_their_ends() {
        let scene = ParallelScene::new(&answer());
        let words = |at: f64| {
            let labels = scene.figure.labels.iter().filter(|label| label.at[0] == at);
            labels.map(|label| label.text.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(words(0.0), ["32", "64", "128", "256"]);
        assert_eq!(words(1.0).last(), Some(&"does not fit"));
        assert_eq!((words(2.0), words(3.0)), (vec!["1.00 KiB", "5.00 KiB"], vec!["4"]));
    }
}
