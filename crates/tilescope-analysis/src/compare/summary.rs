//! Machine, graph, memory, run and options at a glance.

use super::comparison_table::{ComparedThing, ComparisonRow, ComparisonTable};
use super::{ComparedReports, ViewComparison, WorkDivisors};
use crate::data_table::TableCell;
use crate::summary::{ExecutionSummary, MemorySummary, ReportSummary, summary};
use tilescope_report::ReportError;
use tilescope_report::units::Bytes;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "summary", tables };

/// The table of energy and cost, which the overview has too.
pub(super) const ENERGY_AND_COST: &str = "Energy and cost";

/// Values of a report by name.
type SummaryFigure = (&'static str, Option<TableCell>);
/// A title, and what stands below it.
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
    let table = |(title, values): SummarySection| {
        let rows = values(&source).into_iter().zip(values(&target));
        let rows = rows.map(|((name, a), (_, b))| ComparisonRow::new(name, a, b));
        ComparisonTable::new(
            title,
            "Figure",
            rows.filter(|row| row != &ComparisonRow::named(&row.name)).collect(),
        )
    };
    let mut tables: Vec<ComparisonTable> = parts.into_iter().map(table).collect();
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

/// Figures that grow with the work of a run are told per unit of it, which their name says.
fn of_work(row: ComparisonRow, divisors: WorkDivisors) -> ComparisonRow {
    if !["Cycles", "Seconds", "Steps"].contains(&row.name.as_str()) {
        return row;
    }
    let row = row.per(divisors);
    let name = row.per.map(|per| format!("{} {}", row.name, per.words()));
    ComparisonRow { name: name.unwrap_or_else(|| row.name.clone()), ..row }
}

impl ComparisonRow {
    /// A row that neither report has a value for.
    fn named(name: &str) -> Self {
        Self::new(name, None, None)
    }
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
    let bytes =
        |value: fn(&MemorySummary) -> Bytes| memory.map(|memory| TableCell::Bytes(value(memory)));
    vec![
        ("Including gaps", bytes(|memory| memory.total_including_gaps)),
        ("Excluding gaps", bytes(|memory| memory.total_excluding_gaps)),
        ("Always live", bytes(|memory| memory.always_live)),
        ("Peak of the rest", bytes(|memory| memory.peak_not_always_live)),
        ("Fullest tile", bytes(|memory| memory.max_tile_including_gaps)),
        ("Tiles out of memory", memory.and_then(|memory| count(memory.out_of_memory_tiles))),
        ("Fits in memory", fit.map(|fit| TableCell::Text(fit.words().to_owned()))),
    ]
}

/// Per million samples, so that runs of any length compare.
fn energy_and_cost(of: &ReportSummary) -> Vec<SummaryFigure> {
    let real = |value: Option<f64>| value.map(TableCell::Real);
    let (energy, cost) = (of.energy.as_ref(), of.cost.as_ref());
    vec![
        ("Watts", real(energy.map(|energy| energy.watts))),
        ("Joules per million samples", real(energy.and_then(|of| of.joules_per_million_samples))),
        (CURRENCY, cost.map(|cost| TableCell::Text(cost.currency.clone()))),
        (MONEY[0], real(cost.map(|cost| cost.per_hour))),
        (MONEY[1], real(cost.and_then(|cost| cost.per_million_samples))),
    ]
}

const CURRENCY: &str = "Currency";
const MONEY: [&str; 2] = ["Price per hour", "Cost per million samples"];

/// Energy and money without differences of what cannot be compared: a side that is not known, or
/// another currency. What both sides say stands as words then.
fn like_costs(table: ComparisonTable) -> ComparisonTable {
    let currencies = table.rows.iter().find(|row| row.name == CURRENCY);
    let currencies_differ = currencies.is_some_and(|row| !row.is_same());
    let words = |cell: Option<TableCell>| {
        Some(TableCell::Text(cell.map_or_else(|| "not known".to_owned(), |cell| cell.text())))
    };
    let row = |row: ComparisonRow| {
        let unlike = currencies_differ && MONEY.contains(&row.name.as_str());
        match unlike || row.source.is_none() || row.target.is_none() {
            true => ComparisonRow::new(row.name, words(row.source), words(row.target)),
            false => row,
        }
    };
    ComparisonTable { rows: table.rows.into_iter().map(row).collect(), ..table }
}

fn execution(of: &ReportSummary) -> Vec<SummaryFigure> {
    let value =
        |of_run: fn(&ExecutionSummary) -> Option<TableCell>| of.execution.as_ref().and_then(of_run);
    let band = of.confidence.and_then(|confidence| confidence.samples_per_second);
    vec![
        ("Cycles", value(|run| count(run.total_cycles.0))),
        ("Seconds", value(|run| Some(TableCell::Seconds(run.seconds)))),
        ("Samples", value(|run| run.samples.and_then(count))),
        ("Samples per second", value(|run| run.samples_per_second.map(TableCell::Real))),
        ("Samples per second, low", band.map(|band| TableCell::Real(band.low()))),
        ("Samples per second, high", band.map(|band| TableCell::Real(band.high()))),
        (
            "Utilisation of peak",
            of.limits.as_ref().and_then(|of| of.utilisation.map(TableCell::Share)),
        ),
        ("Steps", value(|run| count(run.ipus.iter().map(|ipu| ipu.steps).sum::<u64>()))),
    ]
}

/// Options in effect that differ in anything, and those that do not behind them.
fn options(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| report.options())?;
    Ok(key_value_table("Options", "Option", source, target))
}

/// Lines of the specs the reports were made from, key by key.
fn spec(sides: &ComparedReports<'_>) -> ComparisonTable {
    let keys = |report: &tilescope_report::Report| {
        let parsed = report.spec().and_then(|text| text.parse::<toml::Table>().ok());
        let sections = parsed.unwrap_or_default();
        let mut keys = Vec::new();
        for (section, values) in &sections {
            match values.as_table() {
                Some(values) => keys.extend(
                    values
                        .iter()
                        .map(|(key, value)| (format!("{section}.{key}"), value.to_string())),
                ),
                None => keys.push((section.clone(), values.to_string())),
            }
        }
        keys
    };
    key_value_table("Spec", "Key", keys(sides.source), keys(sides.target))
}

/// Keys with words; what differs first.
fn key_value_table(
    title: &'static str,
    column: &'static str,
    source: Vec<(String, String)>,
    target: Vec<(String, String)>,
) -> ComparisonTable {
    let thing = |(key, value): (String, String)| {
        (key.clone(), ComparedThing::new(key, TableCell::of_value(&value)))
    };
    let [source, target] = [source, target].map(|side| side.into_iter().map(thing));
    let mut table = ComparisonTable::paired(title, column, source, target);
    table.rows.sort_by_key(ComparisonRow::is_same);
    table
}
