//! The gain of a program on another machine: with twice the exchange, the links, the host or the
//! memory, and with single operations twice as fast.
//!
//! Each resource is changed by the keys of `[target.machine]` and `[options.host]`, and the program
//! is compiled and run again, so that planner and allocator adapt to it. Tile compute and
//! operations do not depend on constants of a machine. For these the steps are shortened, and the
//! same program runs again. Nothing is estimated.

mod operations;
mod resources;

pub use operations::OperationSensitivity;

use crate::run::retimed_cycles;
use crate::simulation::{MOST_COUNTED_MICRO_BATCHES, MOST_RECORDS, SimulateError, Simulation};
use crate::specification::{Spec, SpecError, SpecSource};
use rayon::prelude::*;
use resources::{RESOURCES, Resource, ResourceChange};
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_report::units::{Cycles, ProgramId, grouped};
use tilescope_report::{CompilationReport, FactorBand, ProgramKind};

/// The factors that are accepted.
pub const FACTORS: std::ops::RangeInclusive<f64> = 0.1..=100.0;

/// The parameters of a sensitivity analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SensitivityRequest {
    /// The factor by which a resource becomes faster or larger, within [`FACTORS`].
    pub factor: f64,
    /// The number of operations that are made faster: those with the most cycles.
    pub operations: usize,
}

/// The reason why a program cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum SensitivityError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigures {
    pub cycles: Cycles,
    pub seconds: f64,
    /// The rate of samples, if the model works on samples.
    pub samples_per_second: Option<f64>,
    /// The factors between which its true time lies, given by the caller. `None` on a machine that
    /// cannot be bought.
    pub time_factors: Option<FactorBand>,
}

impl RunFigures {
    /// The relative change of the time from another run. Negative if this one is faster.
    pub fn change_from(&self, base: &Self) -> f64 {
        self.seconds / base.seconds.max(f64::MIN_POSITIVE) - 1.0
    }
}

/// The factors between which the time of a compiled program lies. The arguments are the program,
/// the length of its run, and the cycles of each IPU's compute tiles by program.
pub type TimeErrors<'a> =
    &'a (dyn Fn(&CompilationReport, Cycles, &[Vec<Cycles>]) -> Option<FactorBand> + Sync);

/// A compiled program that can be run with other cycles of its steps.
struct RetimedProgram<'a> {
    simulation: &'a Simulation<'a>,
    spec: &'a Spec,
    /// Cycles of each IPU's compute tiles by program. `None` if the program does not fit in memory.
    lanes: Option<Vec<Vec<Cycles>>>,
    errors: TimeErrors<'a>,
}

impl<'a> RetimedProgram<'a> {
    fn new(simulation: &'a Simulation<'a>, spec: &'a Spec, errors: TimeErrors<'a>) -> Self {
        Self { simulation, spec, lanes: simulation.lane_cycles(), errors }
    }

    /// The figures of the unchanged run.
    fn figures(&self) -> ChangedRun {
        let Some(cycles) = self.simulation.figures().cycles else {
            return ChangedRun::DoesNotFit;
        };
        ChangedRun::Runs(self.figures_of(cycles, self.lanes.as_deref()))
    }

    /// The figures of the run with other cycles of its steps.
    fn retimed(&self, step: impl Fn(ProgramId, Cycles) -> Cycles) -> RunFigures {
        let cycles = retimed_cycles(self.simulation.compiled(), self.spec, &step);
        let mut lanes = self.lanes.clone();
        for lane in lanes.iter_mut().flatten() {
            for (program, sum) in (0..).map(ProgramId).zip(lane) {
                *sum = step(program, *sum);
            }
        }
        self.figures_of(cycles, lanes.as_deref())
    }

    fn figures_of(&self, cycles: Cycles, lanes: Option<&[Vec<Cycles>]>) -> RunFigures {
        let seconds = cycles.seconds_at(self.spec.target.chip.clock);
        let batching = self.simulation.compilation().batching;
        let samples = batching.map(|batching| batching.samples_per_call() as f64);
        RunFigures {
            cycles,
            seconds,
            samples_per_second: samples.map(|samples| samples / seconds.max(f64::MIN_POSITIVE)),
            time_factors: lanes
                .and_then(|lanes| (self.errors)(self.simulation.compilation(), cycles, lanes)),
        }
    }
}

/// The outcome of a program on another machine.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedRun {
    Runs(RunFigures),
    /// The program needs more memory than the machine has.
    DoesNotFit,
    /// There is no such machine, or the program cannot be compiled for it.
    Refused(String),
}

impl ChangedRun {
    /// The figures, if the program runs.
    pub fn figures(&self) -> Option<&RunFigures> {
        match self {
            Self::Runs(figures) => Some(figures),
            Self::DoesNotFit | Self::Refused(_) => None,
        }
    }

    /// The seconds of the run, which are infinite if the program does not run.
    fn seconds(&self) -> f64 {
        match self {
            Self::Runs(figures) => figures.seconds,
            Self::DoesNotFit | Self::Refused(_) => f64::INFINITY,
        }
    }
}

/// A resource of the machine, and the effect of more of it on the program.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSensitivity {
    /// The name, such as `exchange` or `host_handshake`.
    pub name: &'static str,
    /// The title, such as `exchange x2`.
    pub title: String,
    /// Keys of the spec and their values, in the form of `--set`. Empty for a change without a key.
    pub changes: Vec<(String, String)>,
    /// The change as text: `4 B/cycle to 8 B/cycle`.
    pub detail: String,
    pub run: ChangedRun,
}

/// The complete sensitivity of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSensitivity {
    /// The machine of the spec: `mk2`.
    pub machine: String,
    pub factor: f64,
    /// The outcome on the machine of the spec.
    pub base: ChangedRun,
    /// The part of the run that was omitted to shorten it. `None` if the run is complete.
    pub shortened: Option<String>,
    /// Resources, with the largest gain first, and those that do not run last.
    pub resources: Vec<ResourceSensitivity>,
    /// Operations, with the largest gain first.
    pub operations: Vec<OperationSensitivity>,
}

/// Runs the program of a spec on machines that each have more of one resource. `errors` returns the
/// factors between which the time of each run lies. `progress` receives the share that is done.
/// Both are called from several threads.
///
/// # Errors
/// Returns an error if the spec is invalid, or cannot be compiled for its own machine.
pub fn sensitivity(
    source: &SpecSource,
    request: SensitivityRequest,
    errors: TimeErrors,
    progress: impl Fn(f64) + Sync,
) -> Result<ProgramSensitivity, SensitivityError> {
    let (source, shortened) = shortened(source)?;
    let spec = Spec::build(&source)?;
    let simulation = Simulation::compile(&spec, MOST_RECORDS)?;
    let program = RetimedProgram::new(&simulation, &spec, errors);
    let base = program.figures();
    let operations = match base.figures() {
        Some(_) => operations::busiest(&simulation, &spec, request.operations),
        None => Vec::new(),
    };
    let done = AtomicUsize::new(0);
    let all = RESOURCES.len() + operations.len();
    let report_one_more =
        || progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / all as f64);
    let mut resources: Vec<ResourceSensitivity> = RESOURCES
        .par_iter()
        .map(|resource| {
            let found = with_more_of(resource, &source, &program, request.factor);
            report_one_more();
            found
        })
        .collect();
    resources.sort_by(|a, b| a.run.seconds().total_cmp(&b.run.seconds()));
    let mut operations: Vec<OperationSensitivity> = operations
        .par_iter()
        .map(|busy| {
            let found = operations::made_faster(busy, &program, request.factor);
            report_one_more();
            found
        })
        .collect();
    operations.sort_by_key(|of| of.run.cycles);
    let machine = simulation.compiled().compilation.target.machine_name();
    let SensitivityRequest { factor, .. } = request;
    Ok(ProgramSensitivity { machine, factor, base, shortened, resources, operations })
}

fn with_more_of(
    resource: &Resource,
    source: &SpecSource,
    program: &RetimedProgram<'_>,
    factor: f64,
) -> ResourceSensitivity {
    let spec = program.spec;
    let (changes, run) = match (resource.change)(spec, factor) {
        ResourceChange::Keys(changes) => {
            let run = changed_run(source, &changes, program.errors);
            (changes, run.unwrap_or_else(|error| ChangedRun::Refused(error.to_string())))
        }
        ResourceChange::ComputeSteps => {
            let run = match program.simulation.tiles_out_of_memory() {
                0 => ChangedRun::Runs(with_faster_compute(program, factor)),
                _ => ChangedRun::DoesNotFit,
            };
            (Vec::new(), run)
        }
    };
    let title = (resource.title)(factor);
    let detail = (resource.detail)(spec, factor);
    ResourceSensitivity { name: resource.name, title, changes, detail, run }
}

fn changed_run(
    source: &SpecSource,
    changes: &[(String, String)],
    errors: TimeErrors,
) -> Result<ChangedRun, SensitivityError> {
    let mut changed = source.clone();
    changed.overrides.extend(changes.iter().map(|(key, value)| format!("{key}={value}")));
    let spec = Spec::build(&changed)?;
    let simulation = Simulation::compile(&spec, MOST_RECORDS)?;
    Ok(RetimedProgram::new(&simulation, &spec, errors).figures())
}

/// Returns the figures of the same program with shorter compute sets.
fn with_faster_compute(program: &RetimedProgram<'_>, factor: f64) -> RunFigures {
    let programs = &program.simulation.compilation().programs;
    let run = program.retimed(|program, cycles| match programs[program.index()].kind {
        ProgramKind::OnTileExecute => shortened_by(cycles, 1.0 / factor),
        _ => cycles,
    });
    if factor == 1.0 {
        return run;
    }
    // No measurement supports a changed machine.
    RunFigures { time_factors: None, ..run }
}

/// Cycles of a step that takes a share of its time, rounded up.
fn shortened_by(cycles: Cycles, share: f64) -> Cycles {
    Cycles::from_f64((cycles.as_f64() * share).ceil())
}

/// Returns the spec with a run that is short enough to be repeated many times, and a description of
/// the omitted part. The weight update stays unchanged as long as possible, because all samples of
/// an update share its cost.
fn shortened(source: &SpecSource) -> Result<(SpecSource, Option<String>), SpecError> {
    let options = Spec::build(source)?.options;
    let accumulation = options.gradient_accumulation;
    let iterations = options.device_iterations;
    if accumulation.saturating_mul(iterations) <= MOST_COUNTED_MICRO_BATCHES {
        return Ok((source.clone(), None));
    }
    let fewer_accumulated = accumulation.min(MOST_COUNTED_MICRO_BATCHES);
    let fewer_iterations = (MOST_COUNTED_MICRO_BATCHES / fewer_accumulated).clamp(1, iterations);
    let mut source = source.clone();
    let mut words = Vec::new();
    for (key, all, fewer) in [
        ("options.gradient_accumulation", accumulation, fewer_accumulated),
        ("options.device_iterations", iterations, fewer_iterations),
    ] {
        if fewer < all {
            source.overrides.push(format!("{key}={fewer}"));
            words.push(format!("{key} is {} instead of {}", grouped(fewer), grouped(all)));
        }
    }
    Ok((source, Some(words.join(", "))))
}

#[cfg(test)]
mod tests;
