//! Proposals for improvements, with the results of trying them.

use super::super::answer::first;
use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, OpenedReport, json_of};
use super::{CHANGES, LIMIT, McpTool, OF_REPORT, REPORT, ToolAnswer};
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::{Value, json};
use tilescope_analysis::insights::{InsightFinding, insights, insights_with_tried};
use tilescope_experiments::strategies::proposals::{ProofRequest, prove};
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_report::units::NumberFormat;

const PROVE: ToolArgument = ToolArgument::optional(
    "prove",
    ArgumentKind::Flag,
    "Simulate each proposal and the best three together, and say what each gains; takes about a \
     simulation for each",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "insights",
    about: "Possible improvements, most important first: each finding with its figure, formula, a \
            bound on the gain, and where keys of the spec do it the changes and their cost. With \
            prove, what each proposal was measured to gain; a proposal without `measured` is a claim.",
    arguments: &[REPORT, CHANGES, PROVE, LIMIT],
    answer: &[
        OF_REPORT,
        AnswerField::always(
            "findings",
            AnswerKind::Rows(&[
                AnswerField::always("rule", AnswerKind::Text, "Name of the rule"),
                AnswerField::always("subject", AnswerKind::Text, "time or memory"),
                AnswerField::always("sentence", AnswerKind::Text, "What was found"),
                AnswerField::always(
                    "gain_text",
                    AnswerKind::Text,
                    "The bound on the gain in words",
                ),
                AnswerField::sometimes("changes", AnswerKind::Object, "Keys to set, and values"),
                AnswerField::sometimes("cost", AnswerKind::Text, "What is given up for it"),
                AnswerField::sometimes(
                    "measured",
                    AnswerKind::Object,
                    "What it was measured to do",
                ),
                AnswerField::sometimes("measured_text", AnswerKind::Text, "The same in words"),
                AnswerField::sometimes("link", AnswerKind::Text, "What opens the place"),
            ]),
            "What is worth improving, most important first",
        ),
        AnswerField::always("units", AnswerKind::Object, "Units of gains and measurements"),
        AnswerField::sometimes("not_known", AnswerKind::Text, "Why earlier trials are left out"),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    let numbers = NumberFormat::default();
    let (found, problem) = if arguments.flag(PROVE.name) {
        (proven(&opened)?, None)
    } else {
        insights_with_tried(&opened.report, numbers)?
    };
    let mut answer = json!({
        "findings": first(found.iter(), arguments.limit(), |finding| finding_json(&opened, finding).unwrap_or_default()),
        "units": {
            "gain.share": "share of the time of the run, or of the memory of the tiles concerned: a \
                           bound, not a promise",
            "measured.time": "share by which a sample takes longer: below 0 it is faster",
            "measured.memory": "share by which the fullest tile grows",
        },
    });
    if let Some(problem) = problem {
        answer["not_known"] = format!("earlier test results cannot be read: {problem}").into();
    }
    Ok(opened.answer(answer)?.into())
}

/// Findings whose proposals were tried now. The results are not kept.
fn proven(opened: &OpenedReport) -> Result<Vec<InsightFinding>, CliError> {
    let report = &opened.report;
    let spec = report.spec().ok_or(UsageError::NoSpec)?;
    let found = insights(report, NumberFormat::default())?;
    let directory = TemporaryDirectory::new()?;
    let request = ProofRequest {
        spec,
        directory: directory.path(),
        jobs: None,
        progress: &|_| (),
        tried: &|_| (),
    };
    Ok(prove(found, &request)?)
}

fn finding_json(opened: &OpenedReport, finding: &InsightFinding) -> Result<Value, CliError> {
    let mut value = json_of(finding)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("place");
    }
    value["gain_text"] = finding.gain_text().into();
    if let Some(tried) = &finding.measured {
        value["measured_text"] = tried.text(finding.subject).into();
    }
    Ok(opened.linked(value, Some(&finding.place)))
}
