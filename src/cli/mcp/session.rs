//! The state of an agent's session: its reports, and its specs, which are simulated in child
//! processes into a directory that is deleted with the session.

use crate::cli::command::CliError;
use crate::cli::error::{JobError, UsageError};
use crate::cli::report_or_spec::is_report;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::view_location::ViewLocation;
use tilescope_experiments::ExperimentError;
use tilescope_experiments::spec_copy::SpecCopy;
use tilescope_experiments::trial::{TrialRunner, run_command, set_arguments};
use tilescope_report::Report;
use tilescope_report::remote::is_remote;
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_sim::specification::{Spec, SpecSource};

/// Number of simulated specs that are kept for later requests.
const MAX_SIMULATED: usize = 4;

/// Data that outlives a request. Several requests are answered at the same time.
#[derive(Default)]
pub(super) struct McpSession {
    /// The directory that contains all accessible files; without one, any file is accessible.
    root: Option<PathBuf>,
    /// Its lock is not held during simulations.
    kept: Mutex<KeptReports>,
}

/// Reports of specs that were simulated before.
#[derive(Default)]
struct KeptReports {
    /// Created when it is first needed.
    directory: Option<TemporaryDirectory>,
    /// The most recent ones are at the end.
    simulated: Vec<Arc<SimulatedSpec>>,
    /// Number of simulated specs, for names of directories.
    count: usize,
}

/// A spec and its report.
struct SimulatedSpec {
    text: String,
    directory: PathBuf,
    /// True if the report is complete. The call that simulates it holds the lock, and other calls about
    /// the same spec wait for it.
    is_there: Mutex<bool>,
}

/// The report for a request.
pub(super) struct OpenedReport {
    pub report: Report,
    /// Its name in the agent's request.
    name: String,
    /// The directory of a report simulated for this session only, kept as long as the report is
    /// open.
    simulated: Option<Arc<SimulatedSpec>>,
}

impl McpSession {
    /// Creates a session that reads only inside a directory.
    ///
    /// # Errors
    /// The directory does not exist.
    pub(super) fn below(root: Option<&Path>) -> Result<Self, CliError> {
        let Some(root) = root else { return Ok(Self::default()) };
        let failed = |error| JobError::ReadFile { file: root.to_owned(), error };
        let whole = root.canonicalize().map_err(failed)?;
        Ok(Self { root: Some(whole), kept: Mutex::default() })
    }

    /// Refuses reports of other machines, and files outside the root. No request of an agent starts
    /// another program.
    pub(super) fn check_name(&self, name: &str) -> Result<(), CliError> {
        let path = Path::new(name);
        if is_remote(path) {
            let is = "is on another machine, and mcp does not start ssh; start tilescope mcp \
                      there, for example with `ssh HOST tilescope mcp`";
            return Err(UsageError::WrongFile { file: name.into(), is }.into());
        }
        // A bundled spec has a name and no path.
        let is_path = path.exists() || path.components().count() > 1;
        if is_path { self.check_path(path) } else { Ok(()) }
    }

    /// Refuses models outside the root.
    fn check_model(&self, spec: &Spec) -> Result<(), CliError> {
        let text: Option<toml::Table> = toml::from_str(&spec.text).ok();
        let file = text.as_ref().and_then(|text| text.get("model")?.get("onnx")?.as_str());
        file.map_or(Ok(()), |file| self.check_path(Path::new(file)))
    }

    /// Refuses a path that does not lead below the root.
    fn check_path(&self, path: &Path) -> Result<(), CliError> {
        let Some(root) = &self.root else { return Ok(()) };
        if path.canonicalize().is_ok_and(|whole| whole.starts_with(root)) {
            return Ok(());
        }
        let is = "is outside the directory of --root";
        Err(UsageError::WrongFile { file: path.to_owned(), is }.into())
    }

    /// Opens a report, or simulates a spec, or the spec of a report with `changes`.
    ///
    /// # Errors
    /// Reports that cannot be read, specs that are refused, simulations that fail.
    pub(super) fn open(&self, name: &str, changes: &SpecChanges) -> Result<OpenedReport, CliError> {
        self.check_name(name)?;
        if is_report(Path::new(name)) && changes.is_empty() {
            let report = Report::open(name)?;
            return Ok(OpenedReport { report, name: name.to_owned(), simulated: None });
        }
        let spec = self.spec(name, changes)?;
        let simulated = self.simulated(name, &spec)?;
        let report = Report::open(&simulated.directory)?;
        Ok(OpenedReport { report, name: name.to_owned(), simulated: Some(simulated) })
    }

    /// The spec with a name, or the spec of a report, with `changes`.
    ///
    /// # Errors
    /// The spec is refused, or the report has none.
    pub(super) fn spec(&self, name: &str, changes: &SpecChanges) -> Result<Spec, CliError> {
        self.check_name(name)?;
        let overrides: Vec<String> = set_arguments(changes).collect();
        let mut source = if is_report(Path::new(name)) {
            let report = Report::open(name)?;
            let text = report.spec().ok_or_else(|| {
                let is = "has no spec to change: only reports that tilescope simulated have one";
                UsageError::WrongFile { file: name.into(), is }
            })?;
            SpecSource::from_text(name, text)
        } else {
            SpecSource::find(name, &[])?
        };
        source.overrides = overrides;
        let spec = Spec::build(&source)?;
        self.check_model(&spec)?;
        Ok(spec)
    }

    /// The spec of a name, or that of a report, as a file for a command to read.
    ///
    /// # Errors
    /// As for [`Self::spec`].
    pub(super) fn spec_file(
        &self,
        name: &str,
        changes: &SpecChanges,
    ) -> Result<SpecFile, CliError> {
        let spec = self.spec(name, changes)?;
        let directory = TemporaryDirectory::new()?;
        let copy = SpecCopy::write(&spec.text, name, directory.path())?;
        Ok(SpecFile { copy, _directory: directory })
    }

    /// The report of a spec, which is simulated unless it already was.
    fn simulated(&self, name: &str, spec: &Spec) -> Result<Arc<SimulatedSpec>, CliError> {
        let kept = self.place_of(spec)?;
        let mut is_there = locked(&kept.is_there);
        if !*is_there {
            if let Err(problem) = simulate(name, spec, &kept.directory) {
                locked(&self.kept).simulated.retain(|other| !Arc::ptr_eq(other, &kept));
                return Err(problem);
            }
            *is_there = true;
        }
        drop(is_there);
        Ok(kept)
    }

    /// The entry of a spec, which is created if it does not exist.
    fn place_of(&self, spec: &Spec) -> Result<Arc<SimulatedSpec>, CliError> {
        let mut kept = locked(&self.kept);
        if let Some(at) = kept.simulated.iter().position(|known| known.text == spec.text) {
            let known = kept.simulated.remove(at);
            kept.simulated.push(Arc::clone(&known));
            return Ok(known);
        }
        while kept.simulated.len() >= MAX_SIMULATED {
            // Entries that other requests use stay.
            let unused = kept.simulated.iter().position(|known| Arc::strong_count(known) == 1);
            let Some(unused) = unused else { break };
            // Files that cannot be removed now are removed with the session.
            let _ = std::fs::remove_dir_all(&kept.simulated.remove(unused).directory);
        }
        kept.count += 1;
        let name_of_directory = format!("report-{}", kept.count);
        let base = match kept.directory.take() {
            Some(base) => base,
            None => TemporaryDirectory::new()?,
        };
        let directory = kept.directory.insert(base).path().join(name_of_directory);
        let text = spec.text.clone();
        let is_there = Mutex::new(false);
        let new = Arc::new(SimulatedSpec { text, directory, is_there });
        kept.simulated.push(Arc::clone(&new));
        Ok(new)
    }
}

/// A spec in a temporary file, which is deleted when this is dropped.
pub(super) struct SpecFile {
    copy: SpecCopy,
    _directory: TemporaryDirectory,
}

impl SpecFile {
    /// The path, as a word of a command.
    pub(super) fn word(&self) -> String {
        self.copy.file_name().to_owned()
    }
}

/// Runs a command of this program that prints JSON, with the original names of specs. If the
/// command fails but prints JSON, that is the answer.
///
/// # Errors
/// The error of the command.
pub(super) fn command_json(words: &[String], specs: &[SpecFile]) -> Result<Value, CliError> {
    let end = run_command(words)?;
    let parsed: Result<Value, _> = serde_json::from_slice(&end.stdout);
    match (parsed, end.failure) {
        (Ok(answer), _) => Ok(renamed(answer, specs)),
        (Err(_), Some(failure)) => {
            Err(UsageError::SpecOfAgent(named(failure.to_string(), specs)).into())
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// Replaces the temporary files of specs in a text by the names of the specs.
fn named(text: String, specs: &[SpecFile]) -> String {
    specs.iter().fold(text, |text, spec| spec.copy.named(&text))
}

/// The same for all texts of a value.
fn renamed(value: Value, specs: &[SpecFile]) -> Value {
    match value {
        Value::String(text) => named(text, specs).into(),
        Value::Array(entries) => entries.into_iter().map(|entry| renamed(entry, specs)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, renamed(value, specs))).collect()
        }
        other => other,
    }
}

/// Simulates a spec into a directory.
fn simulate(name: &str, spec: &Spec, directory: &Path) -> Result<(), CliError> {
    let place = TemporaryDirectory::new()?;
    let copy = SpecCopy::write(&spec.text, name, place.path())?;
    let runner = TrialRunner::new(copy.file_name(), Vec::new(), NonZeroUsize::MIN)?;
    runner.report(&SpecChanges::new(), directory).map_err(|error| match error {
        ExperimentError::SpecRefused(problem) => {
            CliError::from(UsageError::SpecOfAgent(copy.named(&problem)))
        }
        error => JobError::SpecOfAgent(copy.named(&error.to_string())).into(),
    })?;
    Ok(())
}

/// Locks a mutex, even if a call that held it has panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenedReport {
    /// A link that opens a place; `None` for a report that is deleted with the session.
    pub(super) fn link(&self, place: &ViewLocation) -> Option<String> {
        self.simulated.is_none().then(|| place.link(self.report.path()))
    }

    /// The value of an object with a link added.
    pub(super) fn linked(&self, mut value: Value, place: Option<&ViewLocation>) -> Value {
        if let Some(link) = place.and_then(|place| self.link(place)) {
            value["link"] = link.into();
        }
        value
    }

    /// An answer, with the name of its report.
    ///
    /// # Errors
    /// The file was written to in the meantime.
    pub(super) fn answer(&self, mut value: Value) -> Result<Value, CliError> {
        self.report.check_unchanged()?;
        value["report"] = self.name.as_str().into();
        if self.simulated.is_some() {
            value["note"] = "simulated for this answer; `tilescope simulate SPEC -o DIR` writes a \
                             report to open, with links"
                .into();
        }
        let warnings = self.report.warnings();
        if !warnings.is_empty() {
            value["warnings"] = json!(warnings);
        }
        Ok(value)
    }
}

/// Serializes a value whose serialization cannot fail.
pub(super) fn json_of(value: &impl serde::Serialize) -> Result<Value, CliError> {
    Ok(serde_json::to_value(value)?)
}
