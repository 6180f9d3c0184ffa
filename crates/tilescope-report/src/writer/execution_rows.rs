//! The rows of an execution, piece by piece.

use crate::error::ReportError;
use crate::mark_blocks::FinePiece;
use crate::model::{MarkKind, StepOnIpu};
use crate::packed_columns::PackedRows;
use crate::row_writer::RowWriter;
use crate::schema;
use crate::trace::{TraceEvent, TraceIndexBlob, TraceIndexWriter};
use crate::units::{CycleRange, IpuId, ReplicaClassId, StepId};
use rusqlite::{ToSql, params};

/// One row of an execution, checked and ready to be written.
pub(super) enum ExecutionRow {
    /// A row of `steps`.
    Step { id: StepId, kind: &'static str, program: u32, compute_set: Option<u32> },
    /// A row of `steps_by_ipu`.
    OnIpu { id: StepId, on_ipu: StepOnIpu, balance: f64 },
    /// Input of the trace index.
    Records(Vec<TraceEvent>),
    /// A piece of the trace index.
    Blob(TraceIndexBlob),
    /// A row of `marks`.
    Mark(Box<MarkTableRow>),
    /// A row of `mark_chunks` or `replica_mark_chunks`.
    MarkChunk(Box<MarkChunk>),
    /// A row of `mark_blocks`.
    MarkBlocks(FinePiece),
}

/// A row of `marks`.
pub(super) struct MarkTableRow {
    pub(super) id: i64,
    pub(super) kind: &'static str,
    pub(super) label: String,
    pub(super) ipu: Option<IpuId>,
    pub(super) pass: Option<&'static str>,
    /// Index, first step, step after the last, first cycle, cycle after the last.
    pub(super) numbers: [i64; 5],
}

impl ExecutionRow {
    /// Adds steps to the trace index. `found` gets the pieces that they complete, and every other
    /// row unchanged.
    pub(super) fn index(self, lanes: &mut TraceIndexWriter, found: &mut Vec<Self>) {
        match self {
            Self::Records(records) => {
                records.into_iter().for_each(|event| lanes.event(event));
                found.extend(lanes.complete().map(Self::Blob));
            }
            other => found.push(other),
        }
    }

    /// Writes the row, which must not be one of steps to be indexed.
    pub(super) fn insert(self, rows: &RowWriter) -> Result<(), ReportError> {
        match self {
            Self::Records(_) => Err(ReportError::invalid_input("steps are indexed before")),
            Self::Step { id, kind, program, compute_set } => {
                rows.insert("steps", params![id.0 as i64, kind, program, compute_set])
            }
            Self::OnIpu { id, on_ipu, balance } => insert_step_on_ipu(rows, id, &on_ipu, balance),
            Self::Blob(blob) => blob.insert(rows),
            Self::Mark(mark) => mark.with_columns(|columns| rows.insert("marks", columns)),
            Self::MarkBlocks(piece) => piece.insert(rows),
            Self::MarkChunk(chunk) => {
                let MarkChunk { id, class, kind, ipu, cycles, marks } = *chunk;
                let kind = kind.name();
                let first = cycles.start.0 as i64;
                let end = cycles.end.0 as i64;
                let PackedRows { rows: count, data, .. } = marks;
                let count = count as i64;
                if class == ReplicaClassId(0) {
                    let row = params![id, kind, ipu, first, end, count, data];
                    return rows.insert(schema::MARK_CHUNKS, row);
                }
                let row = params![id, class, kind, ipu, first, end, count, data];
                rows.insert(schema::REPLICA_MARK_CHUNKS, row)
            }
        }
    }
}

impl MarkTableRow {
    /// Passes all its columns to `take`, in order.
    pub(super) fn with_columns<T>(&self, take: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        let [index, first_step, end_step, start, end] = self.numbers;
        let Self { id, kind, label, ipu, pass, .. } = self;
        take(params![id, kind, label, ipu, pass, index, first_step, end_step, start, end])
    }
}

/// Marks of one kind on one IPU.
pub(super) struct MarkChunk {
    pub(super) id: i64,
    pub(super) class: ReplicaClassId,
    pub(super) kind: MarkKind,
    pub(super) ipu: Option<IpuId>,
    /// The cycles from the start of the first to the end of the last one.
    pub(super) cycles: CycleRange,
    pub(super) marks: PackedRows,
}

/// Inserts a row of `steps_by_ipu`, with cycles relative to the start of the first active tile.
fn insert_step_on_ipu(
    rows: &RowWriter,
    id: StepId,
    on_ipu: &StepOnIpu,
    balance: f64,
) -> Result<(), ReportError> {
    let base = on_ipu.from_min;
    rows.insert(
        "steps_by_ipu",
        params![
            id.0 as i64,
            on_ipu.ipu,
            // `Execution::check` has bounded and ordered the cycles, so no difference is negative.
            (on_ipu.to_max - on_ipu.from_max).0 as i64,
            on_ipu.active_tiles,
            base.0 as i64,
            0,
            (on_ipu.from_max - base).0 as i64,
            (on_ipu.to_min - base).0 as i64,
            (on_ipu.to_max - base).0 as i64,
            f64::from(on_ipu.active_tile_balance),
            balance.min(1.0),
            on_ipu.bytes_in.0 as i64,
            on_ipu.bytes_out.0 as i64,
            on_ipu.sub_lane,
        ],
    )
}
