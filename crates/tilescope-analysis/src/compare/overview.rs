//! What changed, on one page: the result, what explains it, and what was set differently.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::cycle_owners::{CycleOwner, ProgramOwners};
use super::execution_trace::{activities, changes, over_lanes};
use super::step_alignment::{StepAlignment, StepChange, StepChangeKind, StepChangeSum};
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

/// Rows that explain a difference; what is left is one row more.
const MAX_CONTRIBUTORS: usize = 12;

/// What changed between two reports.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonOverview {
    pub normalization: WorkNormalization,
    /// What the sides are called.
    pub sides: [&'static str; 2],
    /// What it comes to, in sentences.
    pub verdict: String,
    /// Whether the difference is beyond what the model may be wrong; `None` where that is not known.
    pub distinction: Option<Distinction>,
    /// The result, what explains it, what was set differently, and findings that came or went.
    /// Cycles of activities, operations and steps add up to those of the run.
    pub tables: Vec<ComparisonTable>,
}

/// What changed between two reports, on one page.
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
            "New" => "Insights gained",
            "Resolved" => "Insights lost",
            _ => continue,
        };
        page.tables.push(ComparisonTable { title, ..table });
    }
    page.tables.retain(|table| !table.rows.is_empty());
    Ok(page)
}

/// The result and what was set differently, without what explains it: for that both runs are gone
/// through.
///
/// # Errors
/// Parts of the files that cannot be read.
pub fn outcome(sides: &ComparedReports<'_>) -> Result<ComparisonOverview, ReportError> {
    let (mut page, differs) = outcome_and_settings(sides)?;
    page.tables.push(differs);
    page.tables.retain(|table| !table.rows.is_empty());
    Ok(page)
}

/// A page with the result, and what was set differently.
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
    // Options in effect repeat what the spec says.
    let mut seen = std::collections::BTreeSet::new();
    differs.rows.retain(|row| seen.insert(setting(&row.name).to_owned()));
    let distinction = distinction((sides.source, sides.target), &normalization)?;
    let verdict = verdict(&result, distinction);
    // Costs are a table of their own: words, where the sides cannot be compared.
    let tables = std::iter::once(result).chain(costs).collect();
    let sides = side_titles(sides.source, sides.target);
    Ok((ComparisonOverview { normalization, sides, verdict, distinction, tables }, differs))
}

/// A figure of memory among others.
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

/// The last part of a key: `options.gradient_accumulation` is an option of that name.
fn setting(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// What became faster or slower, and what takes more memory.
fn verdict(result: &ComparisonTable, distinction: Option<Distinction>) -> String {
    let row = |name: &str| {
        let mut named = result.rows.iter().filter(|row| row.name.starts_with(name));
        named.next().filter(|row| row.source.is_some() || row.target.is_some())
    };
    let time = match row("Cycles") {
        None => "Neither program was run.".to_owned(),
        Some(row) if row.source.is_none() => "Only the target was run.".to_owned(),
        Some(row) if row.target.is_none() => "Only the source was run.".to_owned(),
        Some(row) => {
            let per = row.per.map_or(String::new(), |per| format!(" {}", per.words()));
            comparison_words(row, "The target takes", &format!("cycles{per}"))
        }
    };
    let unsure = distinction.map(|distinction| format!(" {}", doubt(distinction)));
    let memory = row("Fullest tile").map(|row| {
        let words = comparison_words(row, "Its fullest tile needs", "bytes");
        format!(" {words}")
    });
    let over = row("Tiles out of memory").and_then(|row| row.target.as_ref()?.number());
    let over = over.filter(|tiles| *tiles > 0.0).map(|_| " It does not fit in memory.".to_owned());
    let fit = row("Fits in memory").and_then(|row| row.target.as_ref().map(TableCell::text));
    let over = match fit {
        Some(fit) if fit.ends_with("uncertain") => Some(format!(" In memory: {fit}.")),
        _ => over,
    };
    [Some(time), unsure, memory, over].into_iter().flatten().collect()
}

/// Whether a difference of cycles is beyond what the model may be wrong.
fn doubt(Distinction { change, distinguishable, one_program }: Distinction) -> String {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let [low, high] = [change.low, change.high].map(percent);
    let errors = if one_program {
        "model errors"
    } else {
        "independent model errors of two different programs"
    };
    let band = format!("{low} to {high} (90 % interval, {errors})");
    match distinguishable {
        true => format!("Significant: {band}."),
        false => format!("Not significant: {band}."),
    }
}

/// `The target takes 3.20 % fewer cycles per sample: 12,097.31, not 12,497.50.`
fn comparison_words(row: &ComparisonRow, subject: &str, what: &str) -> String {
    let (source, target) = row.values();
    let text = |cell: Option<TableCell>| {
        cell.as_ref().map_or_else(|| "none".to_owned(), TableCell::text).replace(" B", "")
    };
    let (more, fewer) = if what == "bytes" { ("more", "less") } else { ("more", "fewer") };
    match (row.change(), row.share()) {
        (Some(0.0) | None, _) => format!("{subject} the same number of {what}: {}.", text(source)),
        (Some(change), share) => {
            let way = if change > 0.0 { more } else { fewer };
            let share = share.map_or_else(String::new, |s| format!("{:.2} % ", s.abs() * 100.0));
            format!("{subject} {share}{way} {what}: {}, not {}.", text(target), text(source))
        }
    }
}

/// Cycles of both sides, and where they can be seen.
#[derive(Default)]
struct OwnedCycles {
    source: Option<u64>,
    target: Option<u64>,
    operations: [Option<OperationId>; 2],
}

/// Cycles by operation as a mean over lanes: with what belongs to none, and idle time, they are the
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
        let here = |sum: &StepChangeSum| sum.steps > 0 || sum.cycles.0 > 0;
        for (at, (sum, (owner, operation))) in [(a, of_a), (b, of_b)].into_iter().enumerate() {
            if !here(sum) {
                continue;
            }
            let known = cycles.entry(owner).or_default();
            let side = if at == 0 { &mut known.source } else { &mut known.target };
            *side = Some(side.unwrap_or(0) + sum.cycles.0);
            known.operations[at] = known.operations[at].or(operation);
        }
    }
    let place = |operation: Option<OperationId>| {
        Some(ViewLocation { operation: Some(operation?), ..ViewLocation::view("operations") })
    };
    let row = |(owner, of): (CycleOwner, OwnedCycles)| ComparisonRow {
        source_place: place(of.operations[0]),
        target_place: place(of.operations[1]),
        ..ComparisonRow::new(
            owner.name(),
            of.source.map(TableCell::Count),
            of.target.map(TableCell::Count),
        )
    };
    let (whole_source, whole_target) = steps.lane_cycles;
    let table =
        ComparisonTable::new("Operations", "Cycles of", cycles.into_iter().map(row).collect())
            .with_total(
                Some(TableCell::Count(whole_source.0)),
                Some(TableCell::Count(whole_target.0)),
            );
    Ok(table.per(over_lanes(steps, divisors)).by_change())
}
