//! Asks the simulator about specs, through a child process as for everything else.

use crate::shell::simulation_process::{ChildProgramError, program};
use crate::views::what_if::spec_keys::{SpecKeyInfo, SpecProblem, SpecQueries, problem};
use crate::widgets::background_query::BackgroundQueryError;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

/// Asks this program.
pub(crate) const SPEC_QUERIES: SpecQueries = SpecQueries {
    keys: || load_spec_keys().map_err(BackgroundQueryError::failed),
    check: |directory, text| check_text(directory, text).map_err(BackgroundQueryError::failed),
};

/// Every key that specs may have.
///
/// # Errors
/// The program could not be asked, or its answer not be read.
fn load_spec_keys() -> Result<Vec<SpecKeyInfo>, ChildProgramError> {
    let output = program()?.args(["specs", "--keys", "--json"]).stdin(Stdio::null()).output();
    let output = output.map_err(ChildProgramError::Question)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ChildProgramError::Refused(said));
    }
    serde_json::from_slice(&output.stdout).map_err(ChildProgramError::Keys)
}

/// Asks about a text: it is written to a file of its own in a directory.
///
/// # Errors
/// The file cannot be written, or the simulator not be asked.
fn check_text(directory: &Path, text: &str) -> Result<Option<SpecProblem>, ChildProgramError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // What is checked meanwhile for another text or report has a file of its own.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = directory.join(format!("check-{number}.toml"));
    write_spec(&file, text)?;
    let checked = check_spec(&file);
    // The directory goes with the session; so would the file.
    let _ = std::fs::remove_file(&file);
    checked
}

/// Asks the simulator about the spec in a file; `None` where it is sane.
///
/// # Errors
/// The simulator could not be asked.
fn check_spec(file: &Path) -> Result<Option<SpecProblem>, ChildProgramError> {
    let output = program()?.arg("simulate").arg(file).arg("--check").stdin(Stdio::null()).output();
    let output = output.map_err(ChildProgramError::Question)?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| problem(&said, file)))
}

/// Writes a spec.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_spec(path: &Path, text: &str) -> Result<(), ChildProgramError> {
    std::fs::write(path, text).map_err(|error| ChildProgramError::spec(error, path))
}
