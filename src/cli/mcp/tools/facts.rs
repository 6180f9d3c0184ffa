//! Facts of any topic.

mod limits;
mod summary;
mod why;

use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, json_of};
use super::{CHANGES, LIMIT, McpTool, REPORT};
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::{Value, json};
use tilescope_analysis::topics::{TOPICS, topic};
use tilescope_analysis::view_location::ViewLocation;

const TOPIC: ToolArgument = ToolArgument::optional(
    "topic",
    ArgumentKind::Text,
    "Topic, as in \"limits\"; summary where nothing is said. Each answer lists all topics, and the \
     figures and tables of its own. The topic spec gives the text of the spec in TOML, without a \
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
    "With limits: where the cycles of each operation go whose name contains this",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "facts",
    about: "Opens a report, or simulates a spec, and gives the facts of a topic. summary: machine, \
            cycles, time, samples per second, memory, critical path and slack by IPU, utilisation of \
            the peak, host, energy, cost and how sure the figures are; begin here. execution-trace: \
            why the run takes as long as it does, in chains from the largest parts of the critical \
            path down to the options that decide them; what is not on the path gains nothing when it \
            is made faster. limits: how far the run is from what the machine could do, and where the \
            cycles of an operation go.",
    arguments: &[REPORT, CHANGES, TOPIC, AT, OPERATION, LIMIT],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &mut McpSession) -> Result<Value, CliError> {
    let report = arguments.required_text(REPORT.name);
    let changes = arguments.changes(CHANGES.name);
    let id = arguments.text(TOPIC.name).unwrap_or("summary");
    if id == "spec" {
        return Ok(json!({ "report": report, "text": session.spec(report, &changes)?.text }));
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
    Ok(opened.answer(opened.linked(answer, Some(&ViewLocation::view(asked.id)))))
}
