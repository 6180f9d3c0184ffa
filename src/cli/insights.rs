//! `insights`: what is worth doing about a program.

use super::{CliCommand, CliError, json_argument, open_report, report_argument};
use clap::ArgMatches;
use std::io::Write;
use tilescope_analysis::insights::{InsightSubject, insights};
use tilescope_report::units::NumberFormat;

/// `tilescope insights`
pub(super) const COMMAND: CliCommand = CliCommand { name: "insights", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("List what is worth improving in a program, most important first")
        .arg(report_argument())
        .arg(json_argument())
        .after_help("Examples:\n  tilescope insights out\n  tilescope insights out --json")
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let report = open_report(matches)?;
    let found = insights(&report, NumberFormat::default())
        .map_err(|error| CliError::Failed(error.to_string()))?;
    if matches.get_flag("json") {
        let text =
            serde_json::to_string_pretty(&found).map_err(|e| CliError::Failed(e.to_string()))?;
        writeln!(output, "{text}")?;
        return Ok(());
    }
    if found.is_empty() {
        writeln!(output, "No rule found anything to improve in this report.")?;
    }
    for (index, finding) in found.iter().enumerate() {
        let subject = match finding.subject {
            InsightSubject::Memory => "memory",
            InsightSubject::Time => "time",
        };
        writeln!(output, "{:2}. {}", index + 1, finding.sentence)?;
        writeln!(output, "    {}", finding.advice)?;
        writeln!(output, "    {subject}, gain {}; rule {}", finding.gain.text(), finding.rule)?;
    }
    Ok(())
}
