//! The command line: one file per command, listed in [`COMMANDS`].
//!
//! Results go to stdout, progress and errors to stderr. Exit codes: 0 fine, 1 the job failed, 2
//! wrong usage, 3 a violated gate. A closed pipe on stdout is success: the reader needs no more.

mod bisect;
mod calibrate;
mod command;
mod compare;
mod completions;
mod convert;
mod error;
mod export;
mod exported_file;
mod find;
mod gates;
mod insights;
mod interrupt;
mod man;
mod mcp;
mod model;
mod onnx;
mod output_file;
mod picture;
mod plain_output;
mod progress;
mod query;
mod report;
mod report_or_spec;
mod reproduce;
mod run_errors;
mod samples;
mod search;
mod selection;
mod sensitivity;
mod series;
mod simulate;
mod slice;
mod specs;
mod summary;
mod sweep;
mod text_table;
mod there;
mod tune;
mod validate;
mod verify;
mod why;
mod window;

use clap::{Arg, ArgMatches};
use command::{CliCommand, CliError, REMOTE_PROGRAM};
use plain_output::{PlainOutput, stderr};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use tilescope_experiments::program_error::ERRORS_VARIABLE;
use tilescope_report::check_open_reports;
use tilescope_report::remote::RemoteSettings;

/// All commands, in the order of the help text.
pub(crate) const COMMANDS: &[CliCommand] = &[
    simulate::COMMAND,
    specs::COMMAND,
    sensitivity::COMMAND,
    sweep::COMMAND,
    tune::COMMAND,
    reproduce::COMMAND,
    summary::COMMAND,
    why::COMMAND,
    insights::COMMAND,
    find::COMMAND,
    query::COMMAND,
    compare::COMMAND,
    series::COMMAND,
    bisect::COMMAND,
    mcp::COMMAND,
    calibrate::COMMAND,
    verify::COMMAND,
    export::COMMAND,
    convert::COMMAND,
    samples::COMMAND,
    slice::COMMAND,
    report::COMMAND,
    validate::COMMAND,
    model::COMMAND,
    onnx::COMMAND,
    completions::COMMAND,
    man::COMMAND,
];

/// Old names of commands that are still accepted, with the new ones.
const RENAMED_COMMANDS: &[(&str, &str)] = &[("seeds", "reproduce")];

const AFTER_HELP: &str = "\
Examples:
  tilescope                                  home screen of the desktop app
  tilescope out                              open the report in directory out
  tilescope ssh://pod16/data/out             the same on another machine, copied through ssh
  tilescope model.onnx                       choose dimensions, loss and system of a model, and simulate it
  tilescope out --at 'tilescope:/x?view=…'   the same, at the place a copied link points to
  tilescope before --compare after           open two reports side by side
  tilescope --headless -o out                simulate the MNIST pipeline, no display needed
  tilescope simulate matmul_chain -o out --set model.m=1600
  tilescope summary out --json
  tilescope query out 'SELECT name, cycles FROM program_cycles ORDER BY cycles DESC LIMIT 10'
  tilescope compare before after --fail-over 2
  tilescope export out --view memory --format png -o memory.png

Exit codes: 0 success, 1 the command failed, 2 usage error, 3 a gate of compare is violated.";

/// The version of the program, and that of the reports it writes.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (major, minor) = tilescope_report::schema::FORMAT;
    format!("{} (report format {major}.{minor})", env!("CARGO_PKG_VERSION"))
});

/// The whole command line, as clap sees it.
pub(crate) fn arguments() -> clap::Command {
    let mut program = clap::Command::new("tilescope")
        .version(VERSION.as_str())
        .about("Find out why a program is slow or does not fit on Graphcore IPUs, and how to \
                improve it")
        .after_help(AFTER_HELP)
        .args_conflicts_with_subcommands(true)
        .arg(Arg::new("report").value_name("REPORT").value_parser(clap::value_parser!(PathBuf)).help("Report to open: a directory, a .pop file, ssh://host/path or a copied link; or an ONNX file to simulate"))
        .arg(Arg::new("target").value_name("TARGET").value_parser(clap::value_parser!(PathBuf)).conflicts_with("compare").help("Second report: open both and compare them"))
        .arg(Arg::new("at").long("at").value_name("LINK").requires("report").help("Go to the place a copied link points to"))
        .arg(
            Arg::new("compare")
                .long("compare")
                .value_parser(clap::value_parser!(PathBuf))
                .value_name("REPORT")
                .requires("report")
                .help("Second report, shown beside the first"),
        )
        .arg(completions::argument_with_candidates(
            Arg::new("headless")
                .long("headless")
                .value_name("SPEC")
                .num_args(0..=1)
                .default_missing_value(simulate::DEFAULT_SPEC)
                .conflicts_with("report")
                .help("Simulate SPEC (default: the bundled MNIST pipeline) and write a report, without a display"),
        ))
        .arg(simulate::output_argument().requires("headless"))
        .arg(completions::argument_with_candidates(simulate::set_argument().requires("headless")))
        .arg(simulate::yes_argument().requires("headless"));
    program = with_remote_program(program);
    for command in COMMANDS {
        let own = with_remote_program((command.arguments)(clap::Command::new(command.name)));
        program = program.subcommand(completions::with_candidates(own));
    }
    program
}

/// A command that accepts reports on other machines, with the option for the program to run there.
fn with_remote_program(command: clap::Command) -> clap::Command {
    if !command.get_arguments().any(|argument| {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().any(|name| name.contains("REPORT"))
    }) {
        return command;
    }
    command.arg(
        Arg::new(REMOTE_PROGRAM).long(REMOTE_PROGRAM).value_name("PATH").help(
            "Path of tilescope on the machine of a report ssh://host/path [default: tilescope]",
        ),
    )
}

/// Applies the settings for reports on other machines.
fn set_remote_program(matches: &ArgMatches) {
    let matches = matches.subcommand().map_or(matches, |(_, own)| own);
    // Not every command has this option.
    let Ok(program) = matches.try_get_one::<String>(REMOTE_PROGRAM) else { return };
    let program = program.cloned();
    let progress: Option<fn(&str)> =
        if io::stderr().is_terminal() { Some(show_copy_progress) } else { None };
    RemoteSettings { program, progress, ..RemoteSettings::current() }.set();
}

/// Shows the progress of a copy in a line of the terminal that the next text replaces.
fn show_copy_progress(text: &str) {
    let _ = write!(stderr(), "\r\x1b[K{text}");
}

/// Runs the program with these arguments, the program's name first.
pub(crate) fn run(given: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut given: Vec<OsString> = given.into_iter().collect();
    match completions::answered(&given) {
        Ok(false) => (),
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(2);
        }
    }
    accept_old_command_name(&mut given);
    if let Some(problem) = misspelt_command(&given) {
        let _ = writeln!(stderr(), "error: {problem}");
        return ExitCode::from(2);
    }
    let matches = match arguments().try_get_matches_from(given.clone()) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version come this way too; a closed pipe is not an error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    set_remote_program(&matches);
    interrupt::end_cleanly();
    let mut output = PlainOutput::new(io::stdout().lock());
    let result = match there::run(&given, &mut output) {
        Ok(true) => Ok(()),
        Ok(false) => dispatch(&matches, &mut output),
        Err(error) => Err(error),
    };
    let result = result.and_then(|()| Ok(output.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = match std::env::var_os(ERRORS_VARIABLE) {
                Some(_) => writeln!(stderr(), "{}", error.for_parent().line()),
                None => writeln!(stderr(), "error: {error}"),
            };
            ExitCode::from(error.exit_code())
        }
    }
}

/// Replaces the old name of a command by the new one, with a message.
fn accept_old_command_name(given: &mut [OsString]) {
    let Some(word) = given.get_mut(1) else { return };
    let renamed = RENAMED_COMMANDS.iter().find(|(old, _)| word.as_os_str() == *old);
    if let Some((old, new)) = renamed {
        let _ = writeln!(stderr(), "note: `{old}` is now `{new}`");
        *word = OsString::from(new);
    }
}

/// A first argument that is a misspelt command, not a report: clap would take it for a report.
fn misspelt_command(given: &[OsString]) -> Option<String> {
    let word = given.get(1)?.to_str()?;
    let known = COMMANDS.iter().any(|command| command.name == word);
    if known || word.starts_with('-') || Path::new(word).exists() {
        return None;
    }
    let measure_likeness = |name: &str| strsim::normalized_damerau_levenshtein(word, name);
    let best = COMMANDS
        .iter()
        .max_by(|a, b| measure_likeness(a.name).total_cmp(&measure_likeness(b.name)))?;
    if measure_likeness(best.name) >= 0.6 {
        let problem = format!("no command or report named {word:?}");
        return Some(format!("{problem}; did you mean tilescope {}?", best.name));
    }
    // Reports are paths; a word followed by more than a second one is meant as a command.
    let is_word = word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    if is_word && given.len() > 2 {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        Some(format!("no command or report named {word:?}; commands: {}", names.join(", ")))
    } else {
        None
    }
}

fn dispatch(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    if let Some((name, matches)) = matches.subcommand() {
        let command = COMMANDS.iter().find(|command| command.name == name);
        let Some(command) = command else { return Ok(()) };
        (command.run)(matches, output)?;
        return Ok(check_open_reports()?);
    }
    if matches.contains_id("headless") && matches.get_one::<String>("headless").is_some() {
        return simulate::headless(matches, output);
    }
    let get_path = |name: &str| matches.get_one::<PathBuf>(name).map(PathBuf::as_path);
    window::open(
        get_path("report"),
        get_path("target").or(get_path("compare")),
        matches.get_one::<String>("at").map(String::as_str),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        arguments().debug_assert();
    }

    #[test]
    fn every_command_explains_itself_with_an_example() {
        for command in COMMANDS {
            let help = (command.arguments)(clap::Command::new(command.name))
                .render_long_help()
                .to_string();
            assert!(
                help.contains(&format!("tilescope {}", command.name)),
                "{}: {help}",
                command.name
            );
        }
    }
}
