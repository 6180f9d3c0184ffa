//! The run of a spec on machines with more of a single resource.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tilescope_analysis::confidence::{Banded, RunFactors};
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::sensitivity::run_words;
use tilescope_report::units::Cycles;
use tilescope_sim::sensitivity::{
    ChangedRun, OperationSensitivity, ProgramSensitivity, ResourceSensitivity, RunFigures,
};

/// The run of a spec on other machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensitivityAnswer {
    /// The spec in the user's spelling.
    pub spec: String,
    /// The machine of the spec: `mk2`.
    pub machine: String,
    /// The factor by which each resource is faster or larger.
    pub factor: f64,
    /// The parts that were left out of the run to keep it short.
    pub shortened: Option<String>,
    pub fits: bool,
    /// The run on the machine of the spec; `None` if it does not fit in memory.
    pub run: Option<RunAnswer>,
    pub resources: Vec<ResourceAnswer>,
    pub operations: Vec<OperationAnswer>,
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunAnswer {
    pub cycles: Cycles,
    pub seconds: f64,
    /// `None` for a model without samples.
    pub samples_per_second: Option<f64>,
    /// The same with the error band of the model; `None` if it is not known.
    #[serde(default)]
    pub expected: Option<ExpectedRun>,
}

/// The length of a run, with the error band of the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedRun {
    pub cycles: Banded,
    pub seconds: Banded,
    pub samples_per_second: Option<Banded>,
}

/// The run on a machine with more of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceAnswer {
    /// `exchange`, `host_handshake`, …
    pub name: String,
    /// `exchange x2`
    pub title: String,
    /// Keys of the spec and their values; empty for resources without a key.
    pub changes: SpecChanges,
    /// `4 B/cycle to 8 B/cycle`
    pub detail: String,
    pub fits: bool,
    /// The reason why no such machine exists.
    pub refused: Option<String>,
    pub run: Option<RunAnswer>,
    /// The increase of the time of the run, as a share; `None` if either of the two cannot run.
    pub change: Option<f64>,
}

/// The run with an operation that is faster by the factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationAnswer {
    pub name: String,
    /// `forward`, `backward`, …
    pub pass: String,
    /// Its cycles in the run.
    pub cycles: Cycles,
    /// The share of these cycles in the run.
    pub share: Option<f64>,
    pub run: RunAnswer,
    /// The increase of the time of the run, as a share.
    pub change: Option<f64>,
    /// The speedup from which it is off the critical path.
    pub off_path_beyond: Option<f64>,
}

impl From<&RunFigures> for RunAnswer {
    fn from(run: &RunFigures) -> Self {
        let RunFigures { cycles, seconds, samples_per_second, time_factors } = *run;
        let expected = time_factors.map(|factors| {
            let factors = RunFactors::of_program(factors);
            ExpectedRun {
                cycles: factors.of_time(cycles.as_f64()),
                seconds: factors.of_time(seconds),
                samples_per_second: samples_per_second.map(|rate| factors.of_rate(rate)),
            }
        });
        Self { cycles, seconds, samples_per_second, expected }
    }
}

impl RunAnswer {
    /// `9.06 ms (-12 to +14 %), 441,266 samples per second (-12 to +14 %)`
    #[must_use]
    pub fn words(&self) -> String {
        let expected = self.expected;
        run_words(
            (self.seconds, expected.map(|of| of.seconds)),
            (self.samples_per_second, expected.and_then(|of| of.samples_per_second)),
        )
    }
}

impl SensitivityAnswer {
    /// Creates the answer for the spec that the user calls `spec`.
    #[must_use]
    pub fn new(spec: &str, found: &ProgramSensitivity) -> Self {
        let base = found.base.figures();
        Self {
            spec: spec.to_owned(),
            machine: found.machine.clone(),
            factor: found.factor,
            shortened: found.shortened.clone(),
            fits: found.base != ChangedRun::DoesNotFit,
            run: base.map(RunAnswer::from),
            resources: found.resources.iter().map(|of| ResourceAnswer::new(of, base)).collect(),
            operations: found.operations.iter().map(|of| OperationAnswer::new(of, base)).collect(),
        }
    }
}

impl ResourceAnswer {
    fn new(of: &ResourceSensitivity, base: Option<&RunFigures>) -> Self {
        let mut changes = SpecChanges::new();
        for (key, value) in &of.changes {
            let value = value.parse().unwrap_or_else(|_| Value::from(value.as_str()));
            changes.insert(key.clone(), value);
        }
        let refused = match &of.run {
            ChangedRun::Refused(problem) => Some(problem.clone()),
            ChangedRun::Runs(_) | ChangedRun::DoesNotFit => None,
        };
        let run = of.run.figures();
        Self {
            name: of.name.to_owned(),
            title: of.title.clone(),
            changes,
            detail: of.detail.clone(),
            fits: of.run != ChangedRun::DoesNotFit,
            refused,
            run: run.map(RunAnswer::from),
            change: change(base, run),
        }
    }
}

impl OperationAnswer {
    fn new(of: &OperationSensitivity, base: Option<&RunFigures>) -> Self {
        Self {
            name: of.name.clone(),
            pass: of.pass.name().to_owned(),
            cycles: of.cycles,
            share: base.map(|base| of.cycles.as_f64() / base.cycles.as_f64().max(1.0)),
            run: RunAnswer::from(&of.run),
            change: change(base, Some(&of.run)),
            off_path_beyond: of.off_path_beyond,
        }
    }
}

/// The change of the time of a run, as a share; `None` if either of the two cannot run.
fn change(base: Option<&RunFigures>, run: Option<&RunFigures>) -> Option<f64> {
    Some(run?.change_from(base?))
}
