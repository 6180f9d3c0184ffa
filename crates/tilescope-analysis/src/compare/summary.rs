//! Machine, graph, memory, run and options in brief.

use super::comparison_table::{ComparedThing, ComparisonRow, ComparisonTable};
use super::{ComparedReports, ViewComparison, WorkDivisors};
use crate::data_table::TableCell;
use crate::summary::{ReportSummary, summary};
use tilescope_report::{Report, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "summary", tables };

/// Title of the table of energy and cost, which the overview has too.
pub(super) const ENERGY_AND_COST: &str = "Energy and cost";

/// Values of a report by name.
type SummaryFigure = (&'static str, Option<TableCell>);
/// A section: its title and the function that reads its figures.
type SummarySection = (&'static str, fn(&ReportSummary) -> Vec<SummaryFigure>);

pub(super) fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(summary)?;
    let parts: [SummarySection; 5] = [
        ("Target", machine),
        ("Graph", graph),
        ("Memory", memory),
        (ENERGY_AND_COST, energy_and_cost),
        ("Execution", execution),
    ];
    let mut tables: Vec<ComparisonTable> = Vec::new();
    for (title, values) in parts {
        let mut rows = Vec::new();
        for ((name, source), (_, target)) in values(&source).into_iter().zip(values(&target)) {
            if source.is_some() || target.is_some() {
                rows.push(ComparisonRow::new(name, source, target));
            }
        }
        tables.push(ComparisonTable::new(title, "Figure", rows));
    }
    if let Some(costs) = tables.iter_mut().find(|table| table.title == ENERGY_AND_COST) {
        *costs = like_costs(std::mem::take(costs));
    }
    if let Some(execution) = tables.last_mut() {
        let divisors = sides.normalization()?.divisors();
        let rows = std::mem::take(&mut execution.rows).into_iter();
        execution.rows = rows.map(|row| of_work(row, divisors)).collect();
    }
    tables.push(options(sides)?);
    tables.push(spec(sides));
    tables.retain(|table| !table.rows.is_empty());
    Ok(tables)
}

/// Gives figures that grow with the work of a run per unit of work, and adds the unit to their
/// names.
fn of_work(row: ComparisonRow, divisors: WorkDivisors) -> ComparisonRow {
    if !["Cycles", "Seconds", "Steps"].contains(&row.name.as_str()) {
        return row;
    }
    let row = row.per(divisors);
    let name = row.per.map(|per| format!("{} {}", row.name, per.words()));
    ComparisonRow { name: name.unwrap_or_else(|| row.name.clone()), ..row }
}

fn count(value: impl Into<u64>) -> Option<TableCell> {
    Some(TableCell::Count(value.into()))
}

fn machine(of: &ReportSummary) -> Vec<SummaryFigure> {
    let target = &of.target;
    vec![
        ("Machine", target.machine.clone().map(TableCell::Text)),
        ("Type", Some(TableCell::Text(target.kind.to_owned()))),
        ("Architecture", Some(TableCell::Text(target.architecture.clone()))),
        ("IPUs", count(target.num_ipus)),
        ("Tiles per IPU", count(target.tiles_per_ipu)),
        ("Replicas", count(target.replicas)),
        ("IPUs per replica", count(target.ipus_per_replica)),
        ("Memory per tile", Some(TableCell::Bytes(target.bytes_per_tile))),
        ("Clock in Hz", count(target.clock_hz)),
    ]
}

fn graph(of: &ReportSummary) -> Vec<SummaryFigure> {
    let graph = &of.graph;
    vec![
        ("Compute sets", graph.compute_sets.and_then(count)),
        ("Vertices", graph.vertices.and_then(count)),
        ("Edges", graph.edges.and_then(count)),
        ("Variables", graph.variables.and_then(count)),
    ]
}

fn memory(of: &ReportSummary) -> Vec<SummaryFigure> {
    let memory = of.memory.as_ref();
    let fit = memory.map(|memory| memory.fit);
    vec![
        ("Including gaps", memory.map(|memory| memory.total_including_gaps.into())),
        ("Excluding gaps", memory.map(|memory| memory.total_excluding_gaps.into())),
        ("Always live", memory.map(|memory| memory.always_live.into())),
        ("Not always live (peak)", memory.map(|memory| memory.peak_not_always_live.into())),
        ("Fullest tile", memory.map(|memory| memory.max_tile_including_gaps.into())),
        ("Tiles out of memory", memory.and_then(|memory| count(memory.out_of_memory_tiles))),
        ("Fits in memory", fit.map(|fit| TableCell::Text(fit.words().to_owned()))),
    ]
}

/// Energy and cost per million samples, so that runs of any length can be compared.
fn energy_and_cost(of: &ReportSummary) -> Vec<SummaryFigure> {
    let energy = of.energy.as_ref();
    let joules = energy.and_then(|energy| energy.joules_per_million_samples);
    let cost = of.cost.as_ref();
    let money = cost.and_then(|cost| cost.per_million_samples);
    vec![
        ("Watts", energy.map(|energy| TableCell::Real(energy.watts))),
        ("Joules per million samples", joules.map(TableCell::Real)),
        (CURRENCY, cost.map(|cost| TableCell::Text(cost.currency.clone()))),
        (MONEY[0], cost.map(|cost| TableCell::Real(cost.per_hour))),
        (MONEY[1], money.map(TableCell::Real)),
    ]
}

const CURRENCY: &str = "Currency";
const MONEY: [&str; 2] = ["Price per hour", "Cost per million samples"];

/// Energy and cost, without differences if they cannot be compared because a side is unknown or the
/// currencies differ. The values of both sides become text then.
fn like_costs(table: ComparisonTable) -> ComparisonTable {
    let currencies = table.rows.iter().find(|row| row.name == CURRENCY);
    let currencies_differ = currencies.is_some_and(|row| !row.is_same());
    let mut rows = Vec::with_capacity(table.rows.len());
    for row in table.rows {
        let unlike = currencies_differ && MONEY.contains(&row.name.as_str());
        if unlike || row.source.is_none() || row.target.is_none() {
            rows.push(ComparisonRow::new(row.name, as_text(row.source), as_text(row.target)));
        } else {
            rows.push(row);
        }
    }
    ComparisonTable { rows, ..table }
}

fn as_text(cell: Option<TableCell>) -> Option<TableCell> {
    let text = cell.map_or_else(|| "unknown".to_owned(), |cell| cell.text());
    Some(TableCell::Text(text))
}

fn execution(of: &ReportSummary) -> Vec<SummaryFigure> {
    let run = of.execution.as_ref();
    let samples = run.and_then(|run| run.samples);
    let rate = run.and_then(|run| run.samples_per_second);
    let steps = run.map(|run| run.ipus.iter().map(|ipu| ipu.steps).sum::<u64>());
    let band = of.confidence.and_then(|confidence| confidence.samples_per_second);
    vec![
        ("Cycles", run.and_then(|run| count(run.total_cycles.0))),
        ("Seconds", run.map(|run| TableCell::Seconds(run.seconds))),
        ("Samples", samples.and_then(count)),
        ("Samples per second", rate.map(TableCell::Real)),
        ("Samples per second, low", band.map(|band| TableCell::Real(band.low()))),
        ("Samples per second, high", band.map(|band| TableCell::Real(band.high()))),
        (
            "Utilisation of peak",
            of.limits.as_ref().and_then(|of| of.utilisation.map(TableCell::Share)),
        ),
        ("Steps", steps.and_then(count)),
    ]
}

/// Options in effect, those that differ first.
fn options(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| report.options())?;
    Ok(key_value_table("Options", "Option", source, target))
}

/// Settings of the specs that the reports were made from, key by key.
fn spec(sides: &ComparedReports<'_>) -> ComparisonTable {
    key_value_table("Spec", "Key", spec_keys(sides.source), spec_keys(sides.target))
}

fn spec_keys(report: &Report) -> Vec<(String, String)> {
    let parsed = report.spec().and_then(|text| text.parse::<toml::Table>().ok());
    let mut keys = Vec::new();
    for (section, values) in parsed.unwrap_or_default() {
        match values.as_table() {
            Some(values) => {
                for (key, value) in values {
                    keys.push((format!("{section}.{key}"), value.to_string()));
                }
            }
            None => keys.push((section.clone(), values.to_string())),
        }
    }
    keys
}

/// Keys with words; what differs first.
fn key_value_table(
    title: &'static str,
    column: &'static str,
    source: Vec<(String, String)>,
    target: Vec<(String, String)>,
) -> ComparisonTable {
    let [source, target] = [source, target].map(|side| {
        side.into_iter()
            .map(|(key, value)| (key.clone(), ComparedThing::new(key, TableCell::of_value(&value))))
    });
    let mut table = ComparisonTable::paired(title, column, source, target);
    table.rows.sort_by_key(ComparisonRow::is_same);
    table
}
