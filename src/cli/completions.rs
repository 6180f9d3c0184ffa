//! `completions`: completes commands, options, bundled specs and their keys for shells. The scripts
//! call this program, so that they are never out of date.

use super::command::{CliCommand, CliError};
use super::specs::{all_keys, key_words};
use crate::cli::error::UsageError;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{Bash, CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use tilescope_sim::specification::BUNDLED_SPECS;

/// `tilescope completions`
pub(super) const COMMAND: CliCommand = CliCommand { name: "completions", arguments, run };

/// The environment variable by which a shell requests completions.
const VARIABLE: &str = "TILESCOPE_COMPLETE";

/// The supported shells.
const SHELLS: Shells<'static> = Shells(&[&BASH, &Elvish, &Fish, &POWERSHELL, &Zsh]);

/// Bash with a script of our own: it splits words at the sign in `--set KEY=VALUE`.
const BASH: AdaptedShell = AdaptedShell {
    shell: &Bash,
    script: Some(include_bytes!("completions/tilescope.bash")),
    quote: None,
};

/// PowerShell inserts completions verbatim, so words are quoted here if it would split or execute
/// them.
const POWERSHELL: AdaptedShell =
    AdaptedShell { shell: &Powershell, script: None, quote: Some(in_powershell) };

/// A shell supported by clap, with our changes.
struct AdaptedShell {
    shell: &'static dyn EnvCompleter,
    /// Replacement for clap's script.
    script: Option<&'static [u8]>,
    /// Quoting of words.
    quote: Option<fn(&str) -> String>,
}

impl EnvCompleter for AdaptedShell {
    fn name(&self) -> &'static str {
        self.shell.name()
    }

    fn is(&self, name: &str) -> bool {
        self.shell.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        match self.script {
            Some(script) => output.write_all(script),
            None => self.shell.write_registration(variable, name, program, completer, output),
        }
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(quote) = self.quote else {
            return self.shell.write_complete(command, words, directory, output);
        };
        let mut answer = Vec::new();
        self.shell.write_complete(command, words, directory, &mut answer)?;
        for line in String::from_utf8_lossy(&answer).lines() {
            // A tab and a description follow a word.
            let (word, meaning) = line.split_at(line.find('\t').unwrap_or(line.len()));
            writeln!(output, "{}{meaning}", quote(word))?;
        }
        Ok(())
    }
}

/// A word quoted for PowerShell.
fn in_powershell(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./\\:=+~%".contains(letter);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "''"))
    }
}

/// The names of arguments for specs in help texts; `compare` has two of them.
const SPECS: [&str; 3] = ["SPEC", "SOURCE", "TARGET"];

/// The name of an argument that only accepts bundled specs.
pub(super) const BUNDLED_SPEC: &str = "BUNDLED_SPEC";

const AFTER_HELP: &str = "\
Examples:
  source <(tilescope completions bash)                  in ~/.bashrc
  source <(tilescope completions zsh)                   in ~/.zshrc, after compinit
  tilescope completions fish | source                   in ~/.config/fish/config.fish
  tilescope completions powershell | Out-String | Invoke-Expression
  eval (tilescope completions elvish | slurp)           in ~/.config/elvish/rc.elv";

fn arguments(command: clap::Command) -> clap::Command {
    let shells = PossibleValuesParser::new(SHELLS.names());
    command
        .about("Print a shell script that completes commands, options, bundled specs and keys")
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(shells))
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let name = matches.get_one::<String>("shell").map_or("", String::as_str);
    let Some(shell) = SHELLS.completer(name) else {
        return Err(UsageError::unknown("shell", name, "").into());
    };
    let program = "tilescope";
    Ok(shell.write_registration(VARIABLE, program, program, program, output)?)
}

/// Answers a shell's request for completions. Returns true if there was one.
///
/// # Errors
/// The shell is unknown, or the answer cannot be written.
pub(super) fn answered(given: &[OsString]) -> Result<bool, clap::Error> {
    let directory = std::env::current_dir().ok();
    CompleteEnv::with_factory(super::arguments)
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(given.iter().cloned(), directory.as_deref())
}

/// Adds completions to all arguments of a command that accept specs or keys.
pub(super) fn with_candidates(command: clap::Command) -> clap::Command {
    command.mut_args(argument_with_candidates)
}

/// The same for one argument.
pub(super) fn argument_with_candidates(argument: Arg) -> Arg {
    let names = argument.get_value_names().unwrap_or_default();
    let is = |wanted: fn(&str) -> bool| names.iter().any(|name| wanted(name.as_str()));
    if is(|name| name.starts_with("KEY=")) {
        argument.add(ArgValueCompleter::new(keys))
    } else if is(|name| name == BUNDLED_SPEC) {
        argument.add(ArgValueCompleter::new(bundled_specs))
    } else if is(|name| name.split('|').any(|part| SPECS.contains(&part))) {
        argument.add(ArgValueCompleter::new(specs))
    } else {
        argument
    }
}

fn candidate(text: String, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(text).help(Some(about.to_owned().into()))
}

fn bundled_specs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let start = typed.to_string_lossy();
    let bundled = BUNDLED_SPECS.iter().filter(|spec| spec.name.starts_with(&*start));
    bundled.map(|spec| candidate(spec.name.to_owned(), spec.about())).collect()
}

/// Bundled specs, and files.
fn specs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = bundled_specs(typed);
    found.extend(PathCompleter::any().complete(typed));
    found
}

/// Keys of specs, and after the sign the words that a key accepts.
fn keys(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let Some((path, value)) = typed.split_once('=') else {
        let known = all_keys().filter(|(_, key)| key.path.starts_with(&*typed));
        return known.map(|(_, key)| candidate(format!("{}=", key.path), &key.about)).collect();
    };
    let words = all_keys().filter(|(_, key)| key.path == path).flat_map(|(_, key)| key_words(key));
    let words = words.filter(|word| word.starts_with(value));
    words.map(|word| CompletionCandidate::new(format!("{path}={word}"))).collect()
}
