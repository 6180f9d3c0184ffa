//! Searches in a child process of this program: `tilescope tune` and `tilescope sweep`. They end
//! with the window; finished points stay in a file of results.

use crate::shell::child_program::{read_answer, wait_or_kill};
use crate::shell::simulation_process::{ChildProgramError, PROGRESS_VARIABLE, program};
use crate::shell::spec_queries::write_spec;
use crate::views::what_if::search::form::SearchKind;
use crate::views::what_if::search::found::{FoundPoints, SearchAnswer};
use crate::views::what_if::search::{SearchOutcome, SearchProgress, SearchQuestion};
use crate::views::what_if::spec_keys::{Cancelled, said_problem};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use tilescope_experiments::answers::SweepAnswer;

/// Makes the child end when its standard input closes, and so with this window.
const PARENT_VARIABLE: &str = "TILESCOPE_ENDS_WITH_INPUT";

/// The prefix of lines with intermediate results.
const FOUND: &str = "found ";

/// Runs a search, or reads a file of results.
pub(crate) fn search(
    question: &SearchQuestion,
    progress: &SearchProgress,
    cancelled: &Cancelled,
) -> SearchOutcome {
    let kind = match question {
        SearchQuestion::Read(_) => SearchKind::Sweep,
        SearchQuestion::Search { form, .. } => form.kind,
    };
    let forward = |line: ChildLine<'_>| match line {
        ChildLine::Progress(percent) => progress.at(percent),
        ChildLine::Found(answer) => {
            // An unreadable line is ignored here; the error appears at the end.
            if let Ok(answer) = parsed(kind, answer.as_bytes()) {
                progress.found(answer);
            }
        }
    };
    let said = command(question).and_then(|command| run(command, &forward, cancelled));
    match said {
        Ok((output, problem)) => {
            // Points that met no condition are reported too.
            let found = parsed(kind, &output).ok();
            let unreadable = "The simulator's answer cannot be read.";
            let problem = match (&found, problem) {
                (None, None) => Some(unreadable.to_owned()),
                (_, problem) => problem,
            };
            SearchOutcome { found: found.map(FoundPoints::new), problem }
        }
        Err(error) => {
            SearchOutcome { problem: Some(error.to_string()), ..SearchOutcome::default() }
        }
    }
}

/// The command line of the child. Writes the spec that it reads.
fn command(question: &SearchQuestion) -> Result<Command, ChildProgramError> {
    let mut command = program()?;
    match question {
        SearchQuestion::Read(file) => {
            // A name may begin like an option.
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            command.args(["sweep", "--format", "json", "--merge"]).arg(file);
        }
        SearchQuestion::Search { form, spec } => {
            let place = &spec.place;
            let file = place.with_extension("toml");
            let results = place.with_extension("db");
            let directory = place.parent().unwrap_or(Path::new(""));
            std::fs::create_dir_all(directory)
                .map_err(|error| ChildProgramError::spec(error, &file))?;
            write_spec(&file, &spec.text)?;
            let name = match form.kind {
                SearchKind::Sweep => "sweep",
                SearchKind::Guided => "tune",
            };
            command.arg(name).arg(file).args(form.arguments()).arg("--results").arg(results);
        }
    }
    Ok(command)
}

/// A line of a running child that is not a message for users.
pub(super) enum ChildLine<'a> {
    /// The completed share in percent.
    Progress(u64),
    /// Intermediate results as JSON.
    Found(&'a str),
}

/// Runs the child to its end, or kills it once it is cancelled. Returns its output and, after a
/// failure, its last lines on stderr.
///
/// # Errors
/// Returns an error if the child cannot be started or its output cannot be read.
pub(super) fn run(
    mut command: Command,
    forward: &(dyn Fn(ChildLine<'_>) + Sync),
    cancelled: &Cancelled,
) -> Result<(Vec<u8>, Option<String>), ChildProgramError> {
    command.env(PROGRESS_VARIABLE, "1").env(PARENT_VARIABLE, "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(ChildProgramError::SimulationProcess)?;
    // Closed when this function ends, also if the window is killed.
    let _held = child.stdin.take();
    let output = child.stdout.take();
    let errors = child.stderr.take();
    let ended = std::thread::scope(|scope| {
        let output = scope.spawn(move || read_answer(output));
        let errors = scope.spawn(move || forward_lines(errors, forward));
        let status = wait_or_kill(&mut child, cancelled)?;
        let output = output.join().map_err(lost_answer)??;
        let words = errors.join().map_err(lost_answer)?;
        let failed = match (status.success(), words) {
            (true, _) => None,
            (false, words) if words.is_empty() => Some(format!("The search ended with {status}.")),
            (false, words) => Some(words),
        };
        Ok((output, failed))
    });
    ended.map_err(ChildProgramError::Question)
}

fn lost_answer(_: Box<dyn std::any::Any + Send>) -> io::Error {
    io::Error::other("reading the answer failed")
}

/// Forwards intermediate results while the child runs. Returns the other lines of its stderr.
fn forward_lines(errors: Option<impl Read>, forward: &dyn Fn(ChildLine<'_>)) -> String {
    let mut words: Vec<String> = Vec::new();
    let Some(errors) = errors else { return String::new() };
    // Lossy: the last lines of a program need not be UTF-8.
    for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let percent = line.strip_prefix("progress ").and_then(|rest| rest.trim().parse().ok());
        if let Some(percent) = percent {
            forward(ChildLine::Progress(percent));
        } else if let Some(answer) = line.strip_prefix(FOUND) {
            forward(ChildLine::Found(answer));
        } else if !line.trim().is_empty() {
            words.push(line.trim_end().to_owned());
        }
    }
    said_problem(&words.join("\n"))
}

fn parsed(kind: SearchKind, text: &[u8]) -> Result<SearchAnswer, serde_json::Error> {
    match kind {
        SearchKind::Sweep => serde_json::from_slice::<SweepAnswer>(text).map(SearchAnswer::of_file),
        SearchKind::Guided => serde_json::from_slice(text).map(SearchAnswer::tune),
    }
}
