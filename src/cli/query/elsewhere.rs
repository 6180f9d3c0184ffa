//! Queries a report on another machine: `tilescope query` answers there.

use super::{Asked, write_file};
use crate::cli::command::CliError;
use crate::cli::error::JobError;
use crate::cli::interrupt;
use crate::cli::output_file;
use crate::cli::there::answer;
use clap::ArgMatches;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tilescope_report::remote::RemoteAddress;

/// Queries the report at an address, or lists its tables. Returns false if the machine has no
/// tilescope.
pub(super) fn ask(
    address: &RemoteAddress,
    question: Option<&Asked>,
    format: &str,
    matches: &ArgMatches,
    output: &mut dyn Write,
) -> Result<bool, CliError> {
    let (asked, sql) = match question {
        None => ("--tables", ""),
        Some(Asked::Ready(ready)) => (ready.name, ""),
        // Not as an argument, whose length is limited.
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
    output_file::check(file, std::iter::once(Path::new(address.path())))?;
    interrupt::watch();
    let mut has_program = true;
    let written = write_file(file, |written| {
        has_program = answer(address, &words, sql, written)?;
        // An error leaves an existing file unchanged.
        if has_program { Ok(()) } else { Err(JobError::Nothing("").into()) }
    });
    if !has_program {
        return Ok(false);
    }
    written?;
    writeln!(output, "{}", file.display())?;
    Ok(true)
}
