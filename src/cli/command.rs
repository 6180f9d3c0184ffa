//! The common parts of commands: their declaration, and shared arguments.

pub(crate) use super::error::CliError;
use super::plain_output::stderr;
use clap::{Arg, ArgAction, ArgMatches};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A command of the program.
pub(crate) struct CliCommand {
    /// Name typed by the user.
    pub name: &'static str,
    /// Adds arguments and help.
    pub arguments: fn(clap::Command) -> clap::Command,
    /// Runs the command.
    pub run: fn(&ArgMatches, &mut dyn Write) -> Result<(), CliError>,
}

/// The option with the name of tilescope on the machine of a report.
pub(super) const REMOTE_PROGRAM: &str = "remote-program";

/// The argument that names a report.
pub(super) fn report_argument() -> Arg {
    Arg::new("report")
        .value_name("REPORT")
        .value_parser(clap::value_parser!(PathBuf))
        .required(true)
        .help("Report: a directory that contains profile.pop, a .pop file, a profile of another tool, or ssh://host/path")
}

/// The flag for JSON output.
pub(super) fn json_argument() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text")
}

/// The path in an argument, which need not be UTF-8.
pub(super) fn path_of<'a>(matches: &'a ArgMatches, argument: &str) -> &'a Path {
    matches.get_one::<PathBuf>(argument).map_or(Path::new(""), PathBuf::as_path)
}

/// Opens the report an argument names; warnings go to stderr.
pub(super) fn open_report(matches: &ArgMatches) -> Result<tilescope_report::Report, CliError> {
    open_path(path_of(matches, "report"))
}

/// Opens a report; warnings go to stderr.
pub(super) fn open_path(path: &Path) -> Result<tilescope_report::Report, CliError> {
    let report = tilescope_report::Report::open(path)?;
    for warning in report.warnings() {
        let _ = writeln!(stderr(), "warning: {warning}");
    }
    Ok(report)
}

/// Writes a value as indented JSON.
pub(super) fn print_json(
    value: &impl serde::Serialize,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    Ok(writeln!(output, "{}", serde_json::to_string_pretty(value)?)?)
}
