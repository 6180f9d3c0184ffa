//! The file of an open report, held for as long as the report is open.
//!
//! SQLite opens a file by its name for each connection. In between, another file may take the
//! name, and could get the inode number of the old one if that were closed. A file that is modified
//! in place keeps its number: only its size and times show the change.

use super::error::ReportError;
use super::open_file::is_same_file;
use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

/// The files of all open reports, and the first of those that changed before they were closed.
static OPEN: Mutex<OpenFiles> = Mutex::new(OpenFiles { held: Vec::new(), changed: None });

struct OpenFiles {
    held: Vec<Weak<HeldFile>>,
    changed: Option<PathBuf>,
}

/// A report file in the state in which it was opened.
#[derive(Debug)]
pub(super) struct HeldFile {
    file: File,
    path: PathBuf,
    opened: FileState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Seconds and nanoseconds of the last change of its content or metadata, including names.
    changed: (i64, i64),
    names: u64,
}

impl HeldFile {
    /// Opens a file of this name.
    ///
    /// # Errors
    /// The system's reason.
    pub(super) fn open(path: &Path) -> Result<Arc<Self>, ReportError> {
        let to_error = |error| ReportError::reading(error, path);
        let file = File::open(path).map_err(to_error)?;
        let opened = FileState::of(&file.metadata().map_err(to_error)?);
        let held = Arc::new(Self { file, path: path.to_owned(), opened });
        let mut open = open_files();
        open.held.retain(|file| file.strong_count() > 0);
        open.held.push(Arc::downgrade(&held));
        Ok(held)
    }

    /// True while its name still refers to it. Always true on systems that give files no numbers.
    pub(super) fn has_its_name(&self) -> bool {
        is_same_file(&self.file, fs::metadata(&self.path))
    }

    /// True if the file was modified since it was opened.
    pub(super) fn is_changed(&self) -> bool {
        let Ok(found) = self.file.metadata() else { return true };
        let mut now = FileState::of(&found);
        // A file that loses its name to another one changes too, but can still be read.
        if now.names != self.opened.names {
            now = FileState { changed: self.opened.changed, names: self.opened.names, ..now };
        }
        now != self.opened
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if self.is_changed() {
            open_files().changed.get_or_insert_with(|| self.path.clone());
        }
    }
}

impl FileState {
    #[cfg(unix)]
    fn of(found: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            bytes: found.len(),
            modified: found.modified().ok(),
            changed: (found.ctime(), found.ctime_nsec()),
            names: found.nlink(),
        }
    }

    #[cfg(not(unix))]
    fn of(found: &Metadata) -> Self {
        Self { bytes: found.len(), modified: found.modified().ok(), changed: (0, 0), names: 0 }
    }
}

fn open_files() -> MutexGuard<'static, OpenFiles> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks that no report was modified while this process had it open, since the last check. An
/// answer from such a report may mix two versions of the file, so commands check before they print
/// it.
///
/// # Errors
/// [`ReportError::Rewritten`] with the first report that was.
pub fn check_open_reports() -> Result<(), ReportError> {
    // Dropping the last handle locks the list, so it must not happen under the lock.
    let held: Vec<Arc<HeldFile>> = open_files().held.iter().filter_map(Weak::upgrade).collect();
    let closed = open_files().changed.take();
    let open = held.iter().find(|file| file.is_changed()).map(|file| file.path.clone());
    match closed.or(open) {
        Some(path) => Err(ReportError::Rewritten { path }),
        None => Ok(()),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests replace files as strangers do")]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_is_written_to_is_changed_and_one_that_is_replaced_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.pop");
        let other = directory.path().join("other.pop");
        fs::write(&path, "old").unwrap();
        let held = HeldFile::open(&path).unwrap();
        assert!(held.has_its_name() && !held.is_changed());
        fs::write(&other, "new").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!held.is_changed());
        assert_eq!(held.has_its_name(), !cfg!(unix));
        let held = HeldFile::open(&path).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"er").unwrap();
        assert!(held.has_its_name() && held.is_changed());
    }

    /// The system gives the number of a closed file to the next one.
    #[test]
    fn no_file_gets_the_number_of_one_that_is_held() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.pop");
        fs::write(&path, "first").unwrap();
        let held = HeldFile::open(&path).unwrap();
        for round in 0..20 {
            let other = directory.path().join("other.pop");
            fs::write(&other, format!("round {round}")).unwrap();
            fs::rename(&other, &path).unwrap();
            assert_eq!(held.has_its_name(), !cfg!(unix), "{round}");
        }
    }
}
