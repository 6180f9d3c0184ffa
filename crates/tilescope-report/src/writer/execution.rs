//! Writes executed steps as they arrive: rows for scripts, and the trace index for views.
//!
//! This code touches neither the file nor the index, so that it can accept steps while other
//! threads build the index and write it.

use super::execution_rows::{ExecutionRow, MarkTableRow};
use super::mark_lanes::MarkLanes;
use crate::error::ReportError;
use crate::limits::{
    MAX_COUNT, MAX_CYCLES, MAX_REPLICAS, MAX_STEP_BYTES, MAX_STEPS, MAX_SUB_LANES,
};
use crate::mark_blocks::MarkRowBlocks;
use crate::model::{CompilationReport, ExecutionStep, MarkKind, StepOnIpu, TraceMark};
use crate::row_writer::{RowWriter, checked_i64};
use crate::trace::{
    FixedPointBalance, LaneNumber, LaneRecord, StepClass, StepRecord, StepRecordDetails,
    SyncPrograms, TileHandOver, TraceEvent, TraceIndexWriter,
};
use crate::units::{Cycles, IpuId, ProgramId, ReplicaClassId, ReplicaIpu, StepId};
use crate::writer::StepLayout;
use rusqlite::params;
use std::collections::BTreeMap;

/// The number of steps that are indexed together: about a millisecond of work.
const RECORDS: usize = 1 << 12;

/// The number of other pieces that are passed on together.
pub(super) const PIECES: usize = 256;

/// Facts about a step that depend only on its program.
struct LeafProgramInfo {
    class: StepClass,
    kind: &'static str,
    compute_set: Option<u32>,
}

/// The state of the execution part of a report.
pub(super) struct ExecutionWriter {
    leaves: Vec<LeafProgramInfo>,
    ipus: u32,
    tiles_per_ipu: u32,
    layout: StepLayout,
    steps: u64,
    end_cycle: Cycles,
    /// Number of classes of replicas.
    classes: u32,
    /// The end of the last step of each lane.
    lane_ends: BTreeMap<LaneNumber, Cycles>,
    /// Steps to be indexed next, with their dependencies.
    records: Vec<TraceEvent>,
    /// Number of marks of each class of replicas.
    marks: BTreeMap<ReplicaClassId, i64>,
    mark_lanes: MarkLanes,
    mark_rows: MarkRowBlocks,
    mark_kinds: BTreeMap<MarkKind, (u64, Cycles)>,
    /// Pieces to be written next.
    pieces: Vec<ExecutionRow>,
}

impl ExecutionWriter {
    /// Starts the execution of `compilation`, with steps stored according to `layout`.
    pub(super) fn new(compilation: &CompilationReport, layout: StepLayout) -> Self {
        Self {
            leaves: compilation
                .programs
                .iter()
                .map(|program| LeafProgramInfo {
                    class: StepClass::new(program.kind, program.stream),
                    kind: program.kind.name(),
                    compute_set: program.compute_set.map(|id| id.0),
                })
                .collect(),
            ipus: compilation.target.ipus_per_replica,
            tiles_per_ipu: compilation.target.tiles_per_ipu,
            layout,
            steps: 0,
            end_cycle: Cycles::ZERO,
            classes: count_of_classes(compilation),
            lane_ends: BTreeMap::new(),
            records: Vec::new(),
            marks: BTreeMap::new(),
            mark_lanes: MarkLanes::default(),
            mark_rows: MarkRowBlocks::default(),
            mark_kinds: BTreeMap::new(),
            pieces: Vec::new(),
        }
    }

    /// Removes the pieces that are to be written next, in this order.
    pub(super) fn pieces(&mut self) -> std::vec::Drain<'_, ExecutionRow> {
        self.pieces.drain(..)
    }

    /// True if there are enough pieces to pass on.
    pub(super) fn is_full(&self) -> bool {
        let has_records = matches!(self.pieces.last(), Some(ExecutionRow::Records(_)));
        has_records || self.pieces.len() >= PIECES
    }

    /// Tiles of the replica.
    pub(super) fn tiles(&self) -> u32 {
        self.ipus * self.tiles_per_ipu
    }

    /// The last step so far.
    pub(super) fn last_step(&self) -> Option<StepId> {
        self.steps.checked_sub(1).map(StepId)
    }

    pub(super) fn step(&mut self, step: &ExecutionStep) -> Result<(), ReportError> {
        let id = StepId(self.steps);
        let describe = |part: &str| format!("{part} of step {id}");
        let Some(leaf) = self.leaves.get(step.program.index()) else {
            let program = step.program.0;
            let count = self.leaves.len();
            let problem =
                format!("{} is {program}, but the report has {count}", describe("program"));
            return Err(ReportError::invalid_input(problem));
        };
        // The text is only built if the check fails: this runs for every step.
        checked_i64(id.0, MAX_STEPS, || describe("number"))?;
        match self.layout {
            StepLayout::Rows => {
                let kind = leaf.kind;
                let program = step.program.0;
                let compute_set = leaf.compute_set;
                self.pieces.push(ExecutionRow::Step { id, kind, program, compute_set });
            }
            StepLayout::Columns if step.parts().next().is_none() => {
                return Err(ReportError::invalid_input(format!("{} are none", describe("IPUs"))));
            }
            StepLayout::Columns => {}
        }
        // Lanes are ordered without duplicates: rows have (step, IPU, sub-lane) as their key.
        let mut before = None;
        for (replica_class, on_ipu) in step.parts() {
            self.check(replica_class, on_ipu, id)?;
            let lane = LaneNumber::new(replica_class, on_ipu.ipu, on_ipu.sub_lane);
            if before >= Some(lane) {
                return Err(ReportError::invalid_input(format!(
                    "{} are not in order",
                    describe("IPUs")
                )));
            }
            before = Some(lane);
            let balance = on_ipu.tile_balance(self.tiles_per_ipu);
            let end = self.lane_ends.entry(lane).or_default();
            // Bars are drawn from `from_max`, so overlap would be visible there.
            if on_ipu.from_max < *end {
                let start = on_ipu.from_max;
                let problem = format!(
                    "{} is {}, before the last step's end {}",
                    describe("start"),
                    start.0,
                    end.0
                );
                return Err(ReportError::invalid_input(problem));
            }
            *end = on_ipu.to_max;
            let record = record(step, id, leaf.class, on_ipu, balance);
            let has_row = self.layout == StepLayout::Rows && replica_class == ReplicaClassId(0);
            let details = if !has_row { Some(StepRecordDetails::from_step(on_ipu)) } else { None };
            self.records.push(TraceEvent::Step(LaneRecord { lane, record, details }));
            self.end_cycle = self.end_cycle.max(on_ipu.to_max);
            if has_row {
                self.pieces.push(ExecutionRow::OnIpu { id, on_ipu: *on_ipu, balance });
            }
        }
        self.steps += 1;
        if self.records.len() >= RECORDS {
            let next = Vec::with_capacity(RECORDS + step.ipus.len());
            let records = std::mem::replace(&mut self.records, next);
            self.pieces.push(ExecutionRow::Records(records));
        }
        Ok(())
    }

    /// Records that tiles of an IPU wait for others of it, by sub-lane, on all replicas.
    pub(super) fn hand_over(&mut self, ipu: IpuId, from: u8, to: u8) {
        self.records.extend((0..self.classes).map(|class| {
            let at = ReplicaIpu { class: ReplicaClassId(class), ipu };
            TraceEvent::HandOver(TileHandOver { at, from, to })
        }));
    }

    fn check(
        &self,
        class: ReplicaClassId,
        on_ipu: &StepOnIpu,
        id: StepId,
    ) -> Result<(), ReportError> {
        let describe = |part: &str| format!("{part} of step {id} on IPU {}", on_ipu.ipu);
        self.check_class(class)?;
        let StepOnIpu { from_min, from_max, to_min, to_max, .. } = *on_ipu;
        checked_i64(to_max, MAX_CYCLES, || describe("last cycle"))?;
        checked_i64(u64::from(on_ipu.ipu), u64::from(self.ipus.max(1)) - 1, || describe("IPU"))?;
        checked_i64(u64::from(on_ipu.sub_lane), u64::from(MAX_SUB_LANES) - 1, || {
            describe("sub-lane")
        })?;
        checked_i64(u64::from(on_ipu.active_tiles), self.tiles_per_ipu.into(), || {
            describe("number of tiles")
        })?;
        checked_i64(on_ipu.bytes_in, MAX_STEP_BYTES, || describe("received bytes"))?;
        checked_i64(on_ipu.bytes_out, MAX_STEP_BYTES, || describe("sent bytes"))?;
        let in_order = from_min <= from_max && from_max <= to_max;
        if !(in_order && from_min <= to_min && to_min <= to_max) {
            let from_to =
                format!("from {} .. {}, to {} .. {}", from_min.0, from_max.0, to_min.0, to_max.0);
            return Err(ReportError::invalid_input(format!(
                "{} run {from_to}",
                describe("cycles")
            )));
        }
        if !on_ipu.active_tile_balance.is_finite() || on_ipu.active_tile_balance < 0.0 {
            return Err(ReportError::invalid_input(format!(
                "{} is not a share",
                describe("tile balance")
            )));
        }
        Ok(())
    }

    fn check_class(&self, class: ReplicaClassId) -> Result<(), ReportError> {
        if class.0 < self.classes {
            return Ok(());
        }
        let count = self.classes;
        let problem =
            format!("a step or mark has replica class {class}, but the report has {count}");
        Err(ReportError::invalid_input(problem))
    }

    /// Adds a mark of the replicas of a class.
    pub(super) fn mark(
        &mut self,
        class: ReplicaClassId,
        mark: &TraceMark,
    ) -> Result<(), ReportError> {
        self.check_class(class)?;
        let describe = |part: &str| format!("{part} of mark {}", mark.label);
        if mark.cycles.end < mark.cycles.start || mark.steps.end < mark.steps.start {
            return Err(ReportError::invalid_input(format!(
                "{} comes before its start",
                describe("end")
            )));
        }
        let id = self.marks.entry(class).or_default();
        let row = MarkTableRow {
            id: *id,
            kind: mark.kind.name(),
            label: mark.label.clone(),
            ipu: mark.ipu,
            pass: mark.pass.map(|pass| pass.name()),
            numbers: [
                checked_i64(mark.index, MAX_COUNT, || describe("index"))?,
                checked_i64(mark.steps.start.0, MAX_STEPS, || describe("first step"))?,
                checked_i64(mark.steps.end.0, MAX_STEPS, || describe("last step"))?,
                checked_i64(mark.cycles.start, MAX_CYCLES, || describe("start"))?,
                checked_i64(mark.cycles.end, MAX_CYCLES, || describe("end"))?,
            ],
        };
        *id += 1;
        let is_first = class == ReplicaClassId(0);
        if is_first {
            let (count, longest) = self.mark_kinds.entry(mark.kind).or_default();
            *count += 1;
            // Readers search this far back for marks that overlap a window.
            *longest = mark.cycles.length().max(*longest);
        }
        match self.layout {
            StepLayout::Rows if is_first => self.pieces.push(ExecutionRow::Mark(Box::new(row))),
            _ => self.pieces.extend(self.mark_lanes.push(class, mark, &row)),
        }
        if self.layout == StepLayout::Columns {
            let blocks = self.mark_rows.push(class, mark);
            self.pieces.extend(blocks.into_iter().map(ExecutionRow::MarkBlocks));
        }
        Ok(())
    }

    /// Writes the data that are known only at the end.
    pub(super) fn finish(
        mut self,
        mut lanes: TraceIndexWriter,
        rows: &RowWriter,
    ) -> Result<(), ReportError> {
        self.pieces.push(ExecutionRow::Records(std::mem::take(&mut self.records)));
        self.pieces.extend(std::mem::take(&mut self.mark_lanes).finish());
        let (blocks, long_rows) = std::mem::take(&mut self.mark_rows).finish();
        self.pieces.extend(blocks.into_iter().map(ExecutionRow::MarkBlocks));
        let mut pieces = Vec::new();
        self.pieces().for_each(|piece| piece.index(&mut lanes, &mut pieces));
        pieces.into_iter().try_for_each(|piece| piece.insert(rows))?;
        if self.steps > 0 {
            rows.insert("execution_cycle_totals", params![self.end_cycle.0 as i64])?;
            rows.insert("meta", params!["steps", self.steps.to_string()])?;
        }
        long_rows.into_iter().try_for_each(|row| row.insert(rows))?;
        for (kind, (count, longest)) in self.mark_kinds {
            rows.insert("mark_kinds", params![kind.name(), count as i64, longest.0 as i64])?;
        }
        lanes.finish(rows)
    }
}

/// The syncs of a program.
pub(super) fn sync_programs(compilation: &CompilationReport) -> SyncPrograms {
    let programs = compilation.programs.iter().enumerate();
    let joins = compilation.replica_classes.joins.iter().copied();
    SyncPrograms::among(
        programs.map(|(id, node)| (ProgramId::from_index(id), node.kind, node.name.as_str())),
    )
    .joining_replicas(joins)
}

/// Number of classes of replicas, at least one.
fn count_of_classes(compilation: &CompilationReport) -> u32 {
    let classes = compilation.replica_classes.classes.len().max(1);
    u32::try_from(classes).unwrap_or(u32::MAX).min(MAX_REPLICAS)
}

fn record(
    step: &ExecutionStep,
    id: StepId,
    class: StepClass,
    on_ipu: &StepOnIpu,
    balance: f64,
) -> StepRecord {
    StepRecord {
        step: id,
        range: on_ipu.range(),
        program: Some(step.program),
        class,
        balance: FixedPointBalance::from_share(balance),
        bytes_in: on_ipu.bytes_in,
        bytes_out: on_ipu.bytes_out,
    }
}
