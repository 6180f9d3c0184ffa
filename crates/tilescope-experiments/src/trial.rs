//! Specs that are tried: each one is simulated by a child process of its own, so that one that dies
//! or takes all memory takes nothing else along.

use crate::ExperimentError;
use crate::program_error::{ERRORS_VARIABLE, ProgramError};
use serde::{Deserialize, Serialize};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::confidence::{Banded, MemoryFit};
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::running_costs::MANY_SAMPLES;
use tilescope_report::REPORT_FILE;
use tilescope_report::units::{Bytes, Cycles};

/// Threads that a child may use: the variable that rayon reads.
const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Tells a child that it ends when its standard input does.
const PARENT_VARIABLE: &str = "TILESCOPE_ENDS_WITH_INPUT";

/// The figures of a spec, as `tilescope simulate SPEC --figures` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Length of the run; nothing for a program that does not fit in memory.
    pub cycles: Option<Cycles>,
    pub seconds: Option<f64>,
    /// Samples of the run; 1 for a program that works on none.
    pub samples: u64,
    /// Bytes that the fullest tile needs, gaps included.
    pub fullest_tile_bytes: Bytes,
    /// Seconds of the run, with what the model may be wrong; nothing where that is not known, or the
    /// run is too long to find out for a trial.
    #[serde(default)]
    pub expected_seconds: Option<Banded>,
    /// The fullest tile, with what the model may be wrong; nothing where that is not known.
    #[serde(default)]
    pub expected_fullest_tile: Option<Banded>,
    /// The answer to the question of whether it fits in memory, where its time does not tell.
    #[serde(default)]
    pub fit: Option<MemoryFit>,
    /// IPUs of all replicas.
    pub ipus: u32,
    /// Power of the machine; nothing where that is not known.
    pub watts: Option<f64>,
    /// Price of an hour of the machine; nothing where that is not known.
    pub price_per_hour: Option<f64>,
}

impl TrialFigures {
    /// Time that a sample takes; nothing for a program that does not fit in memory.
    pub fn seconds_per_sample(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds / self.samples.max(1) as f64)
    }

    /// Energy of a million samples.
    pub fn joules(&self) -> Option<f64> {
        Some(self.seconds_per_sample()? * MANY_SAMPLES * self.watts?)
    }

    /// Money for a million samples.
    pub fn cost(&self) -> Option<f64> {
        Some(self.seconds_per_sample()? * MANY_SAMPLES / 3600.0 * self.price_per_hour?)
    }
}

/// What `tilescope insights SPEC --json` says, as far as it proposes something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFinding {
    /// Name of the rule.
    pub rule: String,
    pub sentence: String,
    #[serde(default)]
    pub gain: FoundGain,
    /// Empty where no key does it.
    #[serde(default)]
    pub changes: SpecChanges,
    /// What is given up for it.
    #[serde(default)]
    pub cost: String,
}

/// The bound on the gain of a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundGain {
    /// `time`, `memory`, `everything` or `unknown`.
    #[serde(default)]
    pub of: String,
    /// The share of it.
    #[serde(default)]
    pub share: Option<f64>,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialOutcome {
    /// It was simulated, or does not fit in memory.
    Figures(TrialFigures),
    /// The spec is refused: what is wrong with it.
    Refused(String),
    /// The child did not end by itself.
    Died(String),
}

/// Runs changed specs.
pub struct TrialRunner {
    program: PathBuf,
    /// A file, or the name of a bundled spec.
    spec: String,
    /// `--set` of all trials.
    overrides: Vec<String>,
    jobs: NonZeroUsize,
}

impl TrialRunner {
    /// A runner for a spec and what `--set` changes of it in all trials; at most `jobs` run at once.
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

    /// Runs all trials; `ended` hears of each one as it ends, from several threads.
    ///
    /// # Errors
    /// Children that cannot be started.
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
    /// A child that cannot be started.
    pub fn figures(&self, changes: &SpecChanges) -> Result<TrialOutcome, ExperimentError> {
        Ok(outcome(&self.child(&["simulate", &self.spec, "--figures"], changes)?))
    }

    /// What insights say of a changed spec; nothing where the child does not say it.
    ///
    /// # Errors
    /// A child that cannot be started.
    pub fn findings(
        &self,
        changes: &SpecChanges,
    ) -> Result<Option<Vec<TrialFinding>>, ExperimentError> {
        let output = self.child(&["insights", &self.spec, "--json"], changes)?;
        Ok(serde_json::from_slice(&output.stdout).ok())
    }

    /// Simulates a changed spec into a directory; the path of the report.
    ///
    /// # Errors
    /// Specs that are refused, and children that die or cannot be started.
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

    /// How many run at once.
    pub fn jobs(&self) -> NonZeroUsize {
        self.jobs
    }

    /// Runs a command of this program with the changes.
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
    // Tables of stages are written in another way in TOML than in JSON.
    let written = |value: &serde_json::Value| match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => value.to_string(),
    };
    changes.iter().map(move |(key, value)| format!("{key}={}", written(value)))
}

/// Does something with each item, with at most `jobs` at once; results in the order of the items.
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

/// Ends this program when the one that has started it as a trial is gone: a search that is killed
/// leaves nothing behind that goes on simulating.
pub fn end_with_parent() {
    if std::env::var_os(PARENT_VARIABLE).is_none() {
        return;
    }
    let wait = || {
        // Nothing is ever written to it: what comes is the end.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    };
    // Without a thread for it the trial runs to its end.
    let _ = std::thread::Builder::new().name("parent".to_owned()).spawn(wait);
}

/// What a child said.
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

/// The reason why a child did not do what it was asked for.
enum ChildFailure {
    /// It refuses what it was given.
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
        // Killed, by whoever needed its memory or by the user.
        (None, _) => ChildFailure::Failed(format!(
            "it was killed ({}), as systems do with what takes too much memory or time",
            output.status
        )),
    })
}
