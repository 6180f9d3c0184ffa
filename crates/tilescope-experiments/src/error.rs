//! Errors of experiments.

use rusqlite::ErrorCode;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The reason that an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A spec is invalid and was not simulated.
    #[error("{0}")]
    SpecRefused(String),
    /// A valid spec cannot be simulated.
    #[error("{0}")]
    SpecFailed(String),
    /// The path of this program, which child processes execute, is not known.
    #[error("the path of this program is unknown: {0}")]
    OwnPath(io::Error),
    /// A child process cannot be started.
    #[error("cannot start a simulation: {0}")]
    Start(io::Error),
    /// A path that a child process needs as an argument is not UTF-8.
    #[error("{}: the path is not UTF-8", .0.display())]
    PathNotUtf8(PathBuf),
    /// A file of an experiment cannot be written.
    #[error("{}: {problem}", path.display())]
    Write { path: PathBuf, problem: io::Error },
    #[error("the spec cannot be simulated: {0}")]
    BaseRefused(String),
    #[error("the spec cannot be simulated: {0}")]
    BaseFailed(String),
    #[error("the spec of the report cannot be simulated: {0}")]
    ReportSpec(String),
    #[error("no simulation ran")]
    NothingSimulated,
    #[error("{} is not a results file", .0.display())]
    NoResults(PathBuf),
    #[error(
        "{} has results format {format}, but this program supports {} to {}",
        path.display(), known.start(), known.end()
    )]
    ResultsFormat { path: PathBuf, format: i64, known: RangeInclusive<i64> },
    #[error("{}: {difference}; name another file with --results", path.display())]
    OtherSpec { path: PathBuf, difference: String },
    #[error(
        "{}: another tilescope is writing to it; use a separate file for each worker",
        .0.display()
    )]
    ResultsInUse(PathBuf),
    #[error("{}: the disk is full", .0.display())]
    DiskFull(PathBuf),
    #[error("{}: {error}", path.display())]
    Results { path: PathBuf, error: rusqlite::Error },
    /// A point could not be added to a file of results.
    #[error("{0}; earlier simulations are kept there, and the same command continues from them")]
    NotAdded(Box<ExperimentError>),
}

impl ExperimentError {
    /// True if the request has to be changed; false if the experiment failed.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::SpecRefused(_)
                | Self::BaseRefused(_)
                | Self::NoResults(_)
                | Self::ResultsFormat { .. }
                | Self::OtherSpec { .. }
                | Self::ResultsInUse(_)
        )
    }

    /// Converts an error of SQLite with a file of results.
    pub(crate) fn of_results(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NoResults(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::ResultsInUse(path),
            Some(ErrorCode::DiskFull) => Self::DiskFull(path),
            _ => Self::Results { path, error },
        }
    }
}
