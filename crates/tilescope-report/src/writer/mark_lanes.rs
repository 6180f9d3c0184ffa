//! Marks of a long run, packed by kind and IPU: marks of one lane differ little from each other.

use super::execution_rows::{ExecutionRow, MarkChunk, MarkTableRow};
use crate::model::{MarkKind, TraceMark};
use crate::packed_columns::ColumnPacker;
use crate::row_writer::stored;
use crate::schema;
use crate::units::{CycleRange, IpuId};
use rusqlite::types::ToSqlOutput;
use std::collections::BTreeMap;

/// Marks that are not complete chunks yet.
#[derive(Default)]
pub(super) struct MarkLanes {
    lanes: BTreeMap<(MarkKind, Option<IpuId>), OpenChunk>,
    chunks: i64,
}

struct OpenChunk {
    marks: ColumnPacker,
    cycles: CycleRange,
}

impl MarkLanes {
    /// Adds a mark, which is `row` in the table of marks. Gives a chunk that it completes.
    pub(super) fn push(&mut self, mark: &TraceMark, row: &MarkTableRow) -> Option<ExecutionRow> {
        let lane = (mark.kind, mark.ipu);
        let table = schema::find("marks")?;
        let new = || OpenChunk { marks: ColumnPacker::new(table), cycles: mark.cycles };
        let open = self.lanes.entry(lane).or_insert_with(new);
        open.cycles = open.cycles.union(mark.cycles);
        row.with_columns(|columns| {
            let values: Vec<ToSqlOutput> =
                columns.iter().filter_map(|value| value.to_sql().ok()).collect();
            open.marks.push(values.iter().map(stored));
        });
        open.marks.is_full().then(|| self.complete(lane))?
    }

    /// Completes all chunks.
    pub(super) fn finish(mut self) -> Vec<ExecutionRow> {
        let lanes: Vec<_> = self.lanes.keys().copied().collect();
        lanes.into_iter().filter_map(|lane| self.complete(lane)).collect()
    }

    fn complete(&mut self, lane: (MarkKind, Option<IpuId>)) -> Option<ExecutionRow> {
        let OpenChunk { mut marks, cycles } = self.lanes.remove(&lane)?;
        let (kind, ipu) = lane;
        let chunk = MarkChunk { id: self.chunks, kind, ipu, cycles, marks: marks.take() };
        self.chunks += 1;
        Some(ExecutionRow::MarkChunk(Box::new(chunk)))
    }
}
