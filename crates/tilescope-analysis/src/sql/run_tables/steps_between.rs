//! `steps_between`: executed steps in a window of cycles.

use super::{
    ACTIVITY, Asked, FoundRows, IPU, LANE, NAME, RunReader, RunTable, SUB_LANE, TYPE, WINDOW,
    WantedColumns, bounded, lanes_within, plain, program, text, whole, whole_or_null, window,
};
use rusqlite::types::ValueRef;
use std::ops::Range;
use std::sync::Arc;
use tilescope_report::ProgramNodeTable;
use tilescope_report::trace::{LaneInfo, LaneStep, Trace};
use tilescope_vtab::{
    ColumnBounds, ColumnRole, RowEstimate, VirtualColumn, VirtualRows, VirtualTableError,
};

/// `steps_between`
pub(super) const TABLE: RunTable = RunTable {
    name: "steps_between",
    about: "an executed step on an IPU that shares a cycle with a window: \
            steps_between(first_cycle, end_cycle)",
    stands_in: None,
    columns: || COLUMNS,
    order: &[IPU, SUB_LANE, STEP_ID],
    estimate,
    rows,
};

const STEP_ID: usize = 2;
const ARGUMENTS: usize = 13;

/// Steps read at once.
const BATCH: u64 = 4096;

const COLUMNS: &[VirtualColumn] = &[
    LANE[0],
    LANE[1],
    bounded("step_id", "INTEGER", "id", "steps.id"),
    program(ColumnRole::Plain),
    NAME,
    TYPE,
    ACTIVITY,
    plain("from_cycle", "INTEGER", "cycles", "the last active tile starts"),
    plain("to_cycle", "INTEGER", "cycles", "the last active tile ends"),
    plain("cycles", "INTEGER", "cycles", "to_cycle - from_cycle"),
    plain(
        "tile_balance",
        "REAL",
        "share",
        "active tile balance x active tiles / tiles, to 1 in 65,535",
    ),
    plain("bytes_in", "INTEGER", "bytes", "bytes received by tiles"),
    plain("bytes_out", "INTEGER", "bytes", "bytes sent by tiles"),
    WINDOW[0],
    WINDOW[1],
];

fn estimate(run: &RunReader, asked: Asked) -> RowEstimate {
    let (bars, lanes) = run.size();
    let in_window = if asked.bounded.contains(&ARGUMENTS) { 0.001 } else { 1.0 };
    let share =
        in_window * asked.share(IPU, 1.0 / lanes) * asked.share(STEP_ID, lanes / bars.max(1.0));
    RowEstimate { rows: (bars * share).max(1.0), unique: false }
}

fn rows(run: &Arc<RunReader>, bounds: &ColumnBounds, _: WantedColumns) -> FoundRows {
    let Some(trace) = run.trace()? else { return Ok(Box::new(super::NoRows)) };
    let ids = super::steps::ids_within(&bounds.of(STEP_ID));
    let window = window(bounds, ARGUMENTS);
    let mut lanes = Vec::new();
    for at in lanes_within(&trace, &bounds.of(IPU), &bounds.of(SUB_LANE)) {
        let Some(lane) = trace.lane(at) else { continue };
        let mut positions = lane.positions_of(&ids)?;
        if let Some(window) = window {
            let touching = lane.touching(window)?;
            positions.start = positions.start.max(touching.start);
            positions.end = positions.end.min(touching.end);
        }
        lanes.push((at, positions));
    }
    Ok(Box::new(WindowRows {
        run: run.clone(),
        programs: run.report.programs()?,
        trace,
        lanes: lanes.into_iter(),
        left: 0..0,
        lane: None,
        steps: Vec::new().into_iter(),
        step: None,
    }))
}

/// Steps lane by lane.
struct WindowRows {
    run: Arc<RunReader>,
    programs: Arc<ProgramNodeTable>,
    trace: Trace,
    lanes: std::vec::IntoIter<(usize, Range<u64>)>,
    /// Positions of the lane that are still to be read.
    left: Range<u64>,
    lane: Option<(usize, LaneInfo)>,
    steps: std::vec::IntoIter<LaneStep>,
    step: Option<LaneStep>,
}

impl VirtualRows for WindowRows {
    fn advance(&mut self) -> Result<bool, VirtualTableError> {
        loop {
            self.step = self.steps.next();
            if self.step.is_some() {
                return Ok(true);
            }
            if self.left.is_empty() {
                let Some((at, positions)) = self.lanes.next() else { return Ok(false) };
                self.lane = self.trace.lanes().get(at).map(|info| (at, *info));
                self.left = positions;
                continue;
            }
            let lane = self.lane.and_then(|(at, _)| self.trace.lane(at));
            let stop = (self.left.start + BATCH).min(self.left.end);
            let read = lane.map_or(Ok(Vec::new()), |lane| lane.steps_at(self.left.start..stop))?;
            self.run.check_time(read.len())?;
            self.left.start = stop;
            self.steps = read.into_iter();
        }
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let (Some((_, lane)), Some(step)) = (self.lane, &self.step) else { return ValueRef::Null };
        let node = || self.programs.get(step.program?);
        match column {
            IPU => whole(lane.ipu.0),
            SUB_LANE => whole(lane.sub_lane),
            STEP_ID => whole(step.step.0),
            3 => whole_or_null(step.program.map(|program| program.0)),
            4 => node().map_or(ValueRef::Null, |node| text(&node.name)),
            5 => text(step.kind.name()),
            6 => text(step.activity.name()),
            7 => whole(step.range.start.0),
            8 => whole(step.range.end.0),
            9 => whole(step.range.length().0),
            10 => ValueRef::Real(step.tile_balance.share()),
            11 => whole(step.bytes_in.0),
            12 => whole(step.bytes_out.0),
            _ => ValueRef::Null,
        }
    }
}
