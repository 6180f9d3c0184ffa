//! `specs`: lists the bundled specs, or prints one.

use super::{CliError, Command};
use crate::sim::spec::BUNDLED;
use crate::sim::spec::SpecSource;
use clap::{Arg, ArgMatches};
use std::io::Write;

/// `tilescope specs`
pub const COMMAND: Command = Command { name: "specs", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("List the bundled specs, or print one to start from")
        .arg(Arg::new("name").value_name("NAME").help("The spec to print"))
        .after_help(
            "Examples:\n  tilescope specs\n  tilescope specs mnist_pipeline > my_model.toml",
        )
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    match matches.get_one::<String>("name") {
        Some(name) => {
            let bundled = BUNDLED.iter().find(|spec| spec.name == name);
            match bundled {
                Some(spec) => write!(output, "{}", spec.text)?,
                None => {
                    let error = SpecSource::find(name, &[]).err();
                    let problem = error.map_or_else(
                        || format!("{name} is a file, not a bundled spec"),
                        |e| e.to_string(),
                    );
                    return Err(CliError::Usage(problem));
                }
            }
        }
        None => {
            let width = BUNDLED.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
            for spec in BUNDLED {
                writeln!(output, "{:width$}  {}", spec.name, spec.about())?;
            }
        }
    }
    Ok(())
}
