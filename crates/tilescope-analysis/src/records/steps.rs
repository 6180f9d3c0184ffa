//! The table `steps` of a report without rows of steps.

use super::step_merge::{StepMerge, WantedSteps};
use super::{
    BoundColumns, FoundRows, RecordError, RecordReader, RecordRows, RecordSource, RecordTable,
    RowBounds, StreamedRows, WantedColumns, text, whole, whole_or_null,
};
use rusqlite::types::ValueRef;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tilescope_report::trace::TraceLane;
use tilescope_report::units::{ProgramId, StepId};
use tilescope_report::{ProgramNodeTable, Report, ReportError};
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
            if ids.end.0 == ids.start.0 + 1 {
                // A single step is known completely from one lane.
                break;
            }
        }
    }
    let programs = run.report.programs()?;
    let wanted = WantedSteps { trace, lanes, program, as_rows: false };
    Ok(Box::new(StepRows { merge: StepMerge::new(run.clone(), wanted)?, programs }))
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
        let node = || self.programs.get(step.program?);
        match column {
            ID => whole(step.step.0),
            TYPE => text(step.kind.name()),
            PROGRAM => whole_or_null(step.program.map(|program| program.0)),
            COMPUTE_SET => whole_or_null(node().and_then(|node| node.compute_set).map(|set| set.0)),
            _ => ValueRef::Null,
        }
    }

    fn rowid(&self) -> Option<i64> {
        self.merge.step().and_then(|(step, _)| i64::try_from(step.step.0).ok())
    }
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
