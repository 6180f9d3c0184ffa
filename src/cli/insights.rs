//! `insights`: proposes improvements of a program, and tries them.

use super::command::{CliCommand, CliError, json_argument, path_of};
use super::output_file;
use super::plain_output::stderr;
use super::progress::{FoundReporter, ProgressReporter};
use super::report_or_spec::open_or_simulate;
use super::simulate;
use crate::cli::error::UsageError;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::io::Write;
use std::num::NonZeroUsize;
use tilescope_analysis::insights::{
    InsightFinding, InsightSubject, InsightVerdict, TRIED_FILE, TrialsSoFar, TriedFindings,
    insights, insights_with_tried,
};
use tilescope_experiments::strategies::proposals::{ProofRequest, prove};
use tilescope_experiments::trial::end_with_parent;
use tilescope_report::Report;
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_report::units::NumberFormat;

/// `tilescope insights`
pub(super) const COMMAND: CliCommand = CliCommand { name: "insights", arguments, run };

const AFTER_HELP: &str = "\
Gains are upper bounds. A gain of time is what a change removes from the critical path and from the
IPU that works longest; a gain of memory is what it removes from the fullest tiles. --prove
simulates the spec of the report without changes, with each proposal, and with the best three
combined. It prints the measured gain of each, and whether a program that does not fit in memory
then fits. Proposals without a gain are listed at the end. Results are saved beside the report, in
tilescope-tried.json, and shown from then on.

Examples:
  tilescope insights out
  tilescope insights out --prove
  tilescope insights mnist_pipeline --prove --json";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("List possible improvements of a program, most important first")
        .arg(
            Arg::new("report")
                .value_name("REPORT|SPEC")
                .value_parser(value_parser!(std::path::PathBuf))
                .required(true)
                .help("Report: a directory that contains profile.pop, or a .pop file; or a spec, which is simulated first"),
        )
        .arg(
            Arg::new("prove")
                .long("prove")
                .action(ArgAction::SetTrue)
                .help("Simulate each proposal, and print its measured gain"),
        )
        .arg(
            Arg::new("jobs")
                .long("jobs")
                .value_name("N")
                .value_parser(value_parser!(NonZeroUsize))
                .requires("prove")
                .help("Number of parallel simulations (default: one per core)"),
        )
        .arg(simulate::set_argument())
        .arg(json_argument())
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    end_with_parent();
    let directory = TemporaryDirectory::new()?;
    let overrides = simulate::overrides(matches);
    let simulated = directory.path().join("report");
    let report = open_or_simulate(path_of(matches, "report"), &overrides, &simulated)?;
    let found = if matches.get_flag("prove") {
        let spec = report.spec().ok_or(UsageError::NoSpec)?;
        let jobs = matches.get_one::<NonZeroUsize>("jobs").copied();
        let found = insights(&report, NumberFormat::default())?;
        let reporter = ProgressReporter::new("testing proposals");
        let progress = &|share| reporter.at(share);
        let so_far = FoundReporter::new();
        let tried = &|found: &[InsightFinding]| so_far.tell(|| TrialsSoFar::of(found));
        let request = ProofRequest { spec, directory: directory.path(), jobs, progress, tried };
        let found = prove(found, &request)?;
        drop(reporter);
        if !report.path().starts_with(directory.path()) {
            keep(&report, &TriedFindings::of(spec, &found));
        }
        found
    } else {
        let numbers = NumberFormat::default();
        let (found, problem) = insights_with_tried(&report, numbers)?;
        if let Some(problem) = problem {
            let _ = writeln!(stderr(), "warning: earlier test results cannot be read: {problem}");
        }
        found
    };
    if matches.get_flag("json") {
        return super::command::print_json(&found, output);
    }
    print(&found, &InsightVerdict::read(&report, NumberFormat::default())?, output)
}

/// Saves the tried proposals beside the report. If that is not possible, the results are still
/// printed.
fn keep(report: &Report, tried: &TriedFindings) {
    let path = report.path().with_file_name(TRIED_FILE);
    let text = serde_json::to_string_pretty(tried).map_err(|error| error.to_string());
    let kept = text.and_then(|text| {
        output_file::write(&path, text.as_bytes()).map_err(|error| error.to_string())
    });
    if let Err(problem) = kept {
        let _ = writeln!(stderr(), "warning: test results are not saved: {problem}");
    }
}

fn print(
    found: &[InsightFinding],
    verdict: &InsightVerdict,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    writeln!(output, "{}\n", verdict.lead)?;
    if found.is_empty() {
        writeln!(output, "No rule found anything to improve in this report.")?;
    }
    let (folded, shown): (Vec<_>, Vec<_>) = found.iter().partition(|finding| finding.had_no_gain());
    let is_aside = |finding: &InsightFinding| finding.subject != verdict.first;
    let mut was_aside = false;
    for (number, finding) in (1..).zip(shown) {
        if is_aside(finding) && !was_aside {
            was_aside = true;
            writeln!(output, "\n{}", verdict.aside_title())?;
        }
        print_finding(number, finding, output)?;
    }
    if !folded.is_empty() {
        writeln!(output, "\nTested, no gain")?;
    }
    for finding in folded {
        let proposal = finding.proposal.as_ref().map(|of| of.text()).unwrap_or_default();
        let tried = finding.measured.as_ref().map(|of| of.text(finding.subject));
        let tried = tried.unwrap_or_default();
        writeln!(output, "    {}: {proposal}; {tried}", finding.rule)?;
    }
    Ok(())
}

fn print_finding(
    number: usize,
    finding: &InsightFinding,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let subject = match finding.subject {
        InsightSubject::Memory => "memory",
        InsightSubject::Time => "time",
    };
    writeln!(output, "{number:2}. {}", finding.sentence)?;
    writeln!(output, "    {}", finding.advice)?;
    if let Some(proposal) = &finding.proposal {
        writeln!(output, "    {}", proposal.text())?;
        writeln!(output, "    cost: {}", proposal.cost)?;
    }
    writeln!(output, "    {subject}, gain {}; rule {}", finding.gain_text(), finding.rule)?;
    if let Some(tried) = &finding.measured {
        writeln!(output, "    {}", tried.text(finding.subject))?;
    }
    Ok(())
}
