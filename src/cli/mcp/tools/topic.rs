//! Facts and figures of any topic.

use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, failed, json_of};
use super::{CHANGES, McpTool, REPORT};
use crate::cli::CliError;
use serde_json::{Value, json};
use tilescope_analysis::topics::{TOPICS, topic};

const TOPIC: ToolArgument = ToolArgument::required(
    "topic",
    ArgumentKind::Text,
    "Topic, as in \"limits\"; a wrong one is answered with all there are",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "topic",
    about: "Facts and figures (bars, points, lines, with axes and units) of a topic of a report: \
            summary, memory, liveness, limits, execution-trace and more, and the names of its \
            tables, which the tool table reads.",
    arguments: &[REPORT, CHANGES, TOPIC],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &mut McpSession) -> Result<Value, CliError> {
    let asked = topic(arguments.required_text(TOPIC.name))
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    let mut figures = Vec::new();
    for (of, figure) in asked.read_figures(&opened.report).map_err(failed)? {
        figures.push(json!({ "name": of.name, "figure": json_of(&figure)? }));
    }
    let facts = (asked.facts)(&opened.report).map_err(failed)?;
    let tables: Vec<&str> = asked.all_tables().map(|table| table.name).collect();
    let others: Vec<&str> = TOPICS.iter().map(|topic| topic.id).collect();
    Ok(opened.answer(json!({
        "topic": asked.id,
        "about": asked.about,
        "facts": json_of(&facts)?,
        "figures": figures,
        "tables": tables,
        "topics": others,
    })))
}
