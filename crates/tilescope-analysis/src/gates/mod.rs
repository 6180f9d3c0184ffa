//! Gates: what must not be true of a report beside the one it is compared with, for jobs that fail
//! when cycles or memory grow.
//!
//! ```text
//! gate   = figure ( ">" | ">=" | "<" | "<=" | "==" ) limit
//! figure = dotted path of `summary --json`, or cycles, throughput, memory, max_tile
//! limit  = [ "+" | "-" ] number [ unit ]
//! ```
//!
//! A limit without a sign is a value of the target, as `summary` prints it. One with a sign is a
//! change against the source, `%` of it or in the figure's own unit; changes of figures that grow
//! with how much a run works on are told per unit of work, as comparisons tell them.
//!
//! A gate is violated where it is true, and where it cannot be judged: a figure that a report does
//! not have is no reason to pass. Only a change of what neither report has is none.

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

/// Paths of all figures that gates can name: in them `*` stands for a number, `{category}` and
/// `{region}` for names of memory.
pub fn figure_paths() -> impl Iterator<Item = &'static str> {
    figures::FIGURES.iter().map(|figure| figure.path)
}

/// Short names of what is gated most, and the figures they stand for.
pub fn short_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    figures::SHORT_NAMES.into_iter()
}

/// The figures of a summary with their dotted paths, as its JSON has them.
pub(crate) fn summary_values(of: &ReportSummary) -> Vec<(String, serde_json::Number)> {
    numbers(serde_json::to_value(of).unwrap_or_default(), "")
}

/// The numbers of a value with their dotted paths, which begin with `path`.
fn numbers(of: serde_json::Value, path: &str) -> Vec<(String, serde_json::Number)> {
    let mut values = Vec::new();
    let mut open = vec![(path.to_owned(), of)];
    while let Some((path, value)) = open.pop() {
        let below = |name: &str| match path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        match value {
            serde_json::Value::Object(of) => {
                open.extend(of.into_iter().map(|(name, value)| (below(&name), value)));
            }
            serde_json::Value::Array(of) => {
                let each = of.into_iter().enumerate();
                open.extend(each.map(|(at, value)| (below(&at.to_string()), value)));
            }
            serde_json::Value::Number(value) => values.push((path, value)),
            _ => {}
        }
    }
    values
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateLimit {
    /// A value of the target.
    Value(f64),
    /// Target less source.
    Change(f64),
    /// Target less source, as a share of the source: 0.02 for `+2%`.
    RelativeChange(f64),
}

/// What must not be true.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As it was written.
    text: String,
    figure: NamedFigure,
    comparison: LimitComparison,
    limit: GateLimit,
}

/// Figures that are predicted, and where a summary has their bands.
const BANDED_FIGURES: [(&str, &str); 4] = [
    ("execution.total_cycles", "confidence.cycles"),
    ("execution.seconds", "confidence.seconds"),
    ("execution.samples_per_second", "confidence.samples_per_second"),
    ("memory.max_tile_including_gaps", "memory.fullest_tile"),
];

/// The number at a dotted path of a summary.
fn value_at(summary: &serde_json::Value, path: &str) -> Option<f64> {
    let part = |of: &serde_json::Value, part: &str| match part.parse::<usize>() {
        Ok(index) => of.get(index).cloned(),
        Err(_) => of.get(part).cloned(),
    };
    path.split('.').try_fold(summary.clone(), |of, name| part(&of, name))?.as_f64()
}

/// A gate that is not passed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateViolation {
    /// The gate as it was written.
    pub gate: String,
    /// Path of its figure in `summary --json`.
    pub figure: String,
    /// What its values are told per; `None` for figures as the summary prints them.
    pub per: Option<&'static str>,
    /// The figure of the source; `None` where it has none.
    pub source: Option<f64>,
    /// The figure of the target; `None` where it has none.
    pub target: Option<f64>,
    /// What is the matter, in a sentence.
    pub sentence: String,
}

/// Values of two reports, as gates see them.
struct GatedReports {
    source: serde_json::Value,
    target: serde_json::Value,
    normalization: WorkNormalization,
}

/// Gates that a target does not pass beside its source, in their order. Figures of the run are told
/// as `normalization` says.
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
    let json = |of: &ReportSummary| serde_json::to_value(of).unwrap_or_default();
    let reports = GatedReports {
        source: json(&source?),
        target: json(&target?),
        normalization: normalization.clone(),
    };
    Ok(gates.iter().filter_map(|gate| gate.violation(&reports)).collect())
}

impl Gate {
    /// The gate as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Path of its figure in `summary --json`.
    pub fn figure(&self) -> &str {
        self.figure.path()
    }

    fn violation(&self, reports: &GatedReports) -> Option<GateViolation> {
        let of = |summary| self.value(summary);
        let (source, target) = (of(&reports.source), of(&reports.target));
        let violation = |source, target, per, sentence| GateViolation {
            gate: self.text.clone(),
            figure: self.figure().to_owned(),
            per,
            source,
            target,
            sentence: format!("{}: {sentence}", self.text),
        };
        if let GateLimit::Value(limit) = self.limit {
            let sentence = match target {
                Some(value) if self.comparison.holds(value, limit) => {
                    let unsure = self.doubt(&reports.target, limit).unwrap_or_default();
                    format!("it is {}{unsure}", self.figure.quantity().text(value))
                }
                Some(_) => return None,
                None => self.missing("target"),
            };
            return Some(violation(source, target, None, sentence));
        }
        let divisors = reports.normalization.divisors();
        let (a, b) = if self.figure.is_of_run() { divisors.of_sides() } else { (1, 1) };
        let per = (a > 1 || b > 1).then(|| divisors.words());
        let told = |value: Option<f64>, by: u64| value.map(|value| value / by as f64);
        let sides = (told(source, a), told(target, b));
        let sentence = match sides {
            (Some(before), Some(after)) => self.changed_too_much((before, after), per)?,
            (None, None) => return None,
            (None, Some(_)) => self.missing("source"),
            (Some(_), None) => self.missing("target"),
        };
        Some(violation(sides.0, sides.1, per, sentence))
    }

    /// Describes a predicted figure whose limit lies within the errors of the model.
    fn doubt(&self, summary: &serde_json::Value, limit: f64) -> Option<String> {
        let (_, band) = BANDED_FIGURES.into_iter().find(|(path, _)| *path == self.figure())?;
        let end = |name: &str| value_at(summary, &format!("{band}.{name}"));
        let (low, high) = (end("low")?, end("high")?);
        let text = |value: f64| self.figure.quantity().text(value);
        (low..=high)
            .contains(&limit)
            .then(|| format!(", not significant: {} to {} (90 % interval)", text(low), text(high)))
    }

    /// The figure of a summary.
    fn value(&self, summary: &serde_json::Value) -> Option<f64> {
        // Categories of which a program has nothing are not in its summary.
        let absent = self.figure.is_zero_where_absent().then_some(0.0);
        value_at(summary, self.figure()).or(absent)
    }

    fn changed_too_much(
        &self,
        (before, after): (f64, f64),
        per: Option<&'static str>,
    ) -> Option<String> {
        let change = after - before;
        // Whatever comes where there was nothing is more than any percentage of that.
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
        is_violated.then(|| format!("{way}{percent}{per}, from {before} to {after}"))
    }

    /// What is said of a side that does not have the figure.
    fn missing(&self, side: &str) -> String {
        let path = self.figure();
        let why = if path.starts_with("execution.") { ": it was not executed" } else { "" };
        format!("the {side} has no {path}{why}")
    }
}
