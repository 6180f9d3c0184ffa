//! Machine, graph, memory, run and options at a glance.

use super::table::{Row, Table, joined};
use super::{Comparison, Sides};
use crate::data_table::TableCell;
use crate::summary::{ExecutionSummary, Summary, summary};
use tilescope_report::ReportError;

pub(super) const COMPARISON: Comparison = Comparison { view: "summary", tables };

/// Values of a report by name.
type Named = (&'static str, Option<TableCell>);
/// A title, and what stands below it.
type Section = (&'static str, fn(&Summary) -> Vec<Named>);

fn tables(sides: &Sides<'_>) -> Result<Vec<Table>, ReportError> {
    let (source, target) = sides.both(summary)?;
    let parts: [Section; 4] =
        [("Target", machine), ("Graph", graph), ("Memory", memory), ("Execution", execution)];
    let table = |(title, values): Section| {
        let rows = values(&source).into_iter().zip(values(&target));
        let rows = rows.map(|((name, a), (_, b))| Row::new(name, a, b));
        Table::new(title, "Figure", rows.filter(|row| row != &Row::named(&row.name)).collect())
    };
    let mut tables: Vec<Table> = parts.into_iter().map(table).collect();
    tables.push(options(sides)?);
    tables.push(spec(sides));
    tables.retain(|table| !table.rows.is_empty());
    Ok(tables)
}

impl Row {
    /// A row that neither report has a value for.
    fn named(name: &str) -> Self {
        Self::new(name, None, None)
    }
}

fn count(value: impl Into<u64>) -> Option<TableCell> {
    Some(TableCell::Count(value.into()))
}

fn machine(of: &Summary) -> Vec<Named> {
    let target = &of.target;
    vec![
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

fn graph(of: &Summary) -> Vec<Named> {
    let graph = &of.graph;
    vec![
        ("Compute sets", count(graph.compute_sets)),
        ("Vertices", count(graph.vertices)),
        ("Edges", count(graph.edges)),
        ("Variables", count(graph.variables)),
    ]
}

fn memory(of: &Summary) -> Vec<Named> {
    let memory = &of.memory;
    let bytes = |value| Some(TableCell::Bytes(value));
    vec![
        ("Including gaps", bytes(memory.total_including_gaps)),
        ("Excluding gaps", bytes(memory.total_excluding_gaps)),
        ("Always live", bytes(memory.always_live)),
        ("Peak of the rest", bytes(memory.peak_not_always_live)),
        ("Fullest tile", bytes(memory.max_tile_including_gaps)),
        ("Tiles out of memory", count(memory.out_of_memory_tiles)),
    ]
}

fn execution(of: &Summary) -> Vec<Named> {
    let value =
        |of_run: fn(&ExecutionSummary) -> Option<TableCell>| of.execution.as_ref().and_then(of_run);
    vec![
        ("Cycles", value(|run| count(run.total_cycles))),
        ("Seconds", value(|run| Some(TableCell::Real(run.seconds)))),
        ("Samples", value(|run| run.samples.and_then(count))),
        ("Samples per second", value(|run| run.samples_per_second.map(TableCell::Real))),
        ("Steps", value(|run| count(run.ipus.iter().map(|ipu| ipu.steps).sum::<u64>()))),
    ]
}

/// Options in effect that differ in anything, and those that do not behind them.
fn options(sides: &Sides<'_>) -> Result<Table, ReportError> {
    let (source, target) = sides.both(|report| report.options())?;
    let named = |options: Vec<(String, String)>| {
        options.into_iter().map(|(key, value)| (key.clone(), (key, value)))
    };
    Ok(words("Options", "Option", joined(named(source), named(target))))
}

/// Lines of the specs the reports were made from, key by key.
fn spec(sides: &Sides<'_>) -> Table {
    let keys = |report: &tilescope_report::Report| {
        let parsed = report.spec().and_then(|text| text.parse::<toml::Table>().ok());
        let sections = parsed.unwrap_or_default();
        let mut keys = Vec::new();
        for (section, values) in &sections {
            match values.as_table() {
                Some(values) => keys.extend(values.iter().map(|(key, value)| {
                    let key = format!("{section}.{key}");
                    (key.clone(), (key, value.to_string()))
                })),
                None => keys.push((section.clone(), (section.clone(), values.to_string()))),
            }
        }
        keys
    };
    words("Spec", "Key", joined(keys(sides.source), keys(sides.target)))
}

type Keyed = Option<(String, String)>;

/// Keys with words; what differs first.
fn words(title: &'static str, column: &'static str, pairs: Vec<(Keyed, Keyed)>) -> Table {
    let row = |(source, target): (Keyed, Keyed)| {
        let name = source.as_ref().or(target.as_ref()).map(|(key, _)| key.clone());
        let cell = |side: Keyed| side.map(|(_, value)| TableCell::Text(value));
        Row::new(name.unwrap_or_default(), cell(source), cell(target))
    };
    let mut rows: Vec<Row> = pairs.into_iter().map(row).collect();
    rows.sort_by_key(Row::is_same);
    Table::new(title, column, rows)
}
