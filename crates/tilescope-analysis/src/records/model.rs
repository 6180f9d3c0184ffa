//! Tables of the compiled program: programs, compute sets, exchanges and operations.

use super::{RecordTable, RowFilter, RowSelection, never, record};
use crate::data_table::{DataTable, TableCell};
use crate::exchange_code::{ExchangeProgramRow, programs};
use crate::program_tree::is_stream_copy;
use crate::tables::exchange_code;
use std::collections::BTreeMap;
use tilescope_report::units::{ComputeSetId, IpuId, OperationId, ProgramId};
use tilescope_report::{ComputeSet, ModelOperation, ProgramNode, Report, ReportError, VertexGroup};

/// The table `programs`.
pub(super) const PROGRAMS: RecordTable = RecordTable::whole(
    "programs",
    "a node of the compiled program",
    || program_table(Vec::new()),
    |report, selection| {
        let all = report.executed_program_nodes()?;
        let parents: BTreeMap<ProgramId, ProgramId> = all
            .iter()
            .flat_map(|(id, node)| node.children.iter().map(move |child| (*child, id)))
            .collect();
        let found = all.iter().filter(|(_, node)| is_on(node.ipu, selection));
        Ok(program_table(found.map(|(id, node)| (id, node, parents.get(&id).copied())).collect()))
    },
)
.in_place_of_file(never)
.by(&[RowFilter::Ipus]);

fn program_table(rows: Vec<(ProgramId, &ProgramNode, Option<ProgramId>)>) -> DataTable {
    record! { "programs", rows, |(id, node, parent)|
        [
            id,
            &node.name,
            node.kind.name(),
            node.ipu,
            node.compute_set,
            node.operation,
            if is_stream_copy(node.kind) { Some(node.stream.name()) } else { None },
            node.repeats
        ]
        Id parent => parent, "programs.id of the node above it";
    }
}

/// True for rows without an IPU, and for rows of a selected one.
fn is_on(ipu: Option<IpuId>, selection: &RowSelection) -> bool {
    ipu.is_none_or(|ipu| selection.has_ipu(ipu))
}

/// The table `compute_set_totals`.
pub(super) const COMPUTE_SET_TOTALS: RecordTable = RecordTable::whole(
    "compute_set_totals",
    "a compute set with its cycles and vertices, over all tiles",
    || compute_set_table(&[]),
    |report, _| Ok(compute_set_table(&report.compute_sets()?)),
);

/// The sum of a count over all tiles.
fn count_of(group: &VertexGroup) -> u64 {
    group.count.iter().map(|(range, count)| u64::from(range.count()) * count).sum()
}

/// Mean cycles over the tiles that take part; `None` if there are none.
fn mean_cycles(set: &ComputeSet) -> Option<TableCell> {
    let tiles = set.cycles.tile_count();
    if tiles == 0 {
        return None;
    }
    Some(TableCell::Real(set.cycles.total().as_f64() / f64::from(tiles)))
}

fn compute_set_table(rows: &[(ComputeSetId, ComputeSet)]) -> DataTable {
    record! { "", rows, |(id, set)|
        []
        Id compute_set => *id, "its id";
        Words name => &set.name, "debug name";
        Count tiles => u64::from(set.cycles.tile_count()), "tiles that take part";
        Cycles max_cycles => set.cycles.max(), "cycles of the slowest tile";
        MeanCycles mean_cycles => mean_cycles(set), "mean over the tiles; NULL if there are none";
        Count vertices => set.vertices.iter().map(count_of).sum::<u64>(),
            "vertices over all tiles";
        Count edges => set.vertices.iter().map(|group| count_of(group) * group.edges).sum::<u64>(),
            "edges over all tiles";
    }
}

/// The table `exchange_totals`.
pub(crate) const EXCHANGE_TOTALS: RecordTable = RecordTable::whole(
    "exchange_totals",
    "traffic and code of a program that moves data, over all tiles",
    || exchange_code::programs(&[] as &[ExchangeProgramRow]),
    |report, _| Ok(exchange_code::programs(&programs(report, &[])?)),
);

/// The table `operations`.
pub(super) const OPERATIONS: RecordTable = RecordTable::whole(
    "operations",
    "an operation of the model",
    || operation_table(Vec::new()),
    |report, selection| {
        let operations = report.operations()?;
        let all = (0..).map(OperationId).zip(operations.iter());
        Ok(operation_table(all.filter(|(_, of)| is_on(of.ipu, selection)).collect()))
    },
)
.in_place_of_file(never)
.by(&[RowFilter::Ipus]);

fn operation_table(rows: Vec<(OperationId, &ModelOperation)>) -> DataTable {
    record! { "operations", rows, |(id, of)|
        [
            id,
            &of.name,
            &of.kind,
            of.source.as_ref(),
            of.pass.name(),
            of.block.as_ref(),
            of.ipu,
            of.flops,
            &of.shapes,
            of.plan.as_ref(),
            of.element_type.map(|of| of.name()),
            of.inner_runs,
            of.cost_basis.map(|of| of.name())
        ]
    }
}

/// The table `operation_inputs`.
pub(super) const OPERATION_INPUTS: RecordTable = RecordTable::whole(
    "operation_inputs",
    "an operation that reads results of an earlier one",
    || operation_input_table(Vec::new()),
    |report, _| operation_inputs(report).map(operation_input_table),
)
.in_place_of_file(never);

fn operation_inputs(report: &Report) -> Result<Vec<(OperationId, u64, OperationId)>, ReportError> {
    let mut rows = Vec::new();
    for (id, operation) in (0..).map(OperationId).zip(report.operations()?.iter()) {
        for (position, input) in (0..).zip(&operation.inputs) {
            rows.push((id, position, *input));
        }
    }
    Ok(rows)
}

fn operation_input_table(rows: Vec<(OperationId, u64, OperationId)>) -> DataTable {
    record! { "operation_inputs", rows, |(id, position, input)| [id, position, input] }
}
