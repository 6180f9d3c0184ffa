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
use tilescope_report::check_open_reports;

/// Number of bytes passed to the system at a time.
const BUFFER: usize = 1 << 20;

/// The content of a file, compressed if its name asks for that.
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
        Ok(Self { content, path: path.to_owned(), failed: None })
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
