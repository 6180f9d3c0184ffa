//! Sync points and the critical path, in the file of a report or beside it.

// Blobs come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::{BlobColumn, CachedTracePiece, TraceCacheKey, TraceStore, decoded, discard};
use crate::database::{ReportDatabase, SelectQuery, lock};
use crate::error::ReportError;
use crate::limits::MAX_CYCLES;
use crate::model::{ProgramKind, StreamEndpoint};
use crate::schema::PATH_INDEX;
use crate::trace::step_record::StepClass;
use crate::trace::sync_points::{
    self, BesideCompute, BlockDetails, LanePlaces, PathIndex, PathIndexBuilder, PathIndexReader,
    PathProgram, SyncPoint,
};
use crate::units::{CycleRange, Cycles, ProgramId};
use std::path::PathBuf;
use std::sync::Arc;

/// The number of blocks of sync points that a walk takes about 30 ms for.
const LONG_WALK: u64 = if cfg!(test) { 2 } else { 64 };

static SYNC_POINTS: BlobColumn = BlobColumn::of_pieces("trace_sync_points");
static PATH_PIECES: BlobColumn = BlobColumn::of_pieces(PATH_INDEX);

impl TraceStore {
    /// True if sync points are stored; files before version 2.5 have none.
    pub(in crate::trace) fn has_sync_points(&self) -> bool {
        self.points_db().0.has("trace_sync_points", "id")
    }

    /// Uses the sync points of another file.
    pub(in crate::trace) fn use_sync_points(
        &self,
        db: ReportDatabase,
        disposable: Option<PathBuf>,
    ) {
        // If another thread was first, it has the same points.
        let _ = self.points_beside.set((db, disposable));
    }

    fn points_db(&self) -> (&ReportDatabase, &Option<PathBuf>) {
        let beside = self.points_beside.get();
        beside.map_or((&self.db, &self.disposable), |(db, disposable)| (db, disposable))
    }

    /// The critical path; `None` if there are no sync points or no lanes.
    pub(in crate::trace) fn path_index(&self) -> Result<Option<Arc<PathIndex>>, ReportError> {
        if !self.has_sync_points() || self.lanes.is_empty() {
            return Ok(None);
        }
        // Held during the computation, so that other callers do not repeat it.
        let mut path = lock(&self.path);
        if path.is_none() {
            *path = Some(Arc::new(self.read_path_index()?));
        }
        Ok(path.clone())
    }

    fn read_path_index(&self) -> Result<PathIndex, ReportError> {
        let (db, disposable) = self.points_db();
        let stored = self.stored_path_index(db).inspect_err(|_| discard(disposable))?;
        stored.map_or_else(|| self.walk_points(|_| {}), Ok)
    }

    /// True if the critical path is available without a walk over all sync points, or that walk is
    /// short.
    pub(in crate::trace) fn has_path_index(&self) -> Result<bool, ReportError> {
        let is_known = lock(&self.path).is_some() || self.points_db().0.has_rows(PATH_INDEX);
        Ok(is_known || self.sync_point_blocks()? < LONG_WALK)
    }

    /// Uses the index of the critical path from another file.
    pub(in crate::trace) fn use_path_index(&self, db: &ReportDatabase) -> Result<(), ReportError> {
        if let Some(index) = self.stored_path_index(db)? {
            *lock(&self.path) = Some(Arc::new(index));
        }
        Ok(())
    }

    /// The index of the critical path stored in a file; none in files of older versions and for
    /// runs with one block of sync points.
    pub(in crate::trace) fn stored_path_index(
        &self,
        db: &ReportDatabase,
    ) -> Result<Option<PathIndex>, ReportError> {
        if !db.has_rows(PATH_INDEX) {
            return Ok(None);
        }
        let mut reader = PathIndexReader::new(&self.lane_ranges());
        for piece in 0..db.row_count(PATH_INDEX)?.unwrap_or(0) {
            let key = i64::try_from(piece).unwrap_or(i64::MAX);
            let raw = decoded(db, &PATH_PIECES, key, sync_points::unpack_path)?;
            if reader.piece(&raw).is_none() {
                return Err(db.damage(PATH_INDEX, &format!("piece {piece} is broken")));
            }
        }
        let index = reader.finish(self.sync_point_blocks()?);
        let index = index.ok_or_else(|| db.damage(PATH_INDEX, "pieces are missing"))?;
        Ok(Some(index))
    }

    fn lane_ranges(&self) -> Vec<CycleRange> {
        self.lanes.iter().map(|lane| lane.range).collect()
    }

    /// Finds the critical path with a walk over all sync points, which are passed to `visit`, the
    /// last block first.
    pub(in crate::trace) fn walk_points(
        &self,
        mut visit: impl FnMut(&[SyncPoint]),
    ) -> Result<PathIndex, ReportError> {
        let ranges = self.lane_ranges();
        let starts: Vec<Cycles> = ranges.iter().map(|range| range.start).collect();
        let places = self.lane_places();
        let mut builder = PathIndexBuilder::new(&ranges);
        for block in (0..self.sync_point_blocks()?).rev() {
            let points = self.sync_points(block)?;
            visit(&points);
            builder.block(&points, &places).map_err(|_| self.path_contradiction())?;
        }
        builder.finish(&starts).map_err(|_| self.path_contradiction())
    }

    /// A block of the critical path, with the slack of its steps.
    pub(in crate::trace) fn path_block(
        &self,
        path: &PathIndex,
        block: usize,
    ) -> Result<Arc<BlockDetails>, ReportError> {
        let key = TraceCacheKey::PathBlock(block);
        if let Some(CachedTracePiece::PathBlock(details)) = lock(&self.recent).get(key) {
            return Ok(details);
        }
        let points = self.sync_points(block as u64)?;
        let details = path.details(block, &points, &self.lane_places());
        let details = Arc::new(details.map_err(|_| self.path_contradiction())?);
        lock(&self.recent).put(key, CachedTracePiece::PathBlock(details.clone()), details.bytes());
        Ok(details)
    }

    /// Sums by program over the critical path, from the cache or computed by `read`.
    pub(in crate::trace) fn path_programs(
        &self,
        read: impl FnOnce() -> Result<Vec<PathProgram>, ReportError>,
    ) -> Result<Arc<Vec<PathProgram>>, ReportError> {
        let mut programs = lock(&self.path_programs);
        if programs.is_none() {
            *programs = Some(Arc::new(read()?));
        }
        Ok(programs.clone().unwrap_or_default())
    }

    /// The sums stored in the file; none in files of older versions.
    pub(in crate::trace) fn stored_path_programs(&self) -> Result<Vec<PathProgram>, ReportError> {
        PathProgram::read_all(self.points_db().0, &self.lanes, &self.lane_places())
    }

    /// Indices of lanes by lane number.
    pub(in crate::trace) fn lane_places(&self) -> LanePlaces {
        (0..).zip(&self.lanes).map(|(place, lane)| (lane.number().number(), place)).collect()
    }

    /// Number of blocks of sync points.
    pub(in crate::trace) fn sync_point_blocks(&self) -> Result<u64, ReportError> {
        Ok(self.points_db().0.row_count("trace_sync_points")?.unwrap_or(0))
    }

    /// The points of one block; not cached.
    pub(in crate::trace) fn sync_points(&self, block: u64) -> Result<Vec<SyncPoint>, ReportError> {
        self.sync_point_block(block, sync_points::decode)
    }

    /// The same points, unpacked but not decoded.
    pub(in crate::trace) fn raw_sync_points(&self, block: u64) -> Result<Vec<u8>, ReportError> {
        self.sync_point_block(block, sync_points::unpack)
    }

    fn sync_point_block<T>(
        &self,
        block: u64,
        decode: fn(&[u8]) -> Option<T>,
    ) -> Result<T, ReportError> {
        let (db, disposable) = self.points_db();
        let key = i64::try_from(block).unwrap_or(i64::MAX);
        decoded(db, &SYNC_POINTS, key, decode).inspect_err(|_| discard(disposable))
    }

    /// The work beside compute tiles, by lane and program.
    pub(in crate::trace) fn beside_compute(&self) -> Result<Vec<BesideCompute>, ReportError> {
        let columns = ["lane", "program", "type", "stream", "hidden_cycles"];
        let rows = self.points_db().0.list(
            SelectQuery::all("trace_beside", &columns).clauses("ORDER BY id"),
            |cells| {
                let kind = cells.named(2, |name| Some(ProgramKind::from_name(name)))?;
                let class = StepClass::new(kind, cells.named(3, StreamEndpoint::from_name)?);
                let hidden = cells.count(4, MAX_CYCLES);
                let program = cells.small(1).map(ProgramId);
                Some(BesideCompute { lane: cells.small(0)?, program, class, hidden })
            },
        )?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The error for contradictory sync points.
    pub(in crate::trace) fn path_contradiction(&self) -> ReportError {
        let (db, disposable) = self.points_db();
        discard(disposable);
        db.damage("trace_sync_points", "they contradict each other or the lanes")
    }
}
