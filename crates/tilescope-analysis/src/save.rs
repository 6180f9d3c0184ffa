//! Writing a file whole or not at all.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file by way of one beside it, so that neither a crash nor a full disk leaves half a
/// file, or takes away what was there.
///
/// # Errors
/// In words for people, with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot write {}: {}", path.display(), words(&error));
    if path.is_dir() {
        return Err(format!("cannot write {}: it is a directory", path.display()));
    }
    // Behind a link lies what is to be replaced.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.exists() && !path.is_file() {
        // A device or a pipe is written to, not replaced.
        return std::fs::write(path, bytes).map_err(failed);
    }
    let part = part_of(path);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // It may not even be there.
        let _ = std::fs::remove_file(&part);
    }
    written.map_err(failed)
}

/// Gives a file that cannot be understood another name beside it, so that it is not lost when
/// another one is written: `notes.json` becomes `notes.broken-1`.
///
/// # Errors
/// In words for people, with the path.
pub fn move_aside(path: &Path) -> Result<PathBuf, String> {
    let aside = (1..1000)
        .map(|number| path.with_extension(format!("broken-{number}")))
        .find(|aside| !aside.exists());
    let moved = aside.and_then(|aside| std::fs::rename(path, &aside).ok().map(|()| aside));
    moved.ok_or_else(|| format!("cannot move this file aside: {}", path.display()))
}

/// The place of the file until it is whole.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; nothing was changed".to_owned(),
        io::ErrorKind::QuotaExceeded => {
            "the disk quota is exceeded; nothing was changed".to_owned()
        }
        io::ErrorKind::NotFound => "there is no such directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.csv");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_said_in_words_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let nowhere = directory.path().join("no/such/place.csv");
        assert!(write_whole(&nowhere, b"x").unwrap_err().contains("no such directory"));
        assert!(write_whole(directory.path(), b"x").unwrap_err().contains("is a directory"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_device_is_written_to_and_a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        write_whole(Path::new("/dev/null"), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let problem = write_whole(Path::new("/dev/full"), b"x").unwrap_err();
        assert!(problem.contains("disk is full"), "{problem}");
        let (path, link) = (directory.path().join("a.csv"), directory.path().join("b.csv"));
        std::fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_said_and_keeps_what_was_there() {
        // Every write to this device fails as on a full disk; the part is a link to it.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.csv");
        std::fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink("/dev/full", part_of(&path)).unwrap();
        let problem = write_whole(&path, b"new").unwrap_err();
        assert!(problem.contains("disk is full"), "{problem}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
