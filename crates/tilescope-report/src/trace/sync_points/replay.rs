//! Derives the sync points of a trace from its steps: for a report without any, and to check the
//! stored ones.

// Steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::chunk::CHUNK_STEPS;
use super::super::lane_number::LaneNumber;
use super::super::step_record::StepRecord;
use super::super::store::TraceStore;
use super::overlap::BesideCompute;
use super::point::{AwaitedLane, LanePlace, SyncPoint, SyncPointKind, decode_raw};
use super::recorder::{LaneIndex, SyncPointRecorder, SyncPrograms};
use super::walk::LanePlaces;
use crate::error::ReportError;
use crate::units::StepId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A callback with the number of processed steps, which may end the pass.
type OnSteps<'a> = &'a mut dyn FnMut(u64) -> Result<(), ReportError>;

/// Iterates over the steps of a lane.
struct LaneSteps<'a> {
    store: &'a TraceStore,
    lane: usize,
    chunks: u64,
    records: std::vec::IntoIter<StepRecord>,
}

impl LaneSteps<'_> {
    fn next(&mut self, on_steps: OnSteps<'_>) -> Result<Option<StepRecord>, ReportError> {
        if let Some(record) = self.records.next() {
            return Ok(Some(record));
        }
        let Some(info) = self.store.lanes.get(self.lane).copied() else { return Ok(None) };
        if self.chunks >= info.steps.div_ceil(CHUNK_STEPS as u64) {
            return Ok(None);
        }
        let records = self.store.read_chunk(info, self.chunks)?;
        self.chunks += 1;
        on_steps(records.len() as u64)?;
        self.records = records.into_iter();
        Ok(self.records.next())
    }
}

/// Passes the steps of all lanes to `each`, in the order of the program, with the index of their
/// lane.
fn for_each_step(
    store: &TraceStore,
    on_steps: OnSteps<'_>,
    mut each: impl FnMut(usize, &StepRecord) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let lanes = 0..store.lanes.len();
    let mut lanes: Vec<LaneSteps> = lanes
        .map(|lane| LaneSteps { store, lane, chunks: 0, records: Vec::new().into_iter() })
        .collect();
    let mut heads: Vec<Option<StepRecord>> = Vec::with_capacity(lanes.len());
    for lane in &mut lanes {
        heads.push(lane.next(on_steps)?);
    }
    let get_head = |(lane, head): (usize, &Option<StepRecord>)| {
        head.as_ref().map(|record| Reverse((record.step, lane)))
    };
    let mut next: BinaryHeap<Reverse<(StepId, usize)>> =
        heads.iter().enumerate().filter_map(get_head).collect();
    while let Some(Reverse((_, at))) = next.pop() {
        let until = next.peek().map(|Reverse(first)| *first);
        let Some(lane) = lanes.get_mut(at) else { continue };
        let Some(head) = heads.get_mut(at) else { continue };
        // Up to the point where another lane continues: mostly more than one step.
        while let Some(record) = head {
            if until.is_some_and(|until| (record.step, at) > until) {
                break;
            }
            each(at, record)?;
            *head = lane.next(on_steps)?;
        }
        next.extend(head.as_ref().map(|record| Reverse((record.step, at))));
    }
    Ok(())
}

/// A recorder that is fed with the steps of a trace.
struct Replay {
    recorder: SyncPointRecorder,
    /// By index of the lane: its index in the recorder, and its steps so far.
    lanes: Vec<Option<(LaneIndex, u64)>>,
}

impl Replay {
    fn new(programs: SyncPrograms, store: &TraceStore) -> Self {
        let lanes = vec![None; store.lanes.len()];
        Self { recorder: SyncPointRecorder::new(programs), lanes }
    }

    fn steps(&mut self, store: &TraceStore, at: usize, records: &[StepRecord]) {
        let Some(known) = self.lanes.get_mut(at) else { return };
        let (lane, steps) = match known {
            Some(known) => known,
            None => {
                let Some(info) = store.lanes.get(at) else { return };
                known.insert((self.recorder.add_lane(info.number()), 0))
            }
        };
        *steps += records.len() as u64;
        self.recorder.push_all(*lane, records);
    }

    /// Number of steps of a lane so far.
    fn step_count(&self, at: usize) -> u64 {
        self.lanes.get(at).copied().flatten().map_or(0, |(_, steps)| steps)
    }
}

/// Derives the sync points of a trace whose steps were only recorded. Passes blocks of them to
/// `keep`, in order, and returns the work beside compute tiles.
pub(crate) fn make(
    store: &TraceStore,
    programs: SyncPrograms,
    on_steps: OnSteps<'_>,
    mut keep: impl FnMut(Vec<u8>) -> Result<(), ReportError>,
) -> Result<Vec<BesideCompute>, ReportError> {
    let mut replay = Replay::new(programs, store);
    for_each_step(store, on_steps, |at, record| {
        replay.steps(store, at, std::slice::from_ref(record));
        replay.recorder.complete().try_for_each(&mut keep)
    })?;
    let (blocks, beside) = replay.recorder.finish();
    blocks.into_iter().try_for_each(keep)?;
    Ok(beside)
}

/// Compares the sync points of a trace, and the work beside compute tiles, with those derived from
/// its steps, which are passed in the order of the program.
pub(super) struct SyncPointComparison {
    store: Arc<TraceStore>,
    replay: Replay,
    places: LanePlaces,
    blocks: u64,
    /// Number of blocks read, and the last of them, until the steps have reached all its points.
    read: u64,
    stored: Option<Vec<u8>>,
    /// True if hand-overs were recorded with the run. Otherwise they are inferred from the steps.
    is_recorded: bool,
    /// Number of points in the blocks read, if hand-overs were recorded.
    points: u64,
    /// Awaited lanes that were recorded, with the number of points before each.
    recorded: VecDeque<(u64, AwaitedLane)>,
    wrong: Option<String>,
}

impl SyncPointComparison {
    /// A comparison with the points of a run whose hand-overs were recorded, or have to be inferred.
    pub(super) fn new(
        store: Arc<TraceStore>,
        programs: SyncPrograms,
        is_recorded: bool,
    ) -> Result<Self, ReportError> {
        let mut own = Self {
            replay: Replay::new(programs, &store),
            places: store.lane_places(),
            blocks: store.sync_point_blocks()?,
            store,
            read: 0,
            stored: None,
            is_recorded,
            points: 0,
            recorded: VecDeque::new(),
            wrong: None,
        };
        if is_recorded {
            own.replay.recorder.infer_nothing();
        }
        own.read_block()?;
        Ok(own)
    }

    fn read_block(&mut self) -> Result<(), ReportError> {
        self.stored = None;
        if self.read == self.blocks {
            return Ok(());
        }
        let raw = self.store.raw_sync_points(self.read)?;
        self.read += 1;
        if !self.is_recorded {
            self.stored = Some(raw);
            return Ok(());
        }
        let points = decode_raw(&raw).ok_or_else(|| self.store.path_contradiction())?;
        for point in &points {
            if let SyncPointKind::Awaited(awaited) = &point.kind
                && awaited.is_recorded
            {
                self.recorded.push_back((self.points, *awaited));
            }
            self.points += 1;
        }
        self.stored = Some(raw);
        Ok(())
    }

    /// Passes the next steps of a lane.
    pub(super) fn steps(&mut self, at: usize, records: &[StepRecord]) -> Result<(), ReportError> {
        if !self.is_recorded {
            self.replay.steps(&self.store, at, records);
            return self.compare_blocks();
        }
        // A hand-over may come before each of them.
        for record in records {
            self.replay.recorder.end_step_before(record.step);
            self.tell()?;
            self.replay.steps(&self.store, at, std::slice::from_ref(record));
        }
        self.compare_blocks()
    }

    /// Passes on the hand-overs that were recorded between the last step and the next one.
    fn tell(&mut self) -> Result<(), ReportError> {
        self.compare_blocks()?;
        while let Some((points, awaited)) = self.recorded.front().copied() {
            let is_there = |place: &LanePlace| {
                let own = self.places.get(&place.lane);
                own.map_or(0, |at| self.replay.step_count(*at)) == place.behind
            };
            let is_next = points == self.replay.recorder.point_count();
            if !is_next || ![awaited.lane, awaited.waiting].iter().all(is_there) {
                return Ok(());
            }
            self.recorded.pop_front();
            let get_number = |place: LanePlace| LaneNumber::from_number(place.lane);
            if let (Some(from), Some(to)) = (get_number(awaited.lane), get_number(awaited.waiting))
            {
                self.replay.recorder.hand_over(from.at(), from.sub_lane(), to.sub_lane());
            }
            self.compare_blocks()?;
        }
        Ok(())
    }

    fn compare_blocks(&mut self) -> Result<(), ReportError> {
        if !self.replay.recorder.has_complete() {
            return Ok(());
        }
        let found: Vec<Vec<u8>> = self.replay.recorder.complete().collect();
        found.into_iter().try_for_each(|found| self.compare_block(&found))
    }

    fn compare_block(&mut self, found: &[u8]) -> Result<(), ReportError> {
        if self.wrong.is_none() && self.stored.as_deref() != Some(found) {
            self.wrong = Some(difference_of(found, self.stored.as_deref()));
        }
        self.read_block()
    }

    /// Ends the run. Returns the problems of the sync points, the most basic first.
    pub(super) fn finish(mut self) -> Result<Option<String>, ReportError> {
        self.replay.recorder.end_shared_step();
        self.tell()?;
        let (found, beside) = std::mem::take(&mut self.replay.recorder).finish();
        for found in &found {
            self.compare_block(found)?;
        }
        let stored = self.store.beside_compute()?;
        Ok(match self.wrong {
            None if self.stored.is_some() => {
                Some("there are more sync points than sync steps".to_owned())
            }
            None if stored != beside => {
                Some("trace_beside does not match the steps beside compute tiles".to_owned())
            }
            wrong => wrong,
        })
    }
}

/// Describes the difference of a block of points from the stored one.
fn difference_of(found: &[u8], stored: Option<&[u8]>) -> String {
    let read_points = |raw: &[u8]| decode_raw(raw).unwrap_or_default();
    let found = read_points(found);
    let stored = stored.map(read_points).unwrap_or_default();
    let mut pairs = found.iter().zip(&stored);
    let describe = |point: &SyncPoint| match &point.kind {
        SyncPointKind::Join(join) => format!("a join of {} lanes", join.members.len()),
        SyncPointKind::Awaited(_) => "a lane that is waited for".to_owned(),
        SyncPointKind::HandOver(_) => "a hand-over".to_owned(),
    };
    match pairs.find(|(found, stored)| found != stored) {
        Some((found, stored)) => format!(
            "the steps have {} at {}, but the sync points have {} at {}",
            describe(found),
            found.release.0,
            describe(stored),
            stored.release.0
        ),
        None => format!(
            "the steps have {} consecutive sync points, but {} are stored",
            found.len(),
            stored.len()
        ),
    }
}
