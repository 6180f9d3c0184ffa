//! The parts of every command: its declaration, its error, and arguments that several share.

use super::plain_output::stderr;
use clap::{Arg, ArgAction, ArgMatches};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tilescope_experiments::ExperimentError;
use tilescope_experiments::program_error::{ProgramError, SpecPlace};
use tilescope_report::atomic_file::AtomicFileError;
use tilescope_sim::spec::{SpecError, SpecLocation};

/// A command of the program.
pub(crate) struct CliCommand {
    /// Name typed by the user.
    pub name: &'static str,
    /// Adds arguments and help.
    pub arguments: fn(clap::Command) -> clap::Command,
    /// Does it.
    pub run: fn(&ArgMatches, &mut dyn Write) -> Result<(), CliError>,
}

/// Why a command ended without its result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A wrong argument of the user: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A spec is refused: exit code 2.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The job failed: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// Gates are violated, each in a line: exit code 3.
    #[error("{0}")]
    Violated(String),
    /// A file could not be written: exit code 1.
    #[error(transparent)]
    File(#[from] AtomicFileError),
    /// An experiment has no result: exit code 1 or 2.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// Writing results failed.
    #[error("cannot write results: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Experiment(error) if error.is_usage() => 2,
            Self::Failed(_) | Self::Experiment(_) | Self::File(_) | Self::Output(_) => 1,
            Self::Usage(_) | Self::Spec(_) => 2,
            Self::Violated(_) => 3,
        }
    }
}

impl CliError {
    /// The line that a parent process reads.
    pub(super) fn for_parent(&self) -> ProgramError {
        let place = match self {
            Self::Spec(error) => match &error.location {
                SpecLocation::Line { file, line } => Some(SpecPlace {
                    file: file.clone(),
                    line: *line,
                    message: error.without_place(),
                }),
                SpecLocation::Override | SpecLocation::NotWritten => None,
            },
            _ => None,
        };
        ProgramError { text: self.to_string(), is_usage: self.exit_code() == 2, place }
    }
}

/// The option that names tilescope on the machine of a report.
pub(super) const REMOTE_PROGRAM: &str = "remote-program";

/// The argument that names a report.
pub(super) fn report_argument() -> Arg {
    Arg::new("report")
        .value_name("REPORT")
        .value_parser(clap::value_parser!(PathBuf))
        .required(true)
        .help("Report: a directory that contains profile.pop, a .pop file, a profile of another tool, or ssh://host/path")
}

/// The argument that asks for JSON.
pub(super) fn json_argument() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text")
}

/// The path that an argument names, in whatever letters the file system allows.
pub(super) fn path_of<'a>(matches: &'a ArgMatches, argument: &str) -> &'a Path {
    matches.get_one::<PathBuf>(argument).map_or(Path::new(""), PathBuf::as_path)
}

/// Opens the report an argument names; warnings go to stderr.
pub(super) fn open_report(matches: &ArgMatches) -> Result<tilescope_report::Report, CliError> {
    open_path(path_of(matches, "report"))
}

/// Opens a report; warnings go to stderr.
pub(super) fn open_path(path: &Path) -> Result<tilescope_report::Report, CliError> {
    let report = tilescope_report::Report::open(path)
        .map_err(|error| CliError::Failed(error.to_string()))?;
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
    let text = serde_json::to_string_pretty(value);
    Ok(writeln!(output, "{}", text.map_err(|error| CliError::Failed(error.to_string()))?)?)
}
