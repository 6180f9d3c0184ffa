//! Building the index of one lane, step after step, in bounded memory.

// As in the readers of what is built here.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::chunk::{CHUNK_STEPS, ChunkEncoder};
use super::program_totals::{ProgramTotals, SEGMENT_STEPS, segment_level_count, steps_per_segment};
use super::pyramid::{self, BLOCK_NODES, FAN_OUT, LEAF_STEPS, PyramidNode};
use super::step_record::{StepRecord, StepRecordDetails};
use crate::limits::MAX_SUB_LANES;
use crate::units::{CycleRange, Cycles, IpuId};

/// A finished piece of the index, to be packed and stored under its key: packing takes long, and
/// whoever stores has the time.
pub(crate) enum TraceIndexBlob {
    Chunk(i64, Vec<u8>),
    /// Details of the steps of a chunk.
    Details(i64, Vec<u8>),
    Nodes(i64, Vec<u8>),
    /// Totals by program of a segment of steps.
    Totals(i64, Vec<u8>),
}

/// Number of a lane in keys: by IPU, then sub-lane, with room for all that may turn up later.
pub(crate) fn lane_number(ipu: IpuId, sub_lane: u8) -> u32 {
    ipu.0 * u32::from(MAX_SUB_LANES) + u32::from(sub_lane)
}

/// Key of a chunk: the lane, then its place on it.
pub(super) fn chunk_key(lane: u32, chunk: u64) -> i64 {
    // Keys sort by lane, then place: SQLite keeps the pieces of a lane beside each other.
    (i64::from(lane) << 40) | chunk as i64
}

/// Key of a block of nodes or of a segment: the lane, the level, then its place on it.
pub(super) fn block_key(lane: u32, level: u32, block: u64) -> i64 {
    (i64::from(lane) << 40) | (i64::from(level) << 32) | block as i64
}

/// Nodes of one level: those not stored yet, and the one being filled.
#[derive(Default)]
struct PyramidLevelBuilder {
    stored_blocks: u64,
    finished: Vec<PyramidNode>,
    filling: Option<PyramidNode>,
    children: u64,
}

impl PyramidLevelBuilder {
    /// Takes in a step; the node that is complete with it, if any.
    fn take_step(&mut self, record: &StepRecord) -> Option<PyramidNode> {
        match &mut self.filling {
            Some(node) => node.add_step(record),
            None => self.filling = Some(PyramidNode::from_record(record)),
        }
        self.children += 1;
        (self.children == LEAF_STEPS).then(|| self.complete()).flatten()
    }

    /// Takes in a child; the node that is complete with it, if any.
    fn take(&mut self, child: &PyramidNode) -> Option<PyramidNode> {
        match &mut self.filling {
            Some(node) => node.add(child),
            None => self.filling = Some(*child),
        }
        self.children += 1;
        (self.children == FAN_OUT).then(|| self.complete()).flatten()
    }

    fn complete(&mut self) -> Option<PyramidNode> {
        self.children = 0;
        let node = self.filling.take()?;
        self.finished.push(node);
        Some(node)
    }
}

/// Totals by program of one level: the segment being filled.
#[derive(Default)]
struct SegmentLevelBuilder {
    stored: u64,
    filling: ProgramTotals,
    children: u64,
}

/// A lane of which all steps are in.
pub(crate) struct FinishedLane {
    pub(crate) steps: u64,
    pub(crate) range: CycleRange,
    pub(crate) expectations: Vec<u8>,
}

/// Builds the chunks and the pyramid of one lane.
pub(crate) struct LaneBuilder {
    lane: u32,
    records: Vec<StepRecord>,
    details: Vec<StepRecordDetails>,
    chunks: u64,
    steps: u64,
    range: Option<CycleRange>,
    encoder: ChunkEncoder,
    levels: Vec<PyramidLevelBuilder>,
    segments: Vec<SegmentLevelBuilder>,
}

impl LaneBuilder {
    /// The builder of the lane with this [`lane_number`].
    pub(crate) fn new(lane: u32) -> Self {
        Self {
            lane,
            records: Vec::new(),
            details: Vec::new(),
            chunks: 0,
            steps: 0,
            range: None,
            encoder: ChunkEncoder::new(),
            levels: Vec::new(),
            segments: vec![SegmentLevelBuilder::default()],
        }
    }

    /// Where the last step ends.
    pub(crate) fn end(&self) -> Cycles {
        self.range.map_or(Cycles::ZERO, |range| range.end)
    }

    /// Adds a step, which must not start before [`LaneBuilder::end`] nor have a lower id than the
    /// one before. `details` are given with every step or with none. Complete pieces go to `blobs`; `room` is how many more programs may be
    /// learnt over all lanes.
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
        self.range = Some(self.range.map_or(record.range, |range| range.union(record.range)));
        // A full segment is stored when more steps come: only then is it known which levels there
        // will be.
        if self.steps > 0 && self.steps.is_multiple_of(SEGMENT_STEPS) {
            self.store_segment(0, blobs);
        }
        if let Some(segment) = self.segments.first_mut() {
            segment.filling.add_step(self.steps, &record);
        }
        self.steps += 1;
        self.records.push(record);
        self.details.extend(details);
        self.propagate_step(&record, blobs);
        if self.records.len() == CHUNK_STEPS {
            self.store_chunk(room, blobs);
        }
    }

    /// Stores what is left.
    pub(crate) fn finish(
        mut self,
        room: &mut usize,
        blobs: &mut Vec<TraceIndexBlob>,
    ) -> FinishedLane {
        if !self.records.is_empty() {
            self.store_chunk(room, blobs);
        }
        // From below upwards: completing a level hands its last node to the one above.
        for level in 0..self.levels.len() {
            if let Some(node) = self.levels.get_mut(level).and_then(PyramidLevelBuilder::complete) {
                self.propagate_node(level + 1, &node, blobs);
            }
        }
        debug_assert!(
            self.levels.is_empty() == (self.steps == 0),
            "a lane with steps has a pyramid, an empty one has none"
        );
        let top = pyramid::level_count(self.steps) as usize;
        for level in 0..top.min(self.levels.len()) {
            self.store_block(level, blobs);
        }
        if self.steps > 0 {
            // Each level takes in the last segment of the one below before its own is stored.
            (0..segment_level_count(self.steps))
                .for_each(|at| self.store_segment(at as usize, blobs));
        }
        FinishedLane {
            steps: self.steps,
            range: self.range.unwrap_or_default(),
            expectations: self.encoder.expectations().encode(),
        }
    }

    fn propagate_step(&mut self, record: &StepRecord, blobs: &mut Vec<TraceIndexBlob>) {
        if self.levels.is_empty() {
            self.levels.push(PyramidLevelBuilder::default());
        }
        if let Some(node) = self.levels.first_mut().and_then(|lowest| lowest.take_step(record)) {
            self.propagate_node(1, &node, blobs);
        }
    }

    /// Hands a node to the level above its own, and on upwards while nodes fill up.
    fn propagate_node(
        &mut self,
        level: usize,
        child: &PyramidNode,
        blobs: &mut Vec<TraceIndexBlob>,
    ) {
        // Only the block being filled stays in memory, however many steps there are.
        if self.levels.get(level - 1).is_some_and(|below| below.finished.len() == BLOCK_NODES) {
            self.store_block(level - 1, blobs);
        }
        if self.levels.len() == level {
            self.levels.push(PyramidLevelBuilder::default());
        }
        if let Some(node) = self.levels.get_mut(level).and_then(|above| above.take(child)) {
            self.propagate_node(level + 1, &node, blobs);
        }
    }

    fn store_chunk(&mut self, room: &mut usize, blobs: &mut Vec<TraceIndexBlob>) {
        let (main, beside) = self.encoder.encode(&self.records, &self.details, room);
        let key = chunk_key(self.lane, self.chunks);
        blobs.push(TraceIndexBlob::Chunk(key, main));
        // Same key as the chunk, in a table of its own.
        blobs.extend(beside.map(|blob| TraceIndexBlob::Details(key, blob)));
        self.chunks += 1;
        self.records.clear();
        self.details.clear();
    }

    /// Stores the segment of a level that is being filled, and takes it into the level above.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a lane has six levels of segments at most"
    )]
    fn store_segment(&mut self, level: usize, blobs: &mut Vec<TraceIndexBlob>) {
        if self.segments.len() == level + 1 {
            self.segments.push(SegmentLevelBuilder::default());
        }
        if self.segments.get(level + 1).is_some_and(|above| above.children == FAN_OUT) {
            self.store_segment(level + 1, blobs);
        }
        let levels = self.segments.get_mut(level..).and_then(<[_]>::first_chunk_mut);
        let Some([own, above]) = levels else { return };
        let (totals, at) = (std::mem::take(&mut own.filling), own.stored);
        (own.stored, own.children) = (at + 1, 0);
        above.filling.add(&totals);
        above.children += 1;
        let key = block_key(self.lane, level as u32, at);
        blobs
            .push(TraceIndexBlob::Totals(key, totals.encode(at * steps_per_segment(level as u32))));
    }

    #[expect(clippy::cast_possible_truncation, reason = "a lane has ten levels at most")]
    fn store_block(&mut self, level: usize, blobs: &mut Vec<TraceIndexBlob>) {
        let pending = self.levels.get_mut(level).filter(|pending| !pending.finished.is_empty());
        if let Some(pending) = pending {
            let key = block_key(self.lane, level as u32 + 1, pending.stored_blocks);
            blobs.push(TraceIndexBlob::Nodes(key, pyramid::encode(&pending.finished)));
            pending.finished.clear();
            pending.stored_blocks += 1;
        }
    }
}
