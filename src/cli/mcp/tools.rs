//! The tools of an agent, with a file and a line in [`TOOLS`] each: three that show the content of
//! a report, and those that run simulations.

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
    /// Its description, by which the agent chooses.
    pub about: &'static str,
    pub arguments: &'static [ToolArgument],
    pub run: fn(&CheckedArguments<'_>, &mut McpSession) -> Result<Value, CliError>,
}

/// All tools, in the order in which an agent needs them.
pub(super) static TOOLS: &[McpTool] =
    &[facts::TOOL, table::TOOL, figure::TOOL, insights::TOOL, try_change::TOOL, compare::TOOL];

/// The report to query.
const REPORT: ToolArgument = ToolArgument::required(
    "report",
    ArgumentKind::Text,
    "A report (a directory with a profile.pop, a .pop file, or a profile of another tool), or a spec \
     (a TOML or ONNX file, or the name of a bundled spec), which is simulated",
);

/// Changes of a spec before it is simulated.
const CHANGES: ToolArgument = ToolArgument::optional(
    "changes",
    ArgumentKind::Changes,
    "Keys of the spec to set first, as in {\"options.num_io_tiles\": 32}: the spec, or that of the \
     report, is simulated with them",
);

/// The number of listed entries.
const LIMIT: ToolArgument = ToolArgument::optional(
    "limit",
    ArgumentKind::Limit,
    "Most entries of each list; what is left off is counted",
);

impl McpTool {
    /// Its description for clients.
    pub(super) fn description(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": schema(self.arguments),
            // It writes none of the user's files, and accesses no other machine.
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    }
}
