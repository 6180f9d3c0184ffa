//! The copy of a spec for child processes: changes of the file during a search have no effect.

use crate::ExperimentError;
use crate::trial::TrialOutcome;
use std::path::Path;

/// A spec in a directory of the caller, read by child processes.
pub struct SpecCopy {
    /// The path of the copy.
    file: String,
    /// The spec in the user's spelling.
    name: String,
}

impl SpecCopy {
    /// Writes the text of a spec to `spec.toml` in a directory.
    ///
    /// # Errors
    /// A directory that cannot be written to, or whose path is not UTF-8.
    pub fn write(text: &str, name: &str, directory: &Path) -> Result<Self, ExperimentError> {
        let path = directory.join("spec.toml");
        let Some(file) = path.to_str() else { return Err(ExperimentError::PathNotUtf8(path)) };
        if let Err(problem) = std::fs::write(&path, text) {
            return Err(ExperimentError::Write { path, problem });
        }
        Ok(Self { file: file.to_owned(), name: name.to_owned() })
    }

    /// The path of the copy, as the spec argument of a child process.
    #[must_use]
    pub fn file_name(&self) -> &str {
        &self.file
    }

    /// An outcome with the name of the spec in place of the path of the copy.
    #[must_use]
    pub fn named_outcome(&self, outcome: TrialOutcome) -> TrialOutcome {
        match outcome {
            TrialOutcome::Figures(_) => outcome,
            TrialOutcome::Refused(problem) => TrialOutcome::Refused(self.named(&problem)),
            TrialOutcome::Died(problem) => TrialOutcome::Died(self.named(&problem)),
        }
    }

    /// An error message of a child process with the name of the spec in place of the path of the
    /// copy.
    #[must_use]
    pub fn named(&self, problem: &str) -> String {
        // Users did not type the child's `--set`.
        let problem = problem.strip_prefix("--set: ").unwrap_or(problem);
        problem.replace(&self.file, &self.name)
    }
}
