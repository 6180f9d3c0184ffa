//! The tools for agents: each has a file and a line in [`TOOLS`]. Some read reports, others run
//! simulations.

mod bisect;
mod compare;
mod facts;
mod figure;
mod insights;
mod picture;
mod series;
mod table;
mod try_change;
mod tune;

use super::answer_fields::{self, AnswerField, AnswerKind};
use super::arguments::{self, ArgumentKind, CheckedArguments, ToolArgument};
use super::session::McpSession;
use crate::cli::command::CliError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A tool.
pub(super) struct McpTool {
    pub name: &'static str,
    /// Its description; the agent chooses tools by it.
    pub about: &'static str,
    pub arguments: &'static [ToolArgument],
    /// The fields of the answer.
    pub answer: &'static [AnswerField],
    pub run: fn(&CheckedArguments<'_>, &McpSession) -> Result<ToolAnswer, CliError>,
}

/// The answer of a tool.
pub(super) struct ToolAnswer {
    /// The data, in the form of the tool's schema.
    pub value: Value,
    /// A picture in addition to the data.
    pub picture: Option<ToolPicture>,
}

impl From<Value> for ToolAnswer {
    fn from(value: Value) -> Self {
        Self { value, picture: None }
    }
}

/// A picture for a model to look at.
pub(super) struct ToolPicture {
    /// A PNG file.
    pub png: Vec<u8>,
}

impl ToolPicture {
    /// The picture in the form of the protocol.
    pub(super) fn content(&self) -> Value {
        let data = STANDARD.encode(&self.png);
        json!({ "type": "image", "data": data, "mimeType": "image/png" })
    }
}

/// Every tool, in the order in which an agent needs them.
pub(super) static TOOLS: &[McpTool] = &[
    facts::TOOL,
    table::TOOL,
    figure::TOOL,
    picture::TOOL,
    insights::TOOL,
    try_change::TOOL,
    tune::TOOL,
    compare::TOOL,
    bisect::TOOL,
    series::TOOL,
];

/// The report to query.
const REPORT: ToolArgument = ToolArgument::required(
    "report",
    ArgumentKind::Text,
    "A report (a directory that contains profile.pop, a .pop file, or a profile of another tool), \
     or a spec (a TOML or ONNX file, or the name of a bundled spec), which is simulated",
);

/// Changes of a spec before it is simulated.
const CHANGES: ToolArgument = ToolArgument::optional(
    "changes",
    ArgumentKind::Changes,
    "Keys of the spec to change before it is simulated, for example {\"options.num_io_tiles\": \
     32}; of a report, its spec is simulated",
);

/// The number of listed entries.
const LIMIT: ToolArgument = ToolArgument::optional(
    "limit",
    ArgumentKind::Limit,
    "Maximum number of entries of each list; the others are counted",
);

/// The unit of work for cycles.
const PER: ToolArgument = ToolArgument::optional(
    "per",
    ArgumentKind::Word(&["sample", "update", "run"]),
    "Unit of work for cycles and executions; sample by default",
);

/// The number of specs that a search simulates.
const BUDGET: ToolArgument = ToolArgument::optional(
    "budget",
    ArgumentKind::Whole { least: 2, most: 500, default: 30 },
    "Number of simulations",
);

/// The field of answers about one report.
const OF_REPORT: AnswerField =
    AnswerField::always("report", AnswerKind::Text, "The name of the report or spec, as given");

impl McpTool {
    /// Its description for clients.
    pub(super) fn description(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": arguments::schema(self.arguments),
            "outputSchema": answer_fields::schema(self.answer),
            // Calls write no files of the user and reach no other machine.
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    }
}
