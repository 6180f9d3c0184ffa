//! Writes all output files of commands: completely or not at all, never over a report or over an
//! input, and not from a report that was modified while it was read.

use super::command::CliError;
use crate::cli::error::UsageError;
use std::path::Path;
use tilescope_report::{atomic_file, check_open_reports};

/// Refuses to write over a report or over one of the inputs. Commands call this before long work.
///
/// # Errors
/// The file is one of these, or a directory.
pub(super) fn check<'a>(
    file: &Path,
    mut inputs: impl Iterator<Item = &'a Path>,
) -> Result<(), CliError> {
    atomic_file::check_target(file)?;
    let whole = file.canonicalize().ok();
    if whole.is_some() && inputs.any(|input| input.canonicalize().ok() == whole) {
        let is = "is an input of this command; choose another name for the output";
        return Err(UsageError::WrongFile { file: file.to_owned(), is }.into());
    }
    Ok(())
}

/// Writes a file.
///
/// # Errors
/// A report has its name or was modified meanwhile, or the system refuses.
pub(super) fn write(file: &Path, bytes: &[u8]) -> Result<(), CliError> {
    check_open_reports()?;
    Ok(atomic_file::write_whole(file, bytes)?)
}
