//! The changes on one page: the result, its explanation, and the settings that differ.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::cycle_owners::{CycleOwner, ProgramOwners};
use super::execution_trace::{activities, changes, over_lanes};
use super::step_alignment::{StepAlignment, StepChange, StepChangeKind};
use super::{
    ComparedReports, WorkDivisors, WorkNormalization, critical_path, insights, side_titles, summary,
};
use crate::confidence::{Distinction, distinction};
use crate::data_table::TableCell;
use crate::view_location::ViewLocation;
use serde::Serialize;
use std::collections::BTreeMap;
use tilescope_report::units::OperationId;
use tilescope_report::{Report, ReportError};

/// The largest number of rows that explain a difference; the others are summed up in one more row.
const MAX_CONTRIBUTORS: usize = 12;

/// The changes between two reports.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonOverview {
    pub normalization: WorkNormalization,
    /// The titles of the sides.
    pub sides: [&'static str; 2],
    /// The summary, in sentences.
    pub verdict: String,
    /// The answer to the question of whether the difference exceeds the error of the model; `None`
    /// if that is not known.
    pub distinction: Option<Distinction>,
    /// The result, its explanation, the settings that differ, and findings that appeared or
    /// vanished. Cycles of activities, operations and steps add up to those of the run.
    pub tables: Vec<ComparisonTable>,
}

/// Summarizes the changes between two reports on one page.
///
/// # Errors
/// Parts of the files that cannot be read.
pub fn overview(sides: &ComparedReports<'_>) -> Result<ComparisonOverview, ReportError> {
    let (mut page, differs) = outcome_and_settings(sides)?;
    if let Some(steps) = &sides.alignment.steps {
        let divisors = page.normalization.divisors();
        let mut activities = activities(sides, divisors)?;
        activities.rows.retain(|row| row.larger() > 0.0);
        page.tables.push(activities);
        let path = critical_path::tables(sides, divisors)?.into_iter().next();
        page.tables.extend(path.map(|table| table.with_rest_as_one(MAX_CONTRIBUTORS)));
        page.tables.push(operations(sides, steps, divisors)?.with_rest_as_one(MAX_CONTRIBUTORS));
        page.tables.push(changes(steps, divisors).with_rest_as_one(MAX_CONTRIBUTORS));
    }
    page.tables.push(differs);
    for table in insights::tables(sides)? {
        let title = match table.title {
            "New" => "New findings",
            "Resolved" => "Resolved findings",
            _ => continue,
        };
        page.tables.push(ComparisonTable { title, ..table });
    }
    page.tables.retain(|table| !table.rows.is_empty());
    Ok(page)
}

/// The result and the settings that differ. The explanation is left out, since it has to read both
/// runs.
///
/// # Errors
/// Parts of the files that cannot be read.
pub fn outcome(sides: &ComparedReports<'_>) -> Result<ComparisonOverview, ReportError> {
    let (mut page, differs) = outcome_and_settings(sides)?;
    page.tables.push(differs);
    page.tables.retain(|table| !table.rows.is_empty());
    Ok(page)
}

/// A page with the result, and the table of settings that differ.
fn outcome_and_settings(
    sides: &ComparedReports<'_>,
) -> Result<(ComparisonOverview, ComparisonTable), ReportError> {
    let normalization = sides.normalization()?;
    let mut differs = ComparisonTable::new("Set differently", "Setting", Vec::new());
    let mut result = ComparisonTable::new("Result", "Figure", Vec::new());
    let mut costs = None;
    for table in summary::tables(sides)? {
        match table.title {
            "Execution" => drop(result.rows.splice(0..0, table.rows)),
            summary::ENERGY_AND_COST => costs = Some(table),
            "Memory" => result.rows.extend(table.rows.into_iter().map(of_memory)),
            "Target" | "Spec" | "Options" => differs.rows.extend(differences_of(table)),
            _ => {}
        }
    }
    // Options in effect repeat settings of the spec.
    let mut seen = std::collections::BTreeSet::new();
    differs.rows.retain(|row| seen.insert(setting(&row.name).to_owned()));
    let distinction = distinction((sides.source, sides.target), &normalization)?;
    let verdict = verdict(&result, distinction);
    // Costs have a separate table: its cells are text if the sides cannot be compared.
    let tables = std::iter::once(result).chain(costs).collect();
    let sides = side_titles(sides.source, sides.target);
    Ok((ComparisonOverview { normalization, sides, verdict, distinction, tables }, differs))
}

/// Names a figure of memory so that it can stand among others.
fn of_memory(row: ComparisonRow) -> ComparisonRow {
    match row.name.as_str() {
        "Including gaps" | "Excluding gaps" | "Always live" => {
            let name = format!("Memory {}", row.name.to_lowercase());
            ComparisonRow { name, ..row }
        }
        _ => row,
    }
}

fn differences_of(table: ComparisonTable) -> impl Iterator<Item = ComparisonRow> {
    table.rows.into_iter().filter(|row| !row.is_same())
}

/// The last part of a key: that of `options.gradient_accumulation` is the option's name.
fn setting(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// States whether the target became faster or slower, and whether it takes more memory.
fn verdict(result: &ComparisonTable, distinction: Option<Distinction>) -> String {
    let time = match row_named(result, "Cycles") {
        None => "Neither program ran.".to_owned(),
        Some(row) if row.source.is_none() => "Only the target ran.".to_owned(),
        Some(row) if row.target.is_none() => "Only the source ran.".to_owned(),
        Some(row) => {
            let per = row.per.map_or(String::new(), |per| format!(" {}", per.words()));
            comparison_words(row, "The target takes", &format!("cycles{per}"))
        }
    };
    let unsure = distinction.map(|distinction| format!(" {}", doubt(distinction)));
    let memory = row_named(result, "Fullest tile").map(|row| {
        let words = comparison_words(row, "Its fullest tile needs", "bytes");
        format!(" {words}")
    });
    let over = row_named(result, "Tiles out of memory");
    let over = over.and_then(|row| row.target.as_ref()?.number());
    let over = over.filter(|tiles| *tiles > 0.0).map(|_| " It does not fit in memory.".to_owned());
    let fit = row_named(result, "Fits in memory");
    let fit = fit.and_then(|row| row.target.as_ref().map(TableCell::text));
    let over = match fit {
        Some(fit) if fit.ends_with("uncertain") => Some(format!(" In memory: {fit}.")),
        _ => over,
    };
    [Some(time), unsure, memory, over].into_iter().flatten().collect()
}

/// The first row whose name starts with `name`, if it has a value.
fn row_named<'a>(table: &'a ComparisonTable, name: &str) -> Option<&'a ComparisonRow> {
    let row = table.rows.iter().find(|row| row.name.starts_with(name))?;
    if row.source.is_some() || row.target.is_some() { Some(row) } else { None }
}

/// States whether a difference of cycles exceeds the error of the model.
fn doubt(Distinction { change, distinguishable, one_program }: Distinction) -> String {
    let [low, high] = [change.low, change.high].map(|share| format!("{:+.1} %", share * 100.0));
    let errors = if one_program {
        "model errors"
    } else {
        "independent model errors of two different programs"
    };
    let band = format!("{low} to {high} (90 % interval, {errors})");
    if distinguishable {
        format!("Significant: {band}.")
    } else {
        format!("Not significant: {band}.")
    }
}

/// `The target takes 3.20 % fewer cycles per sample: 12,097.31, not 12,497.50.`
fn comparison_words(row: &ComparisonRow, subject: &str, what: &str) -> String {
    let (source, target) = row.values();
    let [source, target] = [source, target].map(|cell| match cell {
        Some(cell) => cell.text().replace(" B", ""),
        None => "none".to_owned(),
    });
    let (more, fewer) = if what == "bytes" { ("more", "less") } else { ("more", "fewer") };
    match (row.change(), row.share()) {
        (Some(0.0) | None, _) => format!("{subject} the same number of {what}: {source}."),
        (Some(change), share) => {
            let way = if change > 0.0 { more } else { fewer };
            let share = share.map_or_else(String::new, |s| format!("{:.2} % ", s.abs() * 100.0));
            format!("{subject} {share}{way} {what}: {target}, not {source}.")
        }
    }
}

/// Cycles of both sides, and their location in a view.
#[derive(Default)]
struct OwnedCycles {
    source: Option<u64>,
    target: Option<u64>,
    operations: [Option<OperationId>; 2],
}

/// Cycles by operation as a mean over lanes: with cycles of no operation and idle time they are the
/// run.
fn operations(
    sides: &ComparedReports<'_>,
    steps: &StepAlignment,
    divisors: WorkDivisors,
) -> Result<ComparisonTable, ReportError> {
    let (in_source, in_target) = sides.both(Report::programs)?;
    let (of_source, of_target) = sides.both(Report::operations)?;
    let source = ProgramOwners { programs: &in_source, operations: &of_source };
    let target = ProgramOwners { programs: &in_target, operations: &of_target };
    let mut cycles: BTreeMap<CycleOwner, OwnedCycles> = BTreeMap::new();
    for StepChange { what, source: a, target: b, .. } in &steps.changes {
        let (of_a, of_b) = match what {
            StepChangeKind::Program(place) => {
                let pair = sides.alignment.programs.pairs[*place as usize];
                (source.owner(pair.source), target.owner(pair.target))
            }
            StepChangeKind::Kind(kind) => {
                ((CycleOwner::None(*kind), None), (CycleOwner::None(*kind), None))
            }
            StepChangeKind::Idle => ((CycleOwner::Idle, None), (CycleOwner::Idle, None)),
        };
        for (at, (sum, (owner, operation))) in [(a, of_a), (b, of_b)].into_iter().enumerate() {
            if sum.steps == 0 && sum.cycles.0 == 0 {
                continue;
            }
            let known = cycles.entry(owner).or_default();
            let side = if at == 0 { &mut known.source } else { &mut known.target };
            *side = Some(side.unwrap_or(0) + sum.cycles.0);
            known.operations[at] = known.operations[at].or(operation);
        }
    }
    let mut rows = Vec::with_capacity(cycles.len());
    for (owner, of) in cycles {
        let [source_place, target_place] = of.operations.map(|operation| {
            let operation = Some(operation?);
            Some(ViewLocation { operation, ..ViewLocation::view("operations") })
        });
        let source = of.source.map(TableCell::Count);
        let target = of.target.map(TableCell::Count);
        let row = ComparisonRow::new(owner.name(), source, target);
        rows.push(ComparisonRow { source_place, target_place, ..row });
    }
    let (whole_source, whole_target) = steps.lane_cycles;
    let table = ComparisonTable::new("Operations", "Cycles of", rows)
        .with_total(Some(TableCell::Count(whole_source.0)), Some(TableCell::Count(whole_target.0)));
    Ok(table.per(over_lanes(steps, divisors)).by_change())
}
