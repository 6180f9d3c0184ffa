//! Findings with proposals, and the results of testing these.

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
    "Simulate each proposal and the best three together, and return the gain of each; runs one \
     simulation per proposal",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "insights",
    about: "Lists possible improvements, most important first: each finding with its figure, its \
            formula, an upper bound of the gain, and, if keys of the spec can help, the changes \
            and their cost. With prove, `measured` is the gain of each proposal in a simulation; \
            a proposal without `measured` has not been tested.",
    arguments: &[REPORT, CHANGES, PROVE, LIMIT],
    answer: &[
        OF_REPORT,
        AnswerField::always(
            "findings",
            AnswerKind::Rows(&[
                AnswerField::always("rule", AnswerKind::Text, "Name of the rule"),
                AnswerField::always("subject", AnswerKind::Text, "time or memory"),
                AnswerField::always("sentence", AnswerKind::Text, "The finding in a sentence"),
                AnswerField::always(
                    "gain_text",
                    AnswerKind::Text,
                    "Upper bound of the gain as text",
                ),
                AnswerField::sometimes("changes", AnswerKind::Object, "Keys to set, and values"),
                AnswerField::sometimes("cost", AnswerKind::Text, "Drawbacks of the change"),
                AnswerField::sometimes(
                    "measured",
                    AnswerKind::Object,
                    "The simulated effect of the change",
                ),
                AnswerField::sometimes("measured_text", AnswerKind::Text, "The same as text"),
                AnswerField::sometimes("link", AnswerKind::Text, "Link to the place"),
            ]),
            "Findings, most important first",
        ),
        AnswerField::always("units", AnswerKind::Object, "Units of gains and measurements"),
        AnswerField::sometimes("not_known", AnswerKind::Text, "Why earlier results are left out"),
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
            "gain.share": "upper bound of the gain, as a share of the time of the run or of the \
                           memory of the affected tiles",
            "measured.time": "change of the time per sample, as a share; negative is faster",
            "measured.memory": "change of the memory of the fullest tile, as a share",
        },
    });
    if let Some(problem) = problem {
        answer["not_known"] = format!("earlier test results cannot be read: {problem}").into();
    }
    Ok(opened.answer(answer)?.into())
}

/// Tests the proposals of all findings. The results are not saved.
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
