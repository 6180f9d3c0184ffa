//! Errors of reading and writing reports, with messages for users.

use crate::atomic_file::AtomicFileError;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a report could not be opened, read or written.
///
/// Each message states the defect, its place and the remedy; the path comes last.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// There is nothing at that path.
    #[error("no such file or directory: {}", path.display())]
    NotFound {
        /// The requested path.
        path: PathBuf,
    },
    /// A directory that holds no report.
    #[error("no profile.pop in this directory ({found}): {}", path.display())]
    NoReportInDirectory {
        /// A description of the directory's content.
        found: String,
        path: PathBuf,
    },
    /// A directory that holds several reports.
    #[error(
        "{} reports in this directory; open one of them ({}): {}",
        names.len(), names_in_words(names), path.display()
    )]
    SeveralReports {
        /// Directories and files in it that can be opened.
        names: Vec<String>,
        path: PathBuf,
    },
    /// The file is not a report but of another kind.
    #[error("{found}; a report is an SQLite file named profile.pop: {}", path.display())]
    NotAReport {
        /// A description of the file.
        found: String,
        path: PathBuf,
    },
    /// The file is shorter than its own header says.
    #[error(
        "cut off: the file has {size} B of {expected} B; copy or write it again: {}",
        path.display()
    )]
    Truncated {
        /// Size of the file in bytes.
        size: u64,
        /// Size in bytes according to its header.
        expected: u64,
        path: PathBuf,
    },
    /// Written in a major version of the format that this version does not read.
    #[error(
        "written in format {format}, which this version of tilescope cannot read (it reads {}): \
         open it with the tilescope that wrote it: {}",
        crate::schema::readable_formats(),
        path.display()
    )]
    UnknownFormat {
        /// Major and minor version.
        format: String,
        path: PathBuf,
    },
    /// The slice would be empty.
    #[error("nothing to slice, {problem}: {}", path.display())]
    EmptySlice {
        /// The reason why it is empty.
        problem: String,
        path: PathBuf,
    },
    /// Another file has the name now.
    #[error("replaced by another file while it was open; open it again: {}", path.display())]
    Replaced { path: PathBuf },
    /// The file was modified in place while it was open.
    #[error(
        "written to while it was read, so the answer may mix two versions; repeat the query: {}",
        path.display()
    )]
    Rewritten { path: PathBuf },
    /// The content contradicts itself.
    #[error("damaged, {problem}: {}", path.display())]
    Damaged {
        /// The damaged part, and how the damage shows.
        problem: String,
        path: PathBuf,
    },
    /// SQLite had no memory left.
    #[error("not enough memory to read {what}: {}", path.display())]
    OutOfMemory {
        /// The part that was being read.
        what: String,
        path: PathBuf,
    },
    /// The path is too long for SQLite.
    #[error(
        "a path of {bytes} B is too long: open the report from a directory closer to it, or move \
         it: {}",
        path.display()
    )]
    LongPath { bytes: usize, path: PathBuf },
    /// The system could not read the file.
    #[error("cannot read: {source}: {}", path.display())]
    Read {
        source: io::Error,
        /// The file or directory.
        path: PathBuf,
    },
    /// The system could not write the file.
    #[error("cannot write: {problem}: {}", path.display())]
    Write {
        problem: String,
        /// The file or directory.
        path: PathBuf,
    },
    /// The disk has no space left for the report.
    #[error("no space left to write the report: {}", path.display())]
    DiskFull { path: PathBuf },
    /// The caller gave the writer something that is not a report. This is a bug of the caller.
    #[error("cannot be written as a report, {problem}")]
    InvalidInput {
        /// The wrong value, its item, and the expected value.
        problem: String,
    },
    /// The machine that has the report cannot be reached, or gives an unexpected answer.
    #[error("{problem}: {}", path.display())]
    Remote {
        /// The problem and its remedy.
        problem: String,
        /// The address of the report.
        path: PathBuf,
    },
    /// The caller cancelled the operation.
    #[error("cancelled")]
    Cancelled,
}

impl From<AtomicFileError> for ReportError {
    fn from(error: AtomicFileError) -> Self {
        let (problem, path) = match error {
            AtomicFileError::Write { path, source } => return Self::writing(&source, &path),
            AtomicFileError::Directory { path } => ("it is a directory", path),
            AtomicFileError::Locked { path } => ("another process is writing a report there", path),
            AtomicFileError::InTheWay { path } => ("a file with this name exists", path),
            AtomicFileError::Report { path } => ("it is a report", path),
        };
        Self::Write { problem: problem.to_owned(), path }
    }
}

impl ReportError {
    /// The same error for a file that is shown under another path.
    pub(super) fn at(mut self, shown: PathBuf) -> Self {
        match &mut self {
            Self::NotFound { path }
            | Self::NoReportInDirectory { path, .. }
            | Self::SeveralReports { path, .. }
            | Self::NotAReport { path, .. }
            | Self::Truncated { path, .. }
            | Self::UnknownFormat { path, .. }
            | Self::EmptySlice { path, .. }
            | Self::Replaced { path }
            | Self::Rewritten { path }
            | Self::Damaged { path, .. }
            | Self::OutOfMemory { path, .. }
            | Self::LongPath { path, .. }
            | Self::Read { path, .. }
            | Self::Remote { path, .. } => *path = shown,
            Self::Write { .. }
            | Self::DiskFull { .. }
            | Self::InvalidInput { .. }
            | Self::Cancelled => {}
        }
        self
    }

    /// An [`ReportError::InvalidInput`] with this problem.
    pub(super) fn invalid_input(problem: impl Into<String>) -> Self {
        Self::InvalidInput { problem: problem.into() }
    }

    /// The error for damage found while reading `path`.
    pub(super) fn damaged(problem: impl Into<String>, path: &Path) -> Self {
        Self::Damaged { problem: problem.into(), path: path.to_owned() }
    }

    /// The error for a system error while reading `path`.
    pub(super) fn reading(source: io::Error, path: &Path) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path: path.to_owned() },
            _ => Self::Read { source, path: path.to_owned() },
        }
    }

    /// The error for a system error while writing `path`.
    pub(super) fn writing(source: &io::Error, path: &Path) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.to_owned() }
            }
            _ => Self::Write { problem: source.to_string(), path: path.to_owned() },
        }
    }

    /// The error for an SQLite error while writing `path`.
    pub(super) fn sqlite_writing(source: &rusqlite::Error, path: &Path) -> Self {
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull { path: path.to_owned() },
            Some(rusqlite::ErrorCode::SystemIoFailure) => {
                let problem = "the disk has an error, or a file exceeds a limit (ulimit -f)";
                Self::Write { problem: problem.to_owned(), path: path.to_owned() }
            }
            _ => Self::Write { problem: source.to_string(), path: path.to_owned() },
        }
    }

    /// The error for an SQLite error while reading `what` from `path`.
    pub(super) fn sqlite_reading(source: &rusqlite::Error, what: &str, path: &Path) -> Self {
        let reason = match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OutOfMemory) => {
                return Self::OutOfMemory { what: what.to_owned(), path: path.to_owned() };
            }
            Some(rusqlite::ErrorCode::OperationInterrupted) => {
                "reading takes more work than an intact file of this size needs".to_owned()
            }
            Some(rusqlite::ErrorCode::TooBig) => "a value is too large for a report".to_owned(),
            _ => source.to_string(),
        };
        Self::damaged(format!("{what}: {reason}"), path)
    }
}

/// The maximum number of reports that a message names.
const NAMED: usize = 12;

/// The first of the names, and the number of the others.
fn names_in_words(names: &[String]) -> String {
    let named = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
