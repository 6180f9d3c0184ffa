//! Marks: rows in small reports, compressed columns in those of long runs.

use super::{MarkFilter, Report};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_CYCLES, MAX_IPUS, MAX_LIST_BYTES, MAX_STEPS};
use crate::model::{MarkKind, TraceMark, TrainingPass};
use crate::packed_columns::MAX_PART_ROWS;
use crate::row_cells::RowCells;
use crate::schema;
use crate::units::{CycleRange, Cycles, IpuId, ReplicaClassId, StepId};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

const MARK_COLUMNS: [&str; 9] = [
    "kind",
    "label",
    "ipu",
    "pass",
    "number",
    "first_step",
    "end_step",
    "first_cycle",
    "end_cycle",
];

/// Marks of one kind on one IPU that are packed together, as a row of `mark_chunks` or
/// `replica_mark_chunks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedMarks {
    pub(super) class: ReplicaClassId,
    id: i64,
    pub kind: MarkKind,
    /// Their IPU; `None` for marks of all IPUs.
    pub ipu: Option<IpuId>,
    /// The cycles from the start of the first to the end of the last one.
    pub cycles: CycleRange,
    rows: usize,
}

impl PackedMarks {
    /// Number of them.
    pub(super) fn count(&self) -> u64 {
        self.rows as u64
    }

    /// True if the index would look here for a mark of this kind, IPU, and first and last cycle.
    pub(super) fn holds(
        &self,
        kind: Option<MarkKind>,
        ipu: Option<i64>,
        ends: [Option<i64>; 2],
    ) -> bool {
        let [start, end] = ends.map(|cycle| u64::try_from(cycle?).ok().map(Cycles));
        kind == Some(self.kind)
            && ipu == self.ipu.map(|ipu| i64::from(ipu.0))
            && start.is_some_and(|start| self.cycles.start <= start)
            && end.is_some_and(|end| end <= self.cycles.end)
    }
}

/// The steps and the cycles of a mark.
pub(super) struct MarkRange {
    pub(super) class: ReplicaClassId,
    /// The id of its chunk, if marks are packed.
    chunk: Option<i64>,
    id: i64,
    pub(super) kind: MarkKind,
    pub(super) ipu: Option<IpuId>,
    pub(super) steps: Range<StepId>,
    pub(super) cycles: CycleRange,
}

/// The first step of the marks of a chunk, and the chunk.
pub(super) type MarksFromStep = (StepId, PackedMarks);

/// The table of packed marks of a class of replicas.
fn chunk_table(class: ReplicaClassId) -> &'static str {
    match class {
        ReplicaClassId(0) => schema::MARK_CHUNKS,
        _ => schema::REPLICA_MARK_CHUNKS,
    }
}

/// The first marks, ordered by first cycle and then id.
struct FirstMarks {
    /// The first marks, and others until they are cut.
    marks: Vec<(i64, TraceMark)>,
    limit: usize,
    bytes: usize,
    /// Upper bound on their starts, once there are as many as wanted.
    last: Option<Cycles>,
}

impl FirstMarks {
    fn new(limit: usize) -> Self {
        Self { marks: Vec::new(), limit, bytes: 0, last: None }
    }

    /// True if a mark that starts at `first` would be among them.
    fn has_room_for(&mut self, first: Cycles) -> bool {
        // Before the first cut there is no bound, and every chunk would be read.
        if self.last.is_none() {
            self.cut();
        }
        self.marks.len() < self.limit || self.last.is_some_and(|last| first <= last)
    }

    fn push(&mut self, id: i64, mark: TraceMark) {
        // Enough earlier marks are known, so this one would be cut later.
        if self.last.is_some_and(|last| last < mark.cycles.start) {
            return;
        }
        self.bytes += mark_bytes(&mark);
        self.marks.push((id, mark));
        // Seldom, so that the cost of sorting per mark is small.
        if self.marks.len() / 2 > self.limit {
            self.cut();
        }
    }

    /// Drops the latest, so that the marks kept are always the first ones seen so far.
    fn cut(&mut self) {
        if self.marks.len() < self.limit {
            return;
        }
        self.sort();
        self.marks.truncate(self.limit);
        self.bytes = self.marks.iter().map(|(_, mark)| mark_bytes(mark)).sum();
        self.last = self.marks.last().map(|(_, mark)| mark.cycles.start);
    }

    fn sort(&mut self) {
        self.marks.sort_by_key(|(id, mark)| (mark.cycles.start, *id));
    }

    fn into_sorted(mut self) -> Vec<TraceMark> {
        self.sort();
        self.marks.truncate(self.limit);
        self.marks.into_iter().map(|(_, mark)| mark).collect()
    }
}

/// Memory of a mark in bytes.
fn mark_bytes(mark: &TraceMark) -> usize {
    size_of::<TraceMark>() + mark.label.len()
}

/// Clamps a window to the range of reports.
fn within_reports(window: CycleRange) -> CycleRange {
    CycleRange { start: window.start.min(MAX_CYCLES), end: window.end.min(MAX_CYCLES) }
}

/// True if marks share a cycle with a window. Marks of zero length do if they are inside it.
fn reaches_into(cycles: CycleRange, window: CycleRange) -> bool {
    cycles.start <= window.end.saturating_sub(Cycles(1)) && cycles.end > window.start
}

impl Report {
    /// The marks of replicas of a class that pass the filter, ordered by their start. Classes other
    /// than the first only have marks of single IPUs.
    pub fn marks_of_class(
        &self,
        class: ReplicaClassId,
        filter: &MarkFilter,
    ) -> Result<Vec<TraceMark>, ReportError> {
        match class {
            ReplicaClassId(0) => self.marks(filter),
            _ => self.marks_of_chunks(class, filter),
        }
    }

    /// The marks of replica 0 that pass the filter, ordered by their start.
    pub fn marks(&self, filter: &MarkFilter) -> Result<Vec<TraceMark>, ReportError> {
        if self.db.has_rows(schema::MARK_CHUNKS) {
            return self.marks_of_chunks(ReplicaClassId(0), filter);
        }
        let needed = ["id", "kind", "ipu", "first_cycle", "end_cycle"];
        if !needed.iter().all(|column| self.db.has("marks", column)) {
            return Ok(Vec::new());
        }
        // Always true, so that the join below needs no special case. Only numbers and fixed names
        // go into the text, so no quoting is needed.
        let mut conditions = vec!["1".to_owned()];
        if let Some(kind) = filter.kind {
            conditions.push(format!("kind = '{}'", kind.name()));
        }
        if let Some(ipu) = filter.ipu {
            conditions.push(format!("(ipu IS NULL OR ipu = {ipu})"));
        }
        if let Some(window) = filter.window {
            // Marks that overlap the window start no earlier than the length of the longest one
            // before it.
            let longest = filter.kind.map_or(Ok(None), |kind| self.longest_mark(kind))?;
            let CycleRange { start, end } = within_reports(window);
            let earliest = longest.map_or(Cycles::ZERO, |longest| start.saturating_sub(longest));
            conditions.push(format!(
                "first_cycle BETWEEN {} AND {} AND end_cycle > {}",
                earliest.0,
                end.saturating_sub(Cycles(1)).0,
                start.0
            ));
        }
        // Integers of SQLite are signed, so it cannot read `usize::MAX`.
        let limit = filter.limit.min(u32::MAX as usize);
        let rest =
            format!("WHERE {} ORDER BY first_cycle, id LIMIT {limit}", conditions.join(" AND "));
        let marks = self.db.list(SelectQuery::all("marks", &MARK_COLUMNS).clauses(&rest), mark)?;
        Ok(marks.into_iter().flatten().collect())
    }

    fn marks_of_chunks(
        &self,
        class: ReplicaClassId,
        filter: &MarkFilter,
    ) -> Result<Vec<TraceMark>, ReportError> {
        let table = chunk_table(class);
        let window = filter.window.map(within_reports);
        let is_wanted = |kind, ipu: Option<IpuId>, cycles: CycleRange| {
            filter.kind.is_none_or(|wanted| wanted == kind)
                && filter.ipu.is_none_or(|wanted| ipu.is_none_or(|ipu| ipu == wanted))
                && window.is_none_or(|window| reaches_into(cycles, window))
        };
        let mut first_marks = FirstMarks::new(filter.limit);
        let columns: Vec<&str> = MARK_COLUMNS.iter().copied().chain(["id"]).collect();
        let select = SelectQuery::all("marks", &columns);
        let mut raw = 0;
        // In the order of their first cycles, so that the search ends at a chunk after the last
        // mark.
        for chunk in self.mark_chunks(class)?.iter() {
            if chunk.class != class || !is_wanted(chunk.kind, chunk.ipu, chunk.cycles) {
                continue;
            }
            if !first_marks.has_room_for(chunk.cycles.start) {
                break;
            }
            let piece = (chunk.id, chunk.rows);
            raw += self.db.read_piece(table, piece, select, |cells| {
                let found = mark(cells).filter(|mark| is_wanted(mark.kind, mark.ipu, mark.cycles));
                if let (Some(mark), Some(id)) = (found, cells.int(MARK_COLUMNS.len())) {
                    first_marks.push(id, mark);
                }
            })?;
            self.db.check_raw_bytes(table, raw)?;
            // Labels of a hostile file may be long, and a chunk holds many marks in few bytes.
            if first_marks.bytes > MAX_LIST_BYTES {
                first_marks.cut();
            }
            if first_marks.bytes > MAX_LIST_BYTES {
                self.warnings.add_limit("too many marks to hold in memory: only some are shown");
                break;
            }
        }
        Ok(first_marks.into_sorted())
    }

    /// The number of marks of a kind of replica 0, even if they are too many to be read at once.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn mark_count(&self, kind: MarkKind) -> Result<u64, ReportError> {
        if self.db.has_rows(schema::MARK_CHUNKS) {
            let chunks = self.packed_marks()?;
            return Ok(chunks.iter().filter(|of| of.kind == kind).map(|of| of.rows as u64).sum());
        }
        if !self.db.has("marks", "kind") {
            return Ok(0);
        }
        // A fixed name, so no quoting is needed.
        let expression = format!("total(kind = '{}')", kind.name());
        Ok(self.db.worked_out("marks", &expression)?.map_or(0, i64::unsigned_abs))
    }

    /// The chunks of packed marks of replica 0, in the order of their first cycles; none in reports
    /// with one row per mark.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn packed_marks(&self) -> Result<Arc<Vec<PackedMarks>>, ReportError> {
        self.mark_chunks(ReplicaClassId(0))
    }

    /// The marks of a chunk, with their ids.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn unpack_marks(&self, packed: &PackedMarks) -> Result<Vec<(i64, TraceMark)>, ReportError> {
        let columns: Vec<&str> = MARK_COLUMNS.iter().copied().chain(["id"]).collect();
        let select = SelectQuery::all("marks", &columns);
        let mut marks = Vec::with_capacity(packed.rows.min(MAX_PART_ROWS));
        let piece = (packed.id, packed.rows);
        self.db.read_piece(chunk_table(packed.class), piece, select, |cells| {
            marks.extend(cells.int(MARK_COLUMNS.len()).zip(mark(cells)));
        })?;
        Ok(marks)
    }

    /// The chunks of packed marks, in the order of their first cycles, read once: those of the
    /// first class of replicas, or those of all others.
    pub(super) fn mark_chunks(
        &self,
        class: ReplicaClassId,
    ) -> Result<Arc<Vec<PackedMarks>>, ReportError> {
        let is_first = class == ReplicaClassId(0);
        // Kept apart, because most reports have no classes and never need the second list.
        let known = if is_first { &self.mark_chunks } else { &self.replica_mark_chunks };
        known.get(|| {
            let columns = ["id", "kind", "ipu", "first_cycle", "end_cycle", "rows", "class"];
            let columns = if is_first { &columns[..6] } else { &columns };
            let read_chunk = |cells: &RowCells| {
                Some(PackedMarks {
                    class: if is_first { class } else { ReplicaClassId(cells.small(6)?) },
                    id: cells.int(0)?,
                    kind: MarkKind::from_name(&cells.text(1)?)?,
                    ipu: cells.small_up_to(2, MAX_IPUS - 1).map(IpuId),
                    cycles: CycleRange::new(
                        cells.count(3, MAX_CYCLES)?,
                        cells.count(4, MAX_CYCLES)?,
                    ),
                    rows: cells.small(5)? as usize,
                })
            };
            let chunks = self.db.list(SelectQuery::all(chunk_table(class), columns), read_chunk)?;
            let mut chunks: Vec<PackedMarks> = chunks.into_iter().flatten().collect();
            chunks.sort_by_key(|chunk| (chunk.cycles.start, chunk.id));
            Ok(chunks)
        })
    }

    /// Passes on these columns of every mark of the first class of replicas, or of all others, with
    /// its chunk if marks are packed.
    pub(super) fn stream_marks(
        &self,
        class: ReplicaClassId,
        columns: &[&str],
        mut each: impl FnMut(Option<&PackedMarks>, &RowCells),
    ) -> Result<(), ReportError> {
        let select = SelectQuery::all("marks", columns);
        let mut raw = 0;
        // Chunk by chunk: a run of 10^8 steps has too many marks to hold at once.
        let table = chunk_table(class);
        for chunk in self.mark_chunks(class)?.iter() {
            let piece = (chunk.id, chunk.rows);
            raw += self.db.read_piece(table, piece, select, |cells| each(Some(chunk), cells))?;
            self.db.check_raw_bytes(table, raw)?;
        }
        if class != ReplicaClassId(0) {
            return Ok(());
        }
        self.db.stream(select, |cells| {
            each(None, cells);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Passes on the steps and cycles of the marks of a chunk, or of rows of marks.
    pub(super) fn visit_mark_ranges(
        &self,
        chunk: Option<&PackedMarks>,
        mut each: impl FnMut(MarkRange),
    ) -> Result<(), ReportError> {
        let columns = ["id", "first_step", "end_step", "first_cycle", "end_cycle", "kind", "ipu"];
        let Some(chunk) = chunk else {
            return self.db.stream(SelectQuery::all("marks", &columns), |cells| {
                let kind = cells.named(5, MarkKind::from_name);
                let ipu = cells.small_up_to(6, MAX_IPUS - 1).map(IpuId);
                let mark = kind.and_then(|kind| mark_range(cells, ReplicaClassId(0), kind, ipu));
                mark.into_iter().for_each(&mut each);
                Ok(ControlFlow::Continue(()))
            });
        };
        // All marks of a chunk are of one kind on one IPU.
        let select = SelectQuery::all("marks", &columns[..5]);
        self.db.read_piece(chunk_table(chunk.class), (chunk.id, chunk.rows), select, |cells| {
            let mark = mark_range(cells, chunk.class, chunk.kind, chunk.ipu);
            if let Some(mark) = mark {
                each(MarkRange { chunk: Some(chunk.id), ..mark });
            }
        })?;
        Ok(())
    }

    /// The cycles of the marks of a kind of replica 0 whose labels `keeps` accepts, by start: of
    /// all marks, or at least of those in a window.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub(super) fn cycles_of_marks(
        &self,
        kind: MarkKind,
        window: Option<CycleRange>,
        keeps: fn(&str) -> bool,
    ) -> Result<Vec<CycleRange>, ReportError> {
        let mut kept = Vec::new();
        let mut read_mark = |cells: &RowCells| {
            // A label is compared where it is: a run may have a million marks of a kind.
            let label_is_kept = cells.named(2, |label| Some(keeps(label)));
            if label_is_kept.unwrap_or_else(|| keeps("")) {
                kept.extend(read_cycles(cells, [0, 1]));
            }
        };
        let columns = ["first_cycle", "end_cycle", "label", "kind"];
        if self.db.has_rows(schema::MARK_CHUNKS) {
            let select = SelectQuery::all("marks", &columns[..3]);
            for chunk in self.packed_marks()?.iter() {
                let is_in = window.is_none_or(|window| reaches_into(chunk.cycles, window));
                if chunk.kind != kind || !is_in {
                    continue;
                }
                let piece = (chunk.id, chunk.rows);
                self.db.read_piece(schema::MARK_CHUNKS, piece, select, &mut read_mark)?;
            }
        } else if columns.iter().all(|column| self.db.has("marks", column)) {
            self.db.stream(SelectQuery::all("marks", &columns), |cells| {
                if cells.named(3, MarkKind::from_name) == Some(kind) {
                    read_mark(cells);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        kept.sort_by_key(|cycles| cycles.start);
        Ok(kept)
    }

    /// The label of a mark, if it can be read.
    pub(super) fn label_of(&self, mark: &MarkRange) -> Option<String> {
        let Some(chunk) = mark.chunk else {
            let params = [mark.id];
            let select = SelectQuery::all("marks", &["label"]).clauses("WHERE id = ?1");
            return self.db.first(select.params(&params), |cells| cells.text(0)).ok()??;
        };
        let chunks = self.mark_chunks(mark.class).ok()?;
        let chunk = chunks.iter().find(|own| own.id == chunk && own.class == mark.class)?;
        let marks = self.unpack_marks(chunk).ok()?;
        marks.into_iter().find(|(id, _)| *id == mark.id).map(|(_, mark)| mark.label)
    }

    /// Chunks of packed marks of all classes of replicas, in the order of the first steps of their
    /// marks.
    pub(super) fn mark_chunks_by_step(&self) -> Result<Vec<MarksFromStep>, ReportError> {
        let mut chunks: Vec<MarksFromStep> = Vec::new();
        for class in [ReplicaClassId(0), ReplicaClassId(1)] {
            if !self.db.has_rows(chunk_table(class)) {
                continue;
            }
            self.stream_marks(class, &["first_step"], |chunk, cells| {
                let Some(chunk) = chunk else { return };
                let step = cells.count(0, MAX_STEPS).map_or(StepId(0), StepId);
                match chunks.last_mut() {
                    Some((first, last)) if last == chunk => *first = step.min(*first),
                    _ => chunks.push((step, *chunk)),
                }
            })?;
        }
        chunks.sort_by_key(|(first, chunk)| (*first, chunk.class, chunk.id));
        Ok(chunks)
    }

    fn longest_mark(&self, kind: MarkKind) -> Result<Option<Cycles>, ReportError> {
        if !self.db.has("mark_kinds", "kind") {
            return Ok(None);
        }
        let rest = format!("WHERE kind = '{}'", kind.name());
        let select = SelectQuery::all("mark_kinds", &["longest_cycles"]).clauses(&rest);
        Ok(self.db.first(select, |cells| cells.count(0, MAX_CYCLES))?.flatten())
    }

    /// Marks of kind [`MarkKind::Run`].
    pub fn runs(&self) -> Result<Vec<TraceMark>, ReportError> {
        let kind = Some(MarkKind::Run);
        self.marks(&MarkFilter { kind, ipu: None, window: None, limit: usize::MAX })
    }
}

/// A mark that is not packed, given the columns of its id, steps and cycles.
fn mark_range(
    cells: &RowCells,
    class: ReplicaClassId,
    kind: MarkKind,
    ipu: Option<IpuId>,
) -> Option<MarkRange> {
    let steps = read_steps(cells, [1, 2]);
    let cycles = read_cycles(cells, [3, 4])?;
    Some(MarkRange { class, chunk: None, id: cells.int(0)?, kind, ipu, steps, cycles })
}

fn read_steps(cells: &RowCells, columns: [usize; 2]) -> Range<StepId> {
    let [first, end] = columns.map(|column| cells.count(column, MAX_STEPS).map(StepId));
    let first = first.unwrap_or(StepId(0));
    first..end.unwrap_or(first).max(first)
}

fn read_cycles(cells: &RowCells, [start, end]: [usize; 2]) -> Option<CycleRange> {
    Some(CycleRange::new(cells.count(start, MAX_CYCLES)?, cells.count(end, MAX_CYCLES)?))
}

fn mark(cells: &RowCells) -> Option<TraceMark> {
    let cycles = read_cycles(cells, [7, 8])?;
    Some(TraceMark {
        kind: cells.named(0, MarkKind::from_name)?,
        label: cells.text(1).unwrap_or_default(),
        ipu: cells.small_up_to(2, MAX_IPUS - 1).map(IpuId),
        pass: cells.named(3, TrainingPass::from_name),
        index: cells.count(4, MAX_COUNT).unwrap_or(0),
        steps: read_steps(cells, [5, 6]),
        cycles,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn mark_at(start: u64) -> TraceMark {
        TraceMark {
            kind: MarkKind::Stage,
            label: String::new(),
            ipu: None,
            pass: None,
            index: 0,
            steps: StepId(0)..StepId(0),
            cycles: CycleRange::new(Cycles(start), Cycles(start + 1)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn first_marks_are_those_of_the_sorted_list(
            starts in prop::collection::vec(0u64..50, 0..200),
            limit in 0usize..40,
        ) {
            let mut first = FirstMarks::new(limit);
            let mut all: Vec<(u64, i64)> = Vec::new();
            for (id, start) in (0i64..).zip(starts) {
                all.push((start, id));
                // As for a single chunk: marks without room are not among the first.
                if id % 3 == 0 || first.has_room_for(Cycles(start)) {
                    first.push(id, mark_at(start));
                }
            }
            all.sort_unstable();
            all.truncate(limit);
            let found = first.into_sorted();
            let found: Vec<u64> = found.iter().map(|mark| mark.cycles.start.0).collect();
            prop_assert_eq!(found, all.iter().map(|(start, _)| *start).collect::<Vec<_>>());
        }
    }
}
