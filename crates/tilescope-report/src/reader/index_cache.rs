//! Caches of data derived from a report: trace indexes of foreign files, sync points of older ones.
//! A cache is a directory with one file for each report and kind.

use crate::atomic_file::AtomicFile;
use crate::cache_directory::{CacheLimits, changed, remove_oldest};
use crate::database::ReportWarnings;
use crate::error::ReportError;
use crate::open_file::{self, file_version};
use crate::row_writer::RowWriter;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::path::{Path, PathBuf};

/// `PRAGMA application_id` of cache files: `tSi5`. Raise the digit when the index changes.
const APPLICATION_ID: i32 = 0x7453_6935;
/// Files that are kept.
const LIMITS: CacheLimits = CacheLimits { entries: 32, bytes: u64::MAX };
/// The extension of cache files.
const ENDING: &str = "idx";

/// The cache file of a report, and the key that identifies its content.
pub(super) struct CachePlace {
    file: PathBuf,
    key: String,
}

/// An open cache file.
pub(super) struct CacheFile {
    pub(super) connection: Connection,
    pub(super) bytes: u64,
    /// The path, unless the file exists only while it is open.
    pub(super) file: Option<PathBuf>,
}

impl CachePlace {
    /// The cache file for data of one kind derived from the report `path`.
    pub(super) fn new(directory: &Path, kind: &str, path: &Path) -> Result<Self, ReportError> {
        let key = file_version(path)?;
        // FNV-1a: stable over versions, and the key itself is compared when the file is opened.
        let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Ok(Self { file: directory.join(format!("{kind}-{hash:016x}.{ENDING}")), key })
    }

    /// Opens an existing file. A damaged file, or one of another report, is removed.
    pub(super) fn open<T>(
        &self,
        read: impl FnOnce(CacheFile) -> Result<T, ReportError>,
    ) -> Option<T> {
        if !self.file.exists() {
            return None;
        }
        let found = self.connect().and_then(read);
        if found.is_err() {
            // It is written again even if it cannot be removed now.
            let _ = fs::remove_file(&self.file);
        }
        found.ok()
    }

    fn connect(&self) -> Result<CacheFile, ReportError> {
        let Self { file, key } = self;
        let bytes = open_file::check(file)?;
        let (connection, _) = open_file::connect(file)?;
        // The name of the file is only a hash of the key: two reports may share it.
        let of_file: String = connection
            .query_row("SELECT key FROM source", [], |row| row.get(0))
            .map_err(|e| ReportError::sqlite_reading(&e, "key", file))?;
        let version: i32 = connection
            .pragma_query_value(None, "application_id", |row| row.get(0))
            .map_err(|e| ReportError::sqlite_reading(&e, "header", file))?;
        if of_file != *key || version != APPLICATION_ID {
            return Err(ReportError::damaged("it belongs to another file", file));
        }
        Ok(CacheFile { connection, bytes, file: Some(file.clone()) })
    }
}

/// Writes a cache file. Without a place, or if the place cannot be written, it is a temporary file
/// that exists only while it is open.
pub(super) fn write(
    place: Option<&CachePlace>,
    warnings: &ReportWarnings,
    mut fill: impl FnMut(&RowWriter) -> Result<(), ReportError>,
) -> Result<CacheFile, ReportError> {
    if let Some(place) = place
        && let Some((unfinished, connection)) = create(&place.file)
    {
        match write_to(&connection, &place.key, &mut fill) {
            Ok(()) => {
                drop(connection);
                // If the file cannot be put in place, the code below writes a temporary one.
                if unfinished.commit().is_ok() {
                    remove_oldest(&place.file, &LIMITS, |path| {
                        let is_index = path.extension().is_some_and(|of| of == ENDING);
                        Some((changed(path).filter(|_| is_index)?, 0))
                    });
                    return place.connect();
                }
            }
            // A full disk disables the cache and does not fail the call.
            Err(error @ (ReportError::DiskFull { .. } | ReportError::Write { .. })) => {
                warnings.add_limit(format!("the trace index is not cached: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    // An unnamed file that SQLite creates in the temporary directory and removes itself.
    let to_error =
        |e: rusqlite::Error| ReportError::sqlite_writing(&e, Path::new("temporary file"));
    let connection = Connection::open("").map_err(to_error)?;
    write_to(&connection, "", &mut fill)?;
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let bytes: i64 = connection.query_row(size, [], |row| row.get(0)).map_err(to_error)?;
    Ok(CacheFile { connection, bytes: bytes as u64, file: None })
}

fn write_to(
    connection: &Connection,
    key: &str,
    fill: &mut dyn FnMut(&RowWriter) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let path = connection.path().filter(|path| !path.is_empty()).unwrap_or("temporary file");
    let path = PathBuf::from(path);
    let rows = RowWriter::plain(connection, &path);
    // An incomplete cache is discarded, so it need not survive a crash.
    rows.execute(&format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA cache_size = -8192; PRAGMA application_id = {APPLICATION_ID}; BEGIN;
         CREATE TABLE source(key TEXT)"
    ))?;
    fill(&rows)?;
    connection
        .execute("INSERT INTO source VALUES (?)", [key])
        .map_err(|e| ReportError::sqlite_writing(&e, &path))?;
    rows.execute("COMMIT")
}

/// A new file for `place` and a connection to it; `None` if it cannot be created. Threads and
/// processes may write the same file at once; the last one to finish wins.
fn create(place: &Path) -> Option<(AtomicFile, Connection)> {
    fs::create_dir_all(place.parent()?).ok()?;
    let file = AtomicFile::create(place).ok()?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file.temporary_path(), flags).ok()?;
    Some((file, connection))
}
