//! The user's cache directory and the limits on its content.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The user's cache directory for this program.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let read_path =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base =
        read_path("XDG_CACHE_HOME").or_else(|| read_path("HOME").map(|home| home.join(".cache")));
    base.or_else(|| read_path("LOCALAPPDATA")).map(|base| base.join("tilescope"))
}

/// Limits on the content of a directory of the cache, including the newest entry.
pub(crate) struct CacheLimits {
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
}

/// Removes the least recently used entries beside `newest` until the rest is within the limits.
/// `describe` gives the time of the last use and the bytes of an entry, or none if the entry is to
/// stay.
pub(crate) fn remove_oldest(
    newest: &Path,
    limits: &CacheLimits,
    describe: impl Fn(&Path) -> Option<(SystemTime, u64)>,
) {
    let Some(directory) = newest.parent() else { return };
    let mut kept = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path == newest {
            continue;
        }
        if let Some((used, bytes)) = describe(&path) {
            kept.push((used, path, bytes));
        }
    }
    kept.sort();
    let mut bytes = 0u64;
    for (newer, (_, path, own)) in kept.iter().rev().enumerate() {
        bytes = bytes.saturating_add(*own);
        if newer + 1 < limits.entries && bytes <= limits.bytes {
            continue;
        }
        // An entry that cannot be removed is left for the next time.
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// The time of the last change of an entry.
pub(crate) fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
