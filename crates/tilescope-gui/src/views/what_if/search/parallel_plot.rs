//! Parallel coordinates: an axis for each key that varies and each figure, a line for each point.

use super::found::last_name;
use super::plot_choice::{PlacedPoint, PlotChoice};
use super::sweep_plots::TimeUnit;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::elided_text::shortened;
use crate::widgets::fixed_plot::fixed_plot;
use crate::widgets::plot_axis::titled_x_axis;
use crate::widgets::plot_marker::{marker_label_ui, marker_shape};
use egui::{Align2, Color32, Label, RichText, Ui};
use egui_plot::{GridMark, Line, LineStyle, PlotPoint, PlotUi, Points, Text, VLine};
use serde_json::Value;
use std::collections::BTreeSet;
use tilescope_analysis::figures::Marker;
use tilescope_experiments::answers::{SweepAnswer, SweepPoint, value_text};
use tilescope_experiments::point::Point;
use tilescope_report::units::{grouped, grouped_real};

/// Height of the plot, and the most that it is wide.
const HEIGHT: f32 = 320.0;
const WIDEST: f32 = 1048.0;

/// Fewest points from one axis to the next in which their numbers can be read.
const LEAST_GAP: f32 = 84.0;

/// Points from an axis to its numbers.
const MARK: f64 = 5.0;

/// How opaque the ground of numbers is.
const NUMBER_GROUND: f32 = 0.85;

/// Width of a letter of a name, with what is between two names.
const LETTER: f32 = 8.0;

/// Most axes of keys: more are crowded on any screen.
const MOST_KEYS: usize = 9;

/// Most values of a key that all stand at their axis; of more, the first and the last one do.
const MOST_VALUES: usize = 12;

/// Where points stand that do not fit, on the axis of times, which ends at 1.
const UNFIT: f64 = 1.14;

/// Heights that are told apart between two axes: lines that share both of their ends are one.
const CELLS: f64 = 300.0;

/// An axis: its name, and words at heights from 0 to 1.
struct ParallelAxis {
    name: String,
    words: Vec<(f64, String)>,
}

/// How a line is drawn: on the front, beside it, or of a point that does not fit in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LineKind {
    Beside,
    DoesNotFit,
    OnFront,
}

/// Stretches from one axis to the next, each of all points that share it.
struct ParallelLines {
    kind: LineKind,
    stretches: Vec<[[f64; 2]; 2]>,
    /// How many points.
    count: usize,
}

/// What is drawn; heights from 0 to 1.
pub(super) struct ParallelScene {
    axes: Vec<ParallelAxis>,
    lines: Vec<ParallelLines>,
    /// Where lines meet axes, for the pointer; of lines that meet there, the first one.
    places: Vec<PlacedPoint>,
    /// Whole lines by place, of points that are ringed when they are chosen.
    heights: Vec<Option<Vec<f64>>>,
    /// Points that were refused or died, which have no figures.
    without_figures: usize,
    /// Keys that have no axis.
    left_out: usize,
}

/// A scale from the least to the largest value.
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

    /// 0 for the least, 1 for the largest, in the middle where all are alike.
    fn height(&self, value: f64) -> f64 {
        match self.high > self.low {
            true => (value - self.low) / (self.high - self.low),
            false => 0.5,
        }
    }

    /// The ends of an axis.
    fn words(&self, text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        match self.high > self.low {
            true => vec![(0.0, text(self.low)), (1.0, text(self.high))],
            false if self.high.is_finite() => vec![(0.5, text(self.low))],
            false => Vec::new(),
        }
    }
}

/// Where the values of a key stand: one beside the other, and those that leave it as it is first.
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
                None => "as it is".to_owned(),
                value => value_text(value.as_ref()),
            };
            (self.place(at), text)
        });
        ParallelAxis { name: last_name(&self.path).to_owned(), words: words.collect() }
    }
}

impl ParallelScene {
    /// Of a sweep in which something fits.
    pub(super) fn new(answer: &SweepAnswer, unit: TimeUnit) -> Self {
        let keys = answer.keys.iter().map(|path| KeyScale::new(answer, path));
        let varied: Vec<KeyScale> = keys.filter(|key| key.values.len() > 1).collect();
        let left_out = varied.len().saturating_sub(MOST_KEYS);
        let keys = &varied[..varied.len() - left_out];
        let points = || answer.points.iter().map(|found| &found.point);
        let ipus_of = |point: &Point| Some(f64::from(point.figures()?.ipus));
        let time = ValueScale::of(points().filter_map(Point::seconds_per_sample));
        let memory = ValueScale::of(points().filter_map(Point::memory));
        let ipus = ValueScale::of(points().filter_map(ipus_of));
        let heights = |point: &Point| -> Option<Vec<f64>> {
            let figures = [
                point.seconds_per_sample().map_or(UNFIT, |seconds| time.height(seconds)),
                memory.height(point.memory()?),
                ipus.height(ipus_of(point)?),
            ];
            Some(keys.iter().map(|key| key.height(point)).chain(figures).collect())
        };
        let heights: Vec<Option<Vec<f64>>> = points().map(heights).collect();
        let mut time_words = time.words(|seconds| grouped_real(seconds * unit.scale));
        if points().any(|point| !point.fits() && point.figures().is_some()) {
            time_words.push((UNFIT, "does not fit".to_owned()));
        }
        let figures = [
            (format!("time/sample ({})", unit.name), time_words),
            (
                "memory (KiB)".to_owned(),
                memory.words(|bytes| grouped((bytes / 1024.0).round() as u64)),
            ),
            ("IPUs".to_owned(), ipus.words(|ipus| grouped(ipus as u64))),
        ];
        let figures = figures.map(|(name, words)| ParallelAxis { name, words });
        let kinds = [LineKind::Beside, LineKind::DoesNotFit, LineKind::OnFront];
        Self {
            axes: keys.iter().map(KeyScale::axis).chain(figures).collect(),
            lines: kinds.map(|kind| lines(answer, &heights, kind)).into(),
            places: places(answer, &heights),
            without_figures: heights.iter().filter(|line| line.is_none()).count(),
            heights,
            left_out,
        }
    }
}

fn kind(found: &SweepPoint) -> LineKind {
    match (found.pareto_front, found.point.fits()) {
        (true, _) => LineKind::OnFront,
        (false, true) => LineKind::Beside,
        (false, false) => LineKind::DoesNotFit,
    }
}

/// Two heights that look the same are one.
fn cell(height: f64) -> i64 {
    (height * CELLS).round() as i64
}

fn lines(answer: &SweepAnswer, heights: &[Option<Vec<f64>>], wanted: LineKind) -> ParallelLines {
    let mut taken = BTreeSet::new();
    let mut found = ParallelLines { kind: wanted, stretches: Vec::new(), count: 0 };
    let own = answer.points.iter().zip(heights).filter(|(point, _)| kind(point) == wanted);
    for line in own.filter_map(|(_, line)| line.as_ref()) {
        found.count += 1;
        for (axis, ends) in line.windows(2).enumerate() {
            let &[from, to] = ends else { continue };
            if taken.insert((axis, cell(from), cell(to))) {
                let left = axis as f64;
                found.stretches.push([[left, from], [left + 1.0, to]]);
            }
        }
    }
    found
}

/// Where lines meet axes: points of the front come before others, what does not fit last.
fn places(answer: &SweepAnswer, heights: &[Option<Vec<f64>>]) -> Vec<PlacedPoint> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by_key(|at| match kind(&answer.points[*at]) {
        LineKind::OnFront => 0,
        LineKind::Beside => 1,
        LineKind::DoesNotFit => 2,
    });
    let mut taken = BTreeSet::new();
    let mut places = Vec::new();
    for at in order {
        for (axis, height) in heights[at].iter().flatten().enumerate() {
            if taken.insert((axis, cell(*height))) {
                places.push(([axis as f64, *height], at));
            }
        }
    }
    places
}

/// The plot, with what its lines stand for.
pub(super) fn parallel_ui(ui: &mut Ui, scene: &ParallelScene, choice: &mut PlotChoice<'_>) {
    let palette = ThemePalette::for_ui(ui);
    let width = ui.available_width().min(WIDEST);
    let last = scene.axes.len().saturating_sub(1);
    if width < LEAST_GAP * scene.axes.len() as f32 {
        let words = "Keys beside figures: this window is too narrow for their axes.";
        ui.label(RichText::new(words).color(palette.weak_text).size(text_size::SMALL));
        return;
    }
    // Names that run into each other would be left out.
    let room = (width / scene.axes.len() as f32 / LETTER) as usize;
    let names: Vec<String> = scene.axes.iter().map(|axis| shortened(&axis.name, room)).collect();
    let every =
        move |_| (0..=last).map(|at| GridMark { value: at as f64, step_size: 1.0 }).collect();
    let x_axis = titled_x_axis(ui, "").formatter(move |mark: GridMark, _| {
        names.get(mark.value.round().max(0.0) as usize).cloned().unwrap_or_default()
    });
    let bounds = [(-0.5, last as f64 + 0.7), (-0.08, UNFIT + 0.08)];
    let plot = fixed_plot(&format!("sweep parallel {bounds:?}"), bounds, palette)
        .width(width)
        .height(HEIGHT)
        .custom_x_axes(vec![x_axis.tick_label_color(palette.weak_text)])
        .show_axes([true, false])
        .show_grid([false, false])
        .x_grid_spacer(every);
    // How wide half of a mark is on the axis.
    let mark = MARK * (bounds[0].1 - bounds[0].0) / f64::from(width);
    // That of plots.
    let ground = ui.visuals().extreme_bg_color.gamma_multiply(NUMBER_GROUND);
    let shown = plot.show(ui, |plot| {
        for axis in 0..=last {
            let line = VLine::new("", axis as f64).color(palette.outline).width(1.0);
            plot.vline(line.allow_hover(false));
        }
        scene.lines.iter().for_each(|lines| lines_of_kind(plot, lines, palette));
        if let Some(Some(heights)) = choice.chosen.and_then(|at| scene.heights.get(at)) {
            let whole: Vec<[f64; 2]> =
                (0..).zip(heights).map(|(axis, height)| [f64::from(axis), *height]).collect();
            let line = Line::new("", whole.clone()).color(palette.text).width(2.5);
            plot.line(line.allow_hover(false));
            let marks = Points::new("", whole).color(palette.text).radius(4.5);
            plot.points(marks.allow_hover(false));
        }
        for (at, axis) in (0..).zip(&scene.axes) {
            for (height, words) in &axis.words {
                // Lines that pass behind a number leave it readable.
                let words = RichText::new(format!(" {words} "))
                    .size(text_size::SMALL)
                    .background_color(ground);
                let place = PlotPoint::new(f64::from(at) + mark, *height);
                // Beside its mark, and above its line, which would cross it out.
                let text = Text::new("", place, words).color(palette.text);
                plot.text(text.anchor(Align2::LEFT_BOTTOM).allow_hover(false));
            }
        }
    });
    choice.take(&shown, "Keys beside time per sample, memory and IPUs", &scene.places);
    legend_ui(ui, scene);
}

fn colour(kind: LineKind, palette: &ThemePalette) -> (Marker, Color32) {
    match kind {
        LineKind::OnFront => (Marker::Diamond, palette.selection),
        LineKind::Beside => (Marker::Circle, palette.outline),
        LineKind::DoesNotFit => (Marker::Cross, palette.error),
    }
}

fn lines_of_kind(plot: &mut PlotUi<'_>, lines: &ParallelLines, palette: &ThemePalette) {
    let (marker, colour) = colour(lines.kind, palette);
    let (width, radius) = match lines.kind {
        LineKind::OnFront => (2.5, 5.0),
        LineKind::Beside | LineKind::DoesNotFit => (1.0, 3.0),
    };
    for stretch in &lines.stretches {
        let line = Line::new("", stretch.to_vec()).color(colour).width(width);
        let line = match lines.kind {
            LineKind::DoesNotFit => line.style(LineStyle::dashed_loose()),
            LineKind::OnFront | LineKind::Beside => line,
        };
        plot.line(line.allow_hover(false));
    }
    let ends: Vec<[f64; 2]> = lines.stretches.iter().flatten().copied().collect();
    plot.points(
        Points::new("", ends)
            .shape(marker_shape(marker))
            .color(colour)
            .radius(radius)
            .allow_hover(false),
    );
}

fn legend_ui(ui: &mut Ui, scene: &ParallelScene) {
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = spacing::M;
        for lines in scene.lines.iter().rev().filter(|lines| lines.count > 0) {
            let words = match lines.kind {
                LineKind::OnFront => "on the Pareto front",
                LineKind::Beside => "others that fit",
                LineKind::DoesNotFit => "do not fit in memory (dashed)",
            };
            let (marker, colour) = colour(lines.kind, palette);
            let words = format!("{words}: {}", grouped(lines.count as u64));
            marker_label_ui(ui, marker, colour, &words);
        }
    });
    let weak = |ui: &mut Ui, words: String| {
        let words = RichText::new(words).color(palette.weak_text).size(text_size::SMALL);
        ui.add(Label::new(words).wrap());
    };
    if scene.without_figures > 0 {
        let count = grouped(scene.without_figures as u64);
        weak(ui, format!("{count} points were refused or died and have no figures."));
    }
    if scene.left_out > 0 {
        weak(ui, format!("{} more keys vary and have no axis.", scene.left_out));
    }
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
        let scene = ParallelScene::new(&answer, TimeUnit::of(2e-3));
        // What does not vary has no axis.
        let names: Vec<&str> = scene.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(names, ["num_io_tiles", "time/sample (ms)", "memory (KiB)", "IPUs"]);
        let counts: Vec<usize> = scene.lines.iter().map(|lines| lines.count).collect();
        assert_eq!((counts, scene.without_figures), (vec![2, 1, 1], 1));
        // Points that are alike are drawn once.
        assert!(scene.lines.iter().all(|lines| lines.stretches.len() == 3));
        let heights = |at: usize| scene.heights[at].clone().unwrap();
        assert_eq!(heights(0), [0.0, 0.0, 0.0, 0.5]);
        assert_eq!(heights(3), [2.0 / 3.0, UNFIT, 1.0, 0.5]);
        // Whoever points at a place where lines meet means the one of the front.
        let at_ipus = scene.places.iter().find(|(place, _)| place[0] == 3.0).unwrap();
        assert_eq!(at_ipus.1, 0);
    }

    #[test]
    fn names_fit_between_their_neighbours() {
        assert_eq!(shortened("gradient_accumulation", 9), "gradient…");
        assert_eq!(shortened("IPUs", 4), "IPUs");
    }

    #[test]
    fn words_stand_at_the_ends_of_axes() {
        let scene = ParallelScene::new(&answer(), TimeUnit::of(2e-3));
        let words = |at: usize| {
            let words = scene.axes[at].words.iter().map(|(_, words)| words.as_str());
            words.collect::<Vec<_>>()
        };
        assert_eq!(words(0), ["32", "64", "128", "256"]);
        assert_eq!(words(1).last(), Some(&"does not fit"));
        assert_eq!((words(2), words(3)), (vec!["1", "5"], vec!["4"]));
    }
}
