//! Simulations in a child process of this program. Cancelling kills the child, and a child that
//! runs out of memory does not take down the window.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tilescope_experiments::program_error::{ERRORS_VARIABLE, ProgramError};
use tilescope_report::temporary_directory::TemporaryDirectoryError;

/// Makes the child write `progress N` lines to stderr.
pub(super) const PROGRESS_VARIABLE: &str = "TILESCOPE_PROGRESS";

/// The number of shown lines of a failed child.
const MAX_ERROR_LINES: usize = 6;

/// An error from starting this program as a child, or from its answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildProgramError {
    /// The path of the simulating program was not set.
    #[error("The path of this program is not known")]
    UnknownPath,
    #[error("The simulator cannot be started: {0}")]
    SimulationProcess(io::Error),
    #[error("Cannot start a thread for the simulation: {0}")]
    SimulationThread(io::Error),
    #[error("Another window cannot be opened: {0}")]
    Window(io::Error),
    /// No thread can be started to wait for the end of the new window.
    #[error("{0}")]
    WindowThread(io::Error),
    #[error("The simulator cannot be queried: {0}")]
    Question(io::Error),
    /// The message of a child that gave no answer.
    #[error("{0}")]
    Refused(String),
    #[error("The simulator's answer cannot be read: {0}")]
    Answer(serde_json::Error),
    /// The directory for the spec cannot be created.
    #[error(transparent)]
    Directory(#[from] TemporaryDirectoryError),
    /// The spec file for the child cannot be written.
    #[error("The spec cannot be written: {source}: {}", path.display())]
    Spec { path: PathBuf, source: io::Error },
}

impl ChildProgramError {
    /// The error from writing a spec or creating its directory.
    pub(crate) fn spec(source: io::Error, path: &Path) -> Self {
        Self::Spec { path: path.to_owned(), source }
    }

    /// The error without the path of the file it is about, for places that show the path
    /// themselves.
    pub(crate) fn about(self, file: &Path) -> Self {
        match self {
            Self::Refused(said) => {
                let behind = said.strip_prefix(&format!("{}: ", file.display()));
                Self::Refused(behind.map_or_else(|| said.clone(), str::to_owned))
            }
            other => other,
        }
    }
}

/// The outcome of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SimulationOutcome {
    /// The simulation succeeded; the directory of the report.
    Done(PathBuf),
    /// The simulation failed; the last lines that the child wrote to stderr.
    Failed(String),
    /// The user cancelled the simulation.
    Cancelled,
}

/// A running simulation.
pub struct SimulationProcess {
    pub spec: String,
    percent: Arc<AtomicU64>,
    cancelled: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Child>>>,
    ended: Receiver<SimulationOutcome>,
}

impl SimulationProcess {
    /// Starts `tilescope simulate SPEC -o DIRECTORY`.
    pub(crate) fn start(
        spec: &str,
        directory: PathBuf,
        context: &egui::Context,
    ) -> Result<Self, ChildProgramError> {
        let mut child = program()?
            .args(["simulate", spec, "-o"])
            .arg(&directory)
            .env(PROGRESS_VARIABLE, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(ChildProgramError::SimulationProcess)?;
        let errors = child.stderr.take();
        let percent = Arc::new(AtomicU64::new(0));
        let cancelled = Arc::new(AtomicBool::new(false));
        let child = Arc::new(Mutex::new(Some(child)));
        let (sender, ended) = channel();
        let watcher = SimulationWatcher {
            percent: percent.clone(),
            cancelled: cancelled.clone(),
            child: child.clone(),
            context: context.clone(),
        };
        std::thread::Builder::new()
            .name("simulation".to_owned())
            .spawn(move || {
                let end = watcher.watch(errors, directory);
                let _ = sender.send(end);
                watcher.context.request_repaint();
            })
            .map_err(ChildProgramError::SimulationThread)?;
        Ok(Self { spec: spec.to_owned(), percent, cancelled, child, ended })
    }

    /// The completed share of the work, 0 to 1.
    pub(crate) fn progress(&self) -> f32 {
        self.percent.load(Ordering::Relaxed) as f32 / 100.0
    }

    /// The outcome, if the simulation has ended.
    pub(crate) fn ended(&self) -> Option<SimulationOutcome> {
        self.ended.try_recv().ok()
    }

    /// Kills the simulation.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = child.as_mut() {
            // It may have ended just now.
            let _ = child.kill();
        }
    }
}

impl Drop for SimulationProcess {
    fn drop(&mut self) {
        self.cancel();
    }
}

struct SimulationWatcher {
    percent: Arc<AtomicU64>,
    cancelled: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Child>>>,
    context: egui::Context,
}

impl SimulationWatcher {
    fn watch(&self, errors: Option<impl Read>, directory: PathBuf) -> SimulationOutcome {
        let mut words: Vec<String> = Vec::new();
        if let Some(errors) = errors {
            // Lossy: the last lines of a program need not be UTF-8.
            for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
                self.handle_stderr_line(
                    String::from_utf8_lossy(&line).trim().to_owned(),
                    &mut words,
                );
            }
        }
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        let status = child.map(|mut child| child.wait());
        if self.cancelled.load(Ordering::SeqCst) {
            return SimulationOutcome::Cancelled;
        }
        match status {
            Some(Ok(status)) if status.success() => SimulationOutcome::Done(directory),
            Some(Ok(status)) if words.is_empty() => SimulationOutcome::Failed(format!(
                "The simulator ended without an error message ({status})."
            )),
            _ => SimulationOutcome::Failed(words.join("\n")),
        }
    }

    fn handle_stderr_line(&self, line: String, words: &mut Vec<String>) {
        let percent = line.strip_prefix("progress ").and_then(|rest| rest.parse().ok());
        if let Some(percent) = percent {
            self.percent.store(percent, Ordering::Relaxed);
            self.context.request_repaint();
            return;
        }
        let said = match ProgramError::find(&line) {
            Some(error) => format!("error: {}", error.text),
            None => line,
        };
        for line in said.lines().filter(|line| !line.is_empty()) {
            words.push(line.to_owned());
            if words.len() > MAX_ERROR_LINES {
                words.remove(0);
            }
        }
    }
}

/// Opens another window of this program, on a report if one is given. The window is an independent
/// process.
///
/// # Errors
/// Returns an error if the process cannot be started.
pub(crate) fn new_window(place: Option<(&Path, &str)>) -> Result<(), ChildProgramError> {
    let mut program = program()?;
    // A person reads its errors.
    program.env_remove(ERRORS_VARIABLE);
    if let Some((report, link)) = place {
        program.arg(report).args(["--at", link]);
    }
    let child = program.stdin(Stdio::null()).spawn();
    let mut child = child.map_err(ChildProgramError::Window)?;
    // The ended process has to be reaped.
    let waiting = std::thread::Builder::new().name("window".to_owned());
    waiting.spawn(move || child.wait()).map(drop).map_err(ChildProgramError::WindowThread)
}

/// A bundled spec of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundledSpec {
    /// The heading that lists the spec.
    pub group: String,
    /// `mnist_pipeline`
    pub name: String,
    /// A description in one line.
    pub about: String,
}

/// Runs the program to list its bundled specs.
pub(crate) fn bundled_specs() -> Vec<BundledSpec> {
    let Ok(mut program) = program() else { return Vec::new() };
    let output = program.arg("specs").stdin(Stdio::null()).output();
    let Ok(output) = output.map_err(drop) else { return Vec::new() };
    let lines = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Vec::new();
    }
    parse_specs(&lines)
}

/// Parses the list that the program prints: headings, and below each of them indented names and
/// descriptions.
fn parse_specs(list: &str) -> Vec<BundledSpec> {
    let mut group = "";
    let mut specs = Vec::new();
    for line in list.lines() {
        match line.strip_prefix("  ").and_then(|entry| entry.split_once("  ")) {
            Some((name, about)) => specs.push(BundledSpec {
                group: group.to_owned(),
                name: name.trim().to_owned(),
                about: about.trim().to_owned(),
            }),
            None => group = line.trim(),
        }
    }
    specs
}

/// The program that simulates: this one, under any file name.
static SIMULATOR_EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Sets the running program as the simulator. Only the app calls this; the test runner must never
/// start itself.
///
/// # Errors
///
/// Returns an error if the system does not know the path of this program.
pub(crate) fn simulate_with_this_program() -> std::io::Result<()> {
    let path = std::env::current_exe()?;
    SIMULATOR_EXECUTABLE.get_or_init(|| path);
    Ok(())
}

/// Sets the program that simulates, if it is not the running one.
pub fn simulate_with(path: &Path) {
    SIMULATOR_EXECUTABLE.get_or_init(|| path.to_owned());
}

/// The command of the simulating program, without arguments.
pub(super) fn program() -> Result<Command, ChildProgramError> {
    let path = SIMULATOR_EXECUTABLE.get().ok_or(ChildProgramError::UnknownPath)?;
    let mut command = Command::new(path);
    command.env(ERRORS_VARIABLE, "json");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_lists_are_parsed_by_heading_name_and_description() {
        let specs =
            parse_specs("Examples\n  mnist_pipeline  MNIST, four stages\nMore\n  a   b  c\n");
        let spec = |group: &str, name: &str, about: &str| BundledSpec {
            group: group.to_owned(),
            name: name.to_owned(),
            about: about.to_owned(),
        };
        let mnist = spec("Examples", "mnist_pipeline", "MNIST, four stages");
        assert_eq!(specs, [mnist, spec("More", "a", "b  c")]);
        assert!(parse_specs("nothing").is_empty());
    }

    #[test]
    fn progress_lines_are_separated_from_errors() {
        let watcher = SimulationWatcher {
            percent: Arc::default(),
            cancelled: Arc::default(),
            child: Arc::default(),
            context: egui::Context::default(),
        };
        let errors = "progress 7\nwarning: a\nprogress 42\n\nerror: b\n";
        let end = watcher.watch(Some(errors.as_bytes()), PathBuf::from("out"));
        assert_eq!(watcher.percent.load(Ordering::Relaxed), 42);
        assert_eq!(end, SimulationOutcome::Failed("warning: a\nerror: b".to_owned()));
    }
}
