//! Tables of the compiled program: programs, compute sets, exchanges and operations.

use super::kept_rows::{estimate, kept};
use super::{
    FoundRows, NAME, RecordReader, RecordTable, RowBounds, RowFilter, TYPE, WantedColumns, plain,
    program, text, text_or_null, whole, whole_or_null,
};
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::units::{OperationId, ProgramId, TileRuns};
use tilescope_report::{
    ComputeSet, ModelOperation, ProgramKind, ProgramNode, Report, ReportError, TileTraffic,
};
use tilescope_vtab::{ColumnRole, VirtualColumn};

/// A table that is read whole. SQL sees that of the file, if files have one of the name.
const fn model_table(
    name: &'static str,
    about: &'static str,
    filters: &'static [RowFilter],
    columns: &'static [VirtualColumn],
    rows: fn(&Arc<RecordReader>, &RowBounds, WantedColumns) -> FoundRows,
) -> RecordTable {
    let (stands_in, filters) = (Some(never as fn(&Report) -> bool), Some(filters));
    RecordTable {
        name,
        about,
        stands_in,
        filters,
        bounded: &[],
        columns,
        order: &[],
        estimate,
        rows,
    }
}

fn never(_: &Report) -> bool {
    false
}

/// `programs`
pub(super) const PROGRAMS: RecordTable = model_table(
    "programs",
    "a node of the compiled program",
    &[RowFilter::Ipus],
    &[plain("parent", "INTEGER", "id", "programs.id of the node above it")],
    |reader, bounds, _| {
        let all = reader.report.programs()?;
        let parents: BTreeMap<ProgramId, ProgramId> = all
            .iter()
            .flat_map(|(id, node)| node.children.iter().map(move |child| (*child, id)))
            .collect();
        let mut rows = Vec::new();
        for (id, node) in all.iter().filter(|(_, node)| bounds.has_ipu(node.ipu)) {
            rows.push((id, node.clone(), parents.get(&id).copied()));
        }
        kept(rows, program_cell)
    },
);

fn program_cell(
    (id, node, parent): &(ProgramId, ProgramNode, Option<ProgramId>),
    column: usize,
) -> ValueRef<'_> {
    match column {
        0 => whole(id.0),
        1 => text(&node.name),
        2 => text(node.kind.name()),
        3 => whole_or_null(node.ipu.map(|ipu| ipu.0)),
        4 => whole_or_null(node.compute_set.map(|set| set.0)),
        5 => whole_or_null(node.operation.map(|operation| operation.0)),
        6 if is_stream_copy(node.kind) => text(node.stream.name()),
        7 => whole(node.repeats),
        8 => whole_or_null(parent.map(|parent| parent.0)),
        _ => ValueRef::Null,
    }
}

/// True for a program with another end, which its node names.
pub(super) fn is_stream_copy(kind: ProgramKind) -> bool {
    use ProgramKind::{StreamCopyBegin, StreamCopyEnd, StreamCopyMid};
    matches!(kind, StreamCopyBegin | StreamCopyMid | StreamCopyEnd)
}

/// `compute_set_totals`
pub(super) const COMPUTE_SET_TOTALS: RecordTable = RecordTable {
    stands_in: None,
    ..model_table(
        "compute_set_totals",
        "a compute set with its cycles and vertices, over all tiles",
        &[],
        &[
            plain("compute_set", "INTEGER", "id", "its id"),
            plain("name", "TEXT", "", "debug name"),
            plain("tiles", "INTEGER", "count", "tiles that take part"),
            plain("max_cycles", "INTEGER", "cycles", "cycles of the slowest tile"),
            plain("mean_cycles", "REAL", "cycles", "mean over the tiles; NULL without any"),
            plain("vertices", "INTEGER", "count", "vertices over all tiles"),
            plain("edges", "INTEGER", "count", "edges over all tiles"),
        ],
        |reader, _, _| {
            kept(reader.report.compute_sets()?, |(id, set), column| {
                compute_set_cell(id.0, set, column)
            })
        },
    )
};

fn compute_set_cell(id: u32, set: &ComputeSet, column: usize) -> ValueRef<'_> {
    let sum = |counts: &TileRuns<u64>| -> u64 {
        counts.iter().map(|(range, count)| u64::from(range.count()) * count).sum()
    };
    let tiles = set.cycles.tile_count();
    let cycles = set.cycles.total();
    match column {
        0 => whole(id),
        1 => text(&set.name),
        2 => whole(tiles),
        3 => whole(set.cycles.max().0),
        4 if tiles > 0 => ValueRef::Real(cycles.as_f64() / f64::from(tiles)),
        5 => whole(set.vertices.iter().map(|group| sum(&group.count)).sum::<u64>()),
        6 => whole(set.vertices.iter().map(|group| sum(&group.count) * group.edges).sum::<u64>()),
        _ => ValueRef::Null,
    }
}

/// `exchange_totals`
pub(super) const EXCHANGE_TOTALS: RecordTable = RecordTable {
    stands_in: None,
    ..model_table(
        "exchange_totals",
        "traffic and code of a program that moves data, over all tiles",
        &[],
        &[
            program(ColumnRole::Plain),
            TYPE,
            NAME,
            plain("bytes_in", "INTEGER", "bytes", "bytes received in one execution"),
            plain("bytes_out", "INTEGER", "bytes", "bytes sent, a multicast once"),
            plain("messages_in", "INTEGER", "count", "messages received"),
            plain("messages_out", "INTEGER", "count", "messages sent, a multicast once"),
            plain("code_bytes", "INTEGER", "bytes", "exchange code"),
        ],
        |reader, _, _| {
            let programs = reader.report.programs()?;
            let mut rows = Vec::new();
            for (id, traffic) in reader.report.exchange_totals()? {
                rows.push((
                    id,
                    programs.get(id).map(|node| (node.kind, node.name.clone())),
                    traffic,
                ));
            }
            kept(rows, exchange_cell)
        },
    )
};

fn exchange_cell(
    (id, node, traffic): &(ProgramId, Option<(ProgramKind, String)>, TileTraffic),
    column: usize,
) -> ValueRef<'_> {
    match column {
        0 => whole(id.0),
        1 => text_or_null(node.as_ref().map(|(kind, _)| kind.name())),
        2 => text_or_null(node.as_ref().map(|(_, name)| name.as_str())),
        3 => whole(traffic.bytes_in.0),
        4 => whole(traffic.bytes_out.0),
        5 => whole(traffic.messages_in),
        6 => whole(traffic.messages_out),
        7 => whole(traffic.code_bytes.0),
        _ => ValueRef::Null,
    }
}

/// `operations`
pub(super) const OPERATIONS: RecordTable = model_table(
    "operations",
    "an operation of the model",
    &[RowFilter::Ipus],
    &[],
    |reader, bounds, _| {
        let mut rows = Vec::new();
        for (id, operation) in all_operations(&reader.report)? {
            if bounds.has_ipu(operation.ipu) {
                rows.push((id, operation));
            }
        }
        kept(rows, operation_cell)
    },
);

fn all_operations(report: &Report) -> Result<Vec<(OperationId, ModelOperation)>, ReportError> {
    let operations = report.operations()?;
    Ok((0..).map(OperationId).zip(operations.iter().cloned()).collect())
}

fn operation_cell((id, of): &(OperationId, ModelOperation), column: usize) -> ValueRef<'_> {
    match column {
        0 => whole(id.0),
        1 => text(&of.name),
        2 => text(&of.kind),
        3 => text_or_null(of.source.as_deref()),
        4 => text(of.pass.name()),
        5 => text_or_null(of.block.as_deref()),
        6 => whole_or_null(of.ipu.map(|ipu| ipu.0)),
        7 => whole(of.flops),
        8 => text(&of.shapes),
        9 => text_or_null(of.plan.as_deref()),
        10 => text_or_null(of.element_type.map(|of| of.name())),
        11 => whole_or_null(of.inner_runs),
        12 => text_or_null(of.cost_basis.map(|of| of.name())),
        _ => ValueRef::Null,
    }
}

/// `operation_inputs`
pub(super) const OPERATION_INPUTS: RecordTable = model_table(
    "operation_inputs",
    "an operation that reads results of an earlier one",
    &[],
    &[],
    |reader, _, _| {
        let mut rows = Vec::new();
        for (id, operation) in all_operations(&reader.report)? {
            for (position, input) in (0u32..).zip(&operation.inputs) {
                rows.push([id.0, position, input.0]);
            }
        }
        kept(rows, |row, column| whole_or_null(row.get(column).copied()))
    },
);
