//! Trials of specs: each one is simulated by a separate child process, so that a trial that dies or
//! exhausts the memory does not affect the others.

use crate::ExperimentError;
use crate::program_error::{ERRORS_VARIABLE, ProgramError};
use serde::{Deserialize, Serialize};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::confidence::{Banded, MemoryFit, OwnErrors};
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::running_costs::MANY_SAMPLES;
use tilescope_report::REPORT_FILE;
use tilescope_report::units::{Bytes, Cycles};

/// Environment variable with the number of threads of a child process, read by rayon.
const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Environment variable that makes a child process end with its standard input.
const PARENT_VARIABLE: &str = "TILESCOPE_ENDS_WITH_INPUT";

/// The figures of a spec, as printed by `tilescope simulate SPEC --figures`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Length of the run; `None` for a program that does not fit in memory.
    pub cycles: Option<Cycles>,
    pub seconds: Option<f64>,
    /// Samples of the run; 1 for a program without samples.
    pub samples: u64,
    /// Bytes that the fullest tile needs, including gaps.
    pub fullest_tile_bytes: Bytes,
    /// Seconds of the run, with the error band of the model; `None` if that is not known, or if the
    /// run is too long to compute it for a trial.
    #[serde(default)]
    pub expected_seconds: Option<Banded>,
    /// The errors of the time that other runs of the program do not have; known where the band is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_errors: Option<OwnErrors>,
    /// The fullest tile, with the error band of the model; `None` if that is not known.
    #[serde(default)]
    pub expected_fullest_tile: Option<Banded>,
    /// The answer to whether it fits in memory, in addition to its time.
    #[serde(default)]
    pub fit: Option<MemoryFit>,
    /// IPUs of all replicas.
    pub ipus: u32,
    /// Power of the machine; `None` if it is not known.
    pub watts: Option<f64>,
    /// Price of an hour of the machine; `None` if it is not known.
    pub price_per_hour: Option<f64>,
}

impl TrialFigures {
    /// Time of a sample; `None` for a program that does not fit in memory.
    pub fn seconds_per_sample(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds / self.samples.max(1) as f64)
    }

    /// Energy per million samples.
    pub fn joules(&self) -> Option<f64> {
        Some(self.seconds_per_sample()? * MANY_SAMPLES * self.watts?)
    }

    /// Cost per million samples.
    pub fn cost(&self) -> Option<f64> {
        Some(self.seconds_per_sample()? * MANY_SAMPLES / 3600.0 * self.price_per_hour?)
    }
}

/// A finding of `tilescope insights SPEC --json`, with its proposal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFinding {
    /// Name of the rule.
    pub rule: String,
    pub sentence: String,
    #[serde(default)]
    pub gain: FoundGain,
    /// The proposed changes; empty if no key makes them.
    #[serde(default)]
    pub changes: SpecChanges,
    /// The cost of the proposal besides time.
    #[serde(default)]
    pub cost: String,
}

/// The bound on the gain of a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundGain {
    /// `time`, `memory`, `everything` or `unknown`.
    #[serde(default)]
    pub of: String,
    /// The bound as a share.
    #[serde(default)]
    pub share: Option<f64>,
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialOutcome {
    /// The spec was simulated, or does not fit in memory.
    Figures(TrialFigures),
    /// The spec is invalid, with the problem.
    Refused(String),
    /// The child process did not end normally.
    Died(String),
}

/// Runs changed specs in child processes.
pub struct TrialRunner {
    program: PathBuf,
    /// A file, or the name of a bundled spec.
    spec: String,
    /// Arguments of `--set` for all trials.
    overrides: Vec<String>,
    jobs: NonZeroUsize,
}

impl TrialRunner {
    /// Creates a runner for a spec and the `--set` arguments of all trials, with at most `jobs`
    /// parallel processes.
    ///
    /// # Errors
    /// The path of this program is not known.
    pub fn new(
        spec: &str,
        overrides: Vec<String>,
        jobs: NonZeroUsize,
    ) -> Result<Self, ExperimentError> {
        let program = std::env::current_exe().map_err(ExperimentError::OwnPath)?;
        Ok(Self { program, spec: spec.to_owned(), overrides, jobs })
    }

    /// Runs all trials; calls `ended` for each one as it ends, from several threads.
    ///
    /// # Errors
    /// Child processes that cannot be started.
    pub fn run(
        &self,
        trials: &[SpecChanges],
        ended: impl Fn(usize, &TrialOutcome) + Sync,
    ) -> Result<Vec<TrialOutcome>, ExperimentError> {
        let outcomes = in_parallel(self.jobs, trials, |at, trial| {
            let outcome = self.figures(trial);
            if let Ok(outcome) = &outcome {
                ended(at, outcome);
            }
            outcome
        });
        outcomes.into_iter().collect()
    }

    /// Simulates a changed spec.
    ///
    /// # Errors
    /// A child process that cannot be started.
    pub fn figures(&self, changes: &SpecChanges) -> Result<TrialOutcome, ExperimentError> {
        Ok(outcome(&self.child(&["simulate", &self.spec, "--figures"], changes)?))
    }

    /// The findings about a changed spec; `None` if the child process does not return them.
    ///
    /// # Errors
    /// A child process that cannot be started.
    pub fn findings(
        &self,
        changes: &SpecChanges,
    ) -> Result<Option<Vec<TrialFinding>>, ExperimentError> {
        let output = self.child(&["insights", &self.spec, "--json"], changes)?;
        Ok(serde_json::from_slice(&output.stdout).ok())
    }

    /// Simulates a changed spec into a directory, and returns the path of the report.
    ///
    /// # Errors
    /// Invalid specs, and child processes that die or cannot be started.
    pub fn report(
        &self,
        changes: &SpecChanges,
        directory: &Path,
    ) -> Result<PathBuf, ExperimentError> {
        let Some(place) = directory.to_str() else {
            return Err(ExperimentError::PathNotUtf8(directory.to_owned()));
        };
        let output = self.child(&["simulate", &self.spec, "-o", place], changes)?;
        match failure(&output) {
            None => Ok(directory.join(REPORT_FILE)),
            Some(failure) => Err(failure.into()),
        }
    }

    /// The number of parallel processes.
    pub fn jobs(&self) -> NonZeroUsize {
        self.jobs
    }

    /// Runs a command of this program on the changed spec.
    fn child(&self, words: &[&str], changes: &SpecChanges) -> Result<Output, ExperimentError> {
        self.started(words, changes).map_err(ExperimentError::Start)
    }

    fn started(&self, words: &[&str], changes: &SpecChanges) -> io::Result<Output> {
        let changes = self.overrides.iter().cloned().chain(set_arguments(changes));
        let set = changes.flat_map(|change| ["--set".to_owned(), change]);
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).chain(set).collect();
        child_of(&self.program, &words, self.jobs)
    }
}

/// The end of a command that this program ran as a child.
#[derive(Debug)]
pub struct CommandEnd {
    pub stdout: Vec<u8>,
    /// The reason why its exit code is not 0.
    pub failure: Option<ExperimentError>,
}

/// Runs a command of this program as a child that ends with it.
///
/// # Errors
/// A child that cannot be started.
pub fn run_command(words: &[String]) -> Result<CommandEnd, ExperimentError> {
    let program = std::env::current_exe().map_err(ExperimentError::OwnPath)?;
    let output = child_of(&program, words, NonZeroUsize::MIN).map_err(ExperimentError::Start)?;
    let failure = failure(&output).map(ExperimentError::from);
    Ok(CommandEnd { stdout: output.stdout, failure })
}

/// Runs a program that ends with this one, beside `jobs - 1` others.
fn child_of(program: &Path, words: &[String], jobs: NonZeroUsize) -> io::Result<Output> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut child = Command::new(program)
        .args(words)
        .env(THREADS_VARIABLE, (cores / jobs).max(1).to_string())
        .env(PARENT_VARIABLE, "1")
        .env(ERRORS_VARIABLE, "json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Closed when this ends, also if it is killed.
    let _held = child.stdin.take();
    child.wait_with_output()
}

/// Changes as `--set` takes them: `options.overlap_io="loops"`.
pub fn set_arguments(changes: &SpecChanges) -> impl Iterator<Item = String> {
    // Tables of stages have a different notation in TOML and JSON.
    let written = |value: &serde_json::Value| match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => value.to_string(),
    };
    changes.iter().map(move |(key, value)| format!("{key}={}", written(value)))
}

/// Calls `work` for each item on at most `jobs` threads; returns the results in the order of the
/// items.
pub fn in_parallel<T: Sync, R: Send>(
    jobs: NonZeroUsize,
    items: &[T],
    work: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            let result = work(at, item);
            if let Ok(mut place) = results[at].lock() {
                *place = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(items.len()) {
            scope.spawn(worker);
        }
    });
    results.into_iter().filter_map(|place| place.into_inner().ok().flatten()).collect()
}

/// Ends this process when the process that started it as a trial is gone: a search that is killed
/// leaves no simulations behind.
pub fn end_with_parent() {
    if std::env::var_os(PARENT_VARIABLE).is_none() {
        return;
    }
    let wait = || {
        // Nothing is ever written to it, so reading returns at its end.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    };
    // Without a thread for it, the trial runs to its end.
    let _ = std::thread::Builder::new().name("parent".to_owned()).spawn(wait);
}

/// The outcome from the output of a child process.
fn outcome(output: &Output) -> TrialOutcome {
    match failure(output) {
        None => match serde_json::from_slice(&output.stdout) {
            Ok(figures) => TrialOutcome::Figures(figures),
            Err(error) => TrialOutcome::Died(format!("its answer cannot be read: {error}")),
        },
        Some(ChildFailure::Refused(problem)) => TrialOutcome::Refused(problem),
        Some(ChildFailure::Failed(problem)) => TrialOutcome::Died(problem),
    }
}

/// The reason that a child process failed.
enum ChildFailure {
    /// Its input is invalid.
    Refused(String),
    Failed(String),
}

impl From<ChildFailure> for ExperimentError {
    fn from(failure: ChildFailure) -> Self {
        match failure {
            ChildFailure::Refused(problem) => Self::SpecRefused(problem),
            ChildFailure::Failed(problem) => Self::SpecFailed(problem),
        }
    }
}

fn failure(output: &Output) -> Option<ChildFailure> {
    if output.status.success() {
        return None;
    }
    let error = ProgramError::find(&String::from_utf8_lossy(&output.stderr));
    Some(match (output.status.code(), error) {
        (Some(_), Some(error)) if error.is_usage => ChildFailure::Refused(error.text),
        (Some(_), Some(error)) => ChildFailure::Failed(error.text),
        (Some(code), None) => ChildFailure::Failed(format!("it ended with exit code {code}")),
        // Killed by the system for its memory, or by the user.
        (None, _) => ChildFailure::Failed(format!(
            "it was killed ({}), probably because it used too much memory or time",
            output.status
        )),
    })
}
