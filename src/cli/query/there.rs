//! A question to a report on another machine: `tilescope query` answers it there.

use super::{Asked, PARQUET, keep_report, write_file};
use crate::cli::{CliError, interrupt, stderr};
use clap::ArgMatches;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tilescope_report::remote::{RemoteAddress, RemoteCommandError, run_there};

/// Asks the report at an address, or for its tables.
pub(super) fn run(
    address: &RemoteAddress,
    question: Option<Asked>,
    format: &str,
    matches: &ArgMatches,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    if format == PARQUET {
        let problem = "is written where the report is; ask for csv or json, or run the command on";
        return Err(CliError::Usage(format!("--format parquet {problem} {}", address.host())));
    }
    let (asked, sql) = match &question {
        None => ("--tables", ""),
        Some(Asked::Ready(ready)) => (ready.name, ""),
        // Not as a word, which has to be shorter.
        Some(Asked::Sql(sql)) => ("-", sql.as_str()),
    };
    let mut words = vec!["query", address.path(), asked];
    let limit = matches.get_one::<Duration>("timeout").map(|limit| limit.as_secs_f64().to_string());
    if question.is_some() {
        words.extend(["--format", format]);
        words.extend(limit.iter().flat_map(|limit| ["--timeout", limit]));
    }
    let file = matches.get_one::<PathBuf>("output").filter(|_| question.is_some());
    let Some(file) = file else { return answer(address, &words, sql, output) };
    keep_report(Path::new(address.path()), file)?;
    interrupt::watch();
    write_file(file, |written| answer(address, &words, sql, written))?;
    Ok(writeln!(output, "{}", file.display())?)
}

fn answer(
    address: &RemoteAddress,
    words: &[&str],
    sql: &str,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let said = run_there(address, words, sql, output, &interrupt::flag()).map_err(failure)?;
    Ok(write!(stderr(), "{said}")?)
}

/// The error that the command had there, with the same exit code.
fn failure(error: RemoteCommandError) -> CliError {
    match error {
        RemoteCommandError::Ended { code, said } => {
            // Warnings come before it.
            let at = if said.starts_with("error: ") { Some(0) } else { said.find("\nerror: ") };
            let (before, problem) = said.split_at(at.unwrap_or(0));
            let _ = write!(stderr(), "{}", before.trim_start());
            let problem = problem.trim().trim_start_matches("error: ").to_owned();
            if code == 2 { CliError::Usage(problem) } else { CliError::Failed(problem) }
        }
        RemoteCommandError::Output(error) => CliError::Output(error),
        error => CliError::Failed(error.to_string()),
    }
}
