//! `report`: writes a report, or a comparison of two, as one HTML page to send or to keep beside a
//! job.

use super::command::{CliCommand, CliError, path_of};
use super::compare;
use super::gates::{self, CheckedGates};
use super::output_file;
use super::report_or_spec::open_or_simulate;
use clap::{Arg, ArgMatches, value_parser};
use std::io::Write;
use std::path::PathBuf;
use tilescope_analysis::compare::{ComparedReports, ReportAlignment};
use tilescope_html::{ComparedPage, PageReport, page};
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_report::units::NumberFormat;

/// `tilescope report`
pub(super) const COMMAND: CliCommand = CliCommand { name: "report", arguments, run };

const AFTER_HELP: &str = "\
The page is one self-contained file that can be sent, archived, and attached to a job. It has the
summary, insights (with measured gains if `tilescope insights REPORT --prove` ran before), execution
trace, critical path, limits, memory, liveness and operations. Sections without data say so. With a
second report, the page begins with the changes; the rest describes the second report.

Examples:
  tilescope report out -o report.html
  tilescope report bert_base_pod16 -o bert.html
  tilescope report before after -o changes.html
  tilescope report baseline.pop out -o changes.html --fail-if 'execution.total_cycles > +2%'";

fn arguments(command: clap::Command) -> clap::Command {
    let make_argument = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
    };
    // A page shows gates itself; `--junit` belongs to `compare`.
    let gates = gates::arguments().into_iter().filter(|gate| gate.get_id() != "junit");
    command
        .about("Write a report, or two compared, as one self-contained HTML page")
        .arg(make_argument("report", "REPORT|SPEC", "Report: a directory that contains profile.pop, or a .pop file; or a spec, which is simulated first").required(true))
        .arg(make_argument("target", "TARGET", "Second report or spec: the page compares it with \
                                                the first"))
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE.html")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("File to write"),
        )
        .arg(compare::unit_argument().requires("target"))
        .args(gates.map(|gate| gate.requires("target")))
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let file = path_of(matches, "output");
    let inputs = ["report", "target"].map(|name| matches.get_one::<PathBuf>(name));
    output_file::check(file, inputs.into_iter().flatten().map(PathBuf::as_path))?;
    let gates = gates::asked(matches)?;
    let directory = TemporaryDirectory::new()?;
    let open_side =
        |side| open_or_simulate(path_of(matches, side), &[], &directory.path().join(side));
    let first = open_side("report")?;
    let get_name = |side| path_of(matches, side).display().to_string();
    if matches.get_one::<PathBuf>("target").is_none() {
        let name = get_name("report");
        let page = page(PageReport { report: &first, name: &name }, None)?;
        output_file::write(file, page.as_bytes())?;
        return Ok(writeln!(output, "{}", file.display())?);
    }
    let second = open_side("target")?;
    let source = get_name("report");
    let target = get_name("target");
    let alignment = ReportAlignment::without_links(&first, &second)?;
    let sides = ComparedReports {
        source: &first,
        target: &second,
        alignment: &alignment,
        numbers: NumberFormat::default(),
        unit: compare::unit_of(matches),
    };
    let normalization = sides.normalization()?;
    let gates = CheckedGates::of(gates, (&first, &second), &normalization)?;
    let checked: Vec<(String, Option<String>)> = gates
        .each()
        .map(|(gate, violation)| (gate.to_owned(), violation.map(|of| of.sentence.clone())))
        .collect();
    let compared = ComparedPage { sides, source: &source, gates: &checked };
    let of = PageReport { report: &second, name: &target };
    output_file::write(file, page(of, Some(compared))?.as_bytes())?;
    writeln!(output, "{}", file.display())?;
    gates.conclude()
}
