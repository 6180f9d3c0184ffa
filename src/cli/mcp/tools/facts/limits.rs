//! Facts about limits: the efficiency of a run, and the use of its cycles.

use super::super::super::answer::first;
use super::super::super::session::{OpenedReport, json_of};
use crate::cli::command::CliError;
use serde_json::{Value, json};
use tilescope_analysis::limits::{LimitsRow, Machine, explain, limits};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::NumberFormat;

/// The share of the peak that the run achieves, and the use of cycles by operations with a word in
/// their names.
pub(super) fn facts(
    opened: &OpenedReport,
    operation: Option<&str>,
    limit: usize,
) -> Result<Value, CliError> {
    let found = limits(&opened.report)?;
    let Some(run) = &found.run else { return Ok(json!({})) };
    let Some(word) = operation.map(str::to_lowercase) else {
        return Ok(json!({ "run": json_of(&run.summary())? }));
    };
    let rows = found.rows.iter().filter(|row| row.name.to_lowercase().contains(&word));
    let rows: Vec<&LimitsRow> = rows.collect();
    let explain = |row: &LimitsRow| {
        let operation = row.operation;
        let place = ViewLocation { operation, ..ViewLocation::view("limits") };
        opened.linked(explained(row, &found.machine), operation.map(|_| place).as_ref())
    };
    Ok(json!({ "explained": first(rows.into_iter(), limit, explain) }))
}

/// The use of the cycles of an operation.
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
