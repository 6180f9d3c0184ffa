//! `man`: generates the manual pages from the help texts.

use super::COMMANDS;
use super::command::{CliCommand, CliError};
use super::output_file;
use crate::cli::error::JobError;
use clap::{Arg, ArgMatches, value_parser};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// `tilescope man`
pub(super) const COMMAND: CliCommand = CliCommand { name: "man", arguments, run };

const PROGRAM: &str = "tilescope";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Write the manual pages: tilescope.1 and one per command")
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .required(true)
                .help("Directory to write to"),
        )
        .after_help(
            "Examples:\n  tilescope man -o ~/.local/share/man/man1\n  \
             tilescope man -o man && man -l man/tilescope-simulate.1",
        )
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let directory = super::command::path_of(matches, "output");
    std::fs::create_dir_all(directory)
        .map_err(|error| JobError::InFile { file: directory.to_owned(), error: error.into() })?;
    let mut program = super::arguments();
    program.build();
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let page = ManualPage { command, name: format!("{PROGRAM}-{}", command.get_name()) };
        page.write(directory, output)?;
    }
    ManualPage { command: &program, name: PROGRAM.to_owned() }.write(directory, output)
}

/// A page of the manual.
struct ManualPage<'a> {
    command: &'a clap::Command,
    name: String,
}

impl ManualPage<'_> {
    fn write(&self, directory: &Path, output: &mut dyn Write) -> Result<(), CliError> {
        let mut page = Vec::new();
        self.render(&mut page)?;
        let path = directory.join(format!("{}.1", self.name));
        output_file::write(&path, &page)?;
        Ok(writeln!(output, "{}", path.display())?)
    }

    fn render(&self, page: &mut dyn Write) -> io::Result<()> {
        let man = Man::new(self.command.clone())
            .title(self.name.to_uppercase())
            // An empty date would be left out, and the next field would take its place.
            .date(" ")
            .source(format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION")))
            .manual("User Commands");
        man.render_title(page)?;
        man.render_name_section(page)?;
        man.render_synopsis_section(page)?;
        man.render_description_section(page)?;
        man.render_options_section(page)?;
        self.rest().to_writer(page)
    }

    /// The text after the options in the help, and references.
    fn rest(&self) -> Roff {
        let mut roff = Roff::new();
        let help = self.command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (notes, examples) = match help.split_once("Examples:\n") {
            Some((notes, examples)) => (notes.to_owned(), examples.to_owned()),
            None => (help, String::new()),
        };
        section(&mut roff, "NOTES", &notes);
        // The rest of the program's help after the examples has a separate section.
        let examples = examples.split("\n\n").next().unwrap_or_default();
        section(&mut roff, "EXAMPLES", examples);
        if self.name == PROGRAM {
            section(&mut roff, "COMMANDS", &commands());
        }
        section(&mut roff, "EXIT STATUS", EXIT_STATUS);
        section(&mut roff, "SEE ALSO", &self.see_also());
        roff
    }

    fn see_also(&self) -> String {
        if self.name != PROGRAM {
            return format!("{PROGRAM}(1)");
        }
        let pages = COMMANDS.iter().map(|command| format!("{PROGRAM}-{}(1)", command.name));
        pages.collect::<Vec<_>>().join(", ")
    }
}

const EXIT_STATUS: &str = "0 success, 1 the command failed, 2 usage error, 3 a gate is violated.";

/// A line for each command.
fn commands() -> String {
    COMMANDS
        .iter()
        .map(|command| {
            let about = (command.arguments)(clap::Command::new(command.name));
            let about = about.get_about().map(ToString::to_string).unwrap_or_default();
            format!("  {:12} {about}", command.name)
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// A section: indented lines stay unchanged, others are filled.
fn section(roff: &mut Roff, title: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    roff.control("SH", [title]);
    let mut is_set_in = false;
    for line in text.trim_matches('\n').lines() {
        let sets_in = line.starts_with(' ');
        if sets_in != is_set_in {
            roff.control(if sets_in { "nf" } else { "fi" }, []);
            is_set_in = sets_in;
        }
        match line.trim_end() {
            "" => roff.control("PP", []),
            line => roff.text([roman(line)]),
        };
    }
    if is_set_in {
        roff.control("fi", []);
    }
}
