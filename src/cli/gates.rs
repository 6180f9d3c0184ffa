//! Gates of `compare`: conditions that must not hold, and reports of their violations to users,
//! jobs and CI services.

use super::command::CliError;
use super::output_file;
use super::plain_output::stderr;
use crate::cli::error::UsageError;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::WorkNormalization;
use tilescope_analysis::gates::{Gate, GateViolation, violations};
use tilescope_report::Report;

/// The gates of `--fail-over`, with the percentage in place of `{}`.
const FAIL_OVER: [&str; 4] =
    ["cycles > +{}%", "memory > +{}%", "max_tile > +{}%", "memory.out_of_memory_tiles > +0"];

/// The environment variable of a CI service that requests annotations.
const GITHUB_VARIABLE: &str = "GITHUB_ACTIONS";

/// The explanation of gates in `--help` of `compare`.
pub(super) const HELP: &str = "\
A gate is a condition that fails the command: FIGURE (> | >= | < | <= | ==) LIMIT. Figures are the
dotted paths of `tilescope summary --json`, or cycles, throughput, memory and max_tile. A limit is a
number with a unit (600 KiB, 1.2 ms, 5 %); with a sign it is a change relative to the source (+2%,
+10 KiB, -1 k). A figure that a report lacks violates its gate. Exit code 3 always means a violated
gate.";

/// The arguments of gates.
pub(super) fn arguments() -> [Arg; 3] {
    [
        Arg::new("fail-if").long("fail-if").value_name("GATE").action(ArgAction::Append).help(
            "Fail with exit code 3 if this condition is true, for example \
                   'execution.total_cycles > +2%'; can be repeated",
        ),
        Arg::new("fail-over")
            .long("fail-over")
            .value_name("PERCENT")
            .value_parser(value_parser!(f64))
            .help(
                "Fail with exit code 3 if cycles, memory or the fullest tile grew by more than \
                   this percentage, or if the target no longer runs",
            ),
        Arg::new("junit")
            .long("junit")
            .value_name("FILE.xml")
            .value_parser(value_parser!(PathBuf))
            .help("Write the gates as test cases of a JUnit file"),
    ]
}

/// The gates given by the user.
///
/// # Errors
/// A gate cannot be parsed, or a percentage is invalid.
pub(super) fn asked(matches: &ArgMatches) -> Result<Vec<Gate>, CliError> {
    let written = matches.get_many::<String>("fail-if").into_iter().flatten();
    let mut gates = written.map(|text| read_gate(text)).collect::<Result<Vec<Gate>, CliError>>()?;
    if let Some(percent) = matches.get_one::<f64>("fail-over").copied() {
        if !percent.is_finite() || percent < 0.0 {
            return Err(UsageError::no_percentage("--fail-over", percent).into());
        }
        for gate in FAIL_OVER {
            gates.push(read_gate(&gate.replace("{}", &percent.to_string()))?);
        }
    }
    Ok(gates)
}

/// Reads a gate.
///
/// # Errors
/// The problem and its position.
pub(super) fn read_gate(text: &str) -> Result<Gate, CliError> {
    Ok(text.parse::<Gate>()?)
}

/// Gates, with the violations among them.
pub(super) struct CheckedGates {
    pub gates: Vec<Gate>,
    pub violations: Vec<GateViolation>,
}

impl CheckedGates {
    /// Checks a target against its source.
    ///
    /// # Errors
    /// A part of the files cannot be read.
    pub(super) fn of(
        gates: Vec<Gate>,
        (source, target): (&Report, &Report),
        normalization: &WorkNormalization,
    ) -> Result<Self, CliError> {
        let violations = if gates.is_empty() {
            Vec::new()
        } else {
            violations(&gates, source, target, normalization)?
        };
        Ok(Self { gates, violations })
    }

    /// Each gate with its violation, if any.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, Option<&GateViolation>)> {
        let mut violations = self.violations.iter().peekable();
        // Violations are in the order of their gates.
        self.gates.iter().map(move |gate| {
            (gate.text(), violations.next_if(|violation| violation.gate == gate.text()))
        })
    }

    /// True if there are gates, and none is violated.
    pub(super) fn are_passed(&self) -> bool {
        !self.gates.is_empty() && self.violations.is_empty()
    }

    /// Prints the passed gates; the others are in the error of the job.
    pub(super) fn print_passed(&self, output: &mut dyn io::Write) -> Result<(), CliError> {
        for (gate, _) in self.each().filter(|(_, violation)| violation.is_none()) {
            writeln!(output, "passed  {gate}")?;
        }
        Ok(())
    }

    /// Writes annotations for the CI service. Returns violations as an error.
    ///
    /// # Errors
    /// A gate is violated.
    pub(super) fn conclude(&self) -> Result<(), CliError> {
        if self.violations.is_empty() {
            return Ok(());
        }
        if std::env::var(GITHUB_VARIABLE).is_ok_and(|value| value == "true") {
            for violation in &self.violations {
                let _ = writeln!(stderr(), "{}", annotation(&violation.sentence));
            }
        }
        let sentences = self.violations.iter().map(|violation| violation.sentence.clone());
        Err(CliError::Violated(sentences.collect()))
    }

    /// Writes the gates as a JUnit file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write_junit(&self, path: &Path) -> Result<(), CliError> {
        output_file::write(path, self.junit().as_bytes())
    }

    fn junit(&self) -> String {
        let tests = self.gates.len();
        let failures = self.violations.len();
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\"");
        let _ = writeln!(text, "<testsuites name=\"tilescope\" {counts}>");
        let _ = writeln!(text, "  <testsuite name=\"gates\" {counts}>");
        for (gate, violation) in self.each() {
            let name = xml(gate);
            let _ = match violation {
                None => writeln!(text, "    <testcase classname=\"gates\" name=\"{name}\"/>"),
                Some(violation) => writeln!(
                    text,
                    "    <testcase classname=\"gates\" name=\"{name}\">\n      \
                     <failure message=\"{}\"/>\n    </testcase>",
                    xml(&violation.sentence)
                ),
            };
        }
        text.push_str("  </testsuite>\n</testsuites>\n");
        text
    }
}

/// A workflow command of GitHub Actions: an error beside the change.
fn annotation(sentence: &str) -> String {
    let escaped = sentence.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    format!("::error title=tilescope gate::{escaped}")
}

/// Text inside an attribute.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML has no control characters, not even as references.
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_stay_on_their_line() {
        assert_eq!(
            annotation("cycles > +2%: it grew\nby 3 %"),
            "::error title=tilescope gate::cycles > +2%25: it grew%0Aby 3 %25"
        );
    }

    #[test]
    fn attributes_are_escaped_in_xml() {
        assert_eq!(xml("a < \"b\" & c\u{1}\n"), "a &lt; &quot;b&quot; &amp; c  ");
    }
}
