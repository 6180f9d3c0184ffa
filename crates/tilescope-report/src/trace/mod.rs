//! The execution trace of any length, at any zoom, at the cost of what fits on the screen.
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
//! A node holds the first and last cycle, cycles and balance per activity, bytes, and the longest
//! step. Nodes count steps, not cycles: bursts get more nodes than gaps, a node never holds part
//! of a step, and the whole pyramid is `1/64 + 1/1024 + ...`, a sixtieth, of the steps. Nodes of a
//! level lie in blobs of 1,024, so that a blob costs one read and some 100 us to decode.
//!
//! # Cost
//!
//! * `totals` of a window: whole nodes inside, at most 30 per level and side, and the two steps at
//!   the ends: O(log n).
//! * `spans` of a window on `p` pixels goes down only where a node is a pixel wide or wider. Per
//!   level, at most `p` such nodes lie in the window, and levels above hold ever fewer: O(p) nodes.
//! * `all_totals`: the nodes of the top level, at most 16.
//! * `program_sums`: the segments of the top level, at most 16, of which histograms are passed over.
//! * `program_totals` of a range of steps: whole segments inside, at most 30 per level, and at most
//!   128 chunks at the ends.
//! * Building: one pass, O(1) per step; open are one chunk, and one blob of nodes and one segment
//!   per level.
//! * Memory when reading: decoded pieces up to 64 MiB, whatever the size of the report.
//!
//! Where it was learnt: the index-based pyramid is ftrace's and Tracy's answer to zooming; fixed
//! time buckets (Perfetto's mipmaps) pay for empty buckets and split steps.
//!
//! Nobody outside this module knows of chunks and nodes: [`Trace`] and [`TraceLane`] answer in steps,
//! spans and sums.

mod answers;
mod chunk;
mod exchange_order;
mod index_writer;
mod lane;
mod lane_builder;
mod lane_number;
mod lane_pieces;
mod lane_spans;
mod lane_sums;
mod log_histogram;
mod program_totals;
mod pyramid;
mod step_predictor;
mod step_record;
mod store;
mod sync_points;
mod verify;

pub use answers::{
    FixedPointBalance, LaneInfo, LaneSpan, LaneStep, LongestStep, PerActivity, StepBucket,
    StepTotals,
};
pub use exchange_order::ExchangeFollowing;
pub(super) use index_writer::{LaneRecord, TileHandOver, TraceEvent, TraceIndexWriter};
pub use lane::{StepLengths, TraceLane};
pub(super) use lane_builder::TraceIndexBlob;
pub(crate) use lane_number::LaneNumber;
pub(super) use lane_pieces::LaneStepCursor;
pub use log_histogram::LogHistogram;
pub use program_totals::{ProgramStepSums, ProgramStepTotals, StepVisitor};
pub(super) use step_record::{StepClass, StepRecord, StepRecordDetails};
pub(super) use sync_points::SyncPrograms;
pub use sync_points::{
    BesideProgram, CriticalPath, LaneSlack, LaneWait, PathHop, PathLead, PathProgram, PathSpan,
    PathStretch,
};
pub(super) use verify::{LaneEdge, PassWindow, StepObserver, VerifiedLane, WatchedLane};

use super::database::ReportDatabase;
use super::error::ReportError;
use super::row_writer::RowWriter;
use crate::units::{CycleRange, IpuId, ReplicaClassId, ReplicaIpu};
use std::path::PathBuf;
use std::sync::Arc;
use store::TraceStore;

/// The executed steps of a report, lane by lane: those of one class of replicas. Cheap to clone;
/// clones, and the traces of other classes, share what is decoded.
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

    /// The replicas whose lanes these are; the first class, which replica 0 is in, unless another
    /// one was asked for.
    pub fn class(&self) -> ReplicaClassId {
        self.class
    }

    /// The same run on every class of replicas, the first class first.
    pub fn classes(&self) -> impl Iterator<Item = Trace> {
        let store = &self.store;
        let class = |class| Self { store: store.clone(), class: ReplicaClassId::from_index(class) };
        (0..store.classes()).map(class)
    }

    /// The same run on replicas of another class, if their lanes are in the report.
    pub fn of_class(&self, class: ReplicaClassId) -> Option<Trace> {
        let known = class.index() < self.store.classes();
        known.then(|| Self { store: self.store.clone(), class })
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

    /// Whether it is known who waits for whom.
    pub(super) fn has_sync_points(&self) -> bool {
        self.store.has_sync_points()
    }

    /// Takes who waits for whom from another file, `disposable` if that is only a cache.
    pub(super) fn use_sync_points(&self, db: ReportDatabase, disposable: Option<PathBuf>) {
        self.store.use_sync_points(db, disposable);
    }

    /// Whether the critical path is known without a long walk over all sync points.
    pub(super) fn has_path_index(&self) -> Result<bool, ReportError> {
        self.store.has_path_index()
    }

    /// Takes the index of the critical path from another file.
    pub(super) fn use_path_index(&self, db: &ReportDatabase) -> Result<(), ReportError> {
        self.store.use_path_index(db)
    }

    /// Writes who waits for whom, as the steps tell, in a run of a program with these syncs.
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

    /// Compares who waits for whom with what the steps tell, and the critical path with both; what
    /// is wrong first, in words.
    pub(super) fn verify_sync_points(
        &self,
        programs: SyncPrograms,
        on_steps: &mut dyn FnMut(u64) -> Result<(), ReportError>,
    ) -> Result<Option<String>, ReportError> {
        sync_points::compare(&self.store, programs, on_steps)
    }

    /// The critical path, over all replicas; none where who waits for whom was not recorded. Made
    /// once, of one look at all places where lanes wait for each other.
    pub fn critical_path(&self) -> Result<Option<CriticalPath>, ReportError> {
        let index = self.store.path_index()?;
        Ok(index.map(|index| CriticalPath::new(self.store.clone(), index)))
    }

    /// The lane of an IPU of some replicas, whichever class this trace is of.
    pub fn lane_at(&self, at: ReplicaIpu, sub_lane: u8) -> Option<TraceLane<'_>> {
        let lanes = self.store.lanes_of(at.class).iter();
        let mut wanted = lanes.filter(|info| (info.ipu, info.sub_lane) == (at.ipu, sub_lane));
        wanted.next().map(|info| TraceLane::new(&self.store, *info))
    }

    /// From the first start to the last end of any step, on all replicas.
    pub fn range(&self) -> CycleRange {
        self.store.lanes.iter().map(|lane| lane.range).reduce(CycleRange::union).unwrap_or_default()
    }

    /// Bars over all lanes of these replicas: the number of (step, lane) pairs.
    pub fn bars(&self) -> u64 {
        self.lanes().iter().map(|lane| lane.steps).sum()
    }
}

/// Where a piece that begins with `first` holds `position`: pieces are chunks of steps or blocks of
/// nodes, some thousands each. Beyond any piece where that does not fit a place.
fn place_in_piece(position: u64, first: u64) -> usize {
    usize::try_from(position - first).unwrap_or(usize::MAX)
}
