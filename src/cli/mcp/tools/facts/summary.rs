//! Facts of the summary: all its figures.

use super::super::super::session::{OpenedReport, json_of};
use crate::cli::command::CliError;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_analysis::critical_path::{EXPOSED, HIDDEN, IPU_SLACK, LEAD, ON_PATH, WAITS};
use tilescope_analysis::gates::{GateQuantity, named_figure};
use tilescope_analysis::limits::WaterfallStep;
use tilescope_analysis::summary::summary;

/// Derived figures, with their formulas.
const FORMULAS: [(&str, &str); 9] = [
    ("execution.total_cycles", "from the first step of the run to the end of the last"),
    (
        "execution.ipus.*.proportions",
        "cycles of each activity / cycles of the run; they add up to 1",
    ),
    ("execution.critical_path.*.on_path", ON_PATH),
    ("execution.critical_path.*.exposed", EXPOSED),
    ("execution.critical_path.*.hidden", HIDDEN),
    ("execution.slack.*.slack", IPU_SLACK),
    ("execution.slack.*.waits", WAITS),
    ("execution.slack.*.lead", LEAD),
    ("memory.max_tile_including_gaps", "bytes below the highest used address of the fullest tile"),
];

/// Every figure with its unit and formula.
pub(super) fn facts(opened: &OpenedReport) -> Result<Value, CliError> {
    let figures = summary(&opened.report)?;
    let steps = figures.limits.iter().flat_map(|limits| &limits.waterfall).map(|share| share.step);
    let mut formulas = formulas(steps);
    let value = json_of(&figures)?;
    if value["execution"].is_null() {
        formulas.retain(|pattern, _| !pattern.starts_with("execution"));
    }
    Ok(json!({
        "notes": opened.report.notes()?,
        "units": units(&value),
        "formulas": formulas,
        "values": value,
    }))
}

fn formulas(steps: impl Iterator<Item = WaterfallStep>) -> Map<String, Value> {
    let fixed = FORMULAS.iter().map(|(figure, formula)| ((*figure).to_owned(), (*formula).into()));
    fixed
        .chain(steps.map(|step| {
            let name = serde_json::to_value(step).unwrap_or_default();
            let name = name.as_str().unwrap_or_default();
            (format!("limits.waterfall.{name}"), step.about().into())
        }))
        .collect()
}

/// Figures of each unit, by their paths.
fn units(figures: &Value) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut units = BTreeMap::new();
    add_units("", figures, &mut units);
    units
}

fn add_units(
    path: &str,
    value: &Value,
    units: &mut BTreeMap<&'static str, BTreeSet<&'static str>>,
) {
    let join_path = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| add_units(&join_path(name), value, units));
        }
        Value::Array(values) => {
            let numbered = values.iter().enumerate();
            numbered.for_each(|(at, value)| add_units(&join_path(&at.to_string()), value, units));
        }
        Value::Number(_) => {
            if let Some(figure) = named_figure(path)
                && let Some(unit) = unit(figure.quantity())
            {
                units.entry(unit).or_default().insert(figure.pattern());
            }
        }
        _ => {}
    }
}

fn unit(quantity: GateQuantity) -> Option<&'static str> {
    match quantity {
        GateQuantity::Bytes => Some("bytes"),
        GateQuantity::Cycles => Some("cycles"),
        GateQuantity::Seconds => Some("seconds"),
        GateQuantity::Hertz => Some("hertz"),
        GateQuantity::PerSecond => Some("per second"),
        GateQuantity::Share => Some("share of 1"),
        GateQuantity::Count => None,
    }
}
