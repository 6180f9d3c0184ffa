//! `convert`: converts a profile of another tool to a report.

use super::command::{CliCommand, CliError, path_of};
use clap::{Arg, ArgMatches};
use std::io::Write;
use std::path::PathBuf;
use tilescope_report::{PROFILE_READERS, convert_profile};

/// `tilescope convert`
pub(super) const COMMAND: CliCommand = CliCommand { name: "convert", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    let known = PROFILE_READERS.iter().map(|of| format!("{} of {}", of.file_name, of.tool));
    let known = known.collect::<Vec<_>>().join(", ");
    command
        .about("Convert a profile of another tool to a report; every command also opens such \
                profiles directly")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .required(true)
                .help(format!("Profile, or a directory that holds one: {known}")),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .default_value("out")
                .help("Directory to write the report to"),
        )
        .after_help("Examples:\n  tilescope convert profile.capnp -o out\n  tilescope summary profile.capnp")
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let file = path_of(matches, "file");
    let directory = path_of(matches, "output");
    Ok(writeln!(output, "{}", convert_profile(file, directory)?.display())?)
}
