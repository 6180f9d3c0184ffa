//! The table `steps_by_ipu` of a report without rows of these.

use super::step_merge::{StepMerge, WantedLane, WantedSteps};
use super::steps::ids_within;
use super::{
    BoundColumns, FoundRows, RecordError, RecordReader, RecordRows, RecordSource, RecordTable,
    RowBounds, StreamedRows, WantedColumns, lanes_within, whole,
};
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::Report;
use tilescope_report::trace::Trace;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_vtab::RowEstimate;

/// The table `steps_by_ipu`.
pub(super) const TABLE: RecordTable = RecordTable {
    name: "steps_by_ipu",
    about: "a step on one IPU",
    stands_in: Some(Report::has_columns),
    filters: None,
    source: RecordSource::Streamed(StreamedRows {
        bounded: &[STEP_ID, IPU, CYCLES_BASE, SUB_LANE],
        columns: &[],
        order: &[STEP_ID, IPU, SUB_LANE],
        groups: |columns, _| columns.iter().all(|column| [IPU, SUB_LANE].contains(column)),
        estimate,
        rows,
    }),
};

const STEP_ID: usize = 0;
const IPU: usize = 1;
const CYCLES_BASE: usize = 4;
const SUB_LANE: usize = 13;

fn estimate(run: &RecordReader, asked: BoundColumns) -> RowEstimate {
    let (bars, lanes) = run.size();
    let share = asked.share(STEP_ID, lanes / bars.max(1.0))
        * asked.share(IPU, 1.0 / lanes)
        * asked.share(CYCLES_BASE, 0.5);
    RowEstimate { rows: (bars * share).max(1.0), unique: false }
}

fn rows(run: &Arc<RecordReader>, bounds: &RowBounds, wanted: WantedColumns) -> FoundRows {
    let Some(trace) = run.trace()? else { return Ok(Box::new(super::NoRows)) };
    let ids = ids_within(&bounds.columns.of(STEP_ID));
    let tiles_per_ipu = run.report.target()?.tiles_per_ipu;
    let as_rows = (2..SUB_LANE).any(wanted);
    if ids.end.0 == ids.start.0 + 1 {
        let mut found = Vec::new();
        for at in lanes_within(&trace, bounds, (IPU, SUB_LANE)) {
            let step = run.lookup.step(run, &trace, (at, ids.start), as_rows)?;
            found.extend(step.map(|step| (at, step)));
        }
        let merge = StepMerge::of_found(run.clone(), trace, found);
        return Ok(Box::new(StepOnIpuRows { merge, tiles_per_ipu }));
    }
    let mut lanes = Vec::new();
    for at in lanes_within(&trace, bounds, (IPU, SUB_LANE)) {
        let Some(lane) = trace.lane(at) else { continue };
        let mut positions = lane.positions_of(&ids)?;
        // A bar starts when its last tile does, not before the base. The index does not hold the
        // difference, so an upper bound is useless.
        if let Ok(first) = u64::try_from(*bounds.columns.of(CYCLES_BASE).start())
            && first > 0
        {
            let from = CycleRange::new(Cycles(first), Cycles(u64::MAX));
            positions.start = positions.start.max(lane.touching(from)?.start);
        }
        if !positions.is_empty() {
            lanes.push((at, positions));
        }
    }
    let parts = parts_of(&trace, lanes, bounds.columns.groups());
    let wanted = WantedSteps { trace, parts, program: None, as_rows };
    Ok(Box::new(StepOnIpuRows { merge: StepMerge::new(run.clone(), wanted)?, tiles_per_ipu }))
}

/// Lanes in parts that are equal in the columns that rows are grouped by, sorted by these.
fn parts_of(trace: &Trace, lanes: Vec<WantedLane>, groups: &[usize]) -> Vec<Vec<WantedLane>> {
    let mut parts: BTreeMap<Vec<u32>, Vec<WantedLane>> = BTreeMap::new();
    for (at, positions) in lanes {
        let mut key = Vec::new();
        if let Some(lane) = trace.lanes().get(at) {
            for column in groups {
                key.push(if *column == IPU { lane.ipu.0 } else { lane.sub_lane.into() });
            }
        }
        parts.entry(key).or_default().push((at, positions));
    }
    parts.into_values().collect()
}

/// Steps with their data on each IPU.
struct StepOnIpuRows {
    merge: StepMerge,
    tiles_per_ipu: u32,
}

impl RecordRows for StepOnIpuRows {
    fn advance(&mut self) -> Result<bool, RecordError> {
        self.merge.advance()
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let Some((step, on_ipu)) = self.merge.step() else { return ValueRef::Null };
        if column == STEP_ID {
            return whole(step.step.0);
        }
        let Some(on_ipu) = on_ipu else {
            return self.merge.lane().map_or(ValueRef::Null, |lane| match column {
                IPU => whole(lane.ipu.0),
                SUB_LANE => whole(lane.sub_lane),
                _ => ValueRef::Null,
            });
        };
        let base = on_ipu.from_min;
        let behind = |cycle: Cycles| whole(cycle.saturating_sub(base).0);
        match column {
            IPU => whole(on_ipu.ipu.0),
            2 => whole(on_ipu.to_max.saturating_sub(on_ipu.from_max).0),
            3 => whole(on_ipu.active_tiles),
            CYCLES_BASE => whole(base.0),
            5 => whole(0u8),
            6 => behind(on_ipu.from_max),
            7 => behind(on_ipu.to_min),
            8 => behind(on_ipu.to_max),
            9 => ValueRef::Real(on_ipu.active_tile_balance.into()),
            10 => ValueRef::Real(on_ipu.tile_balance(self.tiles_per_ipu).min(1.0)),
            11 => whole(on_ipu.bytes_in.0),
            12 => whole(on_ipu.bytes_out.0),
            SUB_LANE => whole(on_ipu.sub_lane),
            _ => ValueRef::Null,
        }
    }
}
