//! Packs marks of a long run, and of replicas that differ, by kind and IPU: marks of one lane
//! differ little from each other.

use super::execution_rows::{ExecutionRow, MarkChunk, MarkTableRow};
use crate::model::{MarkKind, TraceMark};
use crate::packed_columns::ColumnPacker;
use crate::row_writer::stored;
use crate::schema;
use crate::units::{CycleRange, IpuId, ReplicaClassId};
use rusqlite::types::ToSqlOutput;
use std::collections::BTreeMap;

/// Marks that do not fill a chunk yet.
#[derive(Default)]
pub(super) struct MarkLanes {
    lanes: BTreeMap<MarkLane, OpenChunk>,
    /// Number of complete chunks of the first class of replicas, and of the others.
    chunks: [i64; 2],
}

/// Marks that are packed together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MarkLane {
    class: ReplicaClassId,
    kind: MarkKind,
    ipu: Option<IpuId>,
}

struct OpenChunk {
    marks: ColumnPacker,
    cycles: CycleRange,
}

impl MarkLanes {
    /// Adds a mark, given as a `row` of the table of marks. Returns a chunk if the mark completes
    /// one.
    pub(super) fn push(
        &mut self,
        class: ReplicaClassId,
        mark: &TraceMark,
        row: &MarkTableRow,
    ) -> Option<ExecutionRow> {
        let lane = MarkLane { class, kind: mark.kind, ipu: mark.ipu };
        let table = schema::find("marks")?;
        let open = self
            .lanes
            .entry(lane)
            .or_insert_with(|| OpenChunk { marks: ColumnPacker::new(table), cycles: mark.cycles });
        open.cycles = open.cycles.union(mark.cycles);
        row.with_columns(|columns| {
            let values: Vec<ToSqlOutput> =
                columns.iter().filter_map(|value| value.to_sql().ok()).collect();
            open.marks.push(values.iter().map(stored));
        });
        if open.marks.is_full() { self.complete(lane) } else { None }
    }

    /// Completes all chunks.
    pub(super) fn finish(mut self) -> Vec<ExecutionRow> {
        let lanes: Vec<_> = self.lanes.keys().copied().collect();
        lanes.into_iter().filter_map(|lane| self.complete(lane)).collect()
    }

    fn complete(&mut self, lane: MarkLane) -> Option<ExecutionRow> {
        let OpenChunk { mut marks, cycles } = self.lanes.remove(&lane)?;
        let MarkLane { class, kind, ipu } = lane;
        let [first, others] = &mut self.chunks;
        let id = if class == ReplicaClassId(0) { first } else { others };
        let chunk = MarkChunk { id: *id, class, kind, ipu, cycles, marks: marks.take() };
        *id += 1;
        Some(ExecutionRow::MarkChunk(Box::new(chunk)))
    }
}
