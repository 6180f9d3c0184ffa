//! Storage of the pieces of lanes: blobs in an SQLite file, with the last used ones cached decoded.

// Blobs come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod critical_path;

use super::answers::LaneInfo;
use super::chunk::{self, CHUNK_STEPS};
use super::exchange_order::{self, ExchangeFollowing};
use super::lane_number::LaneNumber;
use super::length_groups::LengthGroups;
use super::place_in_piece;
use super::program_totals::{ProgramStepSums, ProgramTotals, steps_per_segment};
use super::pyramid::{self, BLOCK_NODES, PyramidNode};
use super::step_predictor::StepPredictor;
use super::step_record::{StepRecord, StepRecordDetails};
use super::sync_points::{BlockDetails, PathIndex, PathProgram};
use crate::database::{ReportDatabase, SelectQuery, lock};
use crate::error::ReportError;
use crate::limits::{MAX_CYCLES, MAX_IPUS, MAX_REPLICAS, MAX_STEPS, MAX_SUB_LANES};
use crate::row_cells::RowCells;
use crate::units::{CycleRange, IpuId, ReplicaClassId};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

/// Size of the cache of decoded pieces, in bytes.
const CACHE_BYTES: usize = 64 << 20;
/// The maximum number of lanes of a report.
const MAX_LANES: usize = MAX_IPUS as usize * MAX_SUB_LANES as usize;
/// Tables of lanes: those of the first class of replicas, and those of the others.
const LANES: &str = "trace_lanes";
const REPLICA_LANES: &str = "replica_lanes";
const BY_LANE: &str = "ORDER BY lane";
/// Details of the first class of replicas: their keys precede all others.
const FIRST_DETAILS: SelectQuery<'static> = SelectQuery::all("trace_details", &["id"])
    .clauses("WHERE id < ?1 LIMIT 1")
    .params(&[LaneNumber::FIRST_OF_OTHERS]);

#[derive(Clone)]
enum CachedTracePiece {
    Chunk(Arc<Vec<StepRecord>>),
    Details(Arc<Vec<StepRecordDetails>>),
    Nodes(Arc<Vec<PyramidNode>>),
    Totals(Arc<ProgramTotals>),
    Sums(Arc<Vec<ProgramStepSums>>),
    Expectations(Arc<StepPredictor>),
    PathBlock(Arc<BlockDetails>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TraceCacheKey {
    Chunk(i64),
    Details(i64),
    Nodes(i64),
    Totals(i64),
    Sums(LaneNumber),
    Expectations(LaneNumber),
    PathBlock(usize),
}

/// A cache of decoded pieces that drops the least recently used.
#[derive(Default)]
struct TracePieceCache {
    pieces: HashMap<TraceCacheKey, (CachedTracePiece, usize, u64)>,
    bytes: usize,
    clock: u64,
}

impl TracePieceCache {
    fn get(&mut self, key: TraceCacheKey) -> Option<CachedTracePiece> {
        self.clock += 1;
        let (piece, _, used) = self.pieces.get_mut(&key)?;
        *used = self.clock;
        Some(piece.clone())
    }

    fn put(&mut self, key: TraceCacheKey, piece: CachedTracePiece, bytes: usize) {
        self.clock += 1;
        if let Some((_, replaced, _)) = self.pieces.insert(key, (piece, bytes, self.clock)) {
            self.bytes -= replaced;
        }
        self.bytes += bytes;
        if self.bytes > CACHE_BYTES {
            self.drop_oldest_quarter();
        }
    }

    /// Drops a quarter at once, so that the search for the oldest costs little per piece.
    #[expect(clippy::disallowed_methods, reason = "sorted by age, and no two ages are equal")]
    fn drop_oldest_quarter(&mut self) {
        let mut ages: Vec<(u64, TraceCacheKey)> =
            self.pieces.iter().map(|(key, (_, _, used))| (*used, *key)).collect();
        ages.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in ages {
            if self.bytes <= CACHE_BYTES / 4 * 3 {
                break;
            }
            // Decoded pieces that a caller still holds live on in their `Arc`.
            if let Some((_, bytes, _)) = self.pieces.remove(&key) {
                self.bytes -= bytes;
            }
        }
    }
}

/// The index of a report's lanes.
pub(super) struct TraceStore {
    db: ReportDatabase,
    /// The file to delete if it is damaged: a cache, never a report.
    disposable: Option<PathBuf>,
    /// All lanes, by class of replicas, IPU and sub-lane.
    pub(super) lanes: Vec<LaneInfo>,
    /// The range of the lanes of each class.
    classes: Vec<Range<usize>>,
    /// True if details of the steps of the first class are stored, instead of rows.
    first_class_has_details: bool,
    recent: Mutex<TracePieceCache>,
    /// The critical path, after its first use.
    path: Mutex<Option<Arc<PathIndex>>>,
    path_programs: Mutex<Option<Arc<Vec<PathProgram>>>>,
    /// The file with sync points, if they are stored separately, and its path if it is to be
    /// deleted when damaged.
    points_beside: OnceLock<(ReportDatabase, Option<PathBuf>)>,
}

impl TraceStore {
    /// Reads the list of lanes. `disposable` is set if the file is only a cache.
    pub(super) fn open(
        db: ReportDatabase,
        disposable: Option<PathBuf>,
    ) -> Result<Self, ReportError> {
        let columns = ["lane", "ipu", "sub_lane", "steps", "first_cycle", "end_cycle"];
        let mut lanes = read_lanes(&db, LANES, &columns)?;
        if db.has(REPLICA_LANES, "lane") {
            let columns = [&columns[..], &["class"]].concat();
            lanes.extend(read_lanes(&db, REPLICA_LANES, &columns)?);
        }
        let classes: Vec<Range<usize>> = (0..)
            .map(|class| {
                let find_start = |class| lanes.partition_point(|lane| lane.class.0 < class);
                find_start(class)..find_start(class + 1)
            })
            .take_while(|of| !of.is_empty())
            .collect();
        if classes.iter().map(Range::len).sum::<usize>() != lanes.len() {
            return Err(db.damage(REPLICA_LANES, "a class of replicas without lanes"));
        }
        let first_class_has_details = has_details_of_first_class(&db)?;
        Ok(Self {
            db,
            disposable,
            lanes,
            classes,
            first_class_has_details,
            recent: Mutex::default(),
            path: Mutex::default(),
            path_programs: Mutex::default(),
            points_beside: OnceLock::new(),
        })
    }

    /// Number of classes of replicas with lanes.
    pub(super) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The lanes of a class of replicas, by IPU and then sub-lane.
    pub(super) fn lanes_of(&self, class: ReplicaClassId) -> &[LaneInfo] {
        let of = self.classes.get(class.index()).cloned().unwrap_or_default();
        self.lanes.get(of).unwrap_or_default()
    }

    /// Steps of one chunk.
    pub(super) fn chunk(
        &self,
        lane: LaneInfo,
        chunk: u64,
    ) -> Result<Arc<Vec<StepRecord>>, ReportError> {
        let key = TraceCacheKey::Chunk(lane.number().chunk_key(chunk));
        // The lock is not held while decoding: two threads may decode the same piece, but neither
        // waits.
        if let Some(CachedTracePiece::Chunk(records)) = lock(&self.recent).get(key) {
            return Ok(records);
        }
        let records = Arc::new(self.read_chunk(lane, chunk)?);
        let bytes = records.len() * size_of::<StepRecord>();
        lock(&self.recent).put(key, CachedTracePiece::Chunk(records.clone()), bytes);
        Ok(records)
    }

    /// Steps of one chunk, not cached, for a single pass over all chunks.
    pub(super) fn read_chunk(
        &self,
        lane: LaneInfo,
        chunk: u64,
    ) -> Result<Vec<StepRecord>, ReportError> {
        self.decode_chunk(lane, chunk, chunk::decode)
    }

    /// Reads the blob of one chunk with `decode`, which gets the blob, its number of steps and the
    /// expectations of the lane; not cached.
    pub(super) fn decode_chunk<T>(
        &self,
        lane: LaneInfo,
        chunk: u64,
        decode: impl FnOnce(&[u8], usize, &StepPredictor) -> Option<T>,
    ) -> Result<T, ReportError> {
        let expected = self.expectations(lane)?;
        let first = chunk * CHUNK_STEPS as u64;
        let count = place_in_piece(lane.steps.min(first + CHUNK_STEPS as u64), first);
        let key = lane.number().chunk_key(chunk);
        self.decoded(&CHUNKS, key, |blob| decode(blob, count, &expected))
    }

    /// True if details of the steps of a lane are stored, because there are no rows of them.
    pub(super) fn has_details(&self, lane: LaneInfo) -> bool {
        lane.class != ReplicaClassId(0) || self.first_class_has_details
    }

    /// Details of the steps of one chunk.
    pub(super) fn details(
        &self,
        lane: LaneInfo,
        chunk: u64,
    ) -> Result<Arc<Vec<StepRecordDetails>>, ReportError> {
        let number = lane.number().chunk_key(chunk);
        if let Some(CachedTracePiece::Details(details)) =
            lock(&self.recent).get(TraceCacheKey::Details(number))
        {
            return Ok(details);
        }
        let records = self.chunk(lane, chunk)?;
        let details = self.decode_details(lane, chunk, |blob, expected| {
            chunk::decode_details(blob, &records, expected)
        })?;
        let details = Arc::new(details);
        let bytes = details.len() * size_of::<StepRecordDetails>();
        lock(&self.recent).put(
            TraceCacheKey::Details(number),
            CachedTracePiece::Details(details.clone()),
            bytes,
        );
        Ok(details)
    }

    /// Reads the blob beside one chunk with `decode`, which gets the blob and the expectations of
    /// the lane; not cached.
    pub(super) fn decode_details<T>(
        &self,
        lane: LaneInfo,
        chunk: u64,
        decode: impl FnOnce(&[u8], &StepPredictor) -> Option<T>,
    ) -> Result<T, ReportError> {
        let expected = self.expectations(lane)?;
        self.decoded(&DETAILS, lane.number().chunk_key(chunk), |blob| decode(blob, &expected))
    }

    /// Nodes of one block of one level.
    pub(super) fn nodes(
        &self,
        lane: LaneInfo,
        level: u32,
        block: u64,
    ) -> Result<Arc<Vec<PyramidNode>>, ReportError> {
        let key = TraceCacheKey::Nodes(lane.number().block_key(level, block));
        if let Some(CachedTracePiece::Nodes(nodes)) = lock(&self.recent).get(key) {
            return Ok(nodes);
        }
        let nodes = Arc::new(self.read_nodes(lane, level, block)?);
        let bytes = nodes.len() * size_of::<PyramidNode>();
        lock(&self.recent).put(key, CachedTracePiece::Nodes(nodes.clone()), bytes);
        Ok(nodes)
    }

    /// Nodes of one block of one level; not cached.
    pub(super) fn read_nodes(
        &self,
        lane: LaneInfo,
        level: u32,
        block: u64,
    ) -> Result<Vec<PyramidNode>, ReportError> {
        let all = pyramid::node_count(lane.steps, level);
        let first = block * BLOCK_NODES as u64;
        let count = place_in_piece(all.min(first + BLOCK_NODES as u64), first);
        let size = pyramid::steps_per_node(level);
        self.decoded(&NODES, lane.number().block_key(level, block), |blob| {
            let nodes = pyramid::decode(blob, count)?;
            // All nodes but the last one are full.
            if (first..)
                .zip(&nodes)
                .all(|(at, node)| node.totals.steps == size.min(lane.steps - at * size))
            {
                Some(nodes)
            } else {
                None
            }
        })
    }

    /// True if a block of nodes has these bytes, unpacked.
    pub(super) fn has_nodes(
        &self,
        lane: LaneInfo,
        (level, block): (u32, u64),
        raw: &[u8],
    ) -> Result<bool, ReportError> {
        let key = lane.number().block_key(level, block);
        self.decoded(&NODES, key, |blob| Some(pyramid::is_packed(blob, raw)))
    }

    /// True if totals by program are stored; files before version 1.1 have none.
    pub(super) fn has_totals(&self) -> bool {
        self.db.has("trace_totals", "id")
    }

    /// Totals by program of one segment of one level.
    pub(super) fn segment(
        &self,
        lane: LaneInfo,
        level: u32,
        at: u64,
    ) -> Result<Arc<ProgramTotals>, ReportError> {
        let number = lane.number().block_key(level, at);
        let key = TraceCacheKey::Totals(number);
        if let Some(CachedTracePiece::Totals(totals)) = lock(&self.recent).get(key) {
            return Ok(totals);
        }
        let totals = Arc::new(self.read_segment(lane, (level, at), ProgramTotals::decode)?);
        let bytes = totals.bytes();
        lock(&self.recent).put(key, CachedTracePiece::Totals(totals.clone()), bytes);
        Ok(totals)
    }

    /// Reads the blob of one segment of one level with `decode`, which gets the blob, the start
    /// position and the number of steps; not cached.
    pub(super) fn read_segment<T>(
        &self,
        lane: LaneInfo,
        (level, at): (u32, u64),
        decode: fn(&[u8], u64, u64) -> Option<T>,
    ) -> Result<T, ReportError> {
        let first = at * steps_per_segment(level);
        let steps = lane.steps.min(first + steps_per_segment(level)).saturating_sub(first);
        let number = lane.number().block_key(level, at);
        self.decoded(&TOTALS, number, |blob| decode(blob, first, steps))
    }

    /// True if sums by length are stored; files before version 2.11 have none.
    pub(super) fn has_lengths(&self) -> bool {
        self.db.has(LENGTHS.table, "id")
    }

    /// Sums by length of each entry of a segment of one level; not cached.
    pub(super) fn length_groups(
        &self,
        lane: LaneInfo,
        (level, at): (u32, u64),
        segment: &ProgramTotals,
    ) -> Result<Vec<LengthGroups>, ReportError> {
        let number = lane.number().block_key(level, at);
        self.decoded(&LENGTHS, number, |blob| segment.decode_groups(blob))
    }

    /// The busy steps before exchanges of a lane; none in files of older versions and for short
    /// lanes.
    pub(super) fn exchange_order(
        &self,
        lane: LaneInfo,
    ) -> Result<Option<Vec<ExchangeFollowing>>, ReportError> {
        let table = EXCHANGE_ORDER.table;
        if lane.steps < exchange_order::LONG_LANE || !self.db.has_rows(table) {
            return Ok(None);
        }
        let number = [i64::from(lane.number().number())];
        let is_there = self.db.first(EXCHANGE_ORDER.select(&number), |_| ())?.is_some();
        if !is_there {
            return Ok(None);
        }
        self.decoded(&EXCHANGE_ORDER, number[0], exchange_order::decode).map(Some)
    }

    /// Sums by program over a whole lane, from the cache or computed by `read`.
    pub(super) fn lane_sums(
        &self,
        lane: LaneInfo,
        read: impl FnOnce() -> Result<Vec<ProgramStepSums>, ReportError>,
    ) -> Result<Arc<Vec<ProgramStepSums>>, ReportError> {
        let key = TraceCacheKey::Sums(lane.number());
        if let Some(CachedTracePiece::Sums(sums)) = lock(&self.recent).get(key) {
            return Ok(sums);
        }
        let sums = Arc::new(read()?);
        let bytes = sums.len() * size_of::<ProgramStepSums>();
        lock(&self.recent).put(key, CachedTracePiece::Sums(sums.clone()), bytes);
        Ok(sums)
    }

    /// Number of pieces in a table of the index.
    pub(super) fn piece_count(&self, table: &'static str) -> Result<u64, ReportError> {
        Ok(self.db.row_count(table)?.unwrap_or(0))
    }

    pub(super) fn expectations(&self, lane: LaneInfo) -> Result<Arc<StepPredictor>, ReportError> {
        let key = TraceCacheKey::Expectations(lane.number());
        if let Some(CachedTracePiece::Expectations(expected)) = lock(&self.recent).get(key) {
            return Ok(expected);
        }
        let table = if lane.class == ReplicaClassId(0) { LANES } else { REPLICA_LANES };
        let what = BlobColumn { table, column: ["expectations"], row: "WHERE lane = ?1" };
        let number = i64::from(lane.number().number());
        let expected = Arc::new(self.decoded(&what, number, StepPredictor::decode)?);
        let bytes = expected.bytes();
        lock(&self.recent).put(key, CachedTracePiece::Expectations(expected.clone()), bytes);
        Ok(expected)
    }

    fn decoded<T>(
        &self,
        what: &BlobColumn,
        key: i64,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, ReportError> {
        decoded(&self.db, what, key, decode).inspect_err(|_| discard(&self.disposable))
    }

    /// The error for contradictory pieces of a lane.
    pub(super) fn contradiction(&self, lane: LaneInfo) -> ReportError {
        discard(&self.disposable);
        self.db.damage("trace_nodes", &format!("{lane} contradicts its steps"))
    }
}

fn decoded<T>(
    db: &ReportDatabase,
    what: &BlobColumn,
    key: i64,
    decode: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<T, ReportError> {
    let blob = db.first(what.select(&[key]), |cells| cells.blob(0).map(<[u8]>::to_vec))?;
    let decoded = blob.flatten().and_then(|blob| decode(&blob));
    decoded.ok_or_else(|| db.damage(what.table, &format!("piece {key} is broken")))
}

/// Deletes a damaged cache. The next opening builds a new one.
fn discard(disposable: &Option<PathBuf>) {
    if let Some(path) = disposable {
        // If it cannot be removed, nothing is lost.
        let _ = std::fs::remove_file(path);
    }
}

impl LaneInfo {
    /// The number of the lane in keys.
    pub(super) fn number(self) -> LaneNumber {
        LaneNumber::new(self.class, self.ipu, self.sub_lane)
    }
}

/// A column of blobs, and the column of their keys.
struct BlobColumn {
    table: &'static str,
    column: [&'static str; 1],
    row: &'static str,
}

static CHUNKS: BlobColumn = BlobColumn::of_pieces("trace_chunks");
static DETAILS: BlobColumn = BlobColumn::of_pieces("trace_details");
static NODES: BlobColumn = BlobColumn::of_pieces("trace_nodes");
static TOTALS: BlobColumn = BlobColumn::of_pieces("trace_totals");
static LENGTHS: BlobColumn = BlobColumn::of_pieces("trace_lengths");
static EXCHANGE_ORDER: BlobColumn = BlobColumn::of_pieces("trace_exchange_order");

impl BlobColumn {
    const fn of_pieces(table: &'static str) -> Self {
        Self { table, column: ["data"], row: "WHERE id = ?1" }
    }

    fn select<'a>(&'a self, key: &'a [i64; 1]) -> SelectQuery<'a> {
        SelectQuery::all(self.table, &self.column).clauses(self.row).params(key)
    }
}

/// The lanes of a table, in order; the last column, if present, has their class.
fn read_lanes(
    db: &ReportDatabase,
    table: &'static str,
    columns: &[&str],
) -> Result<Vec<LaneInfo>, ReportError> {
    let mut lanes: Vec<LaneInfo> = Vec::new();
    let mut sound = true;
    let is_first = table == LANES;
    db.read(SelectQuery::all(table, columns).clauses(BY_LANE), |cells| {
        let info = lane_info(cells, is_first);
        // An endless list must not fill the memory before it is refused.
        sound &= info.is_some() && lanes.len() < MAX_LANES;
        lanes.extend(info);
        Ok(if sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    if sound { Ok(lanes) } else { Err(db.damage(table, "an impossible lane")) }
}

/// True if details of the first class of replicas are stored.
fn has_details_of_first_class(db: &ReportDatabase) -> Result<bool, ReportError> {
    Ok(db.first(FIRST_DETAILS, |_| ())?.is_some())
}

fn lane_info(cells: &RowCells, is_first: bool) -> Option<LaneInfo> {
    let lane = cells.small(0)?;
    let class = if is_first {
        ReplicaClassId(0)
    } else {
        // The first class is in the other table.
        ReplicaClassId(cells.small_up_to(6, MAX_REPLICAS - 1).filter(|class| *class > 0)?)
    };
    let ipu = IpuId(cells.small_up_to(1, MAX_IPUS - 1)?);
    let sub_lane = u8::try_from(cells.small_up_to(2, u32::from(MAX_SUB_LANES) - 1)?).ok()?;
    let steps = cells.count(3, MAX_STEPS)?;
    let first = cells.count(4, MAX_CYCLES)?;
    let end = cells.count(5, MAX_CYCLES)?;
    // Pieces are found by this number; a wrong one would show steps of another lane.
    let number = LaneNumber::new(class, ipu, sub_lane).number();
    if lane == number && steps > 0 && first <= end {
        Some(LaneInfo { class, ipu, sub_lane, steps, range: CycleRange::new(first, end) })
    } else {
        None
    }
}
