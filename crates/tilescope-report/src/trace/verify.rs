//! The invariants of an index: steps are ordered, and each stored sum equals the sum over its
//! steps.
//!
//! One pass over all lanes, side by side: a chunk is decoded once, and sums of all levels are
//! computed again from its steps, as when the index was written. In memory are one chunk of each
//! lane, and one block of nodes and one segment per level.

use super::Trace;
use super::answers::LaneInfo;
use super::chunk::CHUNK_STEPS;
use super::exchange_order;
use super::lane_sums::{LaneSumPiece, LaneSums};
use super::program_totals::{
    ProgramStepTotals, ProgramTotals, segment_level_count, steps_per_segment,
};
use super::pyramid::{self, BLOCK_NODES};
use super::step_record::{StepRecord, StepRecordDetails};
use super::store::TraceStore;
use crate::error::ReportError;
use crate::units::{Cycles, ReplicaIpu, StepId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of the pass over a lane.
pub(crate) struct VerifiedLane {
    pub(crate) info: LaneInfo,
    /// The first broken invariant, as text. The other fields then cover the steps before it.
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

/// Receives the steps of all IPUs; those of one IPU in the order of the program.
pub(crate) trait StepObserver {
    /// Receives the next step of an IPU. Returns false for a step of several IPUs, which is passed
    /// again to [`StepObserver::joint_step`] when all of them have reached it.
    fn step(&mut self, at: ReplicaIpu, record: &StepRecord) -> bool;

    /// Receives a step of several IPUs, by class of replicas and IPU.
    fn joint_step(&mut self, on_ipus: &[(ReplicaIpu, StepRecord)]);
}

/// A callback for every chunk, with its number of steps, which may end the pass.
type OnChunk<'a> = &'a mut dyn FnMut(u64) -> Result<(), ReportError>;

impl Trace {
    /// A pass over the steps of all lanes of all replicas.
    pub(crate) fn pass(&self, tiles_per_ipu: u32) -> TracePass<'_> {
        let mut ipus: Vec<IpuPass> = Vec::new();
        for info in &self.store.lanes {
            let pass = LanePass::new(&self.store, *info, tiles_per_ipu);
            let at = ReplicaIpu { class: info.class, ipu: info.ipu };
            match ipus.iter_mut().find(|ipu| ipu.at == at) {
                Some(ipu) => ipu.lanes.push(pass),
                None => ipus.push(IpuPass { at, lanes: vec![pass] }),
            }
        }
        let bars = self.store.lanes.iter().map(|lane| lane.steps).sum();
        TracePass { ipus, done: 0, bars }
    }

    /// Describes tables of the index with too few or too many pieces for the lanes.
    pub(crate) fn verify_pieces(&self) -> Result<Vec<String>, ReportError> {
        let lanes = self.store.lanes.iter();
        let count_chunks = |lane: &LaneInfo| lane.steps.div_ceil(CHUNK_STEPS as u64);
        let has_details = |lane: &&LaneInfo| self.store.has_details(**lane);
        let needed: [(&'static str, u64); 4] = [
            ("trace_chunks", lanes.clone().map(count_chunks).sum()),
            ("trace_details", lanes.clone().filter(has_details).map(count_chunks).sum()),
            (
                "trace_nodes",
                lanes
                    .clone()
                    .map(|lane| -> u64 {
                        let count_blocks = |level| {
                            pyramid::node_count(lane.steps, level).div_ceil(BLOCK_NODES as u64)
                        };
                        (1..=pyramid::level_count(lane.steps)).map(count_blocks).sum()
                    })
                    .sum(),
            ),
            (
                "trace_totals",
                if self.store.has_totals() {
                    lanes
                        .map(|lane| -> u64 {
                            let levels = 0..segment_level_count(lane.steps);
                            levels.map(|level| lane.steps.div_ceil(steps_per_segment(level))).sum()
                        })
                        .sum()
                } else {
                    0
                },
            ),
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
    ipus: Vec<IpuPass<'a>>,
    /// Number of steps read.
    done: u64,
    bars: u64,
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
        let done = &mut self.done;
        let all = self.bars.max(1);
        for lane in self.ipus.iter_mut().flat_map(|ipu| &mut ipu.lanes) {
            lane.watch(Arc::clone(&window.watched));
        }
        loop {
            for ipu in &mut self.ipus {
                ipu.advance(window.end, observer, &mut |steps| {
                    *done += steps;
                    progress(*done as f64 / all as f64);
                    if cancel.load(Ordering::Relaxed) {
                        Err(ReportError::Cancelled)
                    } else {
                        Ok(())
                    }
                })?;
            }
            // All IPUs are before a joint step or done: the earliest joint step is next.
            let heads = self.ipus.iter().map(IpuPass::head);
            let Some(next) = heads.flatten().map(|record| record.step).min() else { break };
            if window.end.is_some_and(|end| next >= end) {
                break;
            }
            let mut on_ipus = Vec::new();
            for ipu in &mut self.ipus {
                if let Some(record) = ipu.head().filter(|record| record.step == next).copied() {
                    on_ipus.push((ipu.at, record));
                    ipu.take();
                }
            }
            observer.joint_step(&on_ipus);
        }
        for lane in self.ipus.iter_mut().flat_map(|ipu| &mut ipu.lanes) {
            lane.find_last_edges();
        }
        Ok(())
    }

    /// The steps around the watched positions of the last window, by lane.
    pub(crate) fn lanes(&self) -> Vec<WatchedLane<'_>> {
        let lanes = self.ipus.iter().flat_map(|ipu| &ipu.lanes);
        lanes.map(|lane| WatchedLane { info: lane.info, edges: &lane.edges }).collect()
    }

    /// The results of the pass, by lane.
    pub(crate) fn finish(self) -> Vec<VerifiedLane> {
        self.ipus.into_iter().flat_map(|ipu| ipu.lanes).map(LanePass::into_verified).collect()
    }
}

/// The passes over the lanes of one IPU.
struct IpuPass<'a> {
    at: ReplicaIpu,
    lanes: Vec<LanePass<'a>>,
}

impl IpuPass<'_> {
    /// Passes on the steps of the IPU up to the next joint one, or to `end`.
    fn advance(
        &mut self,
        end: Option<StepId>,
        observer: &mut impl StepObserver,
        step_on: OnChunk<'_>,
    ) -> Result<(), ReportError> {
        loop {
            for lane in &mut self.lanes {
                lane.fill(step_on)?;
            }
            let Some(lane) = self.earliest() else { return Ok(()) };
            // Up to the point where another lane of the IPU continues, or a chunk ends.
            let others = self.lanes.iter().enumerate().filter(|(other, _)| *other != lane);
            let until = others.filter_map(|(_, lane)| lane.head()).map(|record| record.step).min();
            let Some(pass) = self.lanes.get_mut(lane) else { return Ok(()) };
            while let Some(record) = pass.head() {
                if end.is_some_and(|end| record.step >= end) {
                    return Ok(());
                }
                if until.is_some_and(|until| record.step > until) {
                    break;
                }
                if !observer.step(self.at, record) {
                    return Ok(());
                }
                pass.next += 1;
            }
        }
    }

    /// The lane with the next step in the order of the program.
    fn earliest(&self) -> Option<usize> {
        let heads = self.lanes.iter().enumerate();
        let heads = heads.filter_map(|(at, lane)| lane.head().map(|record| (record.step, at)));
        heads.min().map(|(_, at)| at)
    }

    /// The next step of the IPU.
    fn head(&self) -> Option<&StepRecord> {
        self.lanes.get(self.earliest()?)?.head()
    }

    /// Consumes the next step.
    fn take(&mut self) {
        if let Some(lane) = self.earliest().and_then(|at| self.lanes.get_mut(at)) {
            lane.next += 1;
        }
    }
}

/// The pass over one lane.
struct LanePass<'a> {
    store: &'a TraceStore,
    info: LaneInfo,
    tiles_per_ipu: u32,
    has_details: bool,
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
    records: Vec<StepRecord>,
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
            levels: if store.has_totals() { segment_level_count(info.steps) } else { 0 },
            sums: LaneSums::default(),
            last: None,
            programs: ProgramTotals::default(),
            watched: Arc::default(),
            edges: Vec::new(),
            records: Vec::new(),
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
            self.records = self.store.read_chunk(self.info, chunk)?;
            self.broken = self.chunk(chunk)?;
            step_on(self.records.len() as u64)?;
        } else {
            self.records.clear();
            self.broken = self.finish()?;
            self.is_through = true;
        }
        if self.broken.is_some() {
            self.records.clear();
            self.is_through = true;
        }
        Ok(())
    }

    fn into_verified(self) -> VerifiedLane {
        let Self { info, broken, programs, last, .. } = self;
        let programs = programs.into_totals();
        VerifiedLane { info, broken: broken.map(|law| format!("{info}: {law}")), programs, last }
    }

    /// Checks the current chunk. Returns the first invariant that it breaks.
    fn chunk(&mut self, chunk: u64) -> Result<Option<String>, ReportError> {
        let records = std::mem::take(&mut self.records);
        let broken = self.check_steps(chunk, &records);
        self.records = records;
        broken
    }

    fn check_steps(
        &mut self,
        chunk: u64,
        records: &[StepRecord],
    ) -> Result<Option<String>, ReportError> {
        let mut pieces = Vec::new();
        for record in records {
            if let Some(broken) = self.disorder(record) {
                return Ok(Some(broken));
            }
            self.last = Some((record.step, record.range.end));
            self.sums.push(record, &mut pieces);
        }
        if self.has_details {
            let details = self.store.read_details(self.info, chunk, records)?;
            let differs = |(record, details): &(&StepRecord, &StepRecordDetails)| {
                !details.are_of(record, self.tiles_per_ipu)
            };
            if let Some((record, _)) = records.iter().zip(&details).find(differs) {
                return Ok(Some(format!("the details of step {} contradict it", record.step)));
            }
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
        for record in self.records.get(self.searched..self.next).unwrap_or_default() {
            let edge =
                LaneEdge { before: self.before, behind: Some((record.step, record.range.start)) };
            while self.watched.get(self.edges.len()).is_some_and(|step| *step <= record.step) {
                self.edges.push(edge);
            }
            self.before = Some((record.step, record.range.end));
        }
        self.searched = self.next;
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

    /// Describes the error in the position of a step after those before it.
    fn disorder(&self, record: &StepRecord) -> Option<String> {
        let start = record.range.start;
        let before = self.sums.range().end;
        if start < before {
            let step = record.step;
            let start = start.0;
            let before = before.0;
            return Some(format!(
                "step {step} starts at {start}, but the previous step ends at {before}"
            ));
        }
        let (last, _) = self.last.filter(|(last, _)| record.step < *last)?;
        Some(format!("step {} comes behind step {last}", record.step))
    }

    /// Compares complete pieces with those of the index.
    fn compare(&mut self, pieces: Vec<LaneSumPiece>) -> Result<Option<String>, ReportError> {
        for piece in pieces {
            let broken = match piece {
                LaneSumPiece::Nodes { level, block, nodes } => {
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
