//! Errors of experiments.

use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A spec is refused, before anything of it is simulated.
    #[error("{0}")]
    SpecRefused(String),
    /// A spec that is not refused cannot be simulated.
    #[error("{0}")]
    SpecFailed(String),
    /// The path of this program, which is to be its own child, is not known.
    #[error("the path of this program is not known: {0}")]
    OwnPath(io::Error),
    /// A child process cannot be started.
    #[error("a simulation cannot be started: {0}")]
    Start(io::Error),
    /// A path that has to be an argument of a child is not UTF-8.
    #[error("{}: the path is not UTF-8", .0.display())]
    PathNotUtf8(PathBuf),
    /// A file of an experiment cannot be written.
    #[error("{}: {problem}", path.display())]
    Write { path: PathBuf, problem: io::Error },
    /// A file is no file of results, or one of another version.
    #[error("{0}")]
    WrongResults(String),
    /// A file of results cannot be read or written.
    #[error("{0}")]
    Results(String),
}

impl ExperimentError {
    /// True if the user has to ask for something else; otherwise the experiment failed.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::SpecRefused(_) | Self::WrongResults(_))
    }

    /// An error of SQLite with a file of results.
    pub(crate) fn of_results(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.display();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                Self::WrongResults(format!("{path} is no file of results"))
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::WrongResults(format!(
                    "{path}: another tilescope is writing to it; each worker needs a file of its own"
                ))
            }
            Some(ErrorCode::DiskFull) => Self::Results(format!("{path}: the disk is full")),
            _ => Self::Results(format!("{path}: {error}")),
        }
    }
}
