//! What `tilescope tune` found: the path as a plot, and the reasons of its steps.

use super::found::changes_words;
use super::plot_choice::{PlacedPoint, PlotChoice};
use super::sweep_plots::{TimeUnit, plot_with_axes};
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::plot_axis::titled_x_axis;
use egui::{Align2, Label, RichText, Ui, vec2};
use egui_plot::{GridMark, Line, MarkerShape, PlotPoint, Points, Text};
use std::collections::BTreeMap;
use tilescope_experiments::answers::{TuneAnswer, TuneStepAnswer};
use tilescope_experiments::objective::TuneObjective;
use tilescope_report::units::grouped;

/// Size of the plot.
const WIDTH: f32 = 1050.0;
const HEIGHT: f32 = 380.0;

/// Room above the highest point of the path, as a share of it: dead ends beyond are counted.
const HEADROOM: f64 = 0.25;

/// Dead ends stand between the step that they were tried after and the next one, within this.
const DEAD_END_WIDTH: f64 = 0.7;

/// The objective of a search, by its name.
fn objective(answer: &TuneAnswer) -> TuneObjective {
    TuneObjective::named(&answer.objective).unwrap_or(TuneObjective::Throughput)
}

/// The factor and the title of the axis of an objective.
fn axis(objective: TuneObjective, largest: f64) -> (f64, String) {
    let time = |title: &str| {
        let unit = TimeUnit::of(largest);
        (unit.scale, format!("{title} ({})", unit.name))
    };
    match objective {
        TuneObjective::Throughput => time("Time per sample"),
        TuneObjective::Latency => time("Time of a host call"),
        TuneObjective::Memory => (1.0 / 1024.0, "Memory of the fullest tile (KiB)".to_owned()),
        TuneObjective::Ipus => (1.0, "IPUs".to_owned()),
        TuneObjective::Energy => (1.0, "Joules per million samples".to_owned()),
        TuneObjective::Cost => (1.0, "Cost of a million samples".to_owned()),
    }
}

/// The plot, and a line for each step; the point that was clicked.
pub(super) fn tune_page_ui(
    ui: &mut Ui,
    answer: &TuneAnswer,
    others: usize,
    chosen: Option<usize>,
) -> Option<usize> {
    let objective = objective(answer);
    let points = std::iter::once(&answer.base).chain(answer.path.iter().map(|of| &of.step.point));
    let values: Vec<Option<f64>> = points.map(|point| objective.value_of(point)).collect();
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        ui.label("Nothing that was tried fits in memory.");
        return None;
    }
    let (scale, title) = axis(objective, largest);
    let top = largest * scale * (1.0 + HEADROOM);
    let (ends, above): (Vec<PlacedPoint>, Vec<PlacedPoint>) =
        dead_ends(answer, objective, scale).into_iter().partition(|(end, _)| end[1] <= top);
    let path: Vec<PlacedPoint> = values
        .iter()
        .enumerate()
        .filter_map(|(at, value)| Some(([at as f64, (*value)? * scale], at)))
        .collect();
    let point = |at: usize| answer.points().nth(at);
    let mut choice = PlotChoice { point: &point, chosen, clicked: None };
    path_ui(ui, answer, (&title, top), (&path, &ends), &mut choice);
    ui.add_space(spacing::S);
    steps_ui(ui, answer, others, above.len());
    choice.clicked
}

/// The path, and what was tried in vain beside it.
fn path_ui(
    ui: &mut Ui,
    answer: &TuneAnswer,
    (title, top): (&str, f64),
    (path, ends): (&[PlacedPoint], &[PlacedPoint]),
    choice: &mut PlotChoice<'_>,
) {
    let palette = ThemePalette::for_ui(ui);
    let last = answer.path.len();
    let x_axis = titled_x_axis(ui, "Step").formatter(|mark: GridMark, _| {
        let step = mark.value.round();
        if step < 0.0 { String::new() } else { format!("{step}") }
    });
    let bounds = [(-0.3, last as f64 + 1.0), (0.0, top)];
    let every =
        move |_| (0..=last).map(|at| GridMark { value: at as f64, step_size: 1.0 }).collect();
    let size = vec2(ui.available_width().min(WIDTH), HEIGHT);
    let plot = plot_with_axes(ui, "tune path", (x_axis, title), bounds, size);
    let drawn: Vec<PlacedPoint> = path.iter().chain(ends).copied().collect();
    let places = |points: &[PlacedPoint]| points.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    let shown = plot.x_grid_spacer(every).show(ui, |plot| {
        let tried = Points::new("", places(ends)).color(palette.weak_text);
        plot.points(tried.shape(MarkerShape::Cross).radius(3.5).allow_hover(false));
        let line = Line::new("", places(path)).color(palette.selection).width(2.0);
        plot.line(line.allow_hover(false));
        let steps = Points::new("", places(path)).color(palette.selection);
        plot.points(steps.shape(MarkerShape::Diamond).radius(6.0).allow_hover(false));
        for ([x, y], _) in path {
            let words = RichText::new(format!("{x}")).size(text_size::SMALL);
            plot.text(
                Text::new("", PlotPoint::new(*x, y + top * 0.03), words)
                    .color(palette.text)
                    .anchor(Align2::CENTER_BOTTOM)
                    .allow_hover(false),
            );
        }
        choice.ring(palette, plot, &drawn);
    });
    choice.take(&shown, &format!("{title} over steps"), &drawn);
}

/// A line for each step, with its reasons.
fn steps_ui(ui: &mut Ui, answer: &TuneAnswer, others: usize, above: usize) {
    let palette = ThemePalette::for_ui(ui);
    let weak = |ui: &mut Ui, words: String| {
        let words = RichText::new(words).color(palette.weak_text).size(text_size::SMALL);
        ui.add(Label::new(words).wrap());
    };
    let beyond = match above {
        0 => String::new(),
        beyond => format!("; {} more would be above the plot", grouped(beyond as u64)),
    };
    weak(ui, format!("Crosses were tried in vain{beyond}."));
    if others > 0 {
        let others = grouped(others as u64);
        let words = format!(
            "{others} more points of the file are not shown: they gained less than a step, or are of \
             another search. tilescope sweep --merge lists all."
        );
        weak(ui, words);
    }
    if !answer.path.is_empty() {
        let words = "Steps can be compared as reports. That of the spec as it is";
        weak(ui, format!("{words}: {}", answer.simulate));
    }
    for (number, TuneStepAnswer { step, simulate, compare }) in (1..).zip(&answer.path) {
        let gain = step.gain.map_or_else(String::new, |gain| format!(" {:+.1} %", -100.0 * gain));
        let words = format!("{number} {gain}  {}", changes_words(step.moved.changes.iter()));
        ui.add(Label::new(RichText::new(words).size(text_size::SMALL)).wrap());
        for reason in &step.moved.reasons {
            weak(ui, format!("      {}", reason.sentence));
        }
        weak(ui, format!("      To compare: {simulate}; {compare}"));
    }
}

/// Where dead ends stand: side by side behind the step that they were tried after.
fn dead_ends(answer: &TuneAnswer, objective: TuneObjective, scale: f64) -> Vec<PlacedPoint> {
    // The spec as it is and the path come before them.
    let first = 1 + answer.path.len();
    let mut of_step: BTreeMap<usize, Vec<(f64, usize)>> = BTreeMap::new();
    for (at, end) in answer.dead_ends.iter().enumerate() {
        if let Some(value) = objective.value_of(&end.point) {
            of_step.entry(end.after).or_default().push((value * scale, first + at));
        }
    }
    let places = |(step, values): (usize, Vec<(f64, usize)>)| {
        let count = values.len() as f64;
        (0..).zip(values).map(move |(at, (value, place))| {
            let share = (f64::from(at) + 1.0) / (count + 1.0);
            ([step as f64 + 0.15 + DEAD_END_WIDTH * share, value], place)
        })
    };
    of_step.into_iter().flat_map(places).collect()
}
