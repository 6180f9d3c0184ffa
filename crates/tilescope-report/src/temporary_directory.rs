//! Directories for files that end with the process.

use crate::atomic_file::{forget, unfinished};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

/// The prefix of directory names, followed by the process and a number.
const PREFIX: &str = "tilescope-session-";
/// A file in each directory, locked by its process for as long as that lives.
const LOCK_FILE: &str = "in-use.lock";
/// The highest number of a directory of one process, including names taken by others.
const MAX_NUMBER: u32 = 10_000;
/// The number of attempts to remove a directory, with pauses: a child that was just killed may
/// still write.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// The reason why no directory could be made.
#[derive(Debug, thiserror::Error)]
pub enum TemporaryDirectoryError {
    /// The system could not create it.
    #[error("temporary files cannot be written: {source}: {}", path.display())]
    NotWritten { path: PathBuf, source: io::Error },
    /// All names are taken.
    #[error("cannot create temporary files in {}", base.display())]
    NoPlace { base: PathBuf },
}

/// A directory of this process. It is removed when it is dropped or the process is interrupted, and
/// otherwise when the next process cleans up after others.
#[derive(Debug)]
pub struct TemporaryDirectory {
    path: PathBuf,
    /// Held until the directory is removed.
    mark: Option<File>,
}

impl TemporaryDirectory {
    /// Creates a directory.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new() -> Result<Self, TemporaryDirectoryError> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(remove_stale_directories);
        Self::below(&std::env::temp_dir())
    }

    fn below(base: &Path) -> Result<Self, TemporaryDirectoryError> {
        // Held until the directory is in the list: an interruption in between would leave it
        // behind.
        let mut unfinished = unfinished();
        let (path, mark) = make(base)?;
        unfinished.push(path.clone());
        Ok(Self { path, mark: Some(mark) })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Held until the directory is removed: an interruption in between would leave a part of it.
        let mut unfinished = unfinished();
        // Some systems cannot remove open files.
        drop(self.mark.take());
        for _ in 0..TRIES {
            match std::fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => std::thread::sleep(PAUSE),
                _ => break,
            }
        }
        forget(&mut unfinished, &self.path);
    }
}

/// A new directory and its mark, which is locked.
fn make(base: &Path) -> Result<(PathBuf, File), TemporaryDirectoryError> {
    let process = std::process::id();
    for number in 0..MAX_NUMBER {
        let path = base.join(format!("{PREFIX}{process}-{number}"));
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(source) => return Err(TemporaryDirectoryError::NotWritten { path, source }),
        }
        let mark = match File::create(path.join(LOCK_FILE)) {
            Ok(mark) => mark,
            Err(source) => return Err(TemporaryDirectoryError::NotWritten { path, source }),
        };
        // Without a lock, another process may take the directory for a stale one. On systems
        // without file locks, no directory counts as stale.
        let taken = matches!(mark.try_lock(), Err(std::fs::TryLockError::WouldBlock));
        if !taken && path.join(LOCK_FILE).exists() {
            return Ok((path, mark));
        }
    }
    Err(TemporaryDirectoryError::NoPlace { base: base.to_owned() })
}

/// Removes directories of processes that ended without cleaning up, on a thread of its own.
fn remove_stale_directories() {
    let sweeping = std::thread::Builder::new().name("sweep".to_owned());
    // Without a thread, the next process may clean up.
    let _ = sweeping.spawn(|| sweep_in(&std::env::temp_dir()));
}

/// Removes the directories that have a name of this program and its mark, if no process holds the
/// mark.
fn sweep_in(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_str().is_some_and(is_own_name);
        // A link to a directory does not count.
        if named && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = entry.path();
            let mark = File::options().write(true).open(path.join(LOCK_FILE));
            if mark.is_ok_and(|mark| mark.try_lock().is_ok()) {
                // A directory of another user stays for that user's processes.
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }
}

/// True for names of this program's directories.
fn is_own_name(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_gone_with_its_content() {
        let base = tempfile::tempdir().unwrap();
        let one = TemporaryDirectory::below(base.path()).unwrap();
        let other = TemporaryDirectory::below(base.path()).unwrap();
        assert_ne!(other.path(), one.path());
        let path = one.path().to_owned();
        std::fs::create_dir(path.join("variant 1")).unwrap();
        std::fs::write(path.join("variant 1/profile.pop"), "").unwrap();
        assert!(unfinished().contains(&path));
        drop(one);
        assert!(!path.exists() && !unfinished().contains(&path));
        drop(other);
        assert_eq!(base.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn only_unused_directories_of_ours_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let living = TemporaryDirectory::below(base.path()).unwrap();
        let mut kept = vec![living.path().to_owned()];
        let place = |name: &str, mark: bool| {
            let path = base.path().join(name);
            std::fs::create_dir(&path).unwrap();
            if mark {
                std::fs::write(path.join(LOCK_FILE), "").unwrap();
            }
            path
        };
        let old = place("tilescope-session-1-0", true);
        kept.push(place("tilescope-session-2-0", false));
        kept.push(place("tilescope-session-mine", true));
        kept.push(place("tilescope-session-2-0-mine", true));
        kept.push(place("another", true));
        let file = base.path().join("tilescope-session-3-0");
        std::fs::write(&file, "").unwrap();
        kept.push(file);
        sweep_in(base.path());
        assert!(!old.exists());
        assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
        sweep_in(&base.path().join("there is none"));
    }
}
