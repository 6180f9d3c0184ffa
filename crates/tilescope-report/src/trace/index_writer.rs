//! All lanes of a trace index on their way into a file.

use super::lane_builder::{LaneBuilder, TraceIndexBlob};
use super::lane_number::LaneNumber;
use super::step_record::{StepRecord, StepRecordDetails};
use crate::codec::pack;
use crate::error::ReportError;
use crate::row_writer::RowWriter;
use crate::units::{Cycles, ReplicaClassId};
use rusqlite::params;
use std::collections::BTreeMap;

/// Most programs that the lanes learn expectations of, together: 100 MB.
const MAX_PREDICTIONS: usize = 1 << 20;

/// A step on its lane, on its way into the index.
pub(crate) struct LaneRecord {
    pub(crate) lane: LaneNumber,
    pub(crate) record: StepRecord,
    /// Given with every step of the lane or with none.
    pub(crate) details: Option<StepRecordDetails>,
}

/// Writes the tables `trace_lanes`, `replica_lanes`, `trace_chunks`, `trace_nodes` and
/// `trace_totals`, step by step.
pub(crate) struct TraceIndexWriter {
    lanes: BTreeMap<LaneNumber, LaneBuilder>,
    prediction_budget: usize,
    blobs: Vec<TraceIndexBlob>,
}

impl Default for TraceIndexWriter {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), prediction_budget: MAX_PREDICTIONS, blobs: Vec::new() }
    }
}

impl TraceIndexWriter {
    /// Where the last step of a lane ends; 0 for a new lane.
    pub(crate) fn end(&self, lane: LaneNumber) -> Cycles {
        self.lanes.get(&lane).map_or(Cycles::ZERO, LaneBuilder::end)
    }

    /// Adds a step to a lane; it must not start before [`TraceIndexWriter::end`].
    pub(crate) fn push(&mut self, LaneRecord { lane, record, details }: LaneRecord) {
        let builder = self.lanes.entry(lane).or_insert_with(|| LaneBuilder::new(lane));
        builder.push(record, details, &mut self.prediction_budget, &mut self.blobs);
    }

    /// Pieces that are complete; they are to be stored in this order.
    pub(crate) fn complete(&mut self) -> impl Iterator<Item = TraceIndexBlob> {
        self.blobs.drain(..)
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self, rows: &RowWriter) -> Result<(), ReportError> {
        for (number, builder) in self.lanes {
            let lane = builder.finish(&mut self.prediction_budget, &mut self.blobs);
            self.blobs.drain(..).try_for_each(|blob| blob.insert(rows))?;
            let (key, class) = (number.number(), number.class());
            let (ipu, sub_lane) = (number.ipu(), number.sub_lane());
            let (steps, expected) = (lane.steps as i64, lane.expectations);
            let (start, end) = (lane.range.start.0 as i64, lane.range.end.0 as i64);
            if class == ReplicaClassId(0) {
                let row = params![key, ipu, sub_lane, steps, start, end, expected];
                rows.insert("trace_lanes", row)?;
            } else {
                let row = params![key, class, ipu, sub_lane, steps, start, end, expected];
                rows.insert("replica_lanes", row)?;
            }
        }
        Ok(())
    }
}

impl TraceIndexBlob {
    /// Packs and stores the piece.
    pub(crate) fn insert(self, rows: &RowWriter) -> Result<(), ReportError> {
        let (table, key, raw) = match self {
            Self::Chunk(key, raw) => ("trace_chunks", key, raw),
            Self::Details(key, raw) => ("trace_details", key, raw),
            Self::Nodes(key, raw) => ("trace_nodes", key, raw),
            Self::Totals(key, raw) => ("trace_totals", key, raw),
        };
        rows.insert(table, params![key, pack(&raw)])
    }
}
