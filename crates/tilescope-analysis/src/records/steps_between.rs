//! The table `steps_between`: executed steps in a window of cycles.

use super::{
    ACTIVITY, BoundColumns, FoundRows, IPU, LANE, NAME, RecordError, RecordReader, RecordRows,
    RecordSource, RecordTable, RowBounds, RowFilter, SUB_LANE, StreamedRows, TYPE, WINDOW,
    WantedColumns, bounded, lanes_within, plain, program, text, text_or_null, whole, whole_or_null,
    window,
};
use crate::program_tree::is_stream_copy;
use rusqlite::types::ValueRef;
use std::ops::Range;
use std::sync::Arc;
use tilescope_report::trace::{LaneInfo, LaneStep, Trace};
use tilescope_report::units::StepId;
use tilescope_report::{
    ProgramKind, ProgramNodeTable, Report, ReportError, ReportPart, StepActivity, StepOnIpu,
    StreamEndpoint,
};
use tilescope_vtab::{ColumnRole, RowEstimate, VirtualColumn};

/// The table `steps_between`.
pub(super) const TABLE: RecordTable = RecordTable {
    name: "steps_between",
    about: "an executed step on an IPU that shares a cycle with a window: \
            steps_between(first_cycle, end_cycle)",
    stands_in: None,
    filters: Some(&[RowFilter::Cycles, RowFilter::Ipus]),
    source: RecordSource::Streamed(StreamedRows {
        bounded: &[],
        columns: COLUMNS,
        order: &[IPU, SUB_LANE, STEP_ID],
        groups: super::no_groups,
        estimate,
        rows,
    }),
};

const STEP_ID: usize = 2;
const NAME_OF_PROGRAM: usize = 4;
/// Columns from here on require the details of a trace, or rows of the file.
const ACTIVE_TILES: usize = 16;
const ACTIVE_TILE_BALANCE: usize = 17;
const ARGUMENTS: usize = 19;

/// The number of steps per read.
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
        "active tile balance x active tiles / tiles, to 1 in 65,535; NULL if not recorded",
    ),
    plain("bytes_in", "INTEGER", "bytes", "bytes received by tiles; NULL if not recorded"),
    plain("bytes_out", "INTEGER", "bytes", "bytes sent by tiles; NULL if not recorded"),
    plain("run", "INTEGER", "number", "host call, from 0"),
    plain("compute_set", "INTEGER", "id", "compute_sets.compute_set"),
    plain("operation", "INTEGER", "id", "operations.id"),
    plain("active_tiles", "INTEGER", "count", "active tiles"),
    plain("active_tile_balance", "REAL", "share", "mean active duration / longest"),
    plain("stream", "TEXT", "", "other end of a stream copy: host or remote_buffer"),
    WINDOW[0],
    WINDOW[1],
];

fn estimate(run: &RecordReader, asked: BoundColumns) -> RowEstimate {
    let (bars, lanes) = run.size();
    let in_window = if asked.bounded.contains(&ARGUMENTS) { 0.001 } else { 1.0 };
    let share =
        in_window * asked.share(IPU, 1.0 / lanes) * asked.share(STEP_ID, lanes / bars.max(1.0));
    RowEstimate { rows: (bars * share).max(1.0), unique: false }
}

fn rows(run: &Arc<RecordReader>, bounds: &RowBounds, wanted: WantedColumns) -> FoundRows {
    let Some(trace) = run.trace()? else { return Ok(Box::new(super::NoRows)) };
    let ids = super::steps::ids_within(&bounds.columns.of(STEP_ID));
    let window = window(bounds, ARGUMENTS);
    let mut lanes = Vec::new();
    for at in lanes_within(&trace, bounds, (IPU, SUB_LANE)) {
        let Some(lane) = trace.lane(at) else { continue };
        let mut positions = lane.positions_of(&ids)?;
        if let Some(window) = window {
            let touching = lane.touching(window)?;
            positions.start = positions.start.max(touching.start);
            positions.end = positions.end.min(touching.end);
        }
        lanes.push((at, positions));
    }
    let report = &run.report;
    let has_balance = report.has(ReportPart::ActiveTiles);
    Ok(Box::new(WindowRows {
        run: run.clone(),
        programs: report.programs()?,
        runs: report.runs()?.into_iter().map(|run| run.steps.end).collect(),
        has_balance,
        has_bytes: report.has(ReportPart::StepBytes),
        has_details: has_balance && (wanted(ACTIVE_TILES) || wanted(ACTIVE_TILE_BALANCE)),
        trace,
        lanes: lanes.into_iter(),
        left: 0..0,
        lane: None,
        steps: Vec::new().into_iter(),
        step: None,
    }))
}

/// The possible texts of columns.
pub(super) fn texts(report: &Report) -> Result<Vec<(&'static str, Vec<String>)>, ReportError> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let names = report.programs()?.iter().map(|(_, program)| program.name.clone()).collect();
    Ok(vec![
        (NAME.name, names),
        (TYPE.name, owned(&ProgramKind::ALL.map(ProgramKind::name))),
        (ACTIVITY.name, owned(&StepActivity::ALL.map(StepActivity::name))),
        ("stream", owned(&StreamEndpoint::ALL.map(StreamEndpoint::name))),
    ])
}

/// A step, with its data on its IPU if requested.
type StepRow = (LaneStep, Option<StepOnIpu>);

/// Steps lane by lane.
struct WindowRows {
    run: Arc<RecordReader>,
    programs: Arc<ProgramNodeTable>,
    /// First step of each host call.
    runs: Vec<StepId>,
    has_balance: bool,
    has_bytes: bool,
    /// True if columns are requested that only details and rows have.
    has_details: bool,
    trace: Trace,
    lanes: std::vec::IntoIter<(usize, Range<u64>)>,
    /// Positions of the lane that remain to be read.
    left: Range<u64>,
    lane: Option<(usize, LaneInfo)>,
    steps: std::vec::IntoIter<StepRow>,
    step: Option<StepRow>,
}

impl WindowRows {
    fn read(&self, positions: Range<u64>) -> Result<Vec<StepRow>, ReportError> {
        let Some((at, info)) = self.lane else { return Ok(Vec::new()) };
        let Some(lane) = self.trace.lane(at) else { return Ok(Vec::new()) };
        if !self.has_details {
            let steps = lane.steps_at(positions)?.into_iter();
            return Ok(steps.map(|step| (step, None)).collect());
        }
        let mut rows = lane.rows_at(positions)?;
        if let (Some((first, None)), Some((last, _))) = (rows.first(), rows.last()) {
            // The trace has no data by tile; rows of the file do, in the order of ids.
            let ids = first.step..last.step + 1;
            let mut recorded = self.run.report.steps(ids, usize::MAX)?.into_iter().peekable();
            for (step, on_ipu) in &mut rows {
                while recorded.next_if(|of| of.id < step.step).is_some() {}
                let Some(of) = recorded.peek().filter(|of| of.id == step.step) else { continue };
                let lane = (info.ipu, info.sub_lane);
                *on_ipu = of.ipus.iter().find(|part| (part.ipu, part.sub_lane) == lane).cloned();
            }
        }
        Ok(rows)
    }

    fn run_of(&self, step: StepId) -> Option<u64> {
        let run = self.runs.partition_point(|end| *end <= step);
        if run < self.runs.len() { Some(run as u64) } else { None }
    }
}

impl RecordRows for WindowRows {
    fn advance(&mut self) -> Result<bool, RecordError> {
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
            // Batches end at boundaries of chunks, so that no chunk is decoded twice.
            let stop = (self.left.start + 1).next_multiple_of(BATCH).min(self.left.end);
            let read = self.read(self.left.start..stop)?;
            self.run.check_time(read.len())?;
            self.left.start = stop;
            self.steps = read.into_iter();
        }
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let (Some((_, lane)), Some((step, on_ipu))) = (self.lane, &self.step) else {
            return ValueRef::Null;
        };
        let node = || self.programs.get(step.program?);
        match column {
            IPU => whole(lane.ipu.0),
            SUB_LANE => whole(lane.sub_lane),
            STEP_ID => whole(step.step.0),
            3 => whole_or_null(step.program.map(|program| program.0)),
            NAME_OF_PROGRAM => text_or_null(node().map(|node| node.name.as_str())),
            5 => text(step.kind.name()),
            6 => text(step.activity.name()),
            7 => whole(step.range.start.0),
            8 => whole(step.range.end.0),
            9 => whole(step.range.length().0),
            10 if self.has_balance => ValueRef::Real(step.tile_balance.share()),
            11 if self.has_bytes => whole(step.bytes_in.0),
            12 if self.has_bytes => whole(step.bytes_out.0),
            13 => whole_or_null(self.run_of(step.step)),
            14 => whole_or_null(node().and_then(|node| node.compute_set).map(|set| set.0)),
            15 => whole_or_null(node().and_then(|node| node.operation).map(|id| id.0)),
            ACTIVE_TILES => whole_or_null(on_ipu.as_ref().map(|of| of.active_tiles)),
            ACTIVE_TILE_BALANCE => match on_ipu {
                Some(of) => ValueRef::Real(of.active_tile_balance.into()),
                None => ValueRef::Null,
            },
            18 if is_stream_copy(step.kind) => text_or_null(node().map(|node| node.stream.name())),
            _ => ValueRef::Null,
        }
    }

    fn text_id(&self, column: usize) -> Option<u64> {
        let (step, _) = self.step.as_ref().filter(|_| column == NAME_OF_PROGRAM)?;
        step.program.map(|program| program.0.into())
    }

    fn count(&self) -> Option<u64> {
        let lanes = self.lanes.as_slice().iter();
        Some(lanes.map(|(_, positions)| positions.end.saturating_sub(positions.start)).sum())
    }
}
