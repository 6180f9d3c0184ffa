//! Queries to the simulator about specs and models, each through a child process.

use crate::shell::child_program::{read_answer, wait_or_kill};
use crate::shell::search_process::{ChildLine, run, search};
use crate::shell::simulation_process::{ChildProgramError, program};
use crate::views::insights::proof::ProofProgress;
use crate::views::what_if::measured::{MeasuredPrediction, MeasuredQuestion};
use crate::views::what_if::model_file::{ModelFile, ModelQuestion};
use crate::views::what_if::spec_keys::{
    Cancelled, CheckedSpec, SpecKeyInfo, SpecProblem, SpecQueries, problem, said_problem,
};
use crate::views::what_if::spec_text::with_whole_path;
use crate::widgets::background_query::BackgroundQueryError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tilescope_analysis::insights::TriedFinding;
use tilescope_experiments::answers::SensitivityAnswer;
use tilescope_report::text_file::read_text;
use tilescope_report::units::Bytes;

/// The largest spec file that is read.
const MAX_SPEC_BYTES: Bytes = Bytes(1 << 20);

/// The queries that this program answers.
pub(crate) const SPEC_QUERIES: SpecQueries = SpecQueries {
    keys: || load_spec_keys().map_err(BackgroundQueryError::failed),
    check: |directory, text, cancelled| {
        check_text(directory, text, cancelled).map_err(BackgroundQueryError::failed)
    },
    model: |question, cancelled| {
        ask_model(question, cancelled).map_err(BackgroundQueryError::failed)
    },
    sensitivity: |directory, text, cancelled| {
        ask_sensitivity(directory, text, cancelled).map_err(BackgroundQueryError::failed)
    },
    spec: |name, cancelled| spec_text(name, cancelled).map_err(BackgroundQueryError::failed),
    predict: |directory, question, cancelled| {
        ask_prediction(directory, question, cancelled).map_err(BackgroundQueryError::failed)
    },
    search,
    prove: |report, progress, cancelled| {
        prove(report, progress, cancelled).map_err(BackgroundQueryError::failed)
    },
};

/// Lists every key that specs may have.
///
/// # Errors
/// Returns an error if the program cannot be run or its answer cannot be read.
fn load_spec_keys() -> Result<Vec<SpecKeyInfo>, ChildProgramError> {
    let mut question = program()?;
    question.args(["specs", "--keys", "--json"]);
    answer(question, &Cancelled::default())?.parsed()
}

/// Describes the contents of an ONNX file, with sizes for its dimensions.
///
/// # Errors
/// Returns an error if the program cannot be run, or if the file or the sizes are invalid.
fn ask_model(
    question: &ModelQuestion,
    cancelled: &Cancelled,
) -> Result<ModelFile, ChildProgramError> {
    let mut asked = program()?;
    asked.args(["onnx", "--json", "--no-fit"]);
    for (key, value) in &question.sizes {
        asked.args(["--set", &format!("{key}={value}")]);
    }
    // A name may begin like an option.
    asked.arg("--").arg(&question.file);
    answer(asked, cancelled)?.parsed().map_err(|error| error.about(&question.file))
}

/// Checks the text of a spec. The text is written to its own file in a directory.
///
/// # Errors
/// Returns an error if the file cannot be written or the simulator cannot be run.
fn check_text(
    directory: &Path,
    text: &str,
    cancelled: &Cancelled,
) -> Result<CheckedSpec, ChildProgramError> {
    with_spec_file(directory, text, |file| check_spec(file, cancelled))
}

/// Estimates a spec on other machines.
///
/// # Errors
/// Returns an error if the file cannot be written, the simulator cannot be run or its answer cannot
/// be read.
fn ask_sensitivity(
    directory: &Path,
    text: &str,
    cancelled: &Cancelled,
) -> Result<SensitivityAnswer, ChildProgramError> {
    with_spec_file(directory, text, |file| {
        let mut question = program()?;
        question.args(["sensitivity", "--json"]).arg(file);
        answer(question, cancelled)?.parsed_about(file)
    })
}

/// The text of a spec file, with the path of its model made absolute, or of a bundled spec.
///
/// # Errors
/// Returns an error if the file cannot be read or there is no such spec.
fn spec_text(name: &str, cancelled: &Cancelled) -> Result<String, ChildProgramError> {
    let path = Path::new(name);
    if path.is_file() {
        let text = read_text(path, MAX_SPEC_BYTES)
            .map_err(|error| ChildProgramError::Refused(format!("{error}: {name}")))?;
        let directory = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return Ok(with_whole_path(&text, directory.parent().unwrap_or(path)));
    }
    let mut question = program()?;
    question.args(["specs", "--", name]);
    let answer = answer(question, cancelled)?;
    match answer.refusal(path) {
        Some(problem) => Err(ChildProgramError::Refused(problem.message)),
        None => Ok(String::from_utf8_lossy(&answer.output).into_owned()),
    }
}

/// Predicts the effect of a spec change on a measured run.
///
/// # Errors
/// Returns an error if the files cannot be written, the simulator cannot be run or its answer
/// cannot be read.
fn ask_prediction(
    directory: &Path,
    question: &MeasuredQuestion,
    cancelled: &Cancelled,
) -> Result<MeasuredPrediction, ChildProgramError> {
    with_spec_file(directory, &question.ran, |ran| {
        with_spec_file(directory, &question.changed, |changed| {
            let mut asked = program()?;
            asked.args(["calibrate", "--json", "--limit", "0", "--changed"]).arg(changed);
            // A name may begin like an option.
            asked.arg("--").arg(&question.report).arg(ran);
            let answer = answer(asked, cancelled)?;
            match answer.refusal_naming(ran, "The spec of the measured program") {
                Some(problem) => Err(ChildProgramError::Refused(problem)),
                None => answer.parsed_about(changed),
            }
        })
    })
}

/// Simulates the proposals of insights into a report.
///
/// # Errors
/// Returns an error if the program cannot be run, the spec of the report cannot be simulated or the
/// answer cannot be read.
fn prove(
    report: &Path,
    progress: &ProofProgress,
    cancelled: &Cancelled,
) -> Result<Vec<TriedFinding>, ChildProgramError> {
    /// A finding. Findings that were not tried have only a name.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum FindingAnswer {
        Tried(TriedFinding),
        Other {},
    }
    let mut question = program()?;
    question.args(["insights", "--prove", "--json", "--"]).arg(report);
    let tell = |line: ChildLine<'_>| {
        if let ChildLine::Found(text) = line
            && let Ok(trials) = serde_json::from_str(text)
        {
            progress.set(trials);
        }
    };
    let (output, problem) = run(question, &tell, cancelled)?;
    if let Some(problem) = problem {
        return Err(ChildProgramError::Refused(problem));
    }
    let found: Vec<FindingAnswer> =
        serde_json::from_slice(&output).map_err(ChildProgramError::Answer)?;
    let tried = found.into_iter().filter_map(|finding| match finding {
        FindingAnswer::Tried(tried) => Some(tried),
        FindingAnswer::Other {} => None,
    });
    Ok(tried.collect())
}

/// Writes text to a file for the duration of a query.
///
/// # Errors
/// Returns an error if the file cannot be written, or the error of the query.
fn with_spec_file<T>(
    directory: &Path,
    text: &str,
    ask: impl FnOnce(&Path) -> Result<T, ChildProgramError>,
) -> Result<T, ChildProgramError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // A concurrent query about another text or report has its own file.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = directory.join(format!("question-{number}.toml"));
    write_spec(&file, text)?;
    let answer = ask(&file);
    // The session removes the directory, and this file with it.
    let _ = std::fs::remove_file(&file);
    answer
}

/// Checks the spec in a file with the simulator.
///
/// # Errors
/// Returns an error if the simulator cannot be run.
fn check_spec(file: &Path, cancelled: &Cancelled) -> Result<CheckedSpec, ChildProgramError> {
    let mut question = program()?;
    question.arg("simulate").arg(file).args(["--check", "--json"]);
    let answer = answer(question, cancelled)?;
    match answer.refusal(file) {
        Some(problem) => Ok(CheckedSpec::Refused(problem)),
        None => answer.parsed().map(CheckedSpec::Compiled),
    }
}

/// The output of a child, and its exit status.
struct ChildAnswer {
    status: ExitStatus,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl ChildAnswer {
    /// The problem of a spec for which the child gave no answer.
    fn refusal(&self, file: &Path) -> Option<SpecProblem> {
        if self.status.success() {
            return None;
        }
        Some(problem(&String::from_utf8_lossy(&self.errors), file))
    }

    /// The problem of a spec that is not the one in the panel, if the child names its file.
    fn refusal_naming(&self, file: &Path, title: &str) -> Option<String> {
        let is_named = String::from_utf8_lossy(&self.errors).contains(&*file.to_string_lossy());
        let SpecProblem { line, message } = self.refusal(file).filter(|_| is_named)?;
        let place = line.map_or_else(String::new, |line| format!(", line {line}"));
        Some(format!("{title}{place}: {message}"))
    }

    /// Parses the output as JSON. Errors omit the path of the spec file.
    fn parsed_about<T: DeserializeOwned>(self, file: &Path) -> Result<T, ChildProgramError> {
        match self.refusal(file) {
            Some(problem) => Err(ChildProgramError::Refused(problem.message)),
            None => self.parsed(),
        }
    }

    /// Parses the output as JSON.
    fn parsed<T: DeserializeOwned>(self) -> Result<T, ChildProgramError> {
        if !self.status.success() {
            let said = String::from_utf8_lossy(&self.errors);
            return Err(ChildProgramError::Refused(said_problem(&said)));
        }
        serde_json::from_slice(&self.output).map_err(ChildProgramError::Answer)
    }
}

/// Runs a child to its end, or kills it once it is cancelled.
fn answer(mut question: Command, cancelled: &Cancelled) -> Result<ChildAnswer, ChildProgramError> {
    question.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = question.spawn().map_err(ChildProgramError::Question)?;
    let output = child.stdout.take();
    let errors = child.stderr.take();
    // Both pipes are read while the child runs, because it waits if one is full.
    let answer = std::thread::scope(|scope| {
        let output = scope.spawn(move || read_answer(output));
        let errors = scope.spawn(move || read_answer(errors));
        let status = wait_or_kill(&mut child, cancelled)?;
        Ok(ChildAnswer { status, output: join_reader(output)?, errors: join_reader(errors)? })
    });
    answer.map_err(ChildProgramError::Question)
}

fn join_reader(
    thread: std::thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>,
) -> io::Result<Vec<u8>> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("reading the answer failed")))
}

/// Writes a spec to a file.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(crate) fn write_spec(path: &Path, text: &str) -> Result<(), ChildProgramError> {
    std::fs::write(path, text).map_err(|error| ChildProgramError::spec(error, path))
}
