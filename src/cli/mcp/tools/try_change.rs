//! Measures the effect of a change of a spec, with two simulations.

use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, json_of};
use super::{McpTool, OF_REPORT, REPORT, ToolAnswer};
use crate::cli::command::CliError;
use crate::cli::error::JobError;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use tilescope_analysis::insights::{InsightFinding, InsightSubject, SpecChanges, insights};
use tilescope_experiments::point::expected;
use tilescope_experiments::spec_copy::SpecCopy;
use tilescope_experiments::strategies::proposals::compared;
use tilescope_experiments::trial::{TrialFigures, TrialOutcome, TrialRunner};
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_report::units::NumberFormat;

const CHANGES: ToolArgument = ToolArgument::required(
    "changes",
    ArgumentKind::Changes,
    "Keys of the spec and their new values, as in {\"options.num_io_tiles\": 32, \
     \"options.overlap_io\": \"loops\"}; the table keys lists them",
);

/// Figures of a spec.
const FIGURES: [AnswerField; 7] = [
    AnswerField::always("fits", AnswerKind::Flag, "True if the program fits in memory"),
    AnswerField::or_null("cycles", AnswerKind::Whole, "Cycles of the run"),
    AnswerField::or_null("seconds_per_sample", AnswerKind::Number, "Seconds of the run / samples"),
    AnswerField::or_null("samples_per_second", AnswerKind::Number, "Throughput of the machine"),
    AnswerField::always("fullest_tile_bytes", AnswerKind::Whole, "Bytes of the fullest tile"),
    AnswerField::always("ipus", AnswerKind::Whole, "IPUs of all replicas"),
    AnswerField::always("expected", AnswerKind::Object, "90 % interval of each figure"),
];

pub(super) const TOOL: McpTool = McpTool {
    name: "try_change",
    about: "Simulates a spec, or that of a report, without and with changes, and returns the \
            figures of both: time per sample, memory, and whether the program fits. Lists the \
            findings that propose the same change. Writes no report.",
    arguments: &[REPORT, CHANGES],
    answer: &[
        OF_REPORT,
        AnswerField::always("changes", AnswerKind::Object, "Changed keys and their values"),
        AnswerField::always("before", AnswerKind::Fields(&FIGURES), "The unchanged spec"),
        AnswerField::or_null("after", AnswerKind::Fields(&FIGURES), "The changed spec"),
        AnswerField::always("measured", AnswerKind::Object, "Differences between the two"),
        AnswerField::always("measured_text", AnswerKind::Text, "The same in words"),
        AnswerField::always(
            "findings",
            AnswerKind::Rows(&[
                AnswerField::always("rule", AnswerKind::Text, "Name of the rule"),
                AnswerField::always("sentence", AnswerKind::Text, "The finding in a sentence"),
                AnswerField::always("gain_text", AnswerKind::Text, "Upper bound of the gain"),
            ]),
            "Findings that propose the same change",
        ),
        AnswerField::always("units", AnswerKind::Object, "Units of the figures"),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let name = arguments.required_text(REPORT.name);
    let changes = arguments.changes(CHANGES.name);
    // Errors in the changes are reported before any simulation.
    session.spec(name, &changes)?;
    let spec = session.spec(name, &SpecChanges::new())?;
    let directory = TemporaryDirectory::new()?;
    let copy = SpecCopy::write(&spec.text, name, directory.path())?;
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let runner = TrialRunner::new(copy.file_name(), Vec::new(), cores)?;
    let mut outcomes = runner.run(&[SpecChanges::new(), changes.clone()], |_, _| ())?.into_iter();
    let mut take_outcome = || {
        let missing = TrialOutcome::Died("the simulation did not run".to_owned());
        copy.named_outcome(outcomes.next().unwrap_or(missing))
    };
    let before = match take_outcome() {
        TrialOutcome::Figures(figures) => figures,
        TrialOutcome::Refused(problem) | TrialOutcome::Died(problem) => {
            return Err(JobError::UnchangedSpec(problem).into());
        }
    };
    let after = take_outcome();
    let after_json = match &after {
        TrialOutcome::Figures(figures) => figures_json(figures),
        TrialOutcome::Refused(_) | TrialOutcome::Died(_) => Value::Null,
    };
    let before_json = figures_json(&before);
    let measured = compared(&before, after);
    let opened = session.open(name, &SpecChanges::new())?;
    opened.report.check_unchanged()?;
    let found = insights(&opened.report, NumberFormat::default())?;
    let proposing = found.iter().filter(|finding| proposes(finding, &changes));
    let findings = proposing.map(|finding| {
        json!({
            "rule": finding.rule, "subject": finding.subject, "sentence": finding.sentence,
            "gain": finding.gain, "gain_text": finding.gain_text(), "formula": finding.formula,
        })
    });
    let answer = json!({
        "report": name,
        "changes": changes,
        "before": before_json,
        "after": after_json,
        "measured": json_of(&measured)?,
        "measured_text": measured.text(InsightSubject::Time),
        "findings": findings.collect::<Vec<_>>(),
        "units": {
            "measured.time": "time per sample after / before - 1",
            "measured.memory": "bytes of the fullest tile after / before - 1",
            "seconds_per_sample": "seconds of the run / its samples",
            "expected": "90 % interval",
        },
    });
    Ok(answer.into())
}

fn proposes(finding: &InsightFinding, changes: &SpecChanges) -> bool {
    finding.proposal.as_ref().is_some_and(|proposal| proposal.changes == *changes)
}

fn figures_json(figures: &TrialFigures) -> Value {
    let time = figures.seconds_per_sample();
    json!({
        "fits": time.is_some(),
        "cycles": figures.cycles,
        "seconds": figures.seconds,
        "samples": figures.samples,
        "seconds_per_sample": time,
        "samples_per_second": time.map(f64::recip),
        "fullest_tile_bytes": figures.fullest_tile_bytes,
        "ipus": figures.ipus,
        "joules_per_million_samples": figures.joules(),
        "cost_per_million_samples": figures.cost(),
        "expected": expected(figures),
    })
}
