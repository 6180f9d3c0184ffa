//! Facts of any topic.

mod limits;
mod summary;
mod why;

use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, json_of};
use super::{CHANGES, LIMIT, McpTool, OF_REPORT, REPORT, ToolAnswer};
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::{Value, json};
use tilescope_analysis::topics::{TOPICS, topic};
use tilescope_analysis::view_location::ViewLocation;

const TOPIC: ToolArgument = ToolArgument::optional(
    "topic",
    ArgumentKind::Text,
    "Topic, for example \"limits\"; summary by default. Each answer lists all topics, and the \
     figures and tables of its own. The topic spec returns the text of the spec in TOML, without a \
     simulation",
);
const AT: ToolArgument = ToolArgument::optional(
    "at",
    ArgumentKind::Text,
    "With execution-trace: explain one executed step instead, STEP, STEP:IPU or STEP:IPU:REPLICA",
);
const OPERATION: ToolArgument = ToolArgument::optional(
    "operation",
    ArgumentKind::Text,
    "With limits: explain the cycles of each operation whose name contains this text",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "facts",
    about: "Opens a report, or simulates a spec, and returns the facts of a topic. summary: \
            machine, cycles, time, samples per second, memory, critical path and slack by IPU, \
            utilisation of the peak, host, energy, cost and the error of the figures; begin here. \
            execution-trace: the causes of the length of the run, in chains from the largest parts \
            of the critical path down to the options that decide them; making a step faster that \
            is not on the path gains nothing. limits: the distance of the run from the peak of the \
            machine, and the causes of the cycles of an operation.",
    arguments: &[REPORT, CHANGES, TOPIC, AT, OPERATION, LIMIT],
    answer: &[
        OF_REPORT,
        AnswerField::sometimes("topic", AnswerKind::Text, "The topic"),
        AnswerField::sometimes("about", AnswerKind::Text, "Subject of the topic"),
        AnswerField::sometimes("facts", AnswerKind::Cells, "Facts of the topic with units"),
        AnswerField::sometimes("topics", AnswerKind::Texts, "All topics"),
        AnswerField::sometimes("figures", AnswerKind::Texts, "Figures of this topic"),
        AnswerField::sometimes("tables", AnswerKind::Texts, "Tables of this topic"),
        AnswerField::sometimes(
            "values",
            AnswerKind::Object,
            "summary: all figures, by dotted paths",
        ),
        AnswerField::sometimes("units", AnswerKind::Object, "summary: paths of figures by unit"),
        AnswerField::sometimes("formulas", AnswerKind::Object, "Formulas of the figures"),
        AnswerField::sometimes("notes", AnswerKind::Texts, "summary: notes in the report"),
        AnswerField::sometimes(
            "cycles",
            AnswerKind::Whole,
            "execution-trace: cycles of run or step",
        ),
        AnswerField::sometimes(
            "why",
            AnswerKind::Any,
            "execution-trace: chains from the largest parts of the critical path down to options",
        ),
        AnswerField::sometimes("step", AnswerKind::Whole, "With `at`: the step"),
        AnswerField::sometimes("ipu", AnswerKind::Any, "With `at`: its IPU"),
        AnswerField::sometimes("on_path", AnswerKind::Flag, "With `at`: true if it is on the path"),
        AnswerField::sometimes(
            "slack",
            AnswerKind::Any,
            "With `at`: cycles by which it could end \
                                                          later without delaying the run",
        ),
        AnswerField::sometimes("run", AnswerKind::Object, "limits: utilisation and waterfall"),
        AnswerField::sometimes(
            "explained",
            AnswerKind::Rows(&[]),
            "limits with `operation`: causes of the cycles of each",
        ),
        AnswerField::sometimes("text", AnswerKind::Text, "spec: its text in TOML"),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let report = arguments.required_text(REPORT.name);
    let changes = arguments.changes(CHANGES.name);
    let id = arguments.text(TOPIC.name).unwrap_or("summary");
    if id == "spec" {
        let text = session.spec(report, &changes)?.text;
        return Ok(json!({ "report": report, "text": text }).into());
    }
    let asked = topic(id)?;
    for (argument, topic) in [(AT, "execution-trace"), (OPERATION, "limits")] {
        if arguments.text(argument.name).is_some() && topic != id {
            return Err(UsageError::OtherTopic { argument: argument.name, topic }.into());
        }
    }
    let opened = session.open(report, &changes)?;
    let mut answer = match id {
        "summary" => summary::facts(&opened)?,
        "execution-trace" => why::facts(&opened, arguments.text(AT.name))?,
        "limits" => limits::facts(&opened, arguments.text(OPERATION.name), arguments.limit())?,
        _ => json!({}),
    };
    answer["topic"] = id.into();
    answer["about"] = asked.about.into();
    answer["facts"] = json_of(&(asked.facts)(&opened.report)?)?;
    answer["figures"] = asked.figures.iter().map(|figure| figure.name).collect();
    answer["tables"] = asked.all_tables().map(|table| Value::from(table.path())).collect();
    answer["topics"] = TOPICS.iter().map(|topic| topic.id).collect();
    let place = ViewLocation::view(asked.id);
    Ok(opened.answer(opened.linked(answer, Some(&place)))?.into())
}
