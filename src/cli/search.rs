//! What searches have in common: keys and their values, conditions, budgets, files of results.

mod budget;
mod condition;
mod effective_keys;
mod point;
mod results_file;
mod varied_key;

pub(super) use budget::SearchBudget;
pub(super) use condition::Condition;
pub(super) use effective_keys::{EffectiveKeys, value_type};
pub(super) use point::{FIGURES, Point, is_on_front};
pub(super) use results_file::{ResultsFile, SearchedSpec, changes_text};
pub(super) use varied_key::VariedKey;

use super::interrupt::TemporaryDirectory;
use super::trials::TrialOutcome;
use super::{CliError, simulate};
use clap::{Arg, ArgMatches, value_parser};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tilescope_sim::spec::Spec;

/// A directory with the spec that is searched, for children to read: whoever edits the file
/// meanwhile changes nothing.
pub(super) struct SpecCopy {
    directory: TemporaryDirectory,
    /// The spec as the user names it.
    name: String,
}

impl SpecCopy {
    /// Writes the text of a spec.
    ///
    /// # Errors
    /// No place to write it to.
    pub(super) fn write(spec: &Spec, name: &str) -> Result<Self, CliError> {
        let copy = Self { directory: TemporaryDirectory::new()?, name: name.to_owned() };
        let path = copy.path();
        std::fs::write(&path, &spec.text)
            .map_err(|error| CliError::Failed(format!("{}: {error}", path.display())))?;
        Ok(copy)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("spec.toml")
    }

    /// What a child is told to simulate.
    ///
    /// # Errors
    /// A directory for temporary files whose name is not UTF-8.
    pub(super) fn file_name(&self) -> Result<String, CliError> {
        let path = self.path();
        let name = path.to_str().map(str::to_owned);
        name.ok_or_else(|| CliError::Failed(format!("{}: the path is not UTF-8", path.display())))
    }

    /// What a child said, of the spec as the user names it.
    pub(super) fn spoken_of(&self, outcome: TrialOutcome) -> TrialOutcome {
        match outcome {
            TrialOutcome::Figures(_) => outcome,
            TrialOutcome::Refused(problem) => TrialOutcome::Refused(self.named(&problem)),
            TrialOutcome::Died(problem) => TrialOutcome::Died(self.named(&problem)),
        }
    }

    /// Words of a child, about the spec as the user names it.
    pub(super) fn named(&self, problem: &str) -> String {
        // Whatever is wrong is so of all of them, or of the changes.
        let problem = problem.strip_prefix("--set: ").unwrap_or(problem);
        problem.replace(&self.path().display().to_string(), &self.name)
    }
}

/// The spec that is named, with what `--set` changes.
///
/// # Errors
/// A spec that is refused.
pub(super) fn spec(name: &str, matches: &ArgMatches) -> Result<Spec, CliError> {
    simulate::build(&simulate::source(name, matches)?)
}

/// `--jobs`
pub(super) fn jobs_argument() -> Arg {
    Arg::new("jobs")
        .long("jobs")
        .value_name("N")
        .value_parser(value_parser!(NonZeroUsize))
        .help("Simulations at once (default: one for each core)")
}

/// How many simulations run at once.
pub(super) fn jobs(matches: &ArgMatches) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    matches.get_one::<NonZeroUsize>("jobs").copied().unwrap_or(cores)
}

/// `--results`
pub(super) fn results_argument() -> Arg {
    Arg::new("results")
        .long("results")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Keep each simulation in this SQLite file as it ends; the same command goes on from there")
}
