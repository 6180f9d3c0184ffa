//! Files that are replaced whole or not at all.
//!
//! A crash, a full disk or a second writer must neither leave half a file under a name nor destroy
//! the previous content. The new content is therefore written to a temporary file beside the
//! target, synced to the disk, and only then renamed to the target in one step.

// The one place that renames files; everywhere else clippy.toml refuses it.
#![allow(clippy::disallowed_methods)]

use super::open_file::{MAGIC, is_same_file};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Temporary directories of this process, and files that have no name yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The reason why a file could not be replaced. The target keeps its content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtomicFileError {
    /// The name belongs to a directory.
    #[error("cannot write {}: it is a directory", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Another process is writing the same file.
    #[error("cannot write {}: another process is writing it", path.display())]
    Locked {
        /// The file that was to be written.
        path: PathBuf,
    },
    /// The system refused to write.
    #[error("cannot write {}: {}", path.display(), reason(source))]
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The name belongs to a report, or another file would get the name of one.
    #[error(
        "{}: only reports are written under the name of a report; choose another name",
        path.display()
    )]
    Report {
        /// The file that was to be written.
        path: PathBuf,
    },
    /// An existing file could not be moved aside.
    #[error("a file with this name exists: {}", path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
}

impl AtomicFileError {
    fn write(source: io::Error, path: &Path) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

/// The system's reason, in plain words.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; nothing was changed".to_owned(),
        io::ErrorKind::QuotaExceeded => "the quota is used up; nothing was changed".to_owned(),
        io::ErrorKind::NotFound => "no such directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        _ => error.to_string(),
    }
}

/// The next content of a file, under a temporary name beside it. If it is dropped before
/// [`AtomicFile::commit`], it is removed and the target keeps its content.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// The path that is written to; the target itself if that is a device or a pipe.
    temporary: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl AtomicFile {
    /// Starts the next content of `target` under a temporary name of its own. Of several writers,
    /// the last one to commit wins.
    pub fn create(target: &Path) -> Result<Self, AtomicFileError> {
        Self::create_unique(target).map_err(|error| AtomicFileError::write(error, target))
    }

    fn create_unique(target: &Path) -> io::Result<Self> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = STARTED.fetch_add(1, Ordering::Relaxed);
            let suffix = format!(".{}-{number}.part", std::process::id());
            let temporary = with_suffix(target, &suffix);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => return Ok(Self::new(file, temporary, target)),
                // A killed process with the same id left this file behind.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts the next content of `target` under its name with `.part`. This is for files so large
    /// that leftovers of killed processes must not pile up: a leftover is taken over. A second
    /// writer is refused while the first one is at work.
    pub(crate) fn create_exclusive(target: &Path) -> Result<Self, AtomicFileError> {
        let temporary = with_suffix(target, ".part");
        let to_error = |error| AtomicFileError::write(error, target);
        loop {
            // A link would lead to a foreign file; opening a pipe would block.
            if fs::symlink_metadata(&temporary).is_ok_and(|found| !found.is_file()) {
                return Err(AtomicFileError::InTheWay { path: temporary });
            }
            let mut options = OpenOptions::new();
            // Not truncated before it is locked: it may be the unfinished file of another writer.
            let file = options.write(true).create(true).truncate(false).open(&temporary);
            let file = file.map_err(to_error)?;
            // On a file system without locks, a second writer goes unnoticed.
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(AtomicFileError::Locked { path: target.to_owned() });
            }
            // Another writer may have finished before this lock was acquired. The opened file is
            // then that writer's report, under another name.
            if is_still_named(&file, &temporary) {
                file.set_len(0).map_err(to_error)?;
                return Ok(Self::new(file, temporary, target));
            }
        }
    }

    /// Starts the next content of a file that is written over a long time, as
    /// [`AtomicFile::create_exclusive`] does. The target of a link is replaced, not the link. A
    /// device or a pipe cannot be replaced and is written to directly.
    ///
    /// # Errors
    /// Those of [`check_target`], and the system's.
    pub fn create_growing(path: &Path) -> Result<Self, AtomicFileError> {
        check_target(path)?;
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if !target.exists() || target.is_file() {
            return Self::create_exclusive(&target);
        }
        let file = OpenOptions::new().write(true).open(&target);
        let file = file.map_err(|error| AtomicFileError::write(error, path))?;
        Ok(Self::new(file, target.clone(), &target))
    }

    fn new(file: File, temporary: PathBuf, target: &Path) -> Self {
        let created = Self { file, temporary, target: target.to_owned(), committed: false };
        if created.is_replaced() {
            unfinished().push(created.temporary.clone());
        }
        created
    }

    /// The file that receives the content.
    pub fn file_mut(&mut self) -> &mut File {
        &mut self.file
    }

    /// The path until the commit, for callers that open files themselves.
    pub(crate) fn temporary_path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name, once its content is safe on the disk.
    pub fn commit(mut self) -> Result<PathBuf, AtomicFileError> {
        match self.publish() {
            Ok(()) => Ok(self.target.clone()),
            Err(error) => Err(AtomicFileError::write(error, &self.target)),
        }
    }

    fn is_replaced(&self) -> bool {
        self.temporary != self.target
    }

    fn publish(&mut self) -> io::Result<()> {
        if !self.is_replaced() {
            return Ok(());
        }
        self.file.sync_all()?;
        // Held while the file gets its name: code that removes unfinished files would remove it
        // otherwise.
        let mut unfinished = unfinished();
        fs::rename(&self.temporary, &self.target)?;
        forget(&mut unfinished, &self.temporary);
        drop(unfinished);
        self.committed = true;
        // The name is safe only once its directory is synced. Some systems cannot do so; that is no
        // failure.
        if let Ok(directory) = File::open(directory_of(&self.target)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed && self.is_replaced() {
            let mut unfinished = unfinished();
            // The error that brought us here matters more than this one.
            let _ = fs::remove_file(&self.temporary);
            forget(&mut unfinished, &self.temporary);
        }
    }
}

/// The list of temporary files and directories of this process.
pub(super) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a file or directory off the list, because it got its name or was removed.
pub(super) fn forget(unfinished: &mut Vec<PathBuf>, path: &Path) {
    unfinished.retain(|other| other != path);
}

/// Removes the temporary files and directories of this process and ends it. For a process that must
/// end at once.
pub fn exit_without_leftovers(code: i32) -> ! {
    // Held to the end, so that no other thread makes a new one.
    let unfinished = unfinished();
    for path in unfinished.iter() {
        // What cannot be removed stays for the next writer.
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    std::process::exit(code)
}

/// Refuses directories, reports, and names of reports: only [`ReportWriter`](crate::ReportWriter)
/// writes those. Commands check this before long work.
///
/// # Errors
/// [`AtomicFileError::Directory`] or [`AtomicFileError::Report`].
pub fn check_target(path: &Path) -> Result<(), AtomicFileError> {
    if path.is_dir() {
        return Err(AtomicFileError::Directory { path: path.to_owned() });
    }
    let is_named_so = path.extension().is_some_and(|ending| ending == "pop");
    if is_named_so || is_sqlite(path) {
        return Err(AtomicFileError::Report { path: path.to_owned() });
    }
    Ok(())
}

fn is_sqlite(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    // Pipes and devices are not reports, and opening one would block.
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && head == *MAGIC
}

/// Replaces the content of a file. The target of a link is replaced, not the link. A device or a
/// pipe cannot be replaced and is written to directly.
///
/// # Errors
/// Those of [`check_target`], and the system's.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), AtomicFileError> {
    let to_error = |error| AtomicFileError::write(error, path);
    check_target(path)?;
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target.exists() && !target.is_file() {
        return fs::write(&target, bytes).map_err(to_error);
    }
    let replace = || {
        let mut file = AtomicFile::create_unique(&target)?;
        file.file.write_all(bytes)?;
        file.publish()
    };
    replace().map_err(to_error)
}

/// Moves a file that cannot be parsed aside, under another name beside it, so that its content is
/// not lost when a new file is written: `notes.json` becomes `notes.broken-1`.
pub fn move_aside(path: &Path) -> Result<PathBuf, AtomicFileError> {
    let aside = (1..1000)
        .map(|number| path.with_extension(format!("broken-{number}")))
        .find(|aside| !aside.exists());
    let moved = aside.and_then(|aside| fs::rename(path, &aside).ok().map(|()| aside));
    moved.ok_or_else(|| AtomicFileError::InTheWay { path: path.to_owned() })
}

/// True if an open file is the one that has this name, rather than the target of a link of that
/// name.
fn is_still_named(file: &File, path: &Path) -> bool {
    is_same_file(file, fs::symlink_metadata(path))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(suffix);
    path.with_file_name(name)
}

/// The directory that contains a file; for a bare name, the current one.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.csv");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names_in(directory.path()), ["table.csv"]);
    }

    #[test]
    fn a_writer_that_does_not_finish_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.csv");
        fs::write(&path, "old").unwrap();
        for create in [AtomicFile::create, AtomicFile::create_exclusive] {
            let mut writer = create(&path).unwrap();
            writer.file_mut().write_all(b"half of the n").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
            drop(writer);
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names_in(directory.path()), ["table.csv"]);
        }
    }

    #[test]
    fn two_writers_do_not_mix_and_the_last_one_wins() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.csv");
        let (mut first, mut second) =
            (AtomicFile::create(&path).unwrap(), AtomicFile::create(&path).unwrap());
        assert_ne!(first.temporary_path(), second.temporary_path());
        first.file_mut().write_all(b"first, and longer").unwrap();
        second.file_mut().write_all(b"second").unwrap();
        assert_eq!(first.commit().unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"first, and longer");
        second.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names_in(directory.path()), ["table.csv"]);
    }

    #[test]
    fn an_exclusive_writer_refuses_a_second_one_and_takes_over_what_is_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large.bin");
        fs::write(with_suffix(&path, ".part"), "of a killed process").unwrap();
        let mut first = AtomicFile::create_exclusive(&path).unwrap();
        let second = AtomicFile::create_exclusive(&path).unwrap_err();
        assert!(matches!(second, AtomicFileError::Locked { .. }), "{second}");
        first.file_mut().write_all(b"new").unwrap();
        first.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names_in(directory.path()), ["large.bin"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_under_the_temporary_name_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("large.bin"), directory.path().join("other"));
        fs::write(&other, "of somebody else").unwrap();
        std::os::unix::fs::symlink(&other, with_suffix(&path, ".part")).unwrap();
        let error = AtomicFile::create_exclusive(&path).unwrap_err().to_string();
        assert!(
            error.contains("a file with this name exists") && error.contains("large.bin.part"),
            "{error}"
        );
        assert_eq!(fs::read(&other).unwrap(), b"of somebody else");
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_was_renamed_before_it_was_locked_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large.bin");
        let temporary = with_suffix(&path, ".part");
        fs::write(&temporary, "finished").unwrap();
        let opened = File::open(&temporary).unwrap();
        assert!(is_still_named(&opened, &temporary));
        fs::hard_link(&temporary, &path).unwrap();
        fs::remove_file(&temporary).unwrap();
        assert!(!is_still_named(&opened, &temporary));
        fs::write(&temporary, "of the next writer").unwrap();
        assert!(!is_still_named(&opened, &temporary));
    }

    #[test]
    fn failed_writes_name_the_file_and_leave_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let nowhere = directory.path().join("no/such/place.csv");
        let says = |error: AtomicFileError, path: &Path, reason: &str| {
            let text = error.to_string();
            assert_eq!(text, format!("cannot write {}: {reason}", path.display()));
        };
        says(write_whole(&nowhere, b"x").unwrap_err(), &nowhere, "no such directory");
        says(AtomicFile::create(&nowhere).unwrap_err(), &nowhere, "no such directory");
        let occupied = write_whole(directory.path(), b"x").unwrap_err();
        says(occupied, directory.path(), "it is a directory");
        assert_eq!(names_in(directory.path()), Vec::<String>::new());
    }

    #[test]
    fn reports_and_their_names_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let named_so = directory.path().join("profile.pop");
        let report = directory.path().join("report.xml");
        fs::write(&report, b"SQLite format 3\0 and more").unwrap();
        for path in [&named_so, &report] {
            let whole = write_whole(path, b"x").unwrap_err();
            let growing = AtomicFile::create_growing(path).unwrap_err();
            for error in [whole, growing] {
                assert!(matches!(error, AtomicFileError::Report { .. }), "{error}");
            }
        }
        assert!(!named_so.exists());
        assert_eq!(fs::read(&report).unwrap(), b"SQLite format 3\0 and more");
        assert_eq!(names_in(directory.path()), ["report.xml"]);
    }

    #[test]
    fn unfinished_files_are_known_until_they_have_their_name() {
        let directory = tempfile::tempdir().unwrap();
        let is_known = |path: &Path| unfinished().contains(&path.to_owned());
        for create in [AtomicFile::create, AtomicFile::create_exclusive] {
            let finished = create(&directory.path().join("a.csv")).unwrap();
            let dropped = create(&directory.path().join("b.csv")).unwrap();
            let paths = [&finished, &dropped].map(|file| file.temporary_path().to_owned());
            assert!(paths.iter().all(|path| is_known(path)));
            finished.commit().unwrap();
            drop(dropped);
            assert!(!paths.iter().any(|path| is_known(path)));
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_directory_that_may_not_be_written_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let closed = directory.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
        let path = closed.join("table.csv");
        // The superuser may write everywhere.
        if let Err(error) = write_whole(&path, b"x") {
            let text = error.to_string();
            assert!(
                text.contains(path.to_str().unwrap()) && text.contains("not allowed"),
                "{text}"
            );
            assert_eq!(names_in(&closed), Vec::<String>::new());
        }
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_device_is_written_to_and_a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        write_whole(Path::new("/dev/null"), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let problem = write_whole(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(problem.contains("disk is full"), "{problem}");
        let (path, link) = (directory.path().join("a.csv"), directory.path().join("b.csv"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn an_existing_file_is_moved_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.json");
        for number in 1..=2 {
            fs::write(&path, format!("broken {number}")).unwrap();
            let aside = move_aside(&path).unwrap();
            assert_eq!(aside, directory.path().join(format!("notes.broken-{number}")));
            assert_eq!(fs::read_to_string(aside).unwrap(), format!("broken {number}"));
        }
        let error = move_aside(&path).unwrap_err().to_string();
        assert_eq!(error, format!("a file with this name exists: {}", path.display()));
    }
}
