//! Facts about the execution trace: the waits of a run.

use super::super::super::session::OpenedReport;
use crate::cli::command::CliError;
use crate::cli::why::{CHAINS, StepAnswer, chain_json};
use serde_json::{Value, json};
use tilescope_analysis::critical_path::{SLACK, WhyChain, WhyPlace, path_totals, why_run};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::NumberFormat;

/// Chains from the largest parts of the critical path down to options, or the chain of one executed
/// step.
pub(super) fn facts(opened: &OpenedReport, at: Option<&str>) -> Result<Value, CliError> {
    if let Some(at) = at {
        return of_step(opened, at);
    }
    let report = &opened.report;
    let Some(totals) = path_totals(report, None)? else { return Ok(json!({})) };
    let chains = why_run(report, CHAINS, NumberFormat::default())?;
    Ok(json!({
        "cycles": totals.cycles,
        "why": chains.iter().map(|chain| linked_chain(opened, chain)).collect::<Vec<_>>(),
    }))
}

fn of_step(opened: &OpenedReport, at: &str) -> Result<Value, CliError> {
    let found = StepAnswer::of(&opened.report, at)?;
    let mut answer = found.json();
    answer["why"] = linked_chain(opened, &found.chain);
    answer["formulas"] = json!({ "slack": SLACK });
    Ok(answer)
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
