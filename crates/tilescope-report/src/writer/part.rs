//! A file that takes its place only when it is complete.

use crate::error::ReportError;
use crate::open::{REPORT_FILE, beside};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// An unfinished report: locked while it is written, removed unless [`PartFile::complete`] is called.
pub(super) struct PartFile {
    file: File,
    part: PathBuf,
    place: PathBuf,
    complete: bool,
}

impl PartFile {
    /// Starts `profile.pop.part` in `directory`, over one left behind by a killed process.
    pub(super) fn create(directory: &Path) -> Result<Self, ReportError> {
        let failed = |e, path: &Path| ReportError::writing(&e, path);
        if directory.is_file() {
            let problem = "a report is a directory, and this is a file".to_owned();
            return Err(ReportError::Write { problem, path: directory.to_owned() });
        }
        fs::create_dir_all(directory).map_err(|e| failed(e, directory))?;
        let place = directory.join(REPORT_FILE);
        let part = beside(&place, ".part");
        // Not truncated yet: the file may belong to a writer that still holds its lock.
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(&part);
        let file = file.map_err(|e| failed(e, &part))?;
        // Two writers would put one another's halves in place. Where a file system has no locks,
        // nothing can be told, and nothing is.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let problem = "another process is writing a report there".to_owned();
            return Err(ReportError::Write { problem, path: part });
        }
        file.set_len(0).map_err(|e| failed(e, &part))?;
        Ok(Self { file, part, place, complete: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.part
    }

    /// Puts the file in its place, once its content is safe.
    pub(super) fn complete(mut self) -> Result<PathBuf, ReportError> {
        self.file.sync_all().map_err(|e| ReportError::writing(&e, &self.part))?;
        // Atomic on one file system: readers see the old report or the new one, never a half.
        fs::rename(&self.part, &self.place).map_err(|e| ReportError::writing(&e, &self.place))?;
        self.complete = true;
        // The name is safe only with its directory; that some systems cannot do so is no failure.
        if let Some(directory) = self.place.parent().and_then(|path| File::open(path).ok()) {
            let _ = directory.sync_all();
        }
        Ok(self.place.clone())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.complete {
            // The error that brought us here matters more than this one.
            let _ = fs::remove_file(&self.part);
        }
    }
}
