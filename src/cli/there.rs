//! Runs commands that print text about a report on another machine: tilescope runs there, if it is
//! installed, and its text is copied instead of the report.

use super::command::{CliError, REMOTE_PROGRAM};
use super::interrupt;
use super::plain_output::stderr;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use tilescope_report::remote::{RemoteAddress, RemoteCommandError, run_there};

/// Commands that print text about one report and write no file.
const COMMANDS: [&str; 5] = ["summary", "why", "insights", "find", "verify"];

/// Options that keep a command on this machine: `insights --prove` simulates here.
const LOCAL_OPTIONS: [&str; 2] = ["--prove", "--jobs"];

/// Runs a command on the machine of its report, with the given arguments, the program's name first.
/// Returns false if the command must run here: it is another command, its report is local, or the
/// other machine has no tilescope.
pub(super) fn run(given: &[OsString], output: &mut dyn Write) -> Result<bool, CliError> {
    let Some(given) = given.iter().skip(1).map(|word| word.to_str()).collect::<Option<Vec<_>>>()
    else {
        return Ok(false);
    };
    let is_text = given.first().is_some_and(|command| COMMANDS.contains(command));
    let is_local = |word: &&str| LOCAL_OPTIONS.iter().any(|option| word.starts_with(option));
    if !is_text || given.iter().any(is_local) {
        return Ok(false);
    }
    let mut words = Vec::new();
    let mut address = None;
    let mut rest = given.iter().copied();
    while let Some(word) = rest.next() {
        match RemoteAddress::of_path(Path::new(word)) {
            Ok(Some(found)) if address.is_none() => {
                words.push(found.path().to_owned());
                address = Some(found);
            }
            // The command itself reports errors in its arguments.
            Ok(Some(_)) | Err(_) => return Ok(false),
            Ok(None) => {
                match word.strip_prefix("--").and_then(|of| of.strip_prefix(REMOTE_PROGRAM)) {
                    // The path of the remote program is the next word, and not an argument of it.
                    Some("") => drop(rest.next()),
                    Some(_) => {}
                    None => words.push(word.to_owned()),
                }
            }
        }
    }
    let Some(address) = address else { return Ok(false) };
    interrupt::watch();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    answer(&address, &words, "", output)
}

/// Runs tilescope with these arguments on the machine of a report, and writes its answer. Returns
/// false if the machine has no tilescope.
pub(super) fn answer(
    address: &RemoteAddress,
    words: &[&str],
    sql: &str,
    output: &mut dyn Write,
) -> Result<bool, CliError> {
    match run_there(address, words, sql, output, &interrupt::flag()) {
        Ok(said) => write!(stderr(), "{said}")?,
        // The report is copied and queried here.
        Err(RemoteCommandError::NoProgram(_)) => return Ok(false),
        Err(error) => return Err(failure(error)),
    }
    Ok(true)
}

/// The error of the remote command, with the same exit code.
fn failure(error: RemoteCommandError) -> CliError {
    match error {
        RemoteCommandError::Ended { code, said } => {
            // Warnings precede it.
            let at = if said.starts_with("error: ") { Some(0) } else { said.find("\nerror: ") };
            let (before, problem) = said.split_at(at.unwrap_or(0));
            let _ = write!(stderr(), "{}", before.trim_start());
            let problem = problem.trim().trim_start_matches("error: ").to_owned();
            let code = u8::try_from(code).ok().filter(|code| matches!(code, 2 | 3)).unwrap_or(1);
            CliError::There { code, problem }
        }
        RemoteCommandError::Output(error) => CliError::Output(error),
        error => CliError::Remote(error),
    }
}
