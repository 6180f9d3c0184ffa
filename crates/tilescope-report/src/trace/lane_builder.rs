//! Builds the index of one lane, step by step, in bounded memory.

// As in the readers of this index.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::chunk::{CHUNK_STEPS, ChunkEncoder};
use super::lane_number::LaneNumber;
use super::lane_sums::{LaneSumPiece, LaneSums};
use super::program_totals::steps_per_segment;
use super::pyramid;
use super::step_record::{StepRecord, StepRecordDetails};
use crate::units::{CycleRange, Cycles};

/// A finished piece of the index, to be packed and stored under its key. Packing takes long, so the
/// caller chooses the time.
pub(crate) enum TraceIndexBlob {
    Chunk(i64, Vec<u8>),
    /// Details of the steps of a chunk.
    Details(i64, Vec<u8>),
    Nodes(i64, Vec<u8>),
    /// Sums by length of the entries of a segment.
    Lengths(i64, Vec<u8>),
    /// Totals by program of a segment of steps.
    Totals(i64, Vec<u8>),
    /// A block of points at which lanes wait for each other.
    SyncPoints(i64, Vec<u8>),
    /// The busy steps before exchanges of a lane.
    ExchangeOrder(i64, Vec<u8>),
}

/// A lane with all its steps.
pub(crate) struct FinishedLane {
    pub(crate) steps: u64,
    pub(crate) range: CycleRange,
    pub(crate) expectations: Vec<u8>,
}

/// Builds the chunks and the pyramid of one lane.
pub(crate) struct LaneBuilder {
    lane: LaneNumber,
    records: Vec<StepRecord>,
    details: Vec<StepRecordDetails>,
    chunks: u64,
    encoder: ChunkEncoder,
    sums: LaneSums,
    /// Complete pieces of the sums that are not packed yet.
    pieces: Vec<LaneSumPiece>,
}

impl LaneBuilder {
    pub(crate) fn new(lane: LaneNumber) -> Self {
        Self {
            lane,
            records: Vec::new(),
            details: Vec::new(),
            chunks: 0,
            encoder: ChunkEncoder::new(),
            sums: LaneSums::default(),
            pieces: Vec::new(),
        }
    }

    /// The end of the last step.
    pub(crate) fn end(&self) -> Cycles {
        self.sums.range().end
    }

    /// Adds a step, which must not start before [`LaneBuilder::end`] or have a lower id than the
    /// previous one. `details` are given for all steps or for none. Complete pieces go to `blobs`;
    /// `room` is the number of further programs that may be learnt over all lanes.
    pub(crate) fn push(
        &mut self,
        record: StepRecord,
        details: Option<StepRecordDetails>,
        room: &mut usize,
        blobs: &mut Vec<TraceIndexBlob>,
    ) {
        debug_assert!(record.range.start >= self.end(), "steps of a lane do not overlap");
        debug_assert!(
            self.records.last().is_none_or(|last| last.step <= record.step),
            "ids of a lane do not fall"
        );
        self.sums.push(&record, &mut self.pieces);
        if !self.pieces.is_empty() {
            self.store_pieces(blobs);
        }
        self.records.push(record);
        self.details.extend(details);
        if self.records.len() == CHUNK_STEPS {
            self.store_chunk(room, blobs);
        }
    }

    /// Stores the rest.
    pub(crate) fn finish(
        mut self,
        room: &mut usize,
        blobs: &mut Vec<TraceIndexBlob>,
    ) -> FinishedLane {
        if !self.records.is_empty() {
            self.store_chunk(room, blobs);
        }
        let steps = self.sums.steps();
        let range = self.sums.range();
        std::mem::take(&mut self.sums).finish(&mut self.pieces);
        self.store_pieces(blobs);
        FinishedLane { steps, range, expectations: self.encoder.expectations().encode() }
    }

    /// Encodes the complete pieces of the sums.
    fn store_pieces(&mut self, blobs: &mut Vec<TraceIndexBlob>) {
        let lane = self.lane;
        for piece in self.pieces.drain(..) {
            match piece {
                LaneSumPiece::Nodes { level, block, nodes } => {
                    let key = lane.block_key(level, block);
                    blobs.push(TraceIndexBlob::Nodes(key, pyramid::encode(&nodes)));
                }
                LaneSumPiece::Totals { level, at, totals } => {
                    let key = lane.block_key(level, at);
                    let encoded = totals.encode(at * steps_per_segment(level));
                    blobs.push(TraceIndexBlob::Totals(key, encoded.totals));
                    blobs.push(TraceIndexBlob::Lengths(key, encoded.groups));
                }
                LaneSumPiece::ExchangeOrder(raw) => {
                    blobs.push(TraceIndexBlob::ExchangeOrder(i64::from(lane.number()), raw));
                }
            }
        }
    }

    fn store_chunk(&mut self, room: &mut usize, blobs: &mut Vec<TraceIndexBlob>) {
        let (main, beside) = self.encoder.encode(&self.records, &self.details, room);
        let key = self.lane.chunk_key(self.chunks);
        blobs.push(TraceIndexBlob::Chunk(key, main));
        // Same key as the chunk, in a separate table.
        blobs.extend(beside.map(|blob| TraceIndexBlob::Details(key, blob)));
        self.chunks += 1;
        self.records.clear();
        self.details.clear();
    }
}
