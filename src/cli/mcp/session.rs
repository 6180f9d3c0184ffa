//! The state of an agent's session: reports that it names, and specs that are simulated for it, in
//! child processes and into a directory that is deleted with the session.

use crate::cli::command::CliError;
use crate::cli::error::{JobError, UsageError};
use crate::cli::report_or_spec::is_report;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::view_location::ViewLocation;
use tilescope_experiments::ExperimentError;
use tilescope_experiments::spec_copy::SpecCopy;
use tilescope_experiments::trial::{TrialRunner, set_arguments};
use tilescope_report::Report;
use tilescope_report::remote::is_remote;
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_sim::specification::{Spec, SpecSource};

/// Number of simulated specs that are kept for later questions.
const MAX_SIMULATED: usize = 4;

/// Everything that outlives a question.
#[derive(Default)]
pub(super) struct McpSession {
    /// The directory that contains all accessible files; without one, any file is accessible.
    root: Option<PathBuf>,
    /// Created on first use.
    directory: Option<TemporaryDirectory>,
    /// The most recent ones at the end.
    simulated: Vec<SimulatedSpec>,
    /// Number of simulations, for names of directories.
    count: usize,
}

/// A spec with its report.
struct SimulatedSpec {
    text: String,
    directory: PathBuf,
}

/// The report for a question.
pub(super) struct OpenedReport {
    pub report: Report,
    /// Its name in the agent's request.
    name: String,
    /// True if it was simulated for this session only.
    is_simulated: bool,
}

impl McpSession {
    /// A session that only reads inside a directory.
    ///
    /// # Errors
    /// The directory does not exist.
    pub(super) fn below(root: Option<&Path>) -> Result<Self, CliError> {
        let Some(root) = root else { return Ok(Self::default()) };
        let whole = root
            .canonicalize()
            .map_err(|error| JobError::ReadFile { file: root.to_owned(), error })?;
        Ok(Self { root: Some(whole), ..Self::default() })
    }

    /// Refuses reports on other machines, and files outside of the root. No request of an agent may
    /// start another program.
    fn check_name(&self, name: &str) -> Result<(), CliError> {
        let path = Path::new(name);
        if is_remote(path) {
            let is = "is on another machine, and mcp starts no ssh; let the agent start tilescope \
                      mcp there, as in `ssh HOST tilescope mcp`";
            return Err(UsageError::WrongFile { file: name.into(), is }.into());
        }
        // A bundled spec has a name and no path.
        let is_path = path.exists() || path.components().count() > 1;
        if is_path { self.check_path(path) } else { Ok(()) }
    }

    /// Refuses models outside of the root.
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
        let is = "is not in the directory that --root names";
        Err(UsageError::WrongFile { file: path.to_owned(), is }.into())
    }

    /// Opens a report. Or simulates a spec, or the spec of a report, with `changes`.
    ///
    /// # Errors
    /// The report cannot be read, the spec is refused, or the simulation fails.
    pub(super) fn open(
        &mut self,
        name: &str,
        changes: &SpecChanges,
    ) -> Result<OpenedReport, CliError> {
        self.check_name(name)?;
        if is_report(Path::new(name)) && changes.is_empty() {
            let report = Report::open(name)?;
            return Ok(OpenedReport { report, name: name.to_owned(), is_simulated: false });
        }
        let spec = self.spec(name, changes)?;
        let report = Report::open(self.simulated(name, &spec)?)?;
        Ok(OpenedReport { report, name: name.to_owned(), is_simulated: true })
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

    /// A directory that is deleted with the session.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(super) fn directory(&mut self) -> Result<&Path, CliError> {
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => TemporaryDirectory::new()?,
        };
        Ok(self.directory.insert(directory).path())
    }

    /// The report of a spec, from an earlier simulation or a new one.
    fn simulated(&mut self, name: &str, spec: &Spec) -> Result<PathBuf, CliError> {
        if let Some(known) = self.simulated.iter().position(|known| known.text == spec.text) {
            let known = self.simulated.remove(known);
            let directory = known.directory.clone();
            self.simulated.push(known);
            return Ok(directory);
        }
        if self.simulated.len() >= MAX_SIMULATED {
            // A directory that cannot be removed now is removed with the session.
            let _ = std::fs::remove_dir_all(self.simulated.remove(0).directory);
        }
        self.count += 1;
        let name_of_directory = format!("report-{}", self.count);
        let directory = self.directory()?.join(name_of_directory);
        let place = TemporaryDirectory::new()?;
        let copy = SpecCopy::write(&spec.text, name, place.path())?;
        let runner = TrialRunner::new(copy.file_name(), Vec::new(), NonZeroUsize::MIN)?;
        runner.report(&SpecChanges::new(), &directory).map_err(|error| match error {
            ExperimentError::SpecRefused(problem) => {
                CliError::from(UsageError::SpecOfAgent(copy.named(&problem)))
            }
            error => JobError::SpecOfAgent(copy.named(&error.to_string())).into(),
        })?;
        let text = spec.text.clone();
        self.simulated.push(SimulatedSpec { text, directory: directory.clone() });
        Ok(directory)
    }
}

impl OpenedReport {
    /// A link that opens a place; `None` for a report that is deleted with the session.
    pub(super) fn link(&self, place: &ViewLocation) -> Option<String> {
        if !self.is_simulated { Some(place.link(self.report.path())) } else { None }
    }

    /// The value of an object with a link added.
    pub(super) fn linked(&self, mut value: Value, place: Option<&ViewLocation>) -> Value {
        if let Some(link) = place.and_then(|place| self.link(place)) {
            value["link"] = link.into();
        }
        value
    }

    /// An answer with the name of its report.
    pub(super) fn answer(&self, mut value: Value) -> Value {
        value["report"] = self.name.as_str().into();
        if self.is_simulated {
            value["note"] = "simulated for this answer; `tilescope simulate SPEC -o DIR` writes a \
                             report to open, with links"
                .into();
        }
        let warnings = self.report.warnings();
        if !warnings.is_empty() {
            value["warnings"] = json!(warnings);
        }
        value
    }
}

/// Serializes a value whose serialization cannot fail.
pub(super) fn json_of(value: &impl serde::Serialize) -> Result<Value, CliError> {
    Ok(serde_json::to_value(value)?)
}
