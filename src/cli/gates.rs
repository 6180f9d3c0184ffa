//! Gates of `compare`: what must not be true, what is told of it to people, jobs and their services.

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

/// What `--fail-over` stands for, with the percentage in place of `{}`.
const FAIL_OVER: [&str; 4] =
    ["cycles > +{}%", "memory > +{}%", "max_tile > +{}%", "memory.out_of_memory_tiles > +0"];

/// What services on which jobs run set, so that programs write annotations for them.
const GITHUB_VARIABLE: &str = "GITHUB_ACTIONS";

/// How `--help` of `compare` explains gates.
pub(super) const HELP: &str = "\
A gate is a condition that fails the command: FIGURE (> | >= | < | <= | ==) LIMIT. Figures are the
dotted paths of `tilescope summary --json`, or cycles, throughput, memory and max_tile. A limit is a
number with a unit (600 KiB, 1.2 ms, 5 %); with a sign it is a change relative to the source (+2%, +10
KiB, -1 k). A figure that a report lacks violates its gate. Exit code 3 always means a violated gate.";

/// The arguments of gates.
pub(super) fn arguments() -> [Arg; 3] {
    [
        Arg::new("fail-if")
            .long("fail-if")
            .value_name("GATE")
            .action(ArgAction::Append)
            .help("Fail with exit code 3 if this is true, as in 'execution.total_cycles > +2%'; may be given several times"),
        Arg::new("fail-over")
            .long("fail-over")
            .value_name("PERCENT")
            .value_parser(value_parser!(f64))
            .help("Fail with exit code 3 if cycles, memory or the fullest tile grew by more than this, or the target no longer runs"),
        Arg::new("junit")
            .long("junit")
            .value_name("FILE.xml")
            .value_parser(value_parser!(PathBuf))
            .help("Write the gates as test cases of a JUnit file"),
    ]
}

/// The gates that the user asks for, each with what is wrong with it where that is so.
///
/// # Errors
/// Gates that cannot be understood, and percentages that are none.
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
/// What is wrong with it, and where.
pub(super) fn read_gate(text: &str) -> Result<Gate, CliError> {
    Ok(text.parse::<Gate>()?)
}

/// Gates, and what is the matter with those that are not passed.
pub(super) struct CheckedGates {
    pub gates: Vec<Gate>,
    pub violations: Vec<GateViolation>,
}

impl CheckedGates {
    /// Judges a target beside its source.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub(super) fn of(
        gates: Vec<Gate>,
        (source, target): (&Report, &Report),
        normalization: &WorkNormalization,
    ) -> Result<Self, CliError> {
        let violations = match gates.is_empty() {
            true => Vec::new(),
            false => violations(&gates, source, target, normalization)?,
        };
        Ok(Self { gates, violations })
    }

    /// Each gate and, where it is violated, why.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, Option<&GateViolation>)> {
        let mut violations = self.violations.iter().peekable();
        // Violations come in the order of their gates.
        self.gates.iter().map(move |gate| {
            (gate.text(), violations.next_if(|violation| violation.gate == gate.text()))
        })
    }

    /// Whether there are gates, and none is violated.
    pub(super) fn are_passed(&self) -> bool {
        !self.gates.is_empty() && self.violations.is_empty()
    }

    /// Prints the gates that are passed; the others are the error that the job ends with.
    pub(super) fn print_passed(&self, output: &mut dyn io::Write) -> Result<(), CliError> {
        for (gate, _) in self.each().filter(|(_, violation)| violation.is_none()) {
            writeln!(output, "passed  {gate}")?;
        }
        Ok(())
    }

    /// Tells the job's service, and ends with what is violated.
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
        let (tests, failures) = (self.gates.len(), self.violations.len());
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
    fn xml_has_no_marks_of_its_own_in_attributes() {
        assert_eq!(xml("a < \"b\" & c\u{1}\n"), "a &lt; &quot;b&quot; &amp; c  ");
    }
}
