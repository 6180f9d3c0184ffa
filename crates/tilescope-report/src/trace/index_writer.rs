//! Writes all lanes of a trace index into a file.

use super::lane_builder::{LaneBuilder, TraceIndexBlob};
use super::lane_number::LaneNumber;
use super::step_record::{StepRecord, StepRecordDetails};
use super::sync_points::{BesideCompute, LaneIndex, SyncPointRecorder, SyncPrograms};
use crate::codec::pack;
use crate::error::ReportError;
use crate::row_writer::RowWriter;
use crate::units::{Cycles, ReplicaClassId, ReplicaIpu};
use rusqlite::params;
use std::collections::BTreeMap;

/// The maximum number of programs, over all lanes, with expectations: 100 MB.
const MAX_PREDICTIONS: usize = 1 << 20;

/// A step on its lane, to be written to the index.
pub(crate) struct LaneRecord {
    pub(crate) lane: LaneNumber,
    pub(crate) record: StepRecord,
    /// Given for all steps of the lane or for none.
    pub(crate) details: Option<StepRecordDetails>,
}

/// A hand-over between tiles of an IPU of some replicas, by sub-lane: the next step of `to` waits
/// for the work of `from` so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileHandOver {
    pub(crate) at: ReplicaIpu,
    pub(crate) from: u8,
    pub(crate) to: u8,
}

/// The events that a trace index is built from, in the order of the program.
pub(crate) enum TraceEvent {
    Step(LaneRecord),
    HandOver(TileHandOver),
}

/// Writes the tables [`TRACE_TABLES`](crate::schema::TRACE_TABLES), step by step.
pub(crate) struct TraceIndexWriter {
    lanes: BTreeMap<LaneNumber, (LaneBuilder, LaneIndex)>,
    prediction_budget: usize,
    blobs: Vec<TraceIndexBlob>,
    sync_points: SyncPointRecorder,
    sync_point_blocks: i64,
}

impl TraceIndexWriter {
    /// A writer for a run of a program with these syncs.
    pub(crate) fn new(programs: SyncPrograms) -> Self {
        Self {
            lanes: BTreeMap::new(),
            prediction_budget: MAX_PREDICTIONS,
            blobs: Vec::new(),
            sync_points: SyncPointRecorder::new(programs),
            sync_point_blocks: 0,
        }
    }

    /// The end of the last step of a lane; 0 for a new lane.
    pub(crate) fn end(&self, lane: LaneNumber) -> Cycles {
        self.lanes.get(&lane).map_or(Cycles::ZERO, |(builder, _)| builder.end())
    }

    /// Adds the next event.
    pub(crate) fn event(&mut self, event: TraceEvent) {
        match event {
            TraceEvent::Step(record) => self.push(record),
            TraceEvent::HandOver(TileHandOver { at, from, to }) => {
                self.sync_points.hand_over(at, from, to);
            }
        }
    }

    /// Adds a step to a lane; it must not start before [`TraceIndexWriter::end`].
    pub(crate) fn push(&mut self, LaneRecord { lane, record, details }: LaneRecord) {
        let Self { lanes, sync_points, .. } = self;
        let (builder, index) = lanes
            .entry(lane)
            .or_insert_with(|| (LaneBuilder::new(lane), sync_points.add_lane(lane)));
        sync_points.push(*index, &record);
        builder.push(record, details, &mut self.prediction_budget, &mut self.blobs);
        for block in self.sync_points.complete() {
            self.blobs.push(TraceIndexBlob::SyncPoints(self.sync_point_blocks, block));
            self.sync_point_blocks += 1;
        }
    }

    /// Complete pieces, which must be stored in this order.
    pub(crate) fn complete(&mut self) -> impl Iterator<Item = TraceIndexBlob> {
        self.blobs.drain(..)
    }

    /// Writes the rest.
    pub(crate) fn finish(self, rows: &RowWriter) -> Result<(), ReportError> {
        let Self { lanes, prediction_budget: mut budget, mut blobs, .. } = self;
        let (blocks, beside) = self.sync_points.finish();
        let numbered = (self.sync_point_blocks..).zip(blocks);
        blobs.extend(numbered.map(|(id, block)| TraceIndexBlob::SyncPoints(id, block)));
        insert_beside(rows, beside)?;
        for (number, (builder, _)) in lanes {
            let lane = builder.finish(&mut budget, &mut blobs);
            blobs.drain(..).try_for_each(|blob| blob.insert(rows))?;
            let key = number.number();
            let class = number.class();
            let ipu = number.ipu();
            let sub_lane = number.sub_lane();
            let steps = lane.steps as i64;
            let expected = lane.expectations;
            let start = lane.range.start.0 as i64;
            let end = lane.range.end.0 as i64;
            if class == ReplicaClassId(0) {
                let row = params![key, ipu, sub_lane, steps, start, end, expected];
                rows.insert("trace_lanes", row)?;
            } else {
                let row = params![key, class, ipu, sub_lane, steps, start, end, expected];
                rows.insert("replica_lanes", row)?;
            }
        }
        blobs.into_iter().try_for_each(|blob| blob.insert(rows))
    }
}

/// Writes the work beside compute tiles.
pub(super) fn insert_beside(
    rows: &RowWriter,
    beside: Vec<BesideCompute>,
) -> Result<(), ReportError> {
    for (id, sum) in (0i64..).zip(beside) {
        let BesideCompute { lane, class, hidden, .. } = sum;
        let program = sum.program.map(|program| program.0);
        let kind = class.kind().name();
        let stream = class.stream().name();
        let hidden = hidden.map(|cycles| cycles.0 as i64);
        rows.insert("trace_beside", params![id, lane, program, kind, stream, hidden])?;
    }
    Ok(())
}

impl TraceIndexBlob {
    /// Packs and stores the piece.
    pub(crate) fn insert(self, rows: &RowWriter) -> Result<(), ReportError> {
        let (table, key, raw) = match self {
            Self::Chunk(key, raw) => ("trace_chunks", key, raw),
            Self::Details(key, raw) => ("trace_details", key, raw),
            Self::Nodes(key, raw) => ("trace_nodes", key, raw),
            Self::Totals(key, raw) => ("trace_totals", key, raw),
            Self::Lengths(key, raw) => ("trace_lengths", key, raw),
            Self::SyncPoints(key, raw) => ("trace_sync_points", key, raw),
            Self::ExchangeOrder(key, raw) => ("trace_exchange_order", key, raw),
        };
        rows.insert(table, params![key, pack(&raw)])
    }
}
