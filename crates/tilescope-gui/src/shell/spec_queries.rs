//! Asks the simulator about specs, through a child process as for everything else.

use crate::shell::simulation_process::{ChildProgramError, program};
use crate::views::what_if::sensitivity::SensitivityAnswer;
use crate::views::what_if::spec_keys::{SpecKeyInfo, SpecProblem, SpecQueries, problem};
use crate::widgets::background_query::BackgroundQueryError;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Asks this program.
pub(crate) const SPEC_QUERIES: SpecQueries = SpecQueries {
    keys: || load_spec_keys().map_err(BackgroundQueryError::failed),
    check: |directory, text| check_text(directory, text).map_err(BackgroundQueryError::failed),
    sensitivity,
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
    // What is checked meanwhile for another text or report has a file of its own.
    let file = numbered_file(directory, "check");
    write_spec(&file, text)?;
    let checked = check_spec(&file);
    // The directory goes with the session; so would the file.
    let _ = std::fs::remove_file(&file);
    checked
}

/// How long a child is left alone before it is looked at again.
const CHILD_LOOK: Duration = Duration::from_millis(50);

/// Asks what other machines would make of a text. A child that nobody waits for any more is killed.
fn sensitivity(
    directory: &Path,
    text: &str,
    cancelled: &AtomicBool,
) -> Result<SensitivityAnswer, BackgroundQueryError> {
    let file = numbered_file(directory, "machines");
    write_spec(&file, text).map_err(BackgroundQueryError::failed)?;
    let said = said_unless_cancelled(&["sensitivity", "--json"], &file, cancelled);
    let _ = std::fs::remove_file(&file);
    let Some(said) = said.map_err(BackgroundQueryError::failed)? else {
        return Err(BackgroundQueryError::Cancelled);
    };
    serde_json::from_slice(&said)
        .map_err(|error| BackgroundQueryError::failed(ChildProgramError::Sensitivity(error)))
}

/// What a child prints about the spec in a file; `None` if it was cancelled.
fn said_unless_cancelled(
    arguments: &[&str],
    file: &Path,
    cancelled: &AtomicBool,
) -> Result<Option<Vec<u8>>, ChildProgramError> {
    let mut child = program()?
        .args(arguments)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(ChildProgramError::Question)?;
    // Both are read beside the child, which would wait for room otherwise.
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
    };
    let out = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let errors = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    std::thread::scope(|threads| {
        let out = threads.spawn(|| read(out));
        let errors = threads.spawn(|| read(errors));
        let status = loop {
            if cancelled.load(Ordering::SeqCst) {
                // It may have ended by itself in this moment.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            match child.try_wait().map_err(ChildProgramError::Question)? {
                Some(status) => break status,
                None => std::thread::sleep(CHILD_LOOK),
            }
        };
        let text = |reader: std::thread::ScopedJoinHandle<'_, std::io::Result<Vec<u8>>>| {
            reader.join().unwrap_or_else(|_| Ok(Vec::new())).map_err(ChildProgramError::Question)
        };
        let (out, errors) = (text(out)?, text(errors)?);
        if status.success() {
            return Ok(Some(out));
        }
        let words = problem(&String::from_utf8_lossy(&errors), file).message;
        Err(ChildProgramError::Refused(words))
    })
}

/// A file of a name that no other question has.
fn numbered_file(directory: &Path, name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    directory.join(format!("{name}-{}.toml", NEXT.fetch_add(1, Ordering::Relaxed)))
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
