//! Prediction of a measured run after a change of the program: cycles that change in the simulation
//! are scaled, all others stay as measured.

use super::{MeasuredBesideSimulated, program_steps, program_title};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::{Report, ReportError};

/// The basis of an operation's prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PredictionBasis {
    /// Measured cycles times the ratio of the simulations with and without the change.
    Scaled,
    /// Measured cycles: the simulation does not have the operation.
    AsMeasured,
    /// Simulated cycles: the change adds the operation, so there is no measurement of it.
    Simulated,
    /// No cycles: the change removes the operation.
    Gone,
}

impl PredictionBasis {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scaled => "scaled",
            Self::AsMeasured => "as measured",
            Self::Simulated => "simulated",
            Self::Gone => "gone",
        }
    }
}

/// An operation after a change of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationPrediction {
    pub name: String,
    /// Cycles of all its steps over all IPUs.
    pub measured: f64,
    pub predicted: f64,
    /// Ratio of the simulations with and without the change; `None` if the operation is not scaled.
    pub factor: Option<f64>,
    pub basis: PredictionBasis,
}

/// A measured run after a change of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Operations, the one that changes most first.
    pub operations: Vec<OperationPrediction>,
}

impl Prediction {
    /// Cycles of all operations over all IPUs, measured and predicted.
    pub fn totals(&self) -> (f64, f64) {
        let measured = self.operations.iter().map(|of| of.measured).sum();
        let predicted = self.operations.iter().map(|of| of.predicted).sum();
        (measured, predicted)
    }

    /// Predicted cycles with a given basis.
    pub fn cycles_by(&self, basis: PredictionBasis) -> f64 {
        let own = self.operations.iter().filter(|of| of.basis == basis);
        own.map(|of| of.predicted).sum()
    }
}

/// Cycles of a simulated run by operation, over all executions.
fn simulated_cycles(report: &Report) -> Result<BTreeMap<String, f64>, ReportError> {
    let programs = report.programs()?;
    let operations = report.operations()?;
    let mut cycles: BTreeMap<String, f64> = BTreeMap::new();
    for ((id, _), sum) in program_steps(report)? {
        let Some(program) = programs.get(id) else { continue };
        let operation = program.operation.and_then(|id| operations.get(id.index()));
        let name = operation.map_or_else(|| program_title(program), |of| of.name.clone());
        *cycles.entry(name).or_default() += sum.cycles;
    }
    Ok(cycles)
}

/// Predicts a measured run after a change, from simulations without and with it. For each
/// operation, predicted = measured x changed / base.
///
/// # Errors
/// Parts of the files that cannot be read.
pub fn predict(
    aligned: &MeasuredBesideSimulated,
    base: &Report,
    changed: &Report,
) -> Result<Prediction, ReportError> {
    let before = simulated_cycles(base)?;
    let after = simulated_cycles(changed)?;
    let mut operations = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for operation in &aligned.operations {
        known.insert(&operation.name);
        let name = operation.name.clone();
        let measured = operation.measured;
        let simulated = before.get(&name).copied().filter(|cycles| *cycles > 0.0);
        operations.push(match (simulated, after.get(&name)) {
            (Some(before), Some(after)) => {
                let factor = after / before;
                let predicted = measured * factor;
                let basis = PredictionBasis::Scaled;
                OperationPrediction { name, measured, predicted, factor: Some(factor), basis }
            }
            (Some(_), None) => {
                let basis = PredictionBasis::Gone;
                OperationPrediction { name, measured, predicted: 0.0, factor: Some(0.0), basis }
            }
            (None, _) => as_measured(name, measured),
        });
    }
    operations
        .extend(aligned.only_measured.iter().map(|of| as_measured(of.name.clone(), of.cycles)));
    let missed: BTreeSet<&str> = aligned.only_simulated.iter().map(|of| of.name.as_str()).collect();
    for (name, cycles) in &after {
        // An operation that only the simulations have, before the change too, is not part of the
        // change.
        let is_new = !known.contains(name.as_str()) && !missed.contains(name.as_str());
        if is_new && !before.contains_key(name) {
            let basis = PredictionBasis::Simulated;
            let name = name.clone();
            let predicted = *cycles * aligned.repeats;
            operations.push(OperationPrediction {
                name,
                measured: 0.0,
                predicted,
                factor: None,
                basis,
            });
        }
    }
    operations.sort_by(|a, b| {
        let by_change =
            (b.predicted - b.measured).abs().total_cmp(&(a.predicted - a.measured).abs());
        by_change.then_with(|| a.name.cmp(&b.name))
    });
    Ok(Prediction { operations })
}

fn as_measured(name: String, measured: f64) -> OperationPrediction {
    let basis = PredictionBasis::AsMeasured;
    OperationPrediction { name, measured, predicted: measured, factor: None, basis }
}
