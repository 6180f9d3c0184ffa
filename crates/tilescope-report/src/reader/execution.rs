//! Executed steps.

use super::step_row::{COLUMNS, StepRow};
use super::{Report, ReportOrigin, StepDetails};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::MAX_STEPS;
use crate::model::{ProgramKind, StepOnIpu};
use crate::row_cells::RowCells;
use crate::units::{ComputeSetId, CycleRange, ProgramId, ReplicaClassId, StepId};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

impl Report {
    /// Number of executed steps.
    pub fn step_count(&self) -> Result<u64, ReportError> {
        if self.has_columns() {
            let steps = self.meta.get("steps").and_then(|steps| steps.parse::<u64>().ok());
            // `meta` is untrusted text.
            return Ok(steps.unwrap_or(0).min(MAX_STEPS));
        }
        let steps = self.db.has("steps", "id");
        let bars = self.db.has("steps_by_ipu", "step_id");
        if steps && self.origin == ReportOrigin::Tilescope {
            // Ids of our files are dense, and counting rows would read the whole table.
            let last = self.db.worked_out("steps", "max(id)")?;
            let count = last.map_or(0, |last| last.saturating_add(1));
            // A row takes at least a byte, so there cannot be more steps than bytes.
            if (0..=self.bytes as i64).contains(&count) {
                return Ok(count as u64);
            }
            self.warnings.add("steps.id holds invalid values");
        }
        let count = match (steps, bars) {
            (true, _) => self.db.row_count("steps")?,
            (false, true) => {
                let count = self.db.worked_out("steps_by_ipu", "count(DISTINCT step_id)")?;
                count.map(i64::unsigned_abs)
            }
            (false, false) => None,
        };
        Ok(count.unwrap_or(0))
    }

    /// Everything recorded about one executed step on replica 0.
    pub fn step(&self, id: StepId) -> Result<Option<StepDetails>, ReportError> {
        Ok(self.steps(id..StepId(id.0.saturating_add(1)), 1)?.pop())
    }

    /// Everything recorded about one executed step on replicas of a class.
    pub fn step_of_class(
        &self,
        class: ReplicaClassId,
        id: StepId,
    ) -> Result<Option<StepDetails>, ReportError> {
        let next = StepId(id.0.saturating_add(1));
        Ok(self.steps_of_class(class, id..next, 1)?.pop())
    }

    /// Executed steps with ids in `ids` on replica 0, the first `limit` of them.
    pub fn steps(&self, ids: Range<StepId>, limit: usize) -> Result<Vec<StepDetails>, ReportError> {
        let end = ids.end.0.min(MAX_STEPS);
        if ids.start.0 >= end || limit == 0 {
            return Ok(Vec::new());
        }
        if self.has_columns() {
            return self.steps_of_columns(ReplicaClassId(0), ids.start..StepId(end), limit);
        }
        // `end` is at most MAX_STEPS, so both fit SQLite's signed integers.
        let within = [ids.start.0 as i64, end as i64 - 1];
        let mut steps = self.step_facts(within, limit)?;
        // Rows per IPU are read up to the last of these steps, not to the end of the range.
        let last = match steps.last_key_value() {
            Some((last, _)) if steps.len() == limit => *last,
            _ => StepId(end - 1),
        };
        for row in self.step_rows(ids.start, last, limit)? {
            steps
                .entry(row.step)
                .or_insert_with(|| unknown_step(row.step))
                .ipus
                .push(self.on_ipu(&row)?);
        }
        Ok(steps.into_values().take(limit).collect())
    }

    /// The same on replicas of a class.
    pub(crate) fn steps_of_class(
        &self,
        class: ReplicaClassId,
        ids: Range<StepId>,
        limit: usize,
    ) -> Result<Vec<StepDetails>, ReportError> {
        match class {
            ReplicaClassId(0) => self.steps(ids, limit),
            _ => self.steps_of_columns(class, ids, limit),
        }
    }

    fn steps_of_columns(
        &self,
        class: ReplicaClassId,
        ids: Range<StepId>,
        limit: usize,
    ) -> Result<Vec<StepDetails>, ReportError> {
        let mut steps: BTreeMap<StepId, StepDetails> = BTreeMap::new();
        let trace = self.trace()?.and_then(|trace| trace.of_class(class));
        let Some(trace) = trace else { return Ok(Vec::new()) };
        let programs = self.programs()?;
        for lane in (0..trace.lanes().len()).filter_map(|lane| trace.lane(lane)) {
            for (step, on_ipu) in lane.full_steps(ids.clone(), limit)? {
                steps
                    .entry(step.step)
                    .or_insert_with(|| StepDetails {
                        kind: step.kind,
                        kind_name: step.kind.name().to_owned(),
                        program: step.program,
                        compute_set: step.program.and_then(|id| programs.get(id)?.compute_set),
                        ..unknown_step(step.step)
                    })
                    .ipus
                    .push(on_ipu);
            }
        }
        Ok(steps.into_values().take(limit).collect())
    }

    fn step_facts(
        &self,
        within: [i64; 2],
        limit: usize,
    ) -> Result<BTreeMap<StepId, StepDetails>, ReportError> {
        let mut steps = BTreeMap::new();
        if !self.db.has("steps", "id") {
            return Ok(steps);
        }
        // Only files of other tools have programs with steps of several types.
        let prepared = self.prepared().filter(|_| self.origin == ReportOrigin::Foreign);
        let columns = ["id", "type", "program", "compute_set"];
        let select = SelectQuery::all("steps", &columns)
            .clauses("WHERE id BETWEEN ?1 AND ?2 ORDER BY id")
            .params(&within);
        self.db.read(select, |cells| {
            if let Some(mut step) = step(cells) {
                if let Some(prepared) = &prepared {
                    step.program = step.program.map(|id| prepared.program_of(id, step.kind));
                }
                steps.insert(step.id, step);
            }
            let more = steps.len() < limit;
            Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(steps)
    }

    fn step_rows(
        &self,
        first: StepId,
        last: StepId,
        limit: usize,
    ) -> Result<Vec<StepRow>, ReportError> {
        if !self.db.has("steps_by_ipu", "step_id") {
            return Ok(Vec::new());
        }
        let mut params = vec![first.0 as i64, last.0 as i64];
        let mut rest = "WHERE step_id BETWEEN ?1 AND ?2".to_owned();
        // A foreign table has no index on steps, but building the trace recorded their rows.
        if let Some((low, high)) = self.prepared().and_then(|p| p.rows_of(first, last)) {
            rest += " AND rowid BETWEEN ?3 AND ?4";
            params.extend([low, high]);
        }
        // Our rows have these columns as their key, so sorting by them is free; foreign tables need
        // not have all of them.
        let in_order = self.origin == ReportOrigin::Tilescope;
        rest += if in_order { " ORDER BY step_id, ipu, sub_lane" } else { " ORDER BY step_id" };
        let select = SelectQuery::all("steps_by_ipu", &COLUMNS).clauses(&rest).params(&params);
        let mut rows: Vec<StepRow> = Vec::new();
        // The limit counts steps, and a step has a row for each IPU.
        let mut steps = 0;
        let mut last = None;
        self.db.read(select, |cells| {
            let Some(row) = StepRow::read(cells) else { return Ok(ControlFlow::Continue(())) };
            if last != Some(row.step) {
                (steps, last) = (steps + 1, Some(row.step));
            }
            if steps > limit {
                return Ok(ControlFlow::Break(()));
            }
            rows.push(row);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    /// A row in terms of the model. Values missing in a foreign row may be known from the trace.
    fn on_ipu(&self, row: &StepRow) -> Result<StepOnIpu, ReportError> {
        let mut on_ipu = row.on_ipu();
        if row.is_placed() && row.sub_lane.is_some() {
            return Ok(on_ipu);
        }
        let Some(prepared) = self.prepared() else { return Ok(on_ipu) };
        let trace = prepared.trace();
        for (index, lane) in trace.lanes().iter().enumerate() {
            if lane.ipu != row.ipu {
                continue;
            }
            let found = trace.lane(index).map_or(Ok(None), |lane| lane.find(row.step))?;
            let Some(found) = found else { continue };
            on_ipu.sub_lane = lane.sub_lane;
            if !row.is_placed() {
                let CycleRange { start, end } = found.range;
                (on_ipu.from_min, on_ipu.from_max) = (start, start);
                (on_ipu.to_min, on_ipu.to_max) = (end, end);
            }
        }
        Ok(on_ipu)
    }
}

fn step(cells: &RowCells) -> Option<StepDetails> {
    let kind_name = cells.text(1).unwrap_or_default();
    Some(StepDetails {
        id: StepId(cells.count(0, MAX_STEPS - 1)?),
        kind: ProgramKind::from_name(&kind_name),
        kind_name,
        program: cells.small(2).map(ProgramId),
        compute_set: cells.small(3).map(ComputeSetId),
        ipus: Vec::new(),
    })
}

fn unknown_step(id: StepId) -> StepDetails {
    StepDetails {
        id,
        kind: ProgramKind::Unknown,
        kind_name: String::new(),
        program: None,
        compute_set: None,
        ipus: Vec::new(),
    }
}
