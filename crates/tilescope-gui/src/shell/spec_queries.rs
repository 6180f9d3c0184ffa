//! Asks the simulator about specs, through a child process as for everything else.

use crate::shell::child::program;
use crate::views::what_if::keys::{Checked, KeyInfo, Problem, SpecQueries, problem};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

/// Asks this program.
pub(crate) const SPEC_QUERIES: SpecQueries = SpecQueries { keys: spec_keys, check: check_text };

/// Every key that specs may have.
///
/// # Errors
/// Why the program could not be asked, in words.
fn spec_keys() -> Result<Vec<KeyInfo>, String> {
    let output = program()?.args(["specs", "--keys", "--json"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("The simulator cannot be asked: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("The simulator's keys cannot be read: {error}"))
}

/// Asks about a text: it is written to a file of its own in a directory.
fn check_text(directory: &Path, text: &str) -> Checked {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // What is checked meanwhile for another text or report has a file of its own.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = directory.join(format!("check-{number}.toml"));
    write_spec(&file, text)?;
    let checked = check_file(&file);
    // The directory goes with the session; so would the file.
    let _ = std::fs::remove_file(&file);
    checked
}

/// Asks the simulator about the spec in a file; `None` where it is sane.
///
/// # Errors
/// Why the simulator could not be asked, in words.
fn check_file(file: &Path) -> Result<Option<Problem>, String> {
    let output = program()?.arg("simulate").arg(file).arg("--check").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("The simulator cannot be asked: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| problem(&said, file)))
}

/// Writes a spec.
///
/// # Errors
/// In words for people.
pub(crate) fn write_spec(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| spec_not_written(&error, path))
}

/// Why a spec could not be written, in words.
pub(crate) fn spec_not_written(error: &std::io::Error, path: &Path) -> String {
    format!("The spec cannot be written: {error}: {}", path.display())
}
