//! All combinations of values of some keys.

use crate::condition::Condition;
use crate::point::Point;
use crate::results_file::{KnownOutcomes, ResultsFile};
use crate::spec_copy::SpecCopy;
use crate::trial::{TrialRunner, in_parallel};
use crate::varied_key::VariedKey;
use crate::{ExperimentError, ExperimentProgress};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tilescope_analysis::insights::SpecChanges;

/// The combinations of values that meet the conditions on keys; the last key varies fastest.
#[must_use]
pub fn combinations(keys: &[VariedKey], conditions: &[Condition]) -> Vec<SpecChanges> {
    let mut points = vec![SpecChanges::new()];
    for VariedKey { path, values } in keys {
        let mut longer = Vec::with_capacity(points.len() * values.len());
        for point in &points {
            for value in values {
                let mut point = point.clone();
                point.insert(path.clone(), value.clone());
                longer.push(point);
            }
        }
        points = longer;
    }
    points.retain(|point| {
        let meets = |condition: &Condition| condition.of_keys(|path| point.get(path));
        conditions.iter().all(|condition| meets(condition) != Some(false))
    });
    points
}

/// The spec, the processes and the progress of a grid.
pub struct GridRun<'a> {
    pub copy: &'a SpecCopy,
    pub runner: &'a TrialRunner,
    pub progress: &'a ExperimentProgress<'a>,
}

/// Simulates the changed specs without an outcome, and writes each to the file of results as it
/// ends. Returns all outcomes, and the error that stopped the rest. `found` is called with the
/// outcomes so far.
pub fn simulate(
    changes: &[SpecChanges],
    known: KnownOutcomes,
    run: &GridRun<'_>,
    results: Option<ResultsFile>,
    found: impl Fn(&KnownOutcomes) + Sync,
) -> (KnownOutcomes, Option<ExperimentError>) {
    let is_new = |changes: &&SpecChanges| known.get(changes).is_none();
    let new: Vec<SpecChanges> = changes.iter().filter(is_new).cloned().collect();
    let known = Mutex::new(known);
    let stopped: Mutex<Option<ExperimentError>> = Mutex::new(None);
    let results = Mutex::new(results);
    let done = AtomicUsize::new(0);
    in_parallel(run.runner.jobs(), &new, |_, changes| {
        let stop = |error: ExperimentError| {
            if let Ok(mut stopped) = stopped.lock() {
                stopped.get_or_insert(error);
            }
        };
        if stopped.lock().map_or(true, |stopped| stopped.is_some()) {
            return;
        }
        let outcome = match run.runner.figures(changes) {
            Ok(outcome) => run.copy.named_outcome(outcome),
            Err(error) => return stop(error),
        };
        let point = Point { changes: changes.clone(), outcome };
        if let Ok(results) = results.lock()
            && let Some(results) = results.as_ref()
            && let Err(error) = results.add(&point)
        {
            stop(error);
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(mut known) = known.lock() {
            known.insert(point);
            (run.progress)(done as f64 / new.len() as f64);
            found(&known);
        }
    });
    let stopped = stopped.into_inner().unwrap_or_else(PoisonError::into_inner);
    (known.into_inner().unwrap_or_else(PoisonError::into_inner), stopped)
}
