//! `serve`: the far side of reports that are read over `ssh`.

use super::{CliCommand, CliError};
use clap::{Arg, ArgAction, ArgMatches};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use tilescope_report::remote::{ServeError, serve};

/// `tilescope serve`
pub(super) const COMMAND: CliCommand = CliCommand { name: "serve", arguments, run };

const EXAMPLES: &str = "\
Examples:
  tilescope ssh://pod16/data/out             starts `tilescope serve --stdio` on pod16 by itself
  ssh pod16 tilescope serve --stdio          what it starts
  tilescope serve --stdio --root /data       only reports below /data, for a command in authorized_keys";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Answer another tilescope's questions about a report on this machine; started through ssh, not by hand")
        .arg(
            Arg::new("stdio")
                .long("stdio")
                .action(ArgAction::SetTrue)
                .required(true)
                .help("Read questions from standard input, and write answers to standard output"),
        )
        .arg(
            Arg::new("root")
                .long("root")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Open only reports in this directory and below it [default: all that this user may read]"),
        )
        .after_help(EXAMPLES)
}

fn run(matches: &ArgMatches, _: &mut dyn Write) -> Result<(), CliError> {
    if io::stdin().is_terminal() {
        let problem = "serve speaks with another tilescope over a pipe; open ssh://host/path there";
        return Err(CliError::Usage(problem.to_owned()));
    }
    // Bytes as they are, from several threads: the text that other commands write goes another way.
    let output = standard_output()?;
    let root = matches.get_one::<PathBuf>("root").map(PathBuf::as_path);
    serve(io::stdin(), output, root).map_err(|error| match error {
        ServeError::Output(error) => CliError::Output(error),
        // Whoever started it takes wrong usage for a program that is too old.
        other => CliError::Failed(other.to_string()),
    })
}

#[cfg(unix)]
fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}
