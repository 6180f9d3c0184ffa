//! Figures of any topic.

use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, json_of};
use super::{CHANGES, McpTool, OF_REPORT, REPORT, ToolAnswer};
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::json;
use tilescope_analysis::topics::topic;

const TOPIC: ToolArgument = ToolArgument::required(
    "topic",
    ArgumentKind::Text,
    "Topic, for example \"limits\"; an unknown one is answered with a list",
);
const FIGURE: ToolArgument = ToolArgument::optional(
    "figure",
    ArgumentKind::Text,
    "Figure of the topic, for example \"roofline\"; without it, all of them",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "figure",
    about: "Returns the figures of a topic of a report as the window draws them: bars, points, \
            layers and lines, with axes and units. memory, liveness, limits (waterfall, roofline) \
            and execution-trace have figures.",
    arguments: &[REPORT, CHANGES, TOPIC, FIGURE],
    answer: &[
        OF_REPORT,
        AnswerField::always("topic", AnswerKind::Text, "The topic"),
        AnswerField::always(
            "figures",
            AnswerKind::Rows(&[
                AnswerField::always("name", AnswerKind::Text, "Name of the figure"),
                AnswerField::always(
                    "figure",
                    AnswerKind::Object,
                    "Title, axes, marks, guides, note",
                ),
            ]),
            "Figures of the topic",
        ),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let asked = topic(arguments.required_text(TOPIC.name))?;
    let name = arguments.text(FIGURE.name);
    let figures = asked.figures.iter().filter(|of| name.is_none_or(|name| name == of.name));
    let figures: Vec<_> = figures.collect();
    if let Some(name) = name.filter(|_| figures.is_empty()) {
        let known: Vec<&str> = asked.figures.iter().map(|figure| figure.name).collect();
        let hint = format!(" of {}; known: {}", asked.id, known.join(", "));
        return Err(UsageError::unknown("figure", name, hint).into());
    }
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    let mut drawn = Vec::new();
    for figure in figures {
        let read = (figure.read)(&opened.report)?;
        drawn.push(json!({ "name": figure.name, "figure": json_of(&read)? }));
    }
    Ok(opened.answer(json!({ "topic": asked.id, "figures": drawn }))?.into())
}
