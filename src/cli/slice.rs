//! `slice`: writes a part of a run as a smaller report.

use super::command::{CliCommand, CliError, open_report, report_argument};
use super::progress::ProgressReporter;
use super::{interrupt, selection};
use crate::cli::error::UsageError;
use clap::{Arg, ArgMatches};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_report::SliceSelection;

/// `tilescope slice`
pub(super) const COMMAND: CliCommand = CliCommand { name: "slice", arguments, run };

const AFTER_HELP: &str = "\
The slice has the whole compiled program, and the complete steps that share a cycle with A..B. Its \
cycles count from the first of these steps; a note records the original cycle. Marks are cut to its \
steps. A slice that cuts a host call has no figures of samples.

Examples:
  tilescope slice out --range 1000000..2000000 -o part
  tilescope slice out --range 0..500000 --ipus 0,2..4 -o part
  tilescope verify part";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Cut a part of a run out of a report, as a smaller report")
        .arg(report_argument())
        .arg(selection::range_argument().required(true))
        .arg(selection::ipus_argument())
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("DIR")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Directory for the slice"),
        )
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let report = open_report(matches)?;
    let directory = matches.get_one::<PathBuf>("output").map_or(Path::new(""), PathBuf::as_path);
    keep_original(report.path(), directory)?;
    interrupt::watch();
    report.prepare_trace(&mut |_| {}, &interrupt::flag())?;
    let target = report.target()?;
    let ipus = selection::ipus(matches, &target)?;
    let window = selection::window(matches, &report)?.unwrap_or_default();
    let progress = ProgressReporter::new("slicing");
    let selection = SliceSelection { window, ipus };
    let written = report.write_slice(
        &selection,
        directory,
        &mut |share| progress.at(share),
        &interrupt::flag(),
    );
    Ok(writeln!(output, "{}", written?.display())?)
}

/// Refuses to replace the report that the slice is cut from.
fn keep_original(report: &Path, directory: &Path) -> Result<(), CliError> {
    let target = directory.join(tilescope_report::REPORT_FILE).canonicalize().ok();
    if target.is_some() && target == report.canonicalize().ok() {
        let is = "is the report to slice; choose another directory";
        return Err(UsageError::WrongFile { file: directory.to_owned(), is }.into());
    }
    Ok(())
}
