//! `verify`: checks a report against its own laws.

use super::{CliCommand, CliError, open_report, report_argument};
use clap::ArgMatches;
use std::io::Write;

/// `tilescope verify`
pub(super) const COMMAND: CliCommand = CliCommand { name: "verify", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Check that a report is consistent: sums add up, ids exist, steps do not overlap")
        .arg(report_argument())
        .after_help("Example:\n  tilescope verify out")
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let report = open_report(matches)?;
    let findings = report.verify().map_err(|error| CliError::Failed(error.to_string()))?;
    for finding in &findings {
        writeln!(output, "{}: {}", finding.law, finding.text)?;
    }
    if findings.is_empty() {
        writeln!(output, "{}: consistent", report.path().display())?;
        return Ok(());
    }
    let path = report.path().display();
    Err(CliError::Failed(format!("{} inconsistencies found: {path}", findings.len())))
}
