//! The table `program_cycles`: totals of each program's steps on each IPU.

use super::{
    ACTIVITY, BoundColumns, FoundRows, IPU, LANE, NAME, RecordError, RecordReader, RecordRows,
    RecordSource, RecordTable, RowBounds, RowFilter, SUB_LANE, StreamedRows, TYPE, WINDOW,
    WantedColumns, lanes_within, plain, program, text, whole, whole_or_null, window,
};
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tilescope_report::trace::{LaneInfo, ProgramStepTotals, Trace, TraceLane};
use tilescope_report::units::{CycleRange, Cycles, ProgramId};
use tilescope_report::{ProgramNode, ProgramNodeTable, ReportError};
use tilescope_vtab::{ColumnRole, RowEstimate, VirtualColumn};

/// The table `program_cycles`.
pub(super) const TABLE: RecordTable = RecordTable {
    name: "program_cycles",
    about: "totals of a program's steps on an IPU, over the whole run or in a window of cycles: \
    program_cycles(first_cycle, end_cycle)",
    stands_in: None,
    filters: Some(&[RowFilter::Cycles, RowFilter::Ipus]),
    source: RecordSource::Streamed(StreamedRows {
        bounded: &[],
        columns: COLUMNS,
        order: &[IPU, SUB_LANE, PROGRAM],
        groups: super::no_groups,
        estimate,
        rows,
    }),
};

const PROGRAM: usize = 2;
const ARGUMENTS: usize = 11;

const COLUMNS: &[VirtualColumn] = &[
    LANE[0],
    LANE[1],
    program(ColumnRole::Bounded),
    NAME,
    TYPE,
    ACTIVITY,
    plain("operation", "INTEGER", "id", "operations.id"),
    plain("steps", "INTEGER", "count", "number of steps; in a window, steps that overlap it"),
    plain(
        "cycles",
        "INTEGER",
        "cycles",
        "their total cycles; for a step that extends beyond the window, the part in it",
    ),
    plain("bytes_in", "INTEGER", "bytes", "bytes received by tiles, of whole steps"),
    plain("bytes_out", "INTEGER", "bytes", "bytes sent by tiles, of whole steps"),
    WINDOW[0],
    WINDOW[1],
];

fn estimate(run: &RecordReader, asked: BoundColumns) -> RowEstimate {
    let (_, lanes) = run.size();
    let share = asked.share(IPU, 1.0 / lanes) * asked.share(PROGRAM, 0.001);
    RowEstimate { rows: (lanes * 1000.0 * share).max(1.0), unique: false }
}

fn rows(run: &Arc<RecordReader>, bounds: &RowBounds, _: WantedColumns) -> FoundRows {
    let Some(trace) = run.trace()? else { return Ok(Box::new(super::NoRows)) };
    let lanes = lanes_within(&trace, bounds, (IPU, SUB_LANE)).into_iter();
    Ok(Box::new(ProgramRows {
        run: run.clone(),
        programs: run.report.programs()?,
        trace,
        lanes,
        window: window(bounds, ARGUMENTS),
        lane: None,
        totals: Vec::new().into_iter(),
        row: None,
    }))
}

/// Sums by program, lane by lane.
struct ProgramRows {
    run: Arc<RecordReader>,
    programs: Arc<ProgramNodeTable>,
    trace: Trace,
    lanes: std::vec::IntoIter<usize>,
    window: Option<CycleRange>,
    lane: Option<LaneInfo>,
    totals: std::vec::IntoIter<ProgramStepTotals>,
    row: Option<ProgramStepTotals>,
}

impl ProgramRows {
    fn program(&self, id: Option<ProgramId>) -> Option<&ProgramNode> {
        self.programs.get(id?)
    }
}

/// The sums of a lane by program; those of a window count only the cycles within it.
pub(super) fn lane_totals(
    lane: &TraceLane,
    window: Option<CycleRange>,
) -> Result<Vec<ProgramStepTotals>, ReportError> {
    let Some(window) = window else { return lane.program_totals(0..lane.info().steps) };
    let touching = lane.touching(window)?;
    let mut totals = lane.program_totals(touching.clone())?;
    // Only the first and the last step can extend beyond the window.
    let last = touching.end.saturating_sub(1);
    let ends = [touching.start, last];
    let ends = &ends[..if touching.is_empty() {
        0
    } else if last > touching.start {
        2
    } else {
        1
    }];
    for position in ends {
        let Some(step) = lane.step(*position)? else { continue };
        let outside: Cycles = step.range.length() - step.range.intersection(window).length();
        let own = totals.iter_mut().find(|totals| {
            (totals.program, totals.kind(), totals.activity())
                == (step.program, step.kind, step.activity)
        });
        if let Some(own) = own {
            own.cycles = own.cycles.saturating_sub(outside);
        }
    }
    Ok(totals)
}

impl RecordRows for ProgramRows {
    fn advance(&mut self) -> Result<bool, RecordError> {
        loop {
            self.row = self.totals.next();
            if self.row.is_some() {
                return Ok(true);
            }
            self.run.check_time(0)?;
            let Some(at) = self.lanes.next() else { return Ok(false) };
            let Some(lane) = self.trace.lane(at) else { continue };
            self.lane = Some(lane.info());
            self.totals = lane_totals(&lane, self.window)?.into_iter();
        }
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let (Some(lane), Some(row)) = (self.lane, &self.row) else { return ValueRef::Null };
        let node = self.program(row.program);
        match column {
            IPU => whole(lane.ipu.0),
            SUB_LANE => whole(lane.sub_lane),
            PROGRAM => whole_or_null(row.program.map(|program| program.0)),
            3 => node.map_or(ValueRef::Null, |node| text(&node.name)),
            4 => text(row.kind().name()),
            5 => text(row.activity().name()),
            6 => whole_or_null(node.and_then(|node| node.operation).map(|id| id.0)),
            7 => whole(row.steps),
            8 => whole(row.cycles.0),
            9 => whole(row.bytes_in.0),
            10 => whole(row.bytes_out.0),
            _ => ValueRef::Null,
        }
    }
}
