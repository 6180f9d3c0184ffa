//! Specs that are tried: each one is simulated by a child process of its own, so that one that dies
//! or takes all memory takes nothing else along.

use super::CliError;
use serde::{Deserialize, Serialize};
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_report::units::{Bytes, Cycles};

/// Threads that a child may use: the variable that rayon reads.
const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Tells a child that it ends when its standard input does.
const PARENT_VARIABLE: &str = "TILESCOPE_ENDS_WITH_INPUT";

/// Exit code of a program that refuses what it was given.
const REFUSED: i32 = 2;

pub(super) use tilescope_analysis::insights::SpecChanges;

/// The figures of a spec, as `tilescope simulate SPEC --figures` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TrialFigures {
    /// Length of the run; nothing for a program that does not fit in memory.
    pub cycles: Option<Cycles>,
    pub seconds: Option<f64>,
    /// Samples of the run; 1 for a program that works on none.
    pub samples: u64,
    /// What the fullest tile needs, gaps included.
    pub fullest_tile_bytes: Bytes,
}

impl TrialFigures {
    /// Time that a sample takes; nothing for a program that does not fit in memory.
    pub(super) fn seconds_per_sample(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds / self.samples.max(1) as f64)
    }
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TrialOutcome {
    /// It was simulated, or does not fit in memory.
    Figures(TrialFigures),
    /// The spec is refused: what is wrong with it.
    Refused(String),
    /// The child did not end by itself.
    Died(String),
}

/// Runs changed specs.
pub(super) struct TrialRunner {
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
    pub(super) fn new(
        spec: &str,
        overrides: Vec<String>,
        jobs: NonZeroUsize,
    ) -> Result<Self, CliError> {
        let program = std::env::current_exe().map_err(|error| {
            CliError::Failed(format!("the path of this program is not known: {error}"))
        })?;
        Ok(Self { program, spec: spec.to_owned(), overrides, jobs })
    }

    /// Runs all trials; `ended` hears of each one as it ends, from several threads.
    ///
    /// # Errors
    /// Children that cannot be started.
    pub(super) fn run(
        &self,
        trials: &[SpecChanges],
        ended: impl Fn(usize, &TrialOutcome) + Sync,
    ) -> Result<Vec<TrialOutcome>, CliError> {
        let outcomes: Vec<Mutex<Option<io::Result<TrialOutcome>>>> =
            trials.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((at, trial)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                trials.get(at).map(|trial| (at, trial))
            } {
                let outcome = self.run_one(trial);
                if let Ok(outcome) = &outcome {
                    ended(at, outcome);
                }
                if let Ok(mut place) = outcomes[at].lock() {
                    *place = Some(outcome);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.get().min(trials.len()) {
                scope.spawn(work);
            }
        });
        let outcomes = outcomes.into_iter().filter_map(|place| place.into_inner().ok().flatten());
        let started =
            |error: io::Error| CliError::Failed(format!("a simulation cannot be started: {error}"));
        outcomes.collect::<io::Result<Vec<TrialOutcome>>>().map_err(started)
    }

    fn run_one(&self, changes: &SpecChanges) -> io::Result<TrialOutcome> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut command = Command::new(&self.program);
        command.args(["simulate", &self.spec, "--figures"]);
        let changed = changes.iter().map(|(key, value)| format!("{key}={value}"));
        for change in self.overrides.iter().cloned().chain(changed) {
            command.args(["--set", &change]);
        }
        let mut child = command
            .env(THREADS_VARIABLE, (cores / self.jobs).max(1).to_string())
            .env(PARENT_VARIABLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // Closed when this ends, also if it is killed.
        let _held = child.stdin.take();
        Ok(outcome(&child.wait_with_output()?))
    }
}

/// Ends this program when the one that has started it as a trial is gone: a search that is killed
/// leaves nothing behind that goes on simulating.
pub(super) fn end_with_parent() {
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
    if output.status.success() {
        return match serde_json::from_slice(&output.stdout) {
            Ok(figures) => TrialOutcome::Figures(figures),
            Err(error) => TrialOutcome::Died(format!("its answer cannot be read: {error}")),
        };
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let problem = said.lines().find_map(|line| line.strip_prefix("error: "));
    match (output.status.code(), problem) {
        (Some(REFUSED), Some(problem)) => TrialOutcome::Refused(problem.to_owned()),
        (Some(_), Some(problem)) => TrialOutcome::Died(problem.to_owned()),
        // Killed, by whoever needed its memory or by the user.
        _ => TrialOutcome::Died(format!("it ended with {}", output.status)),
    }
}
