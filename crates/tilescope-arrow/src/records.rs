//! The records behind the views, one row each.

use crate::row_selection::{RowFilter, RowSelection};
use crate::table::TableError;
use crate::text_dictionary::{TextDictionary, by_key};
use arrow_array::{
    ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::ArrowError;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_analysis::tile_curves::ChipFloorPlan;
use tilescope_report::units::{Bytes, Cycles, TileRange, TileRuns};
use tilescope_report::{MarkFilter, MemoryCategory, ProgramNode, Report, Variable, VariableFilter};

/// A kind of record.
pub struct RecordTable {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// By what its rows can be selected.
    pub filters: &'static [RowFilter],
    pub(crate) read: fn(&Report, &RowSelection) -> Result<RecordBatch, TableError>,
}

const fn record(
    name: &'static str,
    about: &'static str,
    filters: &'static [RowFilter],
    read: fn(&Report, &RowSelection) -> Result<RecordBatch, TableError>,
) -> RecordTable {
    RecordTable { name, about, filters, read }
}

/// Every kind but executed steps, which are never read all at once.
pub(crate) static RECORDS: &[RecordTable] = &[
    record(
        "marks",
        "Runs, iterations, stages, … on the trace",
        &[RowFilter::Cycles, RowFilter::Ipus],
        marks,
    ),
    record(
        "memory_by_tile",
        "Memory of every tile",
        &[RowFilter::Ipus, RowFilter::Tiles],
        memory_by_tile,
    ),
    record(
        "variables",
        "Variables with lifetimes",
        &[RowFilter::Ipus, RowFilter::Tiles],
        variables,
    ),
    record("liveness", "Bytes live at every step", &[], liveness),
    record("programs", "Nodes of the compiled program", &[RowFilter::Ipus], programs),
    record("compute_sets", "Vertices that run together", &[], compute_sets),
    record("exchanges", "Traffic and code of exchanges", &[], exchanges),
    record("operations", "Operations of the model", &[RowFilter::Ipus], operations),
    record("operation_inputs", "Which operation reads the results of which", &[], operation_inputs),
];

/// Columns in order, each with its name.
type NamedColumns = Vec<(&'static str, ArrayRef)>;

fn u32s(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(values.collect::<UInt32Array>())
}

fn u64s(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(values.collect::<Vec<u64>>().into_iter().map(Some).collect::<UInt64Array>())
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// Texts of which few differ.
fn words<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Result<ArrayRef, ArrowError> {
    let mut dictionary = TextDictionary::default();
    let keys: Int32Array = values.map(|text| text.map(|text| dictionary.key(text))).collect();
    by_key(keys, &dictionary.values())
}

fn batch(columns: NamedColumns) -> Result<RecordBatch, TableError> {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// Tiles that have a value.
fn tiles<T: Clone + PartialEq>(of: &TileRuns<T>) -> u64 {
    of.tile_count().into()
}

fn marks(report: &Report, selection: &RowSelection) -> Result<RecordBatch, TableError> {
    let window = selection.window();
    let mut marks =
        report.marks(&MarkFilter { kind: None, ipu: None, window, limit: usize::MAX })?;
    marks.retain(|mark| mark.ipu.is_none_or(|ipu| selection.has_ipu(ipu)));
    batch(vec![
        ("kind", words(marks.iter().map(|mark| Some(mark.kind.name())))?),
        ("label", words(marks.iter().map(|mark| Some(mark.label.as_str())))?),
        ("ipu", u32s(marks.iter().map(|mark| mark.ipu.map(|ipu| ipu.0)))),
        ("pass", words(marks.iter().map(|mark| mark.pass.map(|pass| pass.name())))?),
        ("index", u64s(marks.iter().map(|mark| mark.index))),
        ("first_step", u64s(marks.iter().map(|mark| mark.steps.start.0))),
        ("end_step", u64s(marks.iter().map(|mark| mark.steps.end.0))),
        ("start", u64s(marks.iter().map(|mark| mark.cycles.start.0))),
        ("end", u64s(marks.iter().map(|mark| mark.cycles.end.0))),
    ])
}

fn memory_by_tile(report: &Report, selection: &RowSelection) -> Result<RecordBatch, TableError> {
    let target = report.target()?;
    let plan = ChipFloorPlan::from_target(&target);
    let memory = report.tile_memory()?;
    let each = memory.iter().flat_map(|(range, of)| range.iter().map(move |tile| (tile, *of)));
    let wanted = |tile| selection.has_tile_of(TileRange::single(tile), &target);
    let rows: Vec<_> = each.filter(|(tile, _)| wanted(*tile)).collect();
    let figure = |of: fn(&tilescope_report::TileMemory) -> Bytes| {
        u64s(rows.iter().map(|(_, memory)| of(memory).0))
    };
    let cell = |of: fn((usize, usize)) -> usize| {
        let place = |tile| plan.known.then(|| u16::try_from(of(plan.cell(tile))).ok()).flatten();
        Arc::new(rows.iter().map(|(tile, _)| place(*tile)).collect::<UInt16Array>()) as ArrayRef
    };
    let ipu = |tile: u32| tile.checked_div(target.tiles_per_ipu);
    let mut columns: NamedColumns = vec![
        ("tile", u32s(rows.iter().map(|(tile, _)| Some(tile.0)))),
        ("ipu", u32s(rows.iter().map(|(tile, _)| ipu(tile.0)))),
        ("x", cell(|(column, _)| column)),
        ("y", cell(|(_, row)| row)),
        ("total", figure(|memory| memory.excluding_gaps())),
        ("total_including_gaps", figure(|memory| memory.including_gaps)),
        ("non_interleaved", figure(|memory| memory.non_interleaved)),
        ("interleaved", figure(|memory| memory.interleaved)),
        ("overflowed", figure(|memory| memory.overflowed)),
        ("always_live", figure(|memory| memory.always_live)),
        ("peak_not_always_live", figure(|memory| memory.peak_not_always_live)),
    ];
    let mut categories: BTreeMap<MemoryCategory, BTreeMap<u32, u64>> = BTreeMap::new();
    for (range, owners) in report.tile_categories()?.iter() {
        for (tile, of) in range.iter().flat_map(|tile| owners.iter().map(move |of| (tile, of))) {
            *categories.entry(of.category).or_default().entry(tile.0).or_default() += of.bytes.0;
        }
    }
    for (category, bytes) in categories {
        let on = |tile: u32| bytes.get(&tile).copied().unwrap_or(0);
        columns.push((category.name(), u64s(rows.iter().map(|(tile, _)| on(tile.0)))));
    }
    batch(columns)
}

fn variables(report: &Report, selection: &RowSelection) -> Result<RecordBatch, TableError> {
    let target = report.target()?;
    let filter =
        VariableFilter { tiles: selection.tiles, category: None, after: None, limit: usize::MAX };
    let mut found = report.variables(&filter)?;
    if selection.ipus.is_some() {
        let wanted = |variable: &Variable| {
            variable.tiles.iter().any(|(tiles, _)| selection.has_tile_of(tiles, &target))
        };
        found.retain(|(_, variable)| wanted(variable));
    }
    let lifetime = |of: fn(&std::ops::Range<u32>) -> u32| {
        u32s(found.iter().map(|(_, variable)| variable.lifetime.as_ref().map(of)))
    };
    let bytes = |variable: &Variable| variable.tiles.map(|placement| placement.bytes);
    batch(vec![
        ("var", u32s(found.iter().map(|(id, _)| Some(id.0)))),
        ("name", texts(found.iter().map(|(_, variable)| Some(variable.name.as_str())))),
        ("category", words(found.iter().map(|(_, variable)| Some(variable.category.name())))?),
        ("operation", u32s(found.iter().map(|(_, variable)| variable.operation.map(|id| id.0)))),
        ("shape", words(found.iter().map(|(_, variable)| Some(variable.shape.as_str())))?),
        ("first_live", lifetime(|steps| steps.start)),
        ("end_live", lifetime(|steps| steps.end)),
        ("tiles", u64s(found.iter().map(|(_, variable)| tiles(&variable.tiles)))),
        ("bytes", u64s(found.iter().map(|(_, variable)| bytes(variable).total().0))),
        ("max_tile_bytes", u64s(found.iter().map(|(_, variable)| bytes(variable).max().0))),
    ])
}

fn liveness(report: &Report, _: &RowSelection) -> Result<RecordBatch, TableError> {
    let steps = report.liveness()?;
    let programs = report.programs()?;
    let name = |id| programs.get(id).map(|program| program.name.as_str());
    batch(vec![
        ("step", u64s(0..steps.len() as u64)),
        ("program", u32s(steps.iter().map(|step| Some(step.program.0)))),
        ("name", words(steps.iter().map(|step| name(step.program)))?),
        ("not_always_live", u64s(steps.iter().map(|step| step.bytes.0))),
    ])
}

fn programs(report: &Report, selection: &RowSelection) -> Result<RecordBatch, TableError> {
    let all = report.programs()?;
    let parents: BTreeMap<_, _> = all
        .iter()
        .flat_map(|(id, program)| program.children.iter().map(move |child| (*child, id)))
        .collect();
    // Those of several IPUs are programs of each of them.
    let wanted = |program: &ProgramNode| program.ipu.is_none_or(|ipu| selection.has_ipu(ipu));
    let programs: Vec<_> = all.iter().filter(|(_, program)| wanted(program)).collect();
    let of = |read: fn(&ProgramNode) -> Option<u32>| {
        u32s(programs.iter().map(|(_, program)| read(program)))
    };
    batch(vec![
        ("program", u32s(programs.iter().map(|(id, _)| Some(id.0)))),
        ("type", words(programs.iter().map(|(_, program)| Some(program.kind.name())))?),
        ("name", words(programs.iter().map(|(_, program)| Some(program.name.as_str())))?),
        ("parent", u32s(programs.iter().map(|(id, _)| parents.get(id).map(|parent| parent.0)))),
        ("ipu", of(|program| program.ipu.map(|ipu| ipu.0))),
        ("compute_set", of(|program| program.compute_set.map(|id| id.0))),
        ("operation", of(|program| program.operation.map(|id| id.0))),
        ("repeats", u64s(programs.iter().map(|(_, program)| program.repeats))),
    ])
}

fn compute_sets(report: &Report, _: &RowSelection) -> Result<RecordBatch, TableError> {
    let sets = report.compute_sets()?;
    let mean = |cycles: &TileRuns<Cycles>| match tiles(cycles) {
        0 => None,
        tiles => Some(cycles.total().as_f64() / tiles as f64),
    };
    let vertices =
        sets.iter().map(|(_, set)| set.vertices.iter().map(|group| sum(&group.count)).sum::<u64>());
    let edges = sets.iter().map(|(_, set)| {
        set.vertices.iter().map(|group| sum(&group.count) * group.edges).sum::<u64>()
    });
    let means: Float64Array = sets.iter().map(|(_, set)| mean(&set.cycles)).collect();
    batch(vec![
        ("compute_set", u32s(sets.iter().map(|(id, _)| Some(id.0)))),
        ("name", texts(sets.iter().map(|(_, set)| Some(set.name.as_str())))),
        ("tiles", u64s(sets.iter().map(|(_, set)| tiles(&set.cycles)))),
        ("max_cycles", u64s(sets.iter().map(|(_, set)| set.cycles.max().0))),
        ("mean_cycles", Arc::new(means)),
        ("vertices", u64s(vertices)),
        ("edges", u64s(edges)),
    ])
}

/// The sum over all tiles.
fn sum(counts: &TileRuns<u64>) -> u64 {
    counts.iter().map(|(range, count)| u64::from(range.count()) * count).sum()
}

fn exchanges(report: &Report, _: &RowSelection) -> Result<RecordBatch, TableError> {
    let programs = report.programs()?;
    let totals = report.exchange_totals()?;
    let of = |id| programs.get(id);
    let figure = |read: fn(&tilescope_report::TileTraffic) -> u64| {
        u64s(totals.iter().map(|(_, traffic)| read(traffic)))
    };
    batch(vec![
        ("program", u32s(totals.iter().map(|(id, _)| Some(id.0)))),
        ("type", words(totals.iter().map(|(id, _)| of(*id).map(|program| program.kind.name())))?),
        ("name", words(totals.iter().map(|(id, _)| of(*id).map(|program| program.name.as_str())))?),
        ("bytes_in", figure(|traffic| traffic.bytes_in.0)),
        ("bytes_out", figure(|traffic| traffic.bytes_out.0)),
        ("messages_in", figure(|traffic| traffic.messages_in)),
        ("messages_out", figure(|traffic| traffic.messages_out)),
        ("code_bytes", figure(|traffic| traffic.code_bytes.0)),
    ])
}

fn operations(report: &Report, selection: &RowSelection) -> Result<RecordBatch, TableError> {
    let all = report.operations()?;
    let found: Vec<_> = (0u32..)
        .zip(all.iter())
        .filter(|(_, of)| of.ipu.is_none_or(|ipu| selection.has_ipu(ipu)))
        .collect();
    batch(vec![
        ("operation", u32s(found.iter().map(|(id, _)| Some(*id)))),
        ("name", texts(found.iter().map(|(_, of)| Some(of.name.as_str())))),
        ("kind", words(found.iter().map(|(_, of)| Some(of.kind.as_str())))?),
        ("source", words(found.iter().map(|(_, of)| of.source.as_deref()))?),
        ("pass", words(found.iter().map(|(_, of)| Some(of.pass.name())))?),
        ("block", words(found.iter().map(|(_, of)| of.block.as_deref()))?),
        ("ipu", u32s(found.iter().map(|(_, of)| of.ipu.map(|ipu| ipu.0)))),
        ("flops", u64s(found.iter().map(|(_, of)| of.flops))),
        ("element_type", words(found.iter().map(|(_, of)| of.element_type.map(|of| of.name())))?),
        ("shapes", texts(found.iter().map(|(_, of)| Some(of.shapes.as_str())))),
        ("plan", texts(found.iter().map(|(_, of)| of.plan.as_deref()))),
    ])
}

fn operation_inputs(report: &Report, _: &RowSelection) -> Result<RecordBatch, TableError> {
    let found = report.operations()?;
    let read =
        || (0..).zip(found.iter()).flat_map(|(id, of)| of.inputs.iter().map(move |i| (id, i)));
    batch(vec![
        ("operation", u32s(read().map(|(id, _)| Some(id)))),
        ("input", u32s(read().map(|(_, input)| Some(input.0)))),
    ])
}
