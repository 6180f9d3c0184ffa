//! The tools that an agent has, a file and a line in [`TOOLS`] each: three that show what a report
//! says, and those that run something.

mod compare;
mod facts;
mod figure;
mod insights;
mod table;
mod try_change;

use super::arguments::{ArgumentKind, CheckedArguments, ToolArgument, schema};
use super::session::McpSession;
use crate::cli::command::CliError;
use serde_json::{Value, json};

/// A tool.
pub(super) struct McpTool {
    pub name: &'static str,
    /// What it answers, for the agent to choose by.
    pub about: &'static str,
    pub arguments: &'static [ToolArgument],
    pub run: fn(&CheckedArguments<'_>, &mut McpSession) -> Result<Value, CliError>,
}

/// Every tool, in the order in which an agent needs them.
pub(super) static TOOLS: &[McpTool] =
    &[facts::TOOL, table::TOOL, figure::TOOL, insights::TOOL, try_change::TOOL, compare::TOOL];

/// The report that a question is about.
const REPORT: ToolArgument = ToolArgument::required(
    "report",
    ArgumentKind::Text,
    "A report (a directory with a profile.pop, a .pop file, or a profile of another tool), or a spec \
     (a TOML or ONNX file, or the name of a bundled spec), which is simulated",
);

/// What is set before a spec is simulated.
const CHANGES: ToolArgument = ToolArgument::optional(
    "changes",
    ArgumentKind::Changes,
    "Keys of the spec to set first, as in {\"options.num_io_tiles\": 32}: the spec, or that of the \
     report, is simulated with them",
);

/// How many entries are listed.
const LIMIT: ToolArgument = ToolArgument::optional(
    "limit",
    ArgumentKind::Limit,
    "Most entries of each list; what is left off is counted",
);

impl McpTool {
    /// What clients read of it.
    pub(super) fn description(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": schema(self.arguments),
            // Nothing of the user's is written, and nothing else is asked than this machine.
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    }
}
