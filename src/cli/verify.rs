//! `verify`: checks the invariants of a report.

use super::command::{CliCommand, CliError, json_argument, open_report, report_argument};
use super::progress::ProgressReporter;
use crate::cli::error::JobError;
use clap::ArgMatches;
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use tilescope_report::{InvariantViolation, Report};

/// `tilescope verify`
pub(super) const COMMAND: CliCommand = CliCommand { name: "verify", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Check that a report is consistent: sums add up, ids exist, steps do not overlap")
        .arg(report_argument())
        .arg(json_argument())
        .after_help("Examples:\n  tilescope verify out\n  tilescope verify out --json")
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let report = open_report(matches)?;
    let progress = ProgressReporter::new("verifying");
    let findings = report.verify_with(&mut |share| progress.at(share), &Arc::default());
    let findings = findings?;
    let path = report.path().display();
    if matches.get_flag("json") {
        print_json(&report, &findings, output)?;
    } else {
        for finding in &findings {
            writeln!(output, "{}: {}", finding.law, finding.text)?;
        }
        if findings.is_empty() {
            writeln!(output, "{path}: consistent")?;
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(JobError::Inconsistent { count: findings.len(), report: report.path().to_owned() }.into())
}

fn print_json(
    report: &Report,
    findings: &[InvariantViolation],
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let all = json!({
        "report": report.path().to_string_lossy(),
        "consistent": findings.is_empty(),
        "findings": findings.iter().map(|found| json!({ "law": found.law, "text": found.text })).collect::<Vec<_>>(),
    });
    super::command::print_json(&all, output)
}
