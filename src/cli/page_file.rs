//! Files of HTML pages: whole or not at all, and never over a report.

use super::command::CliError;
use crate::cli::error::UsageError;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tilescope_html::HtmlPageError;
use tilescope_report::atomic_file::write_whole;

/// What every SQLite file, and so every report, begins with.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Writes a page.
///
/// # Errors
/// The page cannot be made, or the file not be written.
pub(super) fn write_page(file: &Path, page: Result<String, HtmlPageError>) -> Result<(), CliError> {
    Ok(write_whole(file, page?.as_bytes())?)
}

/// Refuses to write a page over a report, whatever its name is, or over what it is made of.
///
/// # Errors
/// The file is one of those.
pub(super) fn keep_inputs<'a>(
    file: &Path,
    mut inputs: impl Iterator<Item = &'a Path>,
) -> Result<(), CliError> {
    let is_named_so = file.extension().is_some_and(|ending| ending == "pop");
    let whole = file.canonicalize().ok();
    let is_input = whole.is_some() && inputs.any(|input| input.canonicalize().ok() == whole);
    let is = match is_named_so || is_sqlite(file) {
        true => "would be a page under the name of a report; choose a name that ends in .html",
        false if is_input => "is what the page is made of; choose another name for the page",
        false => return Ok(()),
    };
    Err(UsageError::WrongFile { file: file.to_owned(), is }.into())
}

fn is_sqlite(file: &Path) -> bool {
    let mut head = [0; SQLITE.len()];
    // Pipes and devices are no reports, and would be waited for.
    file.is_file()
        && File::open(file).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && head == *SQLITE
}
