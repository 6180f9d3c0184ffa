//! The results of `tilescope tune`: the path as a plot, and the reasons of its steps.

use super::found::changes_words;
use super::sweep_plots::{figure_point, sized_figure_ui};
use crate::theme::{spacing, text_size};
use crate::widgets::remark_ui;
use egui::{Label, RichText, Ui, vec2};
use std::collections::BTreeMap;
use tilescope_analysis::figures::{
    Figure, FigureAxis, FigureLabel, FigureLine, FigureMarks, FigurePoint, FigureSeries,
    FigureUnit, MarkWeight, Marker, Shade,
};
use tilescope_experiments::answers::{TuneAnswer, TuneStepAnswer};
use tilescope_experiments::objective::TuneObjective;
use tilescope_report::units::grouped;

/// The width of the plot.
const WIDTH: f32 = 1050.0;
/// The height of the plot.
const HEIGHT: f32 = 380.0;

/// The space above the highest point of the path, relative to its height. Dead ends above it are
/// only counted.
const HEADROOM: f64 = 0.25;

/// The width for dead ends, between the step after which they were tried and the next one.
const DEAD_END_WIDTH: f64 = 0.7;

/// The objective of a search, by its name.
fn objective(answer: &TuneAnswer) -> TuneObjective {
    TuneObjective::named(&answer.objective).unwrap_or(TuneObjective::Throughput)
}

/// The axis of an objective.
fn axis(objective: TuneObjective) -> FigureAxis {
    let (title, unit) = match objective {
        TuneObjective::Throughput => ("Time per sample", FigureUnit::Seconds),
        TuneObjective::Latency => ("Time of a host call", FigureUnit::Seconds),
        TuneObjective::Memory => ("Memory of the fullest tile", FigureUnit::Bytes),
        TuneObjective::Ipus => ("IPUs", FigureUnit::Count),
        TuneObjective::Energy => ("Joules per million samples", FigureUnit::Count),
        TuneObjective::Cost => ("Cost per million samples", FigureUnit::Count),
    };
    FigureAxis::new(title, unit)
}

/// Shows the plot, and a line for each step. Returns the clicked point.
pub(super) fn tune_page_ui(
    ui: &mut Ui,
    answer: &TuneAnswer,
    others: usize,
    chosen: Option<usize>,
) -> Option<usize> {
    let Some((figure, above)) = path_figure(answer) else {
        ui.label("No tested spec fits in memory.");
        return None;
    };
    let size = vec2(ui.available_width().min(WIDTH), HEIGHT);
    let clicked = sized_figure_ui(ui, &figure, size, (chosen, &[]));
    ui.add_space(spacing::S);
    steps_ui(ui, answer, others, above);
    clicked
}

/// The path with the dead ends beside it, and the number of dead ends above the plot; `None` if
/// nothing fits.
fn path_figure(answer: &TuneAnswer) -> Option<(Figure, usize)> {
    const TRIED: usize = 0;
    const PATH: usize = 1;
    let objective = objective(answer);
    let mut path = Vec::new();
    let steps = std::iter::once(&answer.base).chain(answer.path.iter().map(|of| &of.step.point));
    for (at, point) in steps.enumerate() {
        if let Some(value) = objective.value_of(point) {
            path.push(figure_point([at as f64, value], PATH, at, point));
        }
    }
    let largest = path.iter().map(|point| point.y).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let top = largest * (1.0 + HEADROOM);
    let places: Vec<[f64; 2]> = path.iter().map(|point| [point.x, point.y]).collect();
    let labels = places.iter().map(|at| FigureLabel { at: *at, text: at[0].to_string() }).collect();
    let mut points = dead_ends(answer, objective, TRIED);
    let tried = points.len();
    points.retain(|point| point.y <= top);
    let above = tried - points.len();
    points.extend(path);
    let last = answer.path.len();
    let y = axis(objective).between([0.0, top]);
    let marker = Marker::Cross;
    let weight = MarkWeight::Light;
    let tried = FigureSeries { marker, weight, ..FigureSeries::new("", Shade::Weak) };
    let marker = Marker::Diamond;
    let weight = MarkWeight::Heavy;
    let steps = FigureSeries { marker, weight, ..FigureSeries::new("", Shade::Selection) };
    let figure = Figure {
        title: format!("{} over steps", y.title),
        x: FigureAxis::of_names("Step", (0..=last).map(|at| at.to_string()).collect())
            .between([-0.3, last as f64 + 1.0]),
        y,
        series: vec![tried, steps],
        labels,
        marks: FigureMarks {
            lines: vec![FigureLine { series: PATH, points: places }],
            points,
            ..FigureMarks::default()
        },
        ..Figure::default()
    };
    Some((figure, above))
}

/// A line for each step, with its reasons.
fn steps_ui(ui: &mut Ui, answer: &TuneAnswer, others: usize, above: usize) {
    let beyond = match above {
        0 => String::new(),
        beyond => format!("; {} more would be above the plot", grouped(beyond as u64)),
    };
    remark_ui(ui, format!("x: tested, no improvement{beyond}."));
    if others > 0 {
        let others = grouped(others as u64);
        let words = format!(
            "{others} more points of the file are not shown: they gained less, or belong to \
             another search. tilescope sweep --merge lists all."
        );
        remark_ui(ui, words);
    }
    if !answer.path.is_empty() {
        let words = "Commands that compare two steps as reports. The unchanged spec";
        remark_ui(ui, format!("{words}: {}", answer.simulate));
    }
    for (number, TuneStepAnswer { step, simulate, compare }) in (1..).zip(&answer.path) {
        let gain = step.gain.map_or_else(String::new, |gain| format!(" {:+.1} %", -100.0 * gain));
        let words = format!("{number} {gain}  {}", changes_words(step.moved.changes.iter()));
        ui.add(Label::new(RichText::new(words).size(text_size::SMALL)).wrap());
        for reason in &step.moved.reasons {
            remark_ui(ui, format!("      {}", reason.sentence));
        }
        remark_ui(ui, format!("      To compare: {simulate}; {compare}"));
    }
}

/// The positions of dead ends: side by side after the step that they were tried from.
fn dead_ends(answer: &TuneAnswer, objective: TuneObjective, series: usize) -> Vec<FigurePoint> {
    // The original spec and the path precede them.
    let first = 1 + answer.path.len();
    let mut of_step: BTreeMap<usize, Vec<FigurePoint>> = BTreeMap::new();
    for (at, end) in answer.dead_ends.iter().enumerate() {
        if let Some(value) = objective.value_of(&end.point) {
            let point = figure_point([end.after as f64, value], series, first + at, &end.point);
            of_step.entry(end.after).or_default().push(point);
        }
    }
    for points in of_step.values_mut() {
        let count = points.len() as f64;
        for (at, point) in (1..).map(f64::from).zip(points) {
            point.x += 0.15 + DEAD_END_WIDTH * at / (count + 1.0);
        }
    }
    of_step.into_values().flatten().collect()
}
