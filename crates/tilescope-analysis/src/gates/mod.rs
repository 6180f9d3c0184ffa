//! Gates: conditions that must not hold for a report beside the one it is compared with, for jobs
//! that fail if cycles or memory grow.
//!
//! ```text
//! gate   = figure ( ">" | ">=" | "<" | "<=" | "==" ) limit
//! figure = dotted path of `summary --json`, or cycles, throughput, memory, max_tile
//! limit  = [ "+" | "-" ] number [ unit ]
//! ```
//!
//! A limit without a sign is a value of the target, as printed by `summary`. A limit with a sign is
//! a change against the source, as a `%` of it or in the figure's own unit; changes of figures that
//! grow with the amount of work of a run are per unit of work, as in comparisons.
//!
//! A gate is violated if it holds, and also if it cannot be evaluated: a missing figure is no
//! reason to pass. The only exception is a change of a figure that neither report has.

mod figures;
mod parse;
#[cfg(test)]
mod tests;

pub use figures::{GateQuantity, NamedFigure, named_figure, nearest_figure};
pub use parse::GateSyntaxError;

use crate::compare::WorkNormalization;
use crate::comparison::LimitComparison;
use crate::summary::{ReportSummary, summary};
use serde::Serialize;
use tilescope_report::{Report, ReportError};

/// Paths of all figures that gates can name, in which `*` is a number, and `{category}` and
/// `{region}` are names of memory.
pub fn figure_paths() -> impl Iterator<Item = &'static str> {
    figures::FIGURES.iter().map(|figure| figure.path)
}

/// Short names of the most common figures, with their paths.
pub fn short_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    figures::SHORT_NAMES.into_iter()
}

/// The figures of a summary with their dotted paths in its JSON.
pub(crate) fn summary_values(of: &ReportSummary) -> Vec<(String, serde_json::Number)> {
    numbers(serde_json::to_value(of).unwrap_or_default(), "")
}

/// The numbers of a value with their dotted paths, which begin with `path`.
fn numbers(json: serde_json::Value, path: &str) -> Vec<(String, serde_json::Number)> {
    let mut values = Vec::new();
    let mut open = vec![(path.to_owned(), json)];
    while let Some((path, value)) = open.pop() {
        let dotted = if path.is_empty() { String::new() } else { format!("{path}.") };
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    open.push((format!("{dotted}{name}"), value));
                }
            }
            serde_json::Value::Array(items) => {
                for (at, value) in items.into_iter().enumerate() {
                    open.push((format!("{dotted}{at}"), value));
                }
            }
            serde_json::Value::Number(value) => values.push((path, value)),
            _ => {}
        }
    }
    values
}

/// The limit of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateLimit {
    /// A value of the target.
    Value(f64),
    /// Target minus source.
    Change(f64),
    /// Target minus source, as a share of the source: 0.02 for `+2%`.
    RelativeChange(f64),
}

/// A condition that must not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// The gate as the user wrote it.
    text: String,
    figure: NamedFigure,
    comparison: LimitComparison,
    limit: GateLimit,
}

/// Predicted figures, and the paths of their bands in a summary.
const BANDED_FIGURES: [(&str, &str); 4] = [
    ("execution.total_cycles", "confidence.cycles"),
    ("execution.seconds", "confidence.seconds"),
    ("execution.samples_per_second", "confidence.samples_per_second"),
    ("memory.max_tile_including_gaps", "memory.fullest_tile"),
];

/// The number at a dotted path of a summary.
fn value_at(summary: &serde_json::Value, path: &str) -> Option<f64> {
    let mut value = summary;
    for part in path.split('.') {
        value = match part.parse::<usize>() {
            Ok(index) => value.get(index)?,
            Err(_) => value.get(part)?,
        };
    }
    value.as_f64()
}

/// A violated gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateViolation {
    /// The gate as the user wrote it.
    pub gate: String,
    /// Path of its figure in `summary --json`.
    pub figure: String,
    /// The unit of work of its values; `None` for figures as printed by the summary.
    pub per: Option<&'static str>,
    /// The figure of the source; `None` if it has none.
    pub source: Option<f64>,
    /// The figure of the target; `None` if it has none.
    pub target: Option<f64>,
    /// The violation as a sentence.
    pub sentence: String,
}

/// Values of two reports, as used by gates.
struct GatedReports {
    source: serde_json::Value,
    target: serde_json::Value,
    normalization: WorkNormalization,
}

/// Gates that the target violates beside its source, in their order. Figures of the run are per
/// unit of `normalization`.
///
/// # Errors
/// Parts of the files that cannot be read.
pub fn violations(
    gates: &[Gate],
    source: &Report,
    target: &Report,
    normalization: &WorkNormalization,
) -> Result<Vec<GateViolation>, ReportError> {
    let (source, target) = rayon::join(|| summary(source), || summary(target));
    let reports = GatedReports {
        source: serde_json::to_value(source?).unwrap_or_default(),
        target: serde_json::to_value(target?).unwrap_or_default(),
        normalization: normalization.clone(),
    };
    Ok(gates.iter().filter_map(|gate| gate.violation(&reports)).collect())
}

impl Gate {
    /// The gate as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Path of its figure in `summary --json`.
    pub fn figure(&self) -> &str {
        self.figure.path()
    }

    fn violation(&self, reports: &GatedReports) -> Option<GateViolation> {
        let source = self.value(&reports.source);
        let target = self.value(&reports.target);
        if let GateLimit::Value(limit) = self.limit {
            let sentence = match target {
                Some(value) if self.comparison.holds(value, limit) => {
                    let unsure = self.doubt(&reports.target, limit).unwrap_or_default();
                    format!("it is {}{unsure}", self.figure.quantity().text(value))
                }
                Some(_) => return None,
                None => self.missing("target"),
            };
            return Some(self.violated((source, target), None, &sentence));
        }
        let divisors = reports.normalization.divisors();
        let (a, b) = if self.figure.is_of_run() { divisors.of_sides() } else { (1, 1) };
        let per = if a > 1 || b > 1 { Some(divisors.words()) } else { None };
        let source = source.map(|value| value / a as f64);
        let target = target.map(|value| value / b as f64);
        let sides = (source, target);
        let sentence = match sides {
            (Some(before), Some(after)) => self.changed_too_much((before, after), per)?,
            (None, None) => return None,
            (None, Some(_)) => self.missing("source"),
            (Some(_), None) => self.missing("target"),
        };
        Some(self.violated(sides, per, &sentence))
    }

    fn violated(
        &self,
        (source, target): (Option<f64>, Option<f64>),
        per: Option<&'static str>,
        sentence: &str,
    ) -> GateViolation {
        GateViolation {
            gate: self.text.clone(),
            figure: self.figure().to_owned(),
            per,
            source,
            target,
            sentence: format!("{}: {sentence}", self.text),
        }
    }

    /// Describes a predicted figure whose limit lies within the errors of the model.
    fn doubt(&self, summary: &serde_json::Value, limit: f64) -> Option<String> {
        let (_, band) = BANDED_FIGURES.into_iter().find(|(path, _)| *path == self.figure())?;
        let low = value_at(summary, &format!("{band}.low"))?;
        let high = value_at(summary, &format!("{band}.high"))?;
        if !(low..=high).contains(&limit) {
            return None;
        }
        let [low, high] = [low, high].map(|value| self.figure.quantity().text(value));
        Some(format!(", not significant: {low} to {high} (90 % interval)"))
    }

    /// The figure of a summary.
    fn value(&self, summary: &serde_json::Value) -> Option<f64> {
        // A summary leaves out categories that are zero.
        let absent = if self.figure.is_zero_where_absent() { Some(0.0) } else { None };
        value_at(summary, self.figure()).or(absent)
    }

    fn changed_too_much(
        &self,
        (before, after): (f64, f64),
        per: Option<&'static str>,
    ) -> Option<String> {
        let change = after - before;
        // Any growth from zero exceeds every percentage.
        let share = match change {
            0.0 => 0.0,
            change if before == 0.0 => f64::INFINITY.copysign(change),
            change => change / before.abs(),
        };
        let is_violated = match self.limit {
            GateLimit::RelativeChange(limit) => self.comparison.holds(share, limit),
            GateLimit::Change(limit) | GateLimit::Value(limit) => {
                self.comparison.holds(change, limit)
            }
        };
        if !is_violated {
            return None;
        }
        let way = match change {
            0.0 => "it did not change",
            change if change > 0.0 => "it grew",
            _ => "it shrank",
        };
        let percent = if share.is_finite() && change != 0.0 {
            format!(" by {:.2} %", share.abs() * 100.0)
        } else {
            String::new()
        };
        let per = per.map_or_else(String::new, |per| format!(" {per}"));
        let [before, after] = [before, after].map(|value| self.figure.quantity().text(value));
        Some(format!("{way}{percent}{per}, from {before} to {after}"))
    }

    /// The sentence for a side that lacks the figure.
    fn missing(&self, side: &str) -> String {
        let path = self.figure();
        let why = if path.starts_with("execution.") { ": it was not executed" } else { "" };
        format!("the {side} has no {path}{why}")
    }
}
