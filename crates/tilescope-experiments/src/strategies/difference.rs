//! Simulations of specs between two others, to explain their difference.

use super::explain::{Measure, Measured, UnitSet};
use crate::budget::SearchBudget;
use crate::spec_difference::SpecDifference;
use crate::trial::{TrialFigures, TrialOutcome, TrialRunner, in_parallel};
use crate::{ExperimentError, ExperimentProgress};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::insights::SpecChanges;
use tilescope_report::units::{exact_bytes, grouped_real};

/// The figure whose difference is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceFigure {
    Cycles,
    Memory,
}

impl DifferenceFigure {
    pub const ALL: [Self; 2] = [Self::Cycles, Self::Memory];

    /// Units per cycle: small enough for rounding to be negligible, and a power of two to keep sums
    /// exact as fractions of a cycle.
    const PER_CYCLE: u128 = 1024;

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Memory => "memory",
        }
    }

    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Cycles => "cycles per sample",
            Self::Memory => "bytes of the fullest tile",
        }
    }

    fn measured(self, outcome: &TrialOutcome) -> Measured {
        let figures = match outcome {
            TrialOutcome::Figures(figures) => figures,
            TrialOutcome::Refused(problem) | TrialOutcome::Died(problem) => {
                return Measured::None(problem.clone());
            }
        };
        let units = match self {
            Self::Memory => i64::try_from(figures.fullest_tile_bytes.0).ok(),
            Self::Cycles => figures.cycles.and_then(|_| Self::cycle_units(figures)),
        };
        units
            .map_or_else(|| Measured::None("it does not fit in memory".to_owned()), Measured::Units)
    }

    fn cycle_units(figures: &TrialFigures) -> Option<i64> {
        let samples = u128::from(figures.samples.max(1));
        let all = u128::from(figures.cycles?.0) * Self::PER_CYCLE;
        i64::try_from((all + samples / 2) / samples).ok()
    }

    /// The value in cycles or bytes.
    #[must_use]
    pub fn value(self, units: i64) -> f64 {
        match self {
            Self::Cycles => units as f64 / Self::PER_CYCLE as f64,
            Self::Memory => units as f64,
        }
    }

    #[must_use]
    pub fn text(self, units: i64) -> String {
        match self {
            Self::Cycles => grouped_real(self.value(units)),
            Self::Memory => exact_bytes(units.unsigned_abs()),
        }
    }

    #[must_use]
    pub fn change_text(self, units: i64) -> String {
        let sign = if units < 0 { "-" } else { "+" };
        match self {
            Self::Cycles => format!("{sign}{}", grouped_real(self.value(units).abs())),
            Self::Memory => format!("{sign}{}", exact_bytes(units.unsigned_abs())),
        }
    }
}

/// Simulates specs between both ends, each in a separate process.
pub struct DifferenceTrials<'a> {
    pub difference: &'a SpecDifference,
    pub figure: DifferenceFigure,
    /// A directory for the files of the specs.
    pub directory: &'a Path,
    /// Number of parallel simulations.
    pub jobs: NonZeroUsize,
    pub budget: SearchBudget,
    /// Number of simulations so far.
    pub done: usize,
    pub progress: &'a ExperimentProgress<'a>,
}

impl Measure for DifferenceTrials<'_> {
    type Error = ExperimentError;

    fn measure(&mut self, sets: &[UnitSet]) -> Result<Vec<Measured>, ExperimentError> {
        let mut trials = Vec::new();
        for (set, number) in sets.iter().zip(self.done..) {
            let path = self.directory.join(format!("{number}.toml"));
            let text = self.difference.between(set.iter().copied());
            if let Err(problem) = std::fs::write(&path, text) {
                return Err(ExperimentError::Write { path, problem });
            }
            trials.push(path);
        }
        let done = AtomicUsize::new(self.done);
        let outcomes = in_parallel(self.jobs, &trials, |_, path| {
            let name = path.display().to_string();
            let runner = TrialRunner::new(&name, Vec::new(), self.jobs)?;
            let outcome = runner.figures(&SpecChanges::new());
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            (self.progress)(self.budget.share(done));
            // The problem is in a temporary spec, which no longer exists afterwards.
            Ok(without_place(outcome?, &name))
        });
        self.done += sets.len();
        let outcomes: Vec<TrialOutcome> =
            outcomes.into_iter().collect::<Result<_, ExperimentError>>()?;
        Ok(outcomes.iter().map(|outcome| self.figure.measured(outcome)).collect())
    }

    fn left(&self) -> usize {
        self.budget.left(self.done)
    }
}

/// An outcome without the name of the temporary file in its problem.
fn without_place(outcome: TrialOutcome, file: &str) -> TrialOutcome {
    let short = |problem: String| problem.replace(&format!("{file}:"), "line ").replace(file, "it");
    match outcome {
        TrialOutcome::Figures(_) => outcome,
        TrialOutcome::Refused(problem) => TrialOutcome::Refused(short(problem)),
        TrialOutcome::Died(problem) => TrialOutcome::Died(short(problem)),
    }
}
