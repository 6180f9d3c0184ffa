//! The table `activity_cycles`: cycles of each IPU by activity.

use super::{
    ACTIVITY, BoundColumns, FoundRows, IPU, LANE, RecordError, RecordReader, RecordRows,
    RecordSource, RecordTable, RowBounds, RowFilter, SUB_LANE, StreamedRows, WINDOW, WantedColumns,
    lanes_within, plain, text, whole, window,
};
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tilescope_report::StepActivity;
use tilescope_report::trace::{LaneInfo, StepTotals, Trace};
use tilescope_report::units::CycleRange;
use tilescope_vtab::{RowEstimate, VirtualColumn};

/// The table `activity_cycles`.
pub(super) const TABLE: RecordTable = RecordTable {
    name: "activity_cycles",
    about: "cycles of an IPU per activity, over the whole run or in a window of cycles: \
    activity_cycles(first_cycle, end_cycle)",
    stands_in: None,
    filters: Some(&[RowFilter::Cycles, RowFilter::Ipus]),
    source: RecordSource::Streamed(StreamedRows {
        bounded: &[],
        columns: COLUMNS,
        order: &[IPU, SUB_LANE],
        groups: super::no_groups,
        estimate,
        rows,
    }),
};

const ARGUMENTS: usize = 7;

const COLUMNS: &[VirtualColumn] = &[
    LANE[0],
    LANE[1],
    ACTIVITY,
    plain(
        "cycles",
        "INTEGER",
        "cycles",
        "its cycles; for steps that extend beyond the window, the part in it",
    ),
    plain(
        "tile_balance",
        "REAL",
        "share",
        "mean tile balance over those cycles; NULL if there are none",
    ),
    plain("bytes_in", "INTEGER", "bytes", "bytes received by tiles, of whole steps"),
    plain("bytes_out", "INTEGER", "bytes", "bytes sent by tiles, of whole steps"),
    WINDOW[0],
    WINDOW[1],
];

fn estimate(run: &RecordReader, asked: BoundColumns) -> RowEstimate {
    let (_, lanes) = run.size();
    let share = asked.share(IPU, 1.0 / lanes);
    RowEstimate { rows: (lanes * StepActivity::ALL.len() as f64 * share).max(1.0), unique: false }
}

fn rows(run: &Arc<RecordReader>, bounds: &RowBounds, _: WantedColumns) -> FoundRows {
    let Some(trace) = run.trace()? else { return Ok(Box::new(super::NoRows)) };
    let lanes = lanes_within(&trace, bounds, (IPU, SUB_LANE)).into_iter();
    let window = window(bounds, ARGUMENTS);
    Ok(Box::new(ActivityRows {
        run: run.clone(),
        trace,
        lanes,
        window,
        lane: None,
        left: Vec::new(),
    }))
}

/// Sums by activity, lane by lane.
struct ActivityRows {
    run: Arc<RecordReader>,
    trace: Trace,
    lanes: std::vec::IntoIter<usize>,
    window: Option<CycleRange>,
    lane: Option<(LaneInfo, StepTotals)>,
    /// Remaining activities of the lane, in reverse order.
    left: Vec<StepActivity>,
}

impl RecordRows for ActivityRows {
    fn advance(&mut self) -> Result<bool, RecordError> {
        self.left.pop();
        while self.left.is_empty() {
            self.run.check_time(0)?;
            let Some(at) = self.lanes.next() else { return Ok(false) };
            let Some(lane) = self.trace.lane(at) else { continue };
            let totals = match self.window {
                Some(window) => lane.totals(window)?,
                None => lane.all_totals()?,
            };
            for activity in StepActivity::ALL.into_iter().rev() {
                let bytes = totals.bytes_in[activity].0 + totals.bytes_out[activity].0;
                if totals.cycles[activity].0 + bytes > 0 {
                    self.left.push(activity);
                }
            }
            self.lane = Some((lane.info(), totals));
        }
        Ok(true)
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let (Some((lane, totals)), Some(activity)) = (&self.lane, self.left.last()) else {
            return ValueRef::Null;
        };
        match column {
            IPU => whole(lane.ipu.0),
            SUB_LANE => whole(lane.sub_lane),
            2 => text(activity.name()),
            3 => whole(totals.cycles[*activity].0),
            4 => totals.tile_balance(&[*activity]).map_or(ValueRef::Null, ValueRef::Real),
            5 => whole(totals.bytes_in[*activity].0),
            6 => whole(totals.bytes_out[*activity].0),
            _ => ValueRef::Null,
        }
    }
}
