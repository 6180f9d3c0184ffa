//! The execution trace of any length, at any zoom, at a cost proportional to the screen.
//!
//! # The idea
//!
//! A run has up to 10^8 steps per report, a screen 2,000 pixels. Steps of one lane (an IPU, or the
//! group of its tiles that works beside the others) never overlap, so a lane is a sorted list, and
//! a pyramid of sums over it answers any window:
//!
//! ```text
//!  level 3   [--------------------- 16,384 ---------------------][------- ...
//!  level 2   [---- 1,024 ----][---- 1,024 ----] ...               16 nodes each
//!  level 1   [64][64][64][64] ...                                 64 steps each
//!  steps     |||||| |||||||||||||    |||||||||||   in chunks of 4,096, decoded one by one
//!            -----------------------------------> cycles
//! ```
//!
//! A node has the first and last cycle, cycles and balance per activity, bytes, and the longest
//! step. Nodes cover fixed numbers of steps, not of cycles: bursts get more nodes than gaps, a node
//! never contains part of a step, and the size of the whole pyramid is `1/64 + 1/1024 + ...`, a
//! sixtieth, of the steps. Nodes of a level are stored in blobs of 1,024, so that a blob costs one
//! read and some 100 us to decode.
//!
//! # Cost
//!
//! * `totals` of a window: whole nodes inside, at most 30 per level and side, and the two steps at
//!   the ends: O(log n).
//! * `spans` of a window on `p` pixels descends only into nodes at least a pixel wide. Per level,
//!   at most `p` such nodes are in the window, and higher levels have ever fewer: O(p) nodes.
//! * `all_totals`: the nodes of the top level, at most 16.
//! * `program_sums`: the segments of the top level, at most 16, with their histograms skipped.
//! * `visit_steps` with a condition on lengths: the segments of the top level, and below only
//!   programs with a group of similar lengths on both sides of the condition.
//! * `program_totals` of a range of steps: whole segments inside, at most 30 per level, and at most
//!   128 chunks at the ends.
//! * Building: one pass, O(1) per step; in memory are one chunk, and one blob of nodes and one
//!   segment per level.
//! * Memory when reading: decoded pieces up to 64 MiB, regardless of the size of the report.
//!
//! Prior art: ftrace and Tracy zoom with an index-based pyramid; fixed time buckets (Perfetto's
//! mipmaps) pay for empty buckets and split steps.
//!
//! Chunks and nodes are private to this module: [`Trace`] and [`TraceLane`] answer in steps, spans
//! and sums.

mod answers;
mod chunk;
mod equal_steps;
mod exchange_order;
mod index_writer;
mod lane;
mod lane_builder;
mod lane_number;
mod lane_pieces;
mod lane_spans;
mod lane_sums;
mod length_groups;
mod log_histogram;
mod program_totals;
mod pyramid;
mod recent_places;
mod step_predictor;
mod step_record;
mod store;
mod sync_points;
mod verify;

pub use answers::{
    FixedPointBalance, LaneInfo, LaneSpan, LaneStep, LongestStep, PerActivity, StepBucket,
    StepTotals,
};
pub use equal_steps::{EqualSteps, StepVisitor};
pub use exchange_order::ExchangeFollowing;
pub(super) use index_writer::{LaneRecord, TileHandOver, TraceEvent, TraceIndexWriter};
pub use lane::{StepLengths, TraceLane};
pub(super) use lane_builder::TraceIndexBlob;
pub(crate) use lane_number::LaneNumber;
pub(super) use lane_pieces::{LaneStepCursor, partition_point_near};
pub use length_groups::LengthGroup;
pub use log_histogram::LogHistogram;
pub use program_totals::{ProgramStepSums, ProgramStepTotals};
pub(super) use step_record::{StepClass, StepRecord, StepRecordDetails};
pub(super) use sync_points::SyncPrograms;
pub use sync_points::{
    BesideProgram, CriticalPath, LaneSlack, LaneWait, PathHop, PathLead, PathProgram, PathSpan,
    PathStretch,
};
pub(super) use verify::{
    LaneEdge, PassWindow, StepObserver, VerifiedLane, VerifiedTrace, WatchedLane,
};

use super::database::ReportDatabase;
use super::error::ReportError;
use super::row_writer::RowWriter;
use crate::units::{CycleRange, IpuId, ReplicaClassId, ReplicaIpu};
use std::path::PathBuf;
use std::sync::Arc;
use store::TraceStore;

/// The executed steps of one class of replicas of a report, lane by lane. Cheap to clone; clones,
/// and the traces of other classes, share decoded pieces.
#[derive(Clone)]
pub struct Trace {
    store: Arc<TraceStore>,
    class: ReplicaClassId,
}

impl Trace {
    /// The trace whose index is in `db`; `disposable` is that file if it is only a cache.
    pub(super) fn open(
        db: ReportDatabase,
        disposable: Option<PathBuf>,
    ) -> Result<Self, ReportError> {
        let store = Arc::new(TraceStore::open(db, disposable)?);
        Ok(Self { store, class: ReplicaClassId(0) })
    }

    /// The replicas of these lanes: by default the first class, which contains replica 0.
    pub fn class(&self) -> ReplicaClassId {
        self.class
    }

    /// The same run on every class of replicas, the first class first.
    pub fn classes(&self) -> impl Iterator<Item = Trace> {
        let store = &self.store;
        (0..store.classes())
            .map(|class| Self { store: store.clone(), class: ReplicaClassId::from_index(class) })
    }

    /// The same run on replicas of another class, if their lanes are in the report.
    pub fn of_class(&self, class: ReplicaClassId) -> Option<Trace> {
        let known = class.index() < self.store.classes();
        if known { Some(Self { store: self.store.clone(), class }) } else { None }
    }

    /// All lanes of these replicas, by IPU and then sub-lane.
    pub fn lanes(&self) -> &[LaneInfo] {
        self.store.lanes_of(self.class)
    }

    /// The lane at a position in [`Trace::lanes`].
    pub fn lane(&self, index: usize) -> Option<TraceLane<'_>> {
        let info = *self.lanes().get(index)?;
        Some(TraceLane::new(&self.store, info))
    }

    /// The lane of an IPU of these replicas.
    pub fn lane_of(&self, ipu: IpuId, sub_lane: u8) -> Option<TraceLane<'_>> {
        self.lane_at(ReplicaIpu { class: self.class, ipu }, sub_lane)
    }

    /// True if sync points are known.
    pub(super) fn has_sync_points(&self) -> bool {
        self.store.has_sync_points()
    }

    /// Uses the sync points of another file; `disposable` is that file if it is only a cache.
    pub(super) fn use_sync_points(&self, db: ReportDatabase, disposable: Option<PathBuf>) {
        self.store.use_sync_points(db, disposable);
    }

    /// True if the critical path is available without a long walk over all sync points.
    pub(super) fn has_path_index(&self) -> Result<bool, ReportError> {
        self.store.has_path_index()
    }

    /// Uses the index of the critical path from another file.
    pub(super) fn use_path_index(&self, db: &ReportDatabase) -> Result<(), ReportError> {
        self.store.use_path_index(db)
    }

    /// Derives the sync points from the steps and writes them, for a run of a program with these
    /// syncs.
    pub(super) fn make_sync_points(
        &self,
        programs: SyncPrograms,
        on_steps: &mut dyn FnMut(u64) -> Result<(), ReportError>,
        rows: &RowWriter,
    ) -> Result<(), ReportError> {
        let mut blocks = 0i64..;
        let beside = sync_points::make(&self.store, programs, on_steps, |block| {
            let id = blocks.next().unwrap_or_default();
            TraceIndexBlob::SyncPoints(id, block).insert(rows)
        })?;
        index_writer::insert_beside(rows, beside)
    }

    /// The critical path, over all replicas; `None` if sync points were not recorded. Computed
    /// once, with one pass over all sync points.
    pub fn critical_path(&self) -> Result<Option<CriticalPath>, ReportError> {
        let index = self.store.path_index()?;
        Ok(index.map(|index| CriticalPath::new(self.store.clone(), index)))
    }

    /// The lane of an IPU of some replicas, independent of the class of this trace.
    pub fn lane_at(&self, at: ReplicaIpu, sub_lane: u8) -> Option<TraceLane<'_>> {
        let lanes = self.store.lanes_of(at.class).iter();
        let mut wanted = lanes.filter(|info| (info.ipu, info.sub_lane) == (at.ipu, sub_lane));
        wanted.next().map(|info| TraceLane::new(&self.store, *info))
    }

    /// The cycles from the first start to the last end of any step, on all replicas.
    pub fn range(&self) -> CycleRange {
        self.store.lanes.iter().map(|lane| lane.range).reduce(CycleRange::union).unwrap_or_default()
    }

    /// Bars over all lanes of these replicas: the number of (step, lane) pairs.
    pub fn bars(&self) -> u64 {
        self.lanes().iter().map(|lane| lane.steps).sum()
    }
}

/// The index of `position` in a piece that begins with `first`. Pieces are chunks of steps or
/// blocks of nodes, a few thousand each. The result is out of bounds of any piece if the difference
/// does not fit.
fn place_in_piece(position: u64, first: u64) -> usize {
    usize::try_from(position - first).unwrap_or(usize::MAX)
}
