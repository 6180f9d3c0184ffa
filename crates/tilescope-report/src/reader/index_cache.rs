//! Where trace indexes of foreign files are kept: a cache directory, one file per report.

use crate::atomic_file::AtomicFile;
use crate::error::ReportError;
use crate::open_file::with_suffix;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// `PRAGMA application_id` of cache files: `tSi3`. Raise the digit when the index changes.
pub(super) const APPLICATION_ID: i32 = 0x7453_6933;
/// Files kept; older ones go when a new one comes.
const MAX_CACHED_INDEXES: usize = 32;

/// The user's cache directory for this program.
pub(super) fn user_directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.or_else(|| set("LOCALAPPDATA")).map(|base| base.join("tilescope"))
}

/// What tells a report file apart from others and from itself before it changed.
pub(super) fn key(path: &Path) -> Result<String, ReportError> {
    let whole = fs::canonicalize(path).map_err(|e| ReportError::reading(e, path))?;
    let found = fs::metadata(&whole).map_err(|e| ReportError::reading(e, path))?;
    let log = fs::metadata(with_suffix(&whole, "-wal")).ok();
    let log = log.map_or(String::new(), |log| version(&log));
    // The log belongs to the key: in WAL mode a report may change while its main file does not.
    Ok(format!("{}\n{}\n{log}", whole.display(), version(&found)))
}

fn version(found: &Metadata) -> String {
    let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} {}", found.len(), changed.unwrap_or_default().as_nanos())
}

/// The cache file for a key.
pub(super) fn file(directory: &Path, key: &str) -> PathBuf {
    // FNV-1a: stable over versions, and the key itself is compared when the file is opened.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    directory.join(format!("trace-{hash:016x}.idx"))
}

/// A new file for `place`, and a connection to it; `None` where nothing can be written. Threads and
/// processes may build the same index at once; the last one to finish stays.
pub(super) fn create(place: &Path) -> Option<(AtomicFile, Connection)> {
    fs::create_dir_all(place.parent()?).ok()?;
    let file = AtomicFile::create(place).ok()?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file.temporary_path(), flags).ok()?;
    Some((file, connection))
}

/// Removes the oldest cache files beside `newest`.
pub(super) fn trim(newest: &Path) {
    let entries = newest.parent().and_then(|directory| fs::read_dir(directory).ok());
    let indexes = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        (name.starts_with("trace-") && name.ends_with(".idx")).then_some(())?;
        Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
    });
    let mut indexes: Vec<_> = indexes.collect();
    indexes.sort();
    let surplus = indexes.len().saturating_sub(MAX_CACHED_INDEXES);
    for (_, path) in indexes.iter().take(surplus) {
        // Left for the next time where it cannot be removed.
        let _ = fs::remove_file(path);
    }
}
