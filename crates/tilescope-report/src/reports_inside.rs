//! Directories that hold several reports: PopTorch writes `training` and `inference`, TensorFlow one
//! directory for each program.

use crate::error::ReportError;
use crate::open_file::holds_report;
use std::fs;
use std::path::Path;

/// Most entries of a directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Most reports that a message names.
const NAMED: usize = 12;

/// The reports of a directory that is none itself: directories in it that are one, with a slash at
/// their end, and `.pop` files.
pub(crate) fn reports_inside(path: &Path) -> Result<Vec<String>, ReportError> {
    let entries = fs::read_dir(path).map_err(|error| ReportError::reading(error, path))?;
    let report = |entry: fs::DirEntry| {
        let inside = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if holds_report(&inside) {
            return Some(format!("{name}/"));
        }
        let is_report = inside.extension().is_some_and(|ending| ending == "pop");
        (is_report && inside.is_file()).then_some(name)
    };
    let mut names: Vec<String> = entries.flatten().take(MAX_ENTRIES).filter_map(report).collect();
    names.sort();
    Ok(names)
}

/// The first of the names, and how many more there are.
pub(crate) fn names_in_words(names: &[String]) -> String {
    let named = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
