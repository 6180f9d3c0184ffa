//! Files that end with the session: specs that are checked, and variants of a session that remembers
//! nothing. They live in a directory of their own below the temporary one.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Directories of sessions begin with this; process and a number follow.
const PREFIX: &str = "tilescope-session-";
/// A file in each of them, locked by the session that it belongs to for as long as that lives.
const LOCK_FILE: &str = "in-use.lock";
/// Sessions of one process, and names that others have taken.
const MAX_NUMBER: u32 = 10_000;
/// A child that was just killed may still be writing: so often is removing tried, with a pause.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Why a session has no directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionDirectoryError {
    #[error("Temporary files cannot be written: {source}: {}", path.display())]
    NotWritten { path: PathBuf, source: io::Error },
    /// All names are taken.
    #[error("There is no place for temporary files in {}", base.display())]
    NoPlace { base: PathBuf },
}

/// The directory of a session; made when it is first asked for, gone with the session.
#[derive(Default)]
pub(crate) struct SessionTempDir {
    /// The directory, and its mark.
    held: Option<(PathBuf, File)>,
}

impl SessionTempDir {
    /// The directory.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn directory(&mut self) -> Result<PathBuf, SessionDirectoryError> {
        self.directory_in(&std::env::temp_dir())
    }

    fn directory_in(&mut self, base: &Path) -> Result<PathBuf, SessionDirectoryError> {
        let held = match self.held.take() {
            Some(held) => held,
            None => make(base)?,
        };
        Ok(self.held.insert(held).0.clone())
    }
}

impl Drop for SessionTempDir {
    fn drop(&mut self) {
        let Some((path, mark)) = self.held.take() else { return };
        // Some systems remove no file that is open.
        drop(mark);
        for _ in 0..TRIES {
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => std::thread::sleep(PAUSE),
                _ => return,
            }
        }
    }
}

/// A new directory, and its mark, locked.
fn make(base: &Path) -> Result<(PathBuf, File), SessionDirectoryError> {
    let process = std::process::id();
    for number in 0..MAX_NUMBER {
        let path = base.join(format!("{PREFIX}{process}-{number}"));
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(source) => return Err(SessionDirectoryError::NotWritten { path, source }),
        }
        let mark = match File::create(path.join(LOCK_FILE)) {
            Ok(mark) => mark,
            Err(source) => return Err(SessionDirectoryError::NotWritten { path, source }),
        };
        // Without a lock another session may take it for an old one; where files cannot be locked,
        // none is ever taken for that.
        let taken = matches!(mark.try_lock(), Err(std::fs::TryLockError::WouldBlock));
        if !taken && path.join(LOCK_FILE).exists() {
            return Ok((path, mark));
        }
    }
    Err(SessionDirectoryError::NoPlace { base: base.to_owned() })
}

/// Removes, on a thread of its own, what sessions have left that ended without a chance to.
pub(crate) fn remove_stale_directories() {
    let sweeping = std::thread::Builder::new().name("sweep".to_owned());
    // Without a thread the next start may have one.
    let _ = sweeping.spawn(|| sweep_in(&std::env::temp_dir()));
}

/// A directory is removed if it is called like those of sessions, has their mark, and nobody holds
/// that.
#[expect(clippy::disallowed_methods, reason = "once, when the program starts")]
fn sweep_in(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_str().is_some_and(is_session_directory_name);
        // A link to a directory is none here.
        if named && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = entry.path();
            let mark = File::options().write(true).open(path.join(LOCK_FILE));
            if mark.is_ok_and(|mark| mark.try_lock().is_ok()) {
                // What cannot be removed stays for whoever can.
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }
}

/// Whether a name is exactly what a session calls its directory.
fn is_session_directory_name(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| digits(process) && digits(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_ends_with_its_session() {
        let base = tempfile::tempdir().unwrap();
        let mut one = SessionTempDir::default();
        drop(SessionTempDir::default());
        assert_eq!(base.path().read_dir().unwrap().count(), 0, "none before it is asked for");
        let (path, mut other) = (one.directory_in(base.path()).unwrap(), SessionTempDir::default());
        assert_eq!(one.directory_in(base.path()).unwrap(), path);
        assert_ne!(other.directory_in(base.path()).unwrap(), path);
        std::fs::create_dir(path.join("variant 1")).unwrap();
        std::fs::write(path.join("variant 1/profile.pop"), "").unwrap();
        drop(one);
        assert!(!path.exists());
        drop(other);
        assert_eq!(base.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn only_what_is_surely_ours_and_unused_is_swept() {
        let base = tempfile::tempdir().unwrap();
        let mut living = SessionTempDir::default();
        let mut kept = vec![living.directory_in(base.path()).unwrap()];
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
