//! Results of experiments, in the form of JSON output, files of results and the window.

mod sensitivity;

pub use sensitivity::{ExpectedRun, OperationAnswer, ResourceAnswer, RunAnswer, SensitivityAnswer};

use crate::condition::Condition;
use crate::point::{Point, is_on_front};
use crate::results_file::SearchedSpec;
use crate::strategies::guided::{DeadEnd, TuneStep, Untried};
use crate::strategies::smallest_fit::FitFound;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    #[serde(flatten)]
    pub point: Point,
    /// True if no other point is better in time, memory or number of IPUs without being worse in
    /// another.
    pub pareto_front: bool,
}

/// The result of a sweep, or the contents of a file of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepAnswer {
    /// The spec in the user's spelling.
    pub spec: String,
    /// The keys that the spec sets, as TOML.
    pub text: String,
    /// Paths of the varied keys.
    pub keys: Vec<String>,
    pub points: Vec<SweepPoint>,
    /// The path of a guided search, if the points are those of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Box<TuneAnswer>>,
}

impl SweepAnswer {
    /// Creates the result from the points that meet the conditions. Points without figures are kept
    /// with their reason.
    #[must_use]
    pub fn new(
        spec: &SearchedSpec,
        keys: Vec<String>,
        points: Vec<Point>,
        conditions: &[Condition],
    ) -> Self {
        let mut points = points;
        points.retain(|point| conditions.iter().all(|condition| condition.admits(point)));
        let front = is_on_front(points.iter());
        let points = points
            .into_iter()
            .zip(front)
            .map(|(point, pareto_front)| SweepPoint { point, pareto_front })
            .collect();
        let (spec, text) = (spec.name.clone(), spec.text.clone());
        Self { spec, text, keys, points, search: None }
    }

    /// Values of a key without duplicates: numbers in ascending order, others in order of
    /// appearance.
    #[must_use]
    pub fn values_of(&self, key: &str) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        for value in self.points.iter().filter_map(|point| point.point.changes.get(key)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        if values.iter().all(Value::is_number) {
            values.sort_by(|a, b| value_order(Some(a), Some(b)));
        }
        values
    }
}

/// Paths of all keys that points change, and the points sorted by the values of these keys.
#[must_use]
pub fn sorted_by_keys(points: Vec<Point>) -> (Vec<String>, Vec<Point>) {
    let mut points = points;
    let keys: BTreeSet<&String> = points.iter().flat_map(|point| point.changes.keys()).collect();
    let keys: Vec<String> = keys.into_iter().cloned().collect();
    points.sort_by(|a, b| {
        for key in &keys {
            let order = value_order(a.changes.get(key), b.changes.get(key));
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    });
    (keys, points)
}

/// A value of a key in the notation of a spec, with text unquoted; empty for a missing value.
#[must_use]
pub fn value_text(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(word)) => word.clone(),
        Some(value) => value.to_string(),
    }
}

fn value_order(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a.and_then(Value::as_f64), b.and_then(Value::as_f64)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => value_text(a).cmp(&value_text(b)),
    }
}

/// A step of the path of a guided search, with commands that show its changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneStepAnswer {
    #[serde(flatten)]
    pub step: TuneStep,
    /// The command that writes its report.
    pub simulate: String,
    /// The command that compares it with the step before.
    pub compare: String,
}

/// The result of a guided search, possibly while it is in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneAnswer {
    /// The spec in the user's spelling.
    pub spec: String,
    /// Name of the objective.
    pub objective: String,
    /// Number of requested simulations.
    pub simulations: usize,
    /// Number of these that were not in the file of results.
    pub simulated_now: usize,
    /// True if no proposals were left to try.
    pub exhausted: bool,
    /// The gain in the objective, as a share; `None` if the original spec did not meet the
    /// conditions.
    pub gain: Option<f64>,
    pub base: Point,
    /// The command that writes the report of the original spec.
    pub simulate: String,
    pub path: Vec<TuneStepAnswer>,
    /// The last point of the path.
    pub best: Point,
    pub dead_ends: Vec<DeadEnd>,
    pub untried: Vec<Untried>,
    /// Number of proposals beside the path that could not beat it according to their bounds.
    #[serde(alias = "hopeless")]
    pub skipped_proposals: usize,
    /// Number of points with unknown proposals, because the process that computes them died.
    #[serde(alias = "untold")]
    pub unknown_proposals: usize,
    pub pareto_front: Vec<Point>,
    /// The reason that the last point does not meet the request.
    pub shortfall: Option<String>,
    /// The smallest change that makes the spec fit, if it changes fixed keys and no other change
    /// helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits_if_free: Option<FitFound>,
}

impl TuneAnswer {
    /// Every point: the original spec, those of the path, dead ends.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        let path = self.path.iter().map(|answer| &answer.step.point);
        let ends = self.dead_ends.iter().map(|end| &end.point);
        std::iter::once(&self.base).chain(path).chain(ends)
    }
}
