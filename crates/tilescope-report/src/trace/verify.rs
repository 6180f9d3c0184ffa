//! The invariants of an index: steps are ordered, and each stored sum equals the sum over its
//! steps.
//!
//! One pass over all lanes, in the order of the program: a chunk is decoded once, and sums of all
//! levels are computed again from its steps, as when the index was written. The same steps go to the
//! observer and to the check of the sync points, and the critical path follows them closely enough
//! to find their chunks decoded. In memory are one chunk of each lane, one block of nodes and one
//! segment per level, and the cache of the store.

use super::Trace;
use super::answers::LaneInfo;
use super::chunk::{CHUNK_STEPS, DetailComparison};
use super::exchange_order;
use super::lane_pieces::partition_point_near;
use super::lane_sums::{LaneSumPiece, LaneSums};
use super::program_totals::{
    ProgramStepTotals, ProgramTotals, segment_level_count, steps_per_segment,
};
use super::pyramid::{self, BLOCK_NODES};
use super::step_record::StepRecord;
use super::store::TraceStore;
use super::sync_points::{PathCheck, SyncPrograms};
use crate::error::ReportError;
use crate::units::{Cycles, ReplicaIpu, StepId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of the pass over a lane.
pub(crate) struct VerifiedLane {
    pub(crate) info: LaneInfo,
    /// The first broken invariant, as text. The other fields then cover the chunks before it.
    pub(crate) broken: Option<String>,
    /// Totals by program, computed from the steps.
    pub(crate) programs: Vec<ProgramStepTotals>,
    /// The id and the end of the last step.
    pub(crate) last: Option<(StepId, Cycles)>,
}

/// The steps that a pass covers in one call.
pub(crate) struct PassWindow {
    /// The first step after them; `None` for all remaining ones.
    pub(crate) end: Option<StepId>,
    /// Sorted steps of the window, whose preceding positions are recorded.
    pub(crate) watched: Arc<[StepId]>,
}

/// The steps around the watched positions of a window on a lane; fewer if it broke off.
pub(crate) struct WatchedLane<'a> {
    pub(crate) info: LaneInfo,
    pub(crate) edges: &'a [LaneEdge],
}

/// A position on a lane between two steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneEdge {
    /// The id and the end of the step before it.
    pub(crate) before: Option<(StepId, Cycles)>,
    /// The id and the start of the step after it.
    pub(crate) behind: Option<(StepId, Cycles)>,
}

/// Receives the steps of all IPUs, in the order of the program; parts of a step on several lanes by
/// class of replicas, IPU and sub-lane.
pub(crate) trait StepObserver {
    /// Receives the next steps of an IPU. No step of another lane is between them.
    fn steps(&mut self, at: ReplicaIpu, records: &[StepRecord]);
}

/// A callback for every chunk, with its number of steps, which may end the pass.
type OnChunk<'a> = &'a mut dyn FnMut(u64) -> Result<(), ReportError>;

impl Trace {
    /// A pass over the steps of all lanes of all replicas. With the syncs of the program, it also
    /// checks the sync points and the critical path.
    pub(crate) fn pass(&self, tiles_per_ipu: u32, syncs: Option<SyncPrograms>) -> TracePass<'_> {
        let lanes = self.store.lanes.iter();
        TracePass {
            lanes: lanes.map(|info| LanePass::new(&self.store, *info, tiles_per_ipu)).collect(),
            path: syncs.map(|syncs| PathCheck::new(&self.store, syncs)),
            done: 0,
            bars: self.store.lanes.iter().map(|lane| lane.steps).sum(),
        }
    }

    /// Describes tables of the index with too few or too many pieces for the lanes.
    pub(crate) fn verify_pieces(&self) -> Result<Vec<String>, ReportError> {
        let lanes = self.store.lanes.iter();
        let count_chunks = |lane: &LaneInfo| lane.steps.div_ceil(CHUNK_STEPS as u64);
        let has_details = |lane: &&LaneInfo| self.store.has_details(**lane);
        let mut segments = 0;
        let mut blocks = 0;
        for lane in lanes.clone() {
            for level in 0..segment_level_count(lane.steps) {
                segments += lane.steps.div_ceil(steps_per_segment(level));
            }
            for level in 1..=pyramid::level_count(lane.steps) {
                blocks += pyramid::node_count(lane.steps, level).div_ceil(BLOCK_NODES as u64);
            }
        }
        let needed: [(&'static str, u64); 5] = [
            ("trace_chunks", lanes.clone().map(count_chunks).sum()),
            ("trace_details", lanes.filter(has_details).map(count_chunks).sum()),
            ("trace_nodes", blocks),
            ("trace_totals", if self.store.has_totals() { segments } else { 0 }),
            ("trace_lengths", if self.store.has_lengths() { segments } else { 0 }),
        ];
        let mut broken = Vec::new();
        for (table, needed) in needed {
            let found = self.store.piece_count(table)?;
            if found != needed {
                broken.push(format!("{table} has {found} pieces, but the lanes need {needed}"));
            }
        }
        Ok(broken)
    }
}

/// One pass over the steps of all lanes, window by window.
pub(crate) struct TracePass<'a> {
    lanes: Vec<LanePass<'a>>,
    path: Option<PathCheck>,
    /// Number of steps read.
    done: u64,
    bars: u64,
}

/// The results of a pass.
pub(crate) struct VerifiedTrace {
    pub(crate) lanes: Vec<VerifiedLane>,
    /// Problems of the sync points and the critical path; none if a lane broke off.
    pub(crate) path: Result<Vec<String>, ReportError>,
}

impl TracePass<'_> {
    /// Passes the steps of a window to `observer`. `progress` gets a share from 0 to 1 of the
    /// trace. Setting `cancel` aborts with [`ReportError::Cancelled`].
    pub(crate) fn advance(
        &mut self,
        window: &PassWindow,
        observer: &mut impl StepObserver,
        progress: &mut dyn FnMut(f64),
        cancel: &AtomicBool,
    ) -> Result<(), ReportError> {
        let Self { lanes, path, done, bars } = self;
        let all = (*bars).max(1);
        let mut on_chunk = |steps| {
            *done += steps;
            progress(*done as f64 / all as f64);
            if cancel.load(Ordering::Relaxed) { Err(ReportError::Cancelled) } else { Ok(()) }
        };
        let mut next = BinaryHeap::with_capacity(lanes.len());
        for (at, lane) in lanes.iter_mut().enumerate() {
            lane.watch(Arc::clone(&window.watched));
            lane.fill(&mut on_chunk)?;
            next.extend(lane.head().map(|record| Reverse((record.step, at))));
        }
        let end = window.end.map(|end| (end, 0));
        while let Some(Reverse((_, at))) = next.pop() {
            // Up to the point where another lane continues: mostly more than one step.
            let others = next.peek().map(|Reverse(first)| *first);
            let limit = others.into_iter().chain(end).min();
            let Some(lane) = lanes.get_mut(at) else { continue };
            let ipu = ReplicaIpu { class: lane.info.class, ipu: lane.info.ipu };
            let mut is_at_limit = false;
            while !is_at_limit && lane.head().is_some() {
                let rest = lane.records.get(lane.next..).unwrap_or_default();
                let passed = limit.map_or(rest.len(), |limit| {
                    partition_point_near(rest, 0, |record| (record.step, at) < limit)
                });
                let (own, later) = rest.split_at(passed);
                observer.steps(ipu, own);
                if let Some(path) = path {
                    path.steps(at, own);
                }
                is_at_limit = !later.is_empty();
                lane.next += passed;
                lane.fill(&mut on_chunk)?;
            }
            let head = lane.head().filter(|record| end.is_none_or(|end| (record.step, at) < end));
            next.extend(head.map(|record| Reverse((record.step, at))));
        }
        // `fill` searches a chunk when it is used up, so the current one was not searched yet.
        for lane in &mut *lanes {
            lane.find_last_edges();
        }
        if let Some(path) = path {
            // Chunks of later steps would have to be decoded, and again when the pass gets there.
            let passed = lanes.iter().filter(|lane| !lane.is_through).map(LanePass::passed_until);
            path.advance(passed.min().unwrap_or(Cycles::MAX));
        }
        Ok(())
    }

    /// The steps around the watched positions of the last window, by lane.
    pub(crate) fn lanes(&self) -> Vec<WatchedLane<'_>> {
        self.lanes.iter().map(|lane| WatchedLane { info: lane.info, edges: &lane.edges }).collect()
    }

    /// The results of the pass.
    pub(crate) fn finish(self) -> VerifiedTrace {
        let lanes: Vec<VerifiedLane> =
            self.lanes.into_iter().map(LanePass::into_verified).collect();
        // Steps of a broken lane are missing, so a comparison with the path would only repeat its
        // error.
        let path = self.path.filter(|_| lanes.iter().all(|lane| lane.broken.is_none()));
        VerifiedTrace { lanes, path: path.map_or_else(|| Ok(Vec::new()), PathCheck::finish) }
    }
}

/// The pass over one lane.
struct LanePass<'a> {
    store: &'a TraceStore,
    info: LaneInfo,
    tiles_per_ipu: u32,
    has_details: bool,
    /// The comparison with the details of steps, once there is a step.
    details: Option<DetailComparison>,
    /// Number of levels with stored totals.
    levels: u32,
    sums: LaneSums,
    /// The id and the end of the last step.
    last: Option<(StepId, Cycles)>,
    /// Totals by program of the whole lane.
    programs: ProgramTotals,
    /// The watched steps of the window, and the steps around those that were passed.
    watched: Arc<[StepId]>,
    edges: Vec<LaneEdge>,
    /// The current chunk, and the index in it.
    records: Arc<Vec<StepRecord>>,
    next: usize,
    /// The index up to which edges were searched, and the step before it.
    searched: usize,
    before: Option<(StepId, Cycles)>,
    /// Number of chunks read.
    chunks: u64,
    /// The first broken invariant, as text; the lane ends there.
    broken: Option<String>,
    is_through: bool,
}

impl<'a> LanePass<'a> {
    fn new(store: &'a TraceStore, info: LaneInfo, tiles_per_ipu: u32) -> Self {
        Self {
            store,
            info,
            tiles_per_ipu,
            has_details: store.has_details(info),
            details: None,
            levels: if store.has_totals() { segment_level_count(info.steps) } else { 0 },
            sums: LaneSums::default(),
            last: None,
            programs: ProgramTotals::default(),
            watched: Arc::default(),
            edges: Vec::new(),
            records: Arc::default(),
            next: 0,
            searched: 0,
            before: None,
            chunks: 0,
            broken: None,
            is_through: false,
        }
    }

    /// The next step, from the current chunk.
    fn head(&self) -> Option<&StepRecord> {
        self.records.get(self.next)
    }

    /// Reads the next chunk when the current one is used up.
    fn fill(&mut self, step_on: OnChunk<'_>) -> Result<(), ReportError> {
        if self.next < self.records.len() || self.is_through {
            return Ok(());
        }
        self.find_edges();
        self.next = 0;
        self.searched = 0;
        let chunk = self.chunks;
        self.chunks += 1;
        if chunk < self.info.steps.div_ceil(CHUNK_STEPS as u64) {
            self.records = self.store.chunk(self.info, chunk)?;
            self.broken = self.check_steps(chunk)?;
            step_on(self.records.len() as u64)?;
        } else {
            self.records = Arc::default();
            self.broken = self.finish()?;
            self.is_through = true;
        }
        if self.broken.is_some() {
            self.records = Arc::default();
            self.is_through = true;
        }
        Ok(())
    }

    /// The end of the last step that was passed.
    fn passed_until(&self) -> Cycles {
        self.before.map_or(Cycles::ZERO, |(_, end)| end)
    }

    fn into_verified(self) -> VerifiedLane {
        let Self { info, broken, programs, last, .. } = self;
        let programs = programs.into_totals();
        VerifiedLane { info, broken: broken.map(|law| format!("{info}: {law}")), programs, last }
    }

    /// Checks the current chunk. Returns the first invariant that it breaks.
    fn check_steps(&mut self, chunk: u64) -> Result<Option<String>, ReportError> {
        let records = Arc::clone(&self.records);
        // Sums of unordered steps are undefined, so order is checked first.
        if let Some(broken) = self.disorder(&records) {
            return Ok(Some(broken));
        }
        self.last = records.last().map(step_and_end).or(self.last);
        let mut pieces = Vec::new();
        self.sums.push_all(&records, &mut pieces);
        if self.has_details {
            let mut details = match self.details.take() {
                Some(details) => details,
                None => {
                    DetailComparison::new(&*self.store.expectations(self.info)?, self.tiles_per_ipu)
                }
            };
            let found = self.store.decode_details(self.info, chunk, |blob, expected| {
                details.find_contradiction(blob, &records, expected)
            })?;
            if let Some(record) = found {
                return Ok(Some(format!("the details of step {} contradict it", record.step)));
            }
            self.details = Some(details);
        }
        self.compare(pieces)
    }

    /// Starts a window.
    fn watch(&mut self, watched: Arc<[StepId]>) {
        self.watched = watched;
        self.edges.clear();
    }

    /// Records the watched positions before the steps that were passed.
    fn find_edges(&mut self) {
        let mut passed = self.records.get(self.searched..self.next).unwrap_or_default();
        self.searched = self.next;
        let Some(last) = passed.last() else { return };
        while let Some(&step) = self.watched.get(self.edges.len()).filter(|at| **at <= last.step) {
            // Marks are dense: the next one begins some steps further.
            let before = partition_point_near(passed, 0, |record| record.step < step);
            let (earlier, later) = passed.split_at(before);
            let behind = later.first().map(|record| (record.step, record.range.start));
            self.before = earlier.last().map(step_and_end).or(self.before);
            self.edges.push(LaneEdge { before: self.before, behind });
            passed = later;
        }
        self.before = Some(step_and_end(last));
    }

    /// Records all remaining watched positions, which are before the next step.
    fn find_last_edges(&mut self) {
        self.find_edges();
        if self.broken.is_some() {
            return;
        }
        let behind = self.head().map(|record| (record.step, record.range.start));
        self.edges.resize(self.watched.len(), LaneEdge { before: self.before, behind });
    }

    /// Compares the pieces that are complete only at the end of the lane.
    fn finish(&mut self) -> Result<Option<String>, ReportError> {
        let range = self.sums.range();
        if range != self.info.range {
            return Ok(Some("the lane does not start or end at the recorded cycles".to_owned()));
        }
        let mut pieces = Vec::new();
        std::mem::take(&mut self.sums).finish(&mut pieces);
        self.compare(pieces)
    }

    /// Describes the first error in the positions of steps after those before them.
    fn disorder(&self, records: &[StepRecord]) -> Option<String> {
        let mut before = self.sums.range().end;
        let mut last = self.last.map_or(StepId(0), |(last, _)| last);
        for StepRecord { step, range, .. } in records {
            let start = range.start;
            if start < before {
                let before = before.0;
                return Some(format!(
                    "step {step} starts at {}, but the previous step ends at {before}",
                    start.0
                ));
            }
            if *step < last {
                return Some(format!("step {step} comes after step {last}"));
            }
            (before, last) = (range.end, *step);
        }
        None
    }

    /// Compares complete pieces with those of the index.
    fn compare(&mut self, pieces: Vec<LaneSumPiece>) -> Result<Option<String>, ReportError> {
        for piece in pieces {
            let broken = match piece {
                LaneSumPiece::Nodes { level, block, nodes } => {
                    // Equal bytes are the usual case, and need not be decoded.
                    let raw = pyramid::encode(&nodes);
                    if self.store.has_nodes(self.info, (level, block), &raw)? {
                        continue;
                    }
                    let stored = self.store.read_nodes(self.info, level, block)?;
                    let differs = nodes.iter().zip(&stored).position(|(sum, node)| sum != node);
                    differs.map(|place| {
                        let at = block * BLOCK_NODES as u64 + place as u64;
                        format!("node {at} of level {level} is not the sum of its steps")
                    })
                }
                LaneSumPiece::ExchangeOrder(raw) => {
                    let stored = self.store.exchange_order(self.info)?;
                    let differs = stored
                        .is_some_and(|stored| exchange_order::decode_raw(&raw) != Some(stored));
                    if differs {
                        Some("steps before exchanges are counted wrongly".to_owned())
                    } else {
                        None
                    }
                }
                LaneSumPiece::Totals { level, at, totals } => {
                    // The top level covers the lane, even if it is not stored.
                    if level + 1 == segment_level_count(self.info.steps) {
                        self.programs.add(&totals);
                    }
                    let same = level >= self.levels || {
                        let place = (level, at);
                        let stored =
                            self.store.read_segment(self.info, place, ProgramTotals::decode)?;
                        let (totals, stored) = if self.store.has_lengths() {
                            let groups = self.store.length_groups(self.info, place, &stored)?;
                            (totals, stored.with_groups(groups))
                        } else {
                            (totals.without_groups(), stored)
                        };
                        totals.into_totals() == stored.into_totals()
                    };
                    let text =
                        || format!("totals {at} of level {level} are not the sum of their steps");
                    (!same).then(text)
                }
            };
            if broken.is_some() {
                return Ok(broken);
            }
        }
        Ok(None)
    }
}

/// The id and the end of a step.
fn step_and_end(record: &StepRecord) -> (StepId, Cycles) {
    (record.step, record.range.end)
}
