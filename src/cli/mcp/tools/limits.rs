//! How good a run is: what it could cost at least.

use super::super::answer::first;
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, failed, json_of};
use super::table_json::{linked_table_json, table_json};
use super::{CHANGES, LIMIT, McpTool, REPORT};
use crate::cli::CliError;
use serde_json::{Value, json};
use tilescope_analysis::limits::{LimitsRow, Machine, explain, limits};
use tilescope_analysis::tables::limits::{operations, waterfall};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::NumberFormat;

const OPERATION: ToolArgument = ToolArgument::optional(
    "operation",
    ArgumentKind::Text,
    "Only operations whose names contain this, each with where its cycles go",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "limits",
    about: "How good a run is: utilisation of the peak and the waterfall down to it, and for each \
            operation cycles, the fewest that it could take (ideal), what it wastes beyond them, and \
            what bounds it; those that waste most come first.",
    arguments: &[REPORT, CHANGES, OPERATION, LIMIT],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &mut McpSession) -> Result<Value, CliError> {
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    let found = limits(&opened.report).map_err(failed)?;
    let Some(run) = &found.run else {
        let problem = "the report has no executed steps: the program was only compiled";
        return Err(CliError::Failed(problem.to_owned()));
    };
    let word = arguments.text(OPERATION.name).map(str::to_lowercase);
    let is_asked =
        |row: &&LimitsRow| word.as_ref().is_none_or(|word| row.name.to_lowercase().contains(word));
    let rows: Vec<LimitsRow> = found.rows.iter().filter(is_asked).cloned().collect();
    let limit = arguments.limit();
    let link = |at: usize| {
        let operation = rows.get(at)?.operation?;
        opened.link(&ViewLocation { operation: Some(operation), ..ViewLocation::view("limits") })
    };
    let mut answer = json!({
        "operations": linked_table_json(&operations(&rows), limit, link),
    });
    if word.is_some() {
        let explained = |row: &LimitsRow| explained(row, &found.machine);
        answer["explained"] = first(rows.iter(), limit, explained);
    } else {
        let mut figures = json_of(&run.summary())?;
        figures["waterfall"] = table_json(&waterfall(&run.all), usize::MAX);
        answer["run"] = figures;
    }
    Ok(opened.answer(opened.linked(answer, Some(&ViewLocation::view("limits")))))
}

/// Where the cycles of an operation go.
fn explained(row: &LimitsRow, machine: &Machine) -> Value {
    let lines = explain(row, machine, NumberFormat::default()).into_iter().map(|line| {
        json!({
            "of": line.title,
            "cycles": line.cycles,
            "share": line.share,
            "why": line.sentence,
        })
    });
    json!({ "operation": row.name, "cycles": lines.collect::<Vec<_>>() })
}
