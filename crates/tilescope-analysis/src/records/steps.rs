//! The table `steps` of a report without rows of steps.

use super::step_merge::{StepMerge, WantedSteps};
use super::{
    BoundColumns, FoundRows, RecordError, RecordReader, RecordRows, RecordSource, RecordTable,
    RowBounds, StreamedRows, WantedColumns, text, whole, whole_or_null,
};
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tilescope_report::trace::TraceLane;
use tilescope_report::units::{ProgramId, StepId};
use tilescope_report::{ProgramKind, ProgramNodeTable, Report, ReportError};
use tilescope_vtab::RowEstimate;

/// The table `steps`.
pub(super) const TABLE: RecordTable = RecordTable {
    name: "steps",
    about: "an executed step",
    stands_in: Some(Report::has_columns),
    filters: None,
    source: RecordSource::Streamed(StreamedRows {
        bounded: &[ID, PROGRAM],
        columns: &[],
        order: &[ID],
        // The other columns are those of programs, which are few: equal steps are counted.
        groups: |columns, wanted| !wanted(ID) && !columns.contains(&ID),
        estimate,
        rows,
    }),
};

const ID: usize = 0;
const TYPE: usize = 1;
const PROGRAM: usize = 2;
const COMPUTE_SET: usize = 3;

fn estimate(run: &RecordReader, asked: BoundColumns) -> RowEstimate {
    let steps = run.report.step_count().unwrap_or(0) as f64;
    let unique = asked.fixed.contains(&ID);
    let share = asked.share(ID, 0.0) * asked.share(PROGRAM, 0.001);
    RowEstimate { rows: if unique { 1.0 } else { steps * share }, unique }
}

/// The ids of steps within bounds.
pub(super) fn ids_within(bounds: &RangeInclusive<i64>) -> std::ops::Range<StepId> {
    let start = u64::try_from(*bounds.start()).unwrap_or(0);
    let end = u64::try_from(bounds.end().saturating_add(1)).unwrap_or(0);
    StepId(start)..StepId(end)
}

/// The position of a program's first step on a lane, if it has one there.
fn first_of(lane: &TraceLane, program: ProgramId) -> Result<Option<u64>, ReportError> {
    let sums = lane.program_sums()?;
    let own = sums.iter().filter(|sums| sums.program == Some(program));
    Ok(own.map(|sums| sums.first_position).min())
}

fn rows(run: &Arc<RecordReader>, bounds: &RowBounds, wanted: WantedColumns) -> FoundRows {
    let Some(trace) = run.trace()? else { return Ok(Box::new(super::NoRows)) };
    let ids = ids_within(&bounds.columns.of(ID));
    let program = bounds.columns.of(PROGRAM);
    let program =
        if program.start() == program.end() { Some(u32::try_from(*program.start())) } else { None };
    let program = match program {
        // No program has this number.
        Some(Err(_)) => return Ok(Box::new(super::NoRows)),
        Some(Ok(id)) => Some(ProgramId(id)),
        None => None,
    };
    if program.is_none() && !(TYPE..=COMPUTE_SET).any(wanted) {
        // Ids are dense, so they are known without reading any step.
        let count = run.report.step_count()?;
        let next = ids.start.0;
        return Ok(Box::new(StepIds { run: run.clone(), next, end: ids.end.0.min(count), id: 0 }));
    }
    let programs = run.report.programs()?;
    if ids.end.0 == ids.start.0 + 1 {
        for at in 0..trace.lanes().len() {
            // A single step is known completely from one lane.
            if let Some(step) = run.lookup.step(run, &trace, (at, ids.start), false)? {
                let merge = StepMerge::of_found(run.clone(), trace, vec![(at, step)]);
                return Ok(Box::new(StepRows { merge, programs }));
            }
        }
        return Ok(Box::new(super::NoRows));
    }
    let mut lanes = Vec::new();
    for (at, _) in trace.lanes().iter().enumerate() {
        let Some(lane) = trace.lane(at) else { continue };
        let mut positions = lane.positions_of(&ids)?;
        if let Some(program) = program {
            let first = first_of(&lane, program)?;
            positions.start = first.map_or(positions.end, |first| positions.start.max(first));
        }
        if !positions.is_empty() {
            lanes.push((at, positions));
        }
    }
    let wanted = WantedSteps { trace, parts: vec![lanes], program, as_rows: false };
    let rows = StepRows { merge: StepMerge::new(run.clone(), wanted)?, programs };
    if bounds.columns.groups().is_empty() {
        Ok(Box::new(rows))
    } else {
        Ok(Box::new(CountedSteps::count(rows, bounds.columns.groups())?))
    }
}

/// Steps with their programs.
struct StepRows {
    merge: StepMerge,
    programs: Arc<ProgramNodeTable>,
}

impl RecordRows for StepRows {
    fn advance(&mut self) -> Result<bool, RecordError> {
        // A step may be on several lanes.
        if let Some((step, _)) = self.merge.step() {
            let id = step.step;
            self.merge.skip_rest_of(id)?;
        }
        self.merge.advance()
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let Some((step, _)) = self.merge.step() else { return ValueRef::Null };
        match column {
            ID => whole(step.step.0),
            TYPE => text(step.kind.name()),
            PROGRAM => whole_or_null(step.program.map(|program| program.0)),
            COMPUTE_SET => whole_or_null(compute_set_of(&self.programs, step.program)),
            _ => ValueRef::Null,
        }
    }

    fn rowid(&self) -> Option<i64> {
        self.merge.step().and_then(|(step, _)| i64::try_from(step.step.0).ok())
    }
}

/// Steps without their ids. Equal ones follow each other.
struct CountedSteps {
    programs: Arc<ProgramNodeTable>,
    /// Kinds and programs with their numbers of steps; those after the current one.
    left: std::vec::IntoIter<(ProgramKind, Option<ProgramId>, u64)>,
    kind: ProgramKind,
    program: Option<ProgramId>,
    /// The number of further steps like the current one.
    more: u64,
}

impl CountedSteps {
    /// Counts steps, and sorts them by the columns that they are grouped by.
    fn count(mut rows: StepRows, groups: &[usize]) -> Result<Self, RecordError> {
        let mut counts: BTreeMap<(ProgramKind, Option<ProgramId>), u64> = BTreeMap::new();
        while rows.advance()? {
            if let Some((step, _)) = rows.merge.step() {
                *counts.entry((step.kind, step.program)).or_default() += 1;
            }
        }
        let programs = rows.programs;
        let mut left: Vec<_> =
            counts.into_iter().map(|((kind, program), count)| (kind, program, count)).collect();
        left.sort_by_cached_key(|(kind, program, _)| {
            let mut key = Vec::new();
            for column in groups {
                key.push(match *column {
                    TYPE => (None, kind.name()),
                    PROGRAM => (program.map(|program| program.0), ""),
                    _ => (compute_set_of(&programs, *program), ""),
                });
            }
            key
        });
        let (kind, left) = (ProgramKind::Sync, left.into_iter());
        Ok(Self { programs, left, kind, program: None, more: 0 })
    }
}

impl RecordRows for CountedSteps {
    fn advance(&mut self) -> Result<bool, RecordError> {
        if self.more > 0 {
            self.more -= 1;
            return Ok(true);
        }
        let Some((kind, program, count)) = self.left.next() else { return Ok(false) };
        (self.kind, self.program, self.more) = (kind, program, count.saturating_sub(1));
        Ok(true)
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        match column {
            TYPE => text(self.kind.name()),
            PROGRAM => whole_or_null(self.program.map(|program| program.0)),
            COMPUTE_SET => whole_or_null(compute_set_of(&self.programs, self.program)),
            _ => ValueRef::Null,
        }
    }

    fn stands_for_several(&self) -> bool {
        true
    }
}

/// The compute set of a program.
fn compute_set_of(programs: &ProgramNodeTable, program: Option<ProgramId>) -> Option<u32> {
    let node = programs.get(program?)?;
    node.compute_set.map(|set| set.0)
}

/// Rows with ids of steps only.
struct StepIds {
    run: Arc<RecordReader>,
    next: u64,
    end: u64,
    id: u64,
}

impl RecordRows for StepIds {
    fn advance(&mut self) -> Result<bool, RecordError> {
        if self.next.is_multiple_of(4096) {
            self.run.check_time(4096)?;
        }
        self.id = self.next;
        self.next += 1;
        Ok(self.id < self.end)
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        if column == ID { whole(self.id) } else { ValueRef::Null }
    }

    fn rowid(&self) -> Option<i64> {
        i64::try_from(self.id).ok()
    }
}
