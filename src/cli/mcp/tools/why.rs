//! What a run waits for.

use super::super::answer::first;
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, OpenedReport, failed};
use super::{CHANGES, LIMIT, McpTool, REPORT};
use crate::cli::CliError;
use crate::cli::why::{CHAINS, StepAnswer, chain_json, row_json};
use serde_json::{Value, json};
use tilescope_analysis::critical_path::{
    IPU_SLACK, LEAD, ON_PATH, PathRow, SLACK, WAITS, WhyChain, WhyPlace, ipu_slacks, path_totals,
    why_run,
};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::NumberFormat;

const AT: ToolArgument = ToolArgument::optional(
    "at",
    ArgumentKind::Text,
    "Explain one executed step instead: STEP, STEP:IPU or STEP:IPU:REPLICA",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "why",
    about: "What a run waits for: its critical path by operation and IPU (shares add up to 1), the \
            slack of each IPU, and chains from the largest parts of the path down to the options that \
            decide them. What is not on the path gains nothing when it is made faster.",
    arguments: &[REPORT, CHANGES, AT, LIMIT],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &mut McpSession) -> Result<Value, CliError> {
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    if let Some(at) = arguments.text(AT.name) {
        return of_step(&opened, at);
    }
    let report = &opened.report;
    let Some(totals) = path_totals(report, None).map_err(failed)? else {
        let problem = "the report has no executed steps: the program was only compiled";
        return Err(CliError::Failed(problem.to_owned()));
    };
    let slacks = ipu_slacks(report).map_err(failed)?;
    let chains = why_run(report, CHAINS, NumberFormat::default()).map_err(failed)?;
    let limit = arguments.limit();
    let row = |row: &PathRow| opened.linked(row_json(row), place_of_row(row).as_ref());
    Ok(opened.answer(json!({
        "cycles": totals.cycles,
        "path": first(totals.rows.iter(), limit, row),
        "slack": first(slacks.iter(), limit, |slack| json!(slack)),
        "why": chains.iter().map(|chain| linked_chain(&opened, chain)).collect::<Vec<_>>(),
        "formulas": {
            "path": ON_PATH, "slack.slack": IPU_SLACK, "slack.waits": WAITS, "slack.lead": LEAD,
        },
    })))
}

fn of_step(opened: &OpenedReport, at: &str) -> Result<Value, CliError> {
    let found = StepAnswer::of(&opened.report, at)?;
    let mut answer = found.json();
    answer["why"] = linked_chain(opened, &found.chain);
    answer["formulas"] = json!({ "slack": SLACK });
    Ok(opened.answer(answer))
}

/// Where the cycles of a row can be seen.
fn place_of_row(row: &PathRow) -> Option<ViewLocation> {
    match (row.operation, row.program) {
        (Some(operation), _) => {
            Some(ViewLocation { operation: Some(operation), ..ViewLocation::view("operations") })
        }
        (None, Some(program)) => {
            Some(ViewLocation { program: Some(program), ..ViewLocation::view("program-tree") })
        }
        (None, None) => None,
    }
}

fn linked_chain(opened: &OpenedReport, chain: &WhyChain) -> Value {
    let mut value = chain_json(chain);
    let links = value["links"].as_array_mut().into_iter().flatten();
    for (json, link) in links.zip(&chain.links) {
        let place = link.place.as_ref().map(place_of_step);
        *json = opened.linked(json.take(), place.as_ref());
    }
    value
}

fn place_of_step(place: &WhyPlace) -> ViewLocation {
    ViewLocation {
        ipu: Some(place.at.ipu),
        program: place.program,
        cycles: Some(place.range),
        ..ViewLocation::view("execution-trace")
    }
}
