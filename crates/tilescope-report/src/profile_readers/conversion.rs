//! Converts a file of another tool to a report, in a given directory or in the user's cache.

use super::report::WriteProfileError;
use super::{MAX_FILE_BYTES, ProfileReader, reader_of, report};
use crate::cache_directory::{CacheLimits, changed, remove_oldest};
use crate::error::ReportError;
use crate::open_file::{self, REPORT_FILE, file_version};
use crate::schema;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Version of the conversion. Raise it when the same file gives another report.
const CONVERSION: u32 = 1;
/// Directory of the reports below the cache directory.
const CACHE_FOLDER: &str = "converted";
/// Limits on the reports in the cache.
const LIMITS: CacheLimits = CacheLimits { entries: 16, bytes: u64::MAX };

/// A report that was converted from a file.
pub(crate) struct OpenedProfile {
    /// The report's file.
    pub(crate) file: PathBuf,
    /// Its directory, if it exists only while the report is open.
    pub(crate) temporary: Option<TempDir>,
}

/// The converted report of a file of another tool, possibly from the cache; `None` for any other
/// file.
pub(crate) fn open(
    path: &Path,
    cache_directory: Option<&Path>,
) -> Result<Option<OpenedProfile>, ReportError> {
    let Some(reader) = reader_of(path) else { return Ok(None) };
    if let Some(cache) = cache_directory.map(|directory| directory.join(CACHE_FOLDER)) {
        let directory = cache.join(name_of(path)?);
        let kept = directory.join(REPORT_FILE);
        let is_whole = open_file::check(&kept).is_ok();
        if !is_whole {
            // A damaged report is written again. Usually no report exists.
            let _ = fs::remove_dir_all(&directory);
        }
        if is_whole || keep(path, reader, &kept)? {
            return Ok(Some(OpenedProfile { file: kept, temporary: None }));
        }
    }
    // It cannot be kept, so it exists only while it is open.
    let directory =
        tempfile::tempdir().map_err(|error| ReportError::writing(&error, &std::env::temp_dir()))?;
    let file = convert(path, reader, directory.path())?;
    Ok(Some(OpenedProfile { file, temporary: Some(directory) }))
}

/// Writes the report to `kept`. Returns false if it cannot be kept there.
fn keep(path: &Path, reader: &ProfileReader, kept: &Path) -> Result<bool, ReportError> {
    let Some(directory) = kept.parent() else { return Ok(false) };
    let Some(cache) = directory.parent() else { return Ok(false) };
    if fs::create_dir_all(cache).is_err() {
        return Ok(false);
    }
    let Ok(unfinished) = TempDir::with_prefix_in("unfinished-", cache) else { return Ok(false) };
    match convert(path, reader, unfinished.path()) {
        Ok(_) => {}
        // A full disk disables the cache and does not fail the call.
        Err(ReportError::DiskFull { .. } | ReportError::Write { .. }) => return Ok(false),
        Err(error) => return Err(error),
    }
    // Two processes may convert the same file at once: the first to finish wins.
    #[expect(clippy::disallowed_methods, reason = "a directory, whose files are whole by now")]
    let placed = fs::rename(unfinished.path(), directory).is_ok();
    if placed {
        // The renamed directory is no longer temporary.
        let _ = unfinished.keep();
        remove_oldest(directory, &LIMITS, |path| Some((changed(path)?, 0)));
    }
    Ok(kept.is_file())
}

pub(crate) fn convert(
    path: &Path,
    reader: &ProfileReader,
    directory: &Path,
) -> Result<PathBuf, ReportError> {
    let to_error = |error| ReportError::reading(error, path);
    let size = fs::metadata(path).map_err(to_error)?.len();
    if size > MAX_FILE_BYTES {
        let problem = format!("it has {size} B, more than the limit of {MAX_FILE_BYTES} B");
        return Err(ReportError::damaged(problem, path));
    }
    let bytes = fs::read(path).map_err(to_error)?;
    let profile = (reader.read)(&bytes).map_err(|error| error.at(path, reader))?;
    report::write(profile, directory).map_err(|error| match error {
        WriteProfileError::Profile(error) => error.at(path, reader),
        WriteProfileError::Report(error) => error,
    })
}

/// The name of the report of a file in the cache. It changes with the file.
fn name_of(path: &Path) -> Result<String, ReportError> {
    let mut hasher = SipHasher24::new();
    hasher.write(file_version(path)?.as_bytes());
    hasher.write_u32(CONVERSION);
    hasher.write_i32(schema::user_version(schema::FORMAT));
    Ok(format!("{:032x}", hasher.finish128().as_u128()))
}
