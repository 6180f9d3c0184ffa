//! Finds the file that a path refers to: a report, or a profile of another tool, by itself or in a
//! directory.
//!
//! PopTorch writes `training` and `inference` into one directory, TensorFlow one directory for each
//! program. Such a directory holds several reports.

use crate::error::ReportError;
use crate::open_file::REPORT_FILE;
use crate::profile_readers::PROFILE_READERS;
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of entries of a directory that are examined.
const MAX_ENTRIES: usize = 10_000;

/// The report file that `path`, a directory or a file, refers to.
pub(crate) fn locate(path: &Path) -> Result<PathBuf, ReportError> {
    let found = fs::metadata(path).map_err(|e| ReportError::reading(e, path))?;
    if !found.is_dir() {
        return Ok(path.to_owned());
    }
    if let Some(inside) = report_in(path) {
        return Ok(inside);
    }
    let entries = fs::read_dir(path).map_err(|e| ReportError::reading(e, path))?;
    let mut names: Vec<String> =
        entries.flatten().take(1000).map(|entry| entry_name(&entry)).collect();
    names.sort();
    Err(no_report(&names, reports_inside(path)?, path))
}

/// The error for a directory that is not a report itself. `names` are its files and directories;
/// each of `reports` can be opened.
pub(crate) fn no_report(names: &[String], reports: Vec<String>, path: &Path) -> ReportError {
    let found = match (reports.as_slice(), names.len()) {
        ([_, _, ..], _) => {
            return ReportError::SeveralReports { names: reports, path: path.to_owned() };
        }
        ([name], _) => format!("{name} has one: open it instead"),
        ([], 0) => "it is empty".to_owned(),
        ([], 1..=5) => format!("it holds {}", names.join(", ")),
        ([], count) => format!("it holds {} and {} more", names[..4].join(", "), count - 4),
    };
    ReportError::NoReportInDirectory { found, path: path.to_owned() }
}

/// True if a directory holds a report, or a profile of another tool.
pub fn holds_report(directory: &Path) -> bool {
    report_in(directory).is_some()
}

/// The report in a directory, or otherwise the profile of another tool.
fn report_in(directory: &Path) -> Option<PathBuf> {
    let report = directory.join(REPORT_FILE);
    // A pipe or a device of this name is refused with a message when it is opened.
    if report.exists() && !report.is_dir() {
        return Some(report);
    }
    let mut others = PROFILE_READERS.iter().map(|reader| directory.join(reader.file_name));
    others.find(|file| file.is_file())
}

fn entry_name(entry: &fs::DirEntry) -> String {
    let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
    format!("{}{slash}", entry.file_name().to_string_lossy())
}

/// The reports inside a directory that is none itself: subdirectories with a report, with a
/// trailing slash, and `.pop` files.
fn reports_inside(path: &Path) -> Result<Vec<String>, ReportError> {
    let entries = fs::read_dir(path).map_err(|error| ReportError::reading(error, path))?;
    let find_report = |entry: fs::DirEntry| {
        let inside = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if holds_report(&inside) {
            return Some(format!("{name}/"));
        }
        let is_report = inside.extension().is_some_and(|ending| ending == "pop");
        if is_report && inside.is_file() { Some(name) } else { None }
    };
    let mut names: Vec<String> =
        entries.flatten().take(MAX_ENTRIES).filter_map(find_report).collect();
    names.sort();
    Ok(names)
}
