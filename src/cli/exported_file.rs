//! A file that is written during an export: completely or not at all, and not at all after the user
//! interrupts.

use super::command::CliError;
use super::{interrupt, progress::ProgressReporter};
use crate::cli::error::{AnyError, JobError};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tilescope_report::atomic_file::{AtomicFile, AtomicFileError};
use tilescope_report::units::grouped;
use tilescope_report::{Report, check_open_reports};

/// Number of bytes passed to the system at a time.
const BUFFER: usize = 1 << 20;

/// Bytes that every export may write.
const LEAST_BUDGET: u64 = 64 << 20;
/// Bytes that an export may write for each byte of the report.
const BUDGET_OF_BYTE: u64 = 4;
/// Bytes that an export may write for each row or step: several times what any format takes.
const BUDGET_OF_ROW: u64 = 1 << 10;

/// The maximum number of bytes of an export. Rows share the texts of a report, and a file repeats
/// them: a long name in an untrusted report of a few megabytes would fill the disk.
struct OutputBudget {
    most: u64,
    rows: u64,
    left: u64,
}

impl OutputBudget {
    fn of(report: &Report, rows: u64) -> Self {
        let bytes = std::fs::metadata(report.path()).map_or(0, |file| file.len());
        let most = LEAST_BUDGET
            .saturating_add(bytes.saturating_mul(BUDGET_OF_BYTE))
            .saturating_add(rows.saturating_mul(BUDGET_OF_ROW));
        Self { most, rows, left: most }
    }

    fn take(&mut self, bytes: usize) -> io::Result<()> {
        let left = self.left.checked_sub(bytes as u64);
        self.left = left.ok_or_else(|| {
            let most = self.most >> 20;
            let rows = grouped(self.rows);
            io::Error::other(format!(
                "the export exceeds {most} MiB, far more than the report and its {rows} rows: \
                 names in the report are too long; export a part of it"
            ))
        })?;
        Ok(())
    }
}

/// The content of a file, compressed according to its name.
enum Content {
    Plain(BufWriter<AtomicFile>),
    /// Writes are buffered first: each call of the encoder costs more than a short write.
    Compressed(Box<BufWriter<GzEncoder<BufWriter<AtomicFile>>>>),
}

/// A file under construction. If it is dropped before [`ExportedFile::finish`], it leaves nothing
/// behind.
pub(super) struct ExportedFile {
    content: Content,
    path: PathBuf,
    /// `None` for an answer to a question of the user, which is limited by its time.
    budget: Option<OutputBudget>,
    /// The system's error, which some writers on top of this one do not pass on.
    failed: Option<io::Error>,
}

impl ExportedFile {
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        let file = BufWriter::with_capacity(BUFFER, AtomicFile::create_growing(path)?);
        let content = if path.extension().is_some_and(|ending| ending == "gz") {
            let encoder = GzEncoder::new(file, Compression::fast());
            Content::Compressed(Box::new(BufWriter::with_capacity(BUFFER, encoder)))
        } else {
            Content::Plain(file)
        };
        Ok(Self { content, path: path.to_owned(), budget: None, failed: None })
    }

    /// Limits the file to the maximum size of the given number of rows, or steps, of a report.
    pub(super) fn within(self, report: &Report, rows: u64) -> Self {
        Self { budget: Some(OutputBudget::of(report, rows)), ..self }
    }

    /// The error of a failed write: the system's reason, if there is one.
    pub(super) fn error(&mut self, other: impl Into<AnyError>) -> CliError {
        match self.failed.take() {
            Some(source) => AtomicFileError::Write { path: self.path.clone(), source }.into(),
            None => JobError::Other(other.into()).into(),
        }
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let Self { content, path, .. } = self;
        let to_error = |source| AtomicFileError::Write { path: path.clone(), source };
        let file = match content {
            Content::Plain(file) => file,
            Content::Compressed(encoder) => {
                let encoder = encoder.into_inner().map_err(|error| to_error(error.into_error()))?;
                encoder.finish().map_err(to_error)?
            }
        };
        let file = file.into_inner().map_err(|error| to_error(error.into_error()))?;
        check_open_reports()?;
        file.commit()?;
        Ok(())
    }
}

impl Write for ExportedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(Err(error)) = self.budget.as_mut().map(|budget| budget.take(bytes.len())) {
            return Err(self.remember(error));
        }
        let written = match &mut self.content {
            Content::Plain(file) => file.write(bytes),
            Content::Compressed(encoder) => encoder.write(bytes),
        };
        written.map_err(|error| self.remember(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.content {
            Content::Plain(file) => file.flush(),
            Content::Compressed(encoder) => encoder.flush(),
        };
        flushed.map_err(|error| self.remember(error))
    }
}

impl ExportedFile {
    fn remember(&mut self, error: io::Error) -> io::Error {
        let again = io::Error::new(error.kind(), error.to_string());
        // Interrupted writes are retried.
        if error.kind() != io::ErrorKind::Interrupted {
            self.failed.get_or_insert(error);
        }
        again
    }
}

/// Shows the progress of an export, and checks for interrupts.
pub(super) struct ExportProgress {
    reporter: ProgressReporter,
}

impl ExportProgress {
    pub(super) fn new() -> Self {
        interrupt::watch();
        Self { reporter: ProgressReporter::new("exporting") }
    }

    /// Shows that `done` of `all` is written. Returns false after an interrupt by the user.
    pub(super) fn at(&mut self, done: u64, all: u64) -> bool {
        self.reporter.at(done as f64 / all.max(1) as f64);
        !interrupt::is_interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_within_its_budget_is_written_and_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out.json");
        for (bytes, fits) in [(100, true), (101, false)] {
            let mut file = ExportedFile::create(&path).expect("a file");
            file.budget = Some(OutputBudget { most: 100, rows: 12_000, left: 100 });
            let written = file.write_all(&vec![b'x'; bytes]);
            assert_eq!(written.is_ok(), fits, "{bytes} bytes");
            if let Err(error) = written {
                let said = file.error(error).to_string();
                assert!(said.contains("far more than the report and its 12,000 rows"), "{said}");
                assert!(said.contains("out.json"), "{said}");
                drop(file);
            } else {
                file.finish().expect("a file");
            }
            let size = std::fs::metadata(&path).expect("the file that fits").len();
            assert_eq!(size, 100, "{bytes} bytes");
        }
    }
}
