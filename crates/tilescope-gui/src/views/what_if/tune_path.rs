//! What `tilescope tune` found: the path as a plot, and the reasons of its steps.

use super::sweep_plots::{TimeUnit, changes_words, plot_with_axes};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::plot_axis::titled_x_axis;
use egui::{Align2, Label, RichText, Ui, vec2};
use egui_plot::{GridMark, Line, MarkerShape, PlotPoint, Points, Text};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tilescope_report::units::grouped;

/// Size of the plot.
const WIDTH: f32 = 1050.0;
const HEIGHT: f32 = 380.0;

/// Room above the highest point of the path, as a share of it: dead ends beyond are counted.
const HEADROOM: f64 = 0.25;

/// Dead ends stand between the step that they were tried after and the next one, within this.
const DEAD_END_WIDTH: f64 = 0.7;

/// What the program says of a search.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct TuneAnswer {
    spec: String,
    objective: String,
    base: DrawnPoint,
    path: Vec<DrawnStep>,
    dead_ends: Vec<DrawnDeadEnd>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct DrawnPoint {
    seconds_per_sample: Option<f64>,
    seconds: Option<f64>,
    memory: Option<f64>,
    ipus: Option<f64>,
    joules_per_million_samples: Option<f64>,
    cost_per_million_samples: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct DrawnStep {
    change: BTreeMap<String, Value>,
    reasons: Vec<StepReason>,
    gain: Option<f64>,
    point: DrawnPoint,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct StepReason {
    sentence: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct DrawnDeadEnd {
    after_step: usize,
    point: DrawnPoint,
}

impl TuneAnswer {
    /// What is made small at a point, in seconds, bytes, IPUs, joules or money.
    fn value(&self, point: &DrawnPoint) -> Option<f64> {
        match self.objective.as_str() {
            "latency" => point.seconds,
            "memory" => point.memory,
            "ipus" => point.ipus,
            "energy" => point.joules_per_million_samples,
            "cost" => point.cost_per_million_samples,
            _ => point.seconds_per_sample,
        }
    }

    /// The factor and the title of the axis of what is made small.
    fn axis(&self, largest: f64) -> (f64, String) {
        let time = |title: &str| {
            let unit = TimeUnit::of(largest);
            (unit.scale, format!("{title} ({})", unit.name))
        };
        match self.objective.as_str() {
            "latency" => time("Time of a host call"),
            "memory" => (1.0 / 1024.0, "Memory of the fullest tile (KiB)".to_owned()),
            "ipus" => (1.0, "IPUs".to_owned()),
            "energy" => (1.0, "Joules per million samples".to_owned()),
            "cost" => (1.0, "Cost of a million samples".to_owned()),
            _ => time("Time per sample"),
        }
    }
}

/// The plot, and a line for each step.
pub(crate) fn tune_page_ui(ui: &mut Ui, answer: &TuneAnswer) {
    let palette = ThemePalette::for_ui(ui);
    ui.label(strong(format!("Path from {}", answer.spec)).size(text_size::TITLE));
    ui.add_space(spacing::S);
    let points = std::iter::once(&answer.base).chain(answer.path.iter().map(|step| &step.point));
    let values: Vec<Option<f64>> = points.map(|point| answer.value(point)).collect();
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        ui.label("Nothing that was tried fits in memory.");
        return;
    }
    let (scale, title) = answer.axis(largest);
    let top = largest * scale * (1.0 + HEADROOM);
    let ends: Vec<[f64; 2]> = dead_ends(answer, scale);
    let (shown, above): (Vec<[f64; 2]>, Vec<[f64; 2]>) =
        ends.into_iter().partition(|end| end[1] <= top);
    let last = answer.path.len();
    let x_axis = titled_x_axis(ui, "Step").formatter(|mark: GridMark, _| {
        let step = mark.value.round();
        if step < 0.0 { String::new() } else { format!("{step}") }
    });
    let bounds = [(-0.3, last as f64 + 1.0), (0.0, top)];
    let every =
        move |_| (0..=last).map(|at| GridMark { value: at as f64, step_size: 1.0 }).collect();
    let plot = plot_with_axes("tune path", (x_axis, title), bounds, vec2(WIDTH, HEIGHT), palette);
    plot.x_grid_spacer(every).show(ui, |plot| {
        let tried = Points::new("", shown).color(palette.weak_text).shape(MarkerShape::Cross);
        plot.points(tried.radius(3.5).allow_hover(false));
        let path: Vec<[f64; 2]> = (0..)
            .zip(&values)
            .filter_map(|(at, value)| Some([f64::from(at), (*value)? * scale]))
            .collect();
        plot.line(
            Line::new("", path.clone()).color(palette.selection).width(2.0).allow_hover(false),
        );
        let steps = Points::new("", path.clone()).color(palette.selection);
        plot.points(steps.shape(MarkerShape::Diamond).radius(6.0).allow_hover(false));
        for [x, y] in path {
            let words = RichText::new(format!("{x}")).size(text_size::SMALL);
            plot.text(
                Text::new("", PlotPoint::new(x, y + top * 0.03), words)
                    .color(palette.text)
                    .anchor(Align2::CENTER_BOTTOM)
                    .allow_hover(false),
            );
        }
    });
    ui.add_space(spacing::S);
    let weak = |ui: &mut Ui, words: String| {
        let words = RichText::new(words).color(palette.weak_text).size(text_size::SMALL);
        ui.add(Label::new(words).wrap());
    };
    let beyond = match above.len() {
        0 => String::new(),
        beyond => format!("; {} more would be above the plot", grouped(beyond as u64)),
    };
    weak(ui, format!("Crosses were tried in vain{beyond}."));
    for (number, step) in (1..).zip(&answer.path) {
        let gain = step.gain.map_or_else(String::new, |gain| format!(" {:+.1} %", -100.0 * gain));
        let words = format!("{number} {gain}  {}", changes_words(step.change.iter()));
        ui.add(Label::new(RichText::new(words).size(text_size::SMALL)).wrap());
        for reason in &step.reasons {
            weak(ui, format!("      {}", reason.sentence));
        }
    }
}

/// Where dead ends stand: side by side behind the step that they were tried after.
fn dead_ends(answer: &TuneAnswer, scale: f64) -> Vec<[f64; 2]> {
    let mut of_step: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for end in &answer.dead_ends {
        if let Some(value) = answer.value(&end.point) {
            of_step.entry(end.after_step).or_default().push(value * scale);
        }
    }
    let places = |(step, values): (usize, Vec<f64>)| {
        let count = values.len() as f64;
        (0..).zip(values).map(move |(at, value)| {
            let share = (f64::from(at) + 1.0) / (count + 1.0);
            [step as f64 + 0.15 + DEAD_END_WIDTH * share, value]
        })
    };
    of_step.into_iter().flat_map(places).collect()
}
