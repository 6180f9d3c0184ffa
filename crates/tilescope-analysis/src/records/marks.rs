//! The table `marks` of a report that stores marks as compressed columns.

use super::kept_rows::kept;
use super::packed_rows::{PackedRow, PackedRows};
use super::{
    BoundColumns, FoundRows, RecordReader, RecordSource, RecordTable, RowBounds, RowFilter,
    RowSelection, StreamedRows, WantedColumns, text, whole, whole_or_null,
};
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tilescope_report::{MarkFilter, PackedMarks, Report, ReportError, TraceMark};
use tilescope_vtab::RowEstimate;

/// The table `marks`.
pub(super) const TABLE: RecordTable = RecordTable {
    name: "marks",
    about: "a named range of the trace",
    stands_in: Some(Report::has_columns),
    filters: Some(&[RowFilter::Cycles, RowFilter::Ipus]),
    source: RecordSource::Streamed(StreamedRows {
        bounded: &[KIND, IPU, FIRST_CYCLE, END_CYCLE],
        columns: &[],
        order: &[],
        groups: super::no_groups,
        estimate,
        rows,
    }),
};

pub(super) const KIND: usize = 1;
const IPU: usize = 3;
const FIRST_CYCLE: usize = 8;
const END_CYCLE: usize = 9;

fn estimate(run: &RecordReader, asked: BoundColumns) -> RowEstimate {
    let (bars, lanes) = run.size();
    let share = asked.share(KIND, 0.1)
        * asked.share(IPU, 1.0 / lanes)
        * asked.share(FIRST_CYCLE, 0.001)
        * asked.share(END_CYCLE, 0.001);
    // A slot of a pipeline has a few dozen steps.
    RowEstimate { rows: (bars / 50.0 * share).max(1.0), unique: false }
}

fn rows(run: &Arc<RecordReader>, bounds: &RowBounds, _: WantedColumns) -> FoundRows {
    if let Some(selection) = bounds.selection {
        return kept(selected(&run.report, selection)?, MarkRow::value);
    }
    let ipu = bounds.columns.of(IPU);
    let first = bounds.columns.of(FIRST_CYCLE);
    let end = bounds.columns.of(END_CYCLE);
    let kind = bounds.columns.text(KIND);
    let mut chunks = Vec::new();
    for chunk in run.report.packed_marks()?.iter() {
        // Marks of a chunk begin and end within its cycles.
        let from = i64::try_from(chunk.cycles.start.0).unwrap_or(i64::MAX);
        let to = i64::try_from(chunk.cycles.end.0).unwrap_or(i64::MAX);
        let on_ipu = match chunk.ipu {
            Some(of) => ipu.contains(&i64::from(of.0)),
            // NULL is outside all bounds.
            None => ipu == (i64::MIN..=i64::MAX),
        };
        let is_wanted = on_ipu
            && kind.is_none_or(|kind| kind == chunk.kind.name())
            && [&first, &end].iter().all(|of| *of.start() <= to && from <= *of.end());
        if is_wanted {
            chunks.push(*chunk);
        }
    }
    Ok(Box::new(PackedRows::<MarkRow>::of(run, chunks)))
}

/// The marks of a selection by start cycle, from rows or compressed columns.
fn selected(report: &Report, selection: &RowSelection) -> Result<Vec<MarkRow>, ReportError> {
    let mut marks = Vec::new();
    if report.has_columns() {
        for chunk in report.packed_marks()?.iter() {
            marks.extend(MarkRow::unpack(report, chunk)?);
        }
    } else {
        let all = MarkFilter { kind: None, ipu: None, window: None, limit: usize::MAX };
        marks.extend((0..).zip(report.marks(&all)?).map(|(id, mark)| MarkRow(id, mark)));
    }
    marks.retain(|MarkRow(_, mark)| mark.ipu.is_none_or(|ipu| selection.has_ipu(ipu)));
    if let Some(window) = selection.window() {
        marks.retain(|MarkRow(_, mark)| {
            mark.cycles.start < window.end && mark.cycles.end > window.start
        });
    }
    marks.sort_by_key(|MarkRow(id, mark)| (mark.cycles.start, *id));
    Ok(marks)
}

/// A mark with its id.
struct MarkRow(i64, TraceMark);

impl PackedRow for MarkRow {
    type Chunk = PackedMarks;

    fn unpack(report: &Report, chunk: &PackedMarks) -> Result<Vec<Self>, ReportError> {
        let marks = report.unpack_marks(chunk)?;
        Ok(marks.into_iter().map(|(id, mark)| Self(id, mark)).collect())
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let Self(id, mark) = self;
        match column {
            0 => ValueRef::Integer(*id),
            KIND => text(mark.kind.name()),
            2 => text(&mark.label),
            IPU => whole_or_null(mark.ipu.map(|ipu| ipu.0)),
            4 => mark.pass.map_or(ValueRef::Null, |pass| text(pass.name())),
            5 => whole(mark.index),
            6 => whole(mark.steps.start.0),
            7 => whole(mark.steps.end.0),
            FIRST_CYCLE => whole(mark.cycles.start.0),
            END_CYCLE => whole(mark.cycles.end.0),
            _ => ValueRef::Null,
        }
    }

    fn rowid(&self) -> Option<i64> {
        Some(self.0)
    }
}
