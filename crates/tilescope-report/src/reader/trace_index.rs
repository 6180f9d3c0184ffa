//! The trace index: part of the report if this program wrote it, otherwise built once and cached.
//!
//! Building reads `steps` and `steps_by_ipu` side by side, once, in the order of steps, and holds
//! one chunk per lane: memory does not grow with the number of steps. Bars that overlap on an IPU
//! go to further lanes below the first, as the tools people know draw them.
//!
//! Poplar gives all steps of a stream copy (begin, mid, end) the id of one program. Totals are by
//! program and type of step, so each further type of a program gets an id after those of the file.

use super::index_cache::{self, CacheFile, CachePlace};
use super::step_row::{COLUMNS, StepRow};
use super::{Report, ReportOrigin, ReportPart, TraceState};
use crate::database::{ReportDatabase, SelectQuery, lock};
use crate::error::ReportError;
use crate::limits::MAX_SUB_LANES;
use crate::model::{INTERNAL_SYNC, ProgramKind, StreamEndpoint};
use crate::row_cells::RowCells;
use crate::row_writer::RowWriter;
use crate::schema;
use crate::trace::{
    LaneNumber, LaneRecord, StepClass, StepRecord, SyncPrograms, Trace, TraceIndexWriter,
};
use crate::units::{ComputeSetId, CycleRange, IpuId, ProgramId, ReplicaClassId, StepId};
use rusqlite::params;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows between two progress reports, and between two row numbers recorded for finding steps.
const ROWS_PER_LOOK: u64 = 8192;
/// The maximum number of programs whose kind is kept.
const MAX_PROGRAMS: usize = 1 << 22;
/// The highest id of such a program.
const MAX_PROGRAM_ID: u32 = 1 << 22;

/// Tables of a cache file beside those of the trace.
const CACHE_TABLES: [&str; 2] = ["executed_programs", "step_rows"];
const CREATE_CACHE: &str = "
    CREATE TABLE executed_programs(program INTEGER PRIMARY KEY, source INTEGER, class INTEGER,
        compute_set INTEGER);
    CREATE TABLE step_rows(step INTEGER PRIMARY KEY, row INTEGER);";

/// A trace ready for queries, and further facts known after reading a foreign file.
#[derive(Clone)]
pub(super) struct PreparedTrace {
    trace: Trace,
    executed: Arc<Vec<ExecutedProgram>>,
    /// Programs of steps whose type is not the first one of their program.
    further_types: Arc<HashMap<(ProgramId, StepClass), ProgramId>>,
    step_rows: Arc<Vec<(StepId, i64)>>,
}

/// A program of a foreign file with the steps of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExecutedProgram {
    pub(super) id: ProgramId,
    /// The id in the file, which all types of the program share.
    pub(super) source: ProgramId,
    pub(super) class: StepClass,
    pub(super) compute_set: Option<ComputeSetId>,
}

impl PreparedTrace {
    /// The program of the steps of `kind` that have the id `source` in the file.
    pub(super) fn program_of(&self, source: ProgramId, kind: ProgramKind) -> ProgramId {
        // The class of a step includes the other end of its stream, which `kind` does not tell.
        for stream in [StreamEndpoint::Host, StreamEndpoint::RemoteBuffer] {
            if let Some(id) = self.further_types.get(&(source, StepClass::new(kind, stream))) {
                return *id;
            }
        }
        source
    }

    /// Rows of `steps_by_ipu` among which those of the steps `first..=last` are.
    pub(super) fn rows_of(&self, first: StepId, last: StepId) -> Option<(i64, i64)> {
        if self.step_rows.is_empty() {
            return None;
        }
        // Only every 8,192nd row is recorded, so take the recorded rows around the wanted steps.
        let before = self.step_rows.partition_point(|(step, _)| *step < first);
        let behind = self.step_rows.partition_point(|(step, _)| *step <= last);
        let low = before.checked_sub(1).and_then(|place| self.step_rows.get(place));
        let low = low.map_or(i64::MIN, |(_, row)| *row);
        Some((low, self.step_rows.get(behind).map_or(i64::MAX, |(_, row)| *row)))
    }

    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }

    fn has_steps(&self) -> bool {
        !self.trace.lanes().is_empty()
    }
}

impl Report {
    /// The availability of the trace.
    pub fn trace_state(&self) -> Result<TraceState, ReportError> {
        if let Some(prepared) = self.prepared() {
            // All rows of another tool may lack their position.
            return Ok(if prepared.has_steps() { TraceState::Ready } else { TraceState::None });
        }
        // An index in the report itself needs no cache and no second pass over the rows.
        if self.open_own_index()? {
            return Ok(TraceState::Ready);
        }
        if !self.has(ReportPart::Execution) {
            return Ok(TraceState::None);
        }
        if self.open_cached_index()? { self.trace_state() } else { Ok(TraceState::NeedsIndex) }
    }

    /// Prepares the trace of a foreign file; does nothing for other files. Reads every row once in
    /// bounded memory and caches the result in the user's cache directory. `progress` gets a share
    /// from 0 to 1. Setting `cancel` aborts with [`ReportError::Cancelled`].
    pub fn prepare_trace(
        &self,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<(), ReportError> {
        // One thread builds; other callers wait for it.
        let _building = lock(&self.building);
        if self.trace_state()? == TraceState::NeedsIndex {
            let prepared = self.build_index(progress, cancel)?;
            *lock(&self.trace) = Some(prepared);
            // More is known about programs now.
            self.programs.invalidate();
            self.derived.invalidate();
        }
        Ok(())
    }

    pub(super) fn prepared(&self) -> Option<PreparedTrace> {
        lock(&self.trace).clone()
    }

    pub(super) fn prepared_trace(&self) -> Option<Trace> {
        self.prepared().filter(PreparedTrace::has_steps).map(|prepared| prepared.trace)
    }

    /// Programs that ran in a foreign file, with their kind and compute set.
    pub(super) fn executed_programs(&self) -> Result<Vec<ExecutedProgram>, ReportError> {
        // Files with types of programs need no evidence from executed steps.
        if self.db.has("programs", "type") {
            return Ok(Vec::new());
        }
        // A cached index may have the answer even before the trace is used.
        self.trace_state()?;
        Ok(self.prepared().map_or(Vec::new(), |prepared| prepared.executed.to_vec()))
    }

    /// Opens the index in the report itself, if it exists and is sound.
    fn open_own_index(&self) -> Result<bool, ReportError> {
        if self.origin != ReportOrigin::Tilescope || !self.db.has_rows("trace_lanes") {
            return Ok(false);
        }
        match Trace::open(self.another_connection()?, None) {
            Ok(trace) => {
                *lock(&self.trace) = Some(PreparedTrace {
                    trace,
                    executed: Arc::default(),
                    further_types: Arc::default(),
                    step_rows: Arc::default(),
                });
                Ok(true)
            }
            // Steps kept in columns have no rows to rebuild the index from.
            Err(error) if self.has_columns() => Err(error),
            Err(error) => {
                self.warnings.add(format!("the trace index is rebuilt from the steps: {error}"));
                Ok(false)
            }
        }
    }

    /// Syncs within one IPU, and those of all replicas.
    pub(super) fn sync_programs(&self) -> Result<SyncPrograms, ReportError> {
        Ok(sync_programs(&self.db)?.joining_replicas(self.replica_classes()?.joins))
    }

    /// The cache file for data of one kind derived from this report.
    pub(super) fn cache_place(&self, kind: &str) -> Result<Option<CachePlace>, ReportError> {
        let directory = self.cache_directory.as_deref();
        directory.map(|directory| CachePlace::new(directory, kind, &self.path)).transpose()
    }

    /// Opens the cached index.
    fn open_cached_index(&self) -> Result<bool, ReportError> {
        let place = self.cache_place("trace")?;
        let found = place.and_then(|place| place.open(|found| prepared(found, &self.path)));
        let is_found = found.is_some();
        if is_found {
            *lock(&self.trace) = found;
        }
        Ok(is_found)
    }

    fn build_index(
        &self,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<PreparedTrace, ReportError> {
        let mut source = self.another_connection()?;
        // A separate connection: cancelling must not abort queries of other threads.
        source.set_cancel(cancel.clone())?;
        let build = ForeignIndexBuilder {
            tiles_per_ipu: self.target()?.tiles_per_ipu,
            remote: remote_programs(&source)?,
            programs: sync_programs(&source)?,
            first_free_id: first_free_id(&source)?,
            source,
        };
        let place = self.cache_place("trace")?;
        let written =
            index_cache::write(place.as_ref(), &self.warnings, |rows| build.write(rows, progress))?;
        prepared(written, &self.path)
    }
}

fn prepared(cache: CacheFile, path: &Path) -> Result<PreparedTrace, ReportError> {
    let known: Vec<&str> = schema::TRACE_TABLES.iter().copied().chain(CACHE_TABLES).collect();
    let CacheFile { connection, bytes, file } = cache;
    let path = file.as_deref().unwrap_or(path);
    let db = ReportDatabase::new(connection, path, bytes, &known, Arc::default())?;
    let columns = ["program", "source", "class", "compute_set"];
    let select = SelectQuery::all("executed_programs", &columns).clauses("ORDER BY program");
    let executed = db.list(select, |cells| {
        Some(ExecutedProgram {
            id: ProgramId(cells.small(0)?),
            source: ProgramId(cells.small(1)?),
            class: StepClass::from_code(cells.count(2, 255)?)?,
            compute_set: cells.small(3).map(ComputeSetId),
        })
    })?;
    let step_rows = db
        .list(SelectQuery::all("step_rows", &["step", "row"]).clauses("ORDER BY step"), |c| {
            Some((StepId(u64::try_from(c.int(0)?).ok()?), c.int(1)?))
        })?;
    let executed: Vec<ExecutedProgram> = executed.into_iter().flatten().collect();
    let mut further_types = HashMap::new();
    for ExecutedProgram { id, source, class, .. } in &executed {
        if id != source {
            further_types.insert((*source, *class), *id);
        }
    }
    Ok(PreparedTrace {
        trace: Trace::open(db, file)?,
        executed: Arc::new(executed),
        further_types: Arc::new(further_types),
        step_rows: Arc::new(step_rows.into_iter().flatten().collect()),
    })
}

/// Programs that move data from or to remote buffers. In foreign files, only their names show it.
fn remote_programs(db: &ReportDatabase) -> Result<HashSet<u32>, ReportError> {
    let mut remote = HashSet::new();
    db.stream(SelectQuery::all("programs", &["id", "name"]), |cells| {
        let name = cells.text(1).unwrap_or_default().to_lowercase();
        if name.contains("remotebuffer") || name.contains("remote_buffer") {
            remote.extend(cells.small(0));
        }
        // Neither the names in a foreign file nor their number can be trusted.
        let room = remote.len() < MAX_PROGRAMS;
        Ok(if room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(remote)
}

/// Syncs within one IPU. In foreign files, only their names show it.
fn sync_programs(db: &ReportDatabase) -> Result<SyncPrograms, ReportError> {
    let mut internal = SyncPrograms::default();
    let mut found = 0;
    db.stream(SelectQuery::all("programs", &["id", "name"]), |cells| {
        let is_internal = cells.text(1).is_some_and(|name| name == INTERNAL_SYNC);
        let id = cells.small_up_to(0, MAX_PROGRAM_ID).filter(|_| is_internal);
        found += usize::from(id.is_some());
        id.into_iter().for_each(|id| internal.add(ProgramId(id)));
        Ok(if found < MAX_PROGRAMS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(internal)
}

/// The first id after those of programs in the file; `None` if programs have types themselves,
/// or no id is free.
fn first_free_id(db: &ReportDatabase) -> Result<Option<u32>, ReportError> {
    if db.has("programs", "type") || !db.has("programs", "id") {
        return Ok(None);
    }
    let last = db.worked_out("programs", "max(id)")?;
    let last = last.and_then(|last| u32::try_from(last).ok());
    Ok(last.and_then(|last| last.checked_add(1)))
}

/// Columns of a row of `steps`.
#[derive(Clone, Copy)]
struct StepProgramInfo {
    kind: ProgramKind,
    program: Option<ProgramId>,
    compute_set: Option<u32>,
}

/// Builds the index of one foreign file.
struct ForeignIndexBuilder {
    source: ReportDatabase,
    tiles_per_ipu: u32,
    remote: HashSet<u32>,
    programs: SyncPrograms,
    /// The id of the first further type of a program.
    first_free_id: Option<u32>,
}

/// The state of one pass over the rows.
struct IndexBuildPass<'a> {
    build: &'a ForeignIndexBuilder,
    rows: RowWriter<'a>,
    lanes: TraceIndexWriter,
    executed: BTreeMap<u32, ExecutedProgram>,
    /// Programs by their id in the file and the class of their steps.
    ids: HashMap<(u32, StepClass), ProgramId>,
    next_free_id: Option<u32>,
    count: u64,
    last_step: StepId,
    last_marked: Option<StepId>,
    unusable: u64,
    squeezed: u64,
}

/// The reason why a pass over the rows ended early.
enum IndexBuildError {
    OutOfOrder,
    Failed(ReportError),
}

impl ForeignIndexBuilder {
    /// Writes the index into an empty database.
    fn write(&self, rows: &RowWriter, progress: &mut dyn FnMut(f64)) -> Result<(), ReportError> {
        rows.execute(CREATE_CACHE)?;
        for table in schema::TRACE_TABLES {
            let table = schema::find(table).map(schema::SchemaTable::create).unwrap_or_default();
            rows.execute(&table)?;
        }
        // Rows are mostly in the order of steps; they are sorted only if they are not.
        let in_file_order = self.source.has_rowid("steps_by_ipu");
        let done = if in_file_order {
            self.pass(*rows, "ORDER BY rowid", progress)
        } else {
            Err(IndexBuildError::OutOfOrder)
        };
        match done {
            Ok(()) => {}
            Err(IndexBuildError::Failed(error)) => return Err(error),
            Err(IndexBuildError::OutOfOrder) => {
                // Removes the rows that the first pass wrote before it met a step out of order.
                for table in schema::TRACE_TABLES.iter().chain(&CACHE_TABLES) {
                    rows.execute(&format!("DELETE FROM {table}"))?;
                }
                match self.pass(*rows, "ORDER BY step_id", progress) {
                    Ok(()) => {}
                    Err(IndexBuildError::Failed(error)) => return Err(error),
                    Err(IndexBuildError::OutOfOrder) => {
                        return Err(self
                            .source
                            .damage("steps_by_ipu", "its steps cannot be sorted"));
                    }
                }
            }
        }
        progress(1.0);
        Ok(())
    }

    fn pass(
        &self,
        rows: RowWriter,
        order: &str,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), IndexBuildError> {
        let number = self.source.worked_out(
            "steps_by_ipu",
            // The largest row number is available at once; counting rows reads the whole table.
            if order.ends_with("rowid") { "max(rowid)" } else { "total(1)" },
        );
        let total = number.map_err(IndexBuildError::Failed)?.unwrap_or(0).max(1) as f64;
        let mut pass = IndexBuildPass {
            build: self,
            rows,
            lanes: TraceIndexWriter::new(self.programs.clone()),
            executed: BTreeMap::new(),
            ids: HashMap::new(),
            next_free_id: self.first_free_id,
            count: 0,
            last_step: StepId(0),
            last_marked: None,
            unusable: 0,
            squeezed: 0,
        };
        let mut columns = COLUMNS.to_vec();
        let with_rows = order.ends_with("rowid");
        if with_rows {
            columns.push("rowid");
        }
        let left = SelectQuery::all("steps", &["id", "type", "program", "compute_set"]);
        let left = if self.source.has("steps", "id") {
            left.clauses("ORDER BY id")
        } else {
            // Some files have rows per IPU without a list of steps: merge with an empty list.
            left.clauses("LIMIT 0")
        };
        let right = SelectQuery::all("steps_by_ipu", &columns).clauses(order);
        let mut in_order = true;
        let read = self.source.merge(left, right, step_facts, |facts, cells| {
            if pass.count.is_multiple_of(ROWS_PER_LOOK) {
                progress((pass.count as f64 / total).min(1.0));
                if self.source.is_cancelled() {
                    return Err(ReportError::Cancelled);
                }
            }
            pass.count += 1;
            in_order = pass.row(facts, cells, with_rows)?;
            // Not an error of the file: the caller retries with sorted rows.
            if in_order { Ok(()) } else { Err(ReportError::Cancelled) }
        });
        match read {
            Err(_) if !in_order => Err(IndexBuildError::OutOfOrder),
            Err(error) => Err(IndexBuildError::Failed(error)),
            Ok(()) => pass.finish().map_err(IndexBuildError::Failed),
        }
    }
}

/// A lane of the only replica that has rows.
fn lane_of(ipu: IpuId, sub_lane: u8) -> LaneNumber {
    LaneNumber::new(ReplicaClassId(0), ipu, sub_lane)
}

fn step_facts(cells: &RowCells) -> StepProgramInfo {
    StepProgramInfo {
        kind: cells.text(1).map_or(ProgramKind::Unknown, |name| ProgramKind::from_name(&name)),
        program: cells.small(2).map(ProgramId),
        compute_set: cells.small(3),
    }
}

impl IndexBuildPass<'_> {
    /// Adds a row. Returns false if its step precedes the last one.
    fn row(
        &mut self,
        facts: Option<&StepProgramInfo>,
        cells: &RowCells,
        with_rows: bool,
    ) -> Result<bool, ReportError> {
        let Some(row) = StepRow::read(cells) else {
            self.unusable += 1;
            return Ok(true);
        };
        // The merge and the lanes need ascending steps; the caller sorts and restarts.
        if row.step < self.last_step {
            return Ok(false);
        }
        self.last_step = row.step;
        if with_rows
            && self.count % ROWS_PER_LOOK == 1
            && self.last_marked != Some(row.step)
            && let Some(number) = cells.int(COLUMNS.len())
        {
            self.record_row_position(row.step, number)?;
        }
        let facts = facts.copied().unwrap_or(StepProgramInfo {
            kind: ProgramKind::Unknown,
            program: None,
            compute_set: None,
        });
        let (class, program) = self.class_and_program(&facts);
        // Rows of some tools have durations only; their steps follow each other on their lane.
        let clock = self.lanes.end(lane_of(row.ipu, row.sub_lane.unwrap_or(0)));
        let Some(bar) = row.bar(clock) else {
            self.unusable += 1;
            return Ok(true);
        };
        let (sub_lane, range) = self.free_lane(&row, bar);
        let record = StepRecord {
            step: row.step,
            range,
            program,
            class,
            balance: row.tile_balance(self.build.tiles_per_ipu),
            bytes_in: row.bytes_in,
            bytes_out: row.bytes_out,
        };
        self.lanes.push(LaneRecord { lane: lane_of(row.ipu, sub_lane), record, details: None });
        // Complete pieces are written at once, so memory does not grow with the run.
        self.lanes.complete().try_for_each(|blob| blob.insert(&self.rows))?;
        Ok(true)
    }

    fn class_and_program(&mut self, facts: &StepProgramInfo) -> (StepClass, Option<ProgramId>) {
        let remote = facts.program.is_some_and(|id| self.build.remote.contains(&id.0));
        let stream = if remote { StreamEndpoint::RemoteBuffer } else { StreamEndpoint::Host };
        let class = StepClass::new(facts.kind, stream);
        let Some(source) = facts.program else { return (class, None) };
        if let Some(known) = self.ids.get(&(source.0, class)) {
            return (class, Some(*known));
        }
        // Neither ids nor their number can be trusted in a foreign file, so the list is bounded.
        if self.executed.len() >= MAX_PROGRAMS {
            return (class, Some(source));
        }
        let id = self.id_of_type(source);
        self.ids.insert((source.0, class), id);
        let compute_set = facts.compute_set.map(ComputeSetId);
        let executed = ExecutedProgram { id, source, class, compute_set };
        self.executed.entry(id.0).or_insert(executed);
        (class, Some(id))
    }

    /// The id of a new type of a program: that of the file for the first type. Ids that the file
    /// gives to no program are never used as they are, since they may be those of further types.
    fn id_of_type(&mut self, source: ProgramId) -> ProgramId {
        let is_known = self.build.first_free_id.is_none_or(|first| source.0 < first);
        if is_known && !self.executed.contains_key(&source.0) {
            return source;
        }
        // Without a free id, types share the id of the file: their totals are mixed, but nothing is
        // lost.
        let Some(free) = self.next_free_id else { return source };
        self.next_free_id = free.checked_add(1);
        ProgramId(free)
    }

    /// A lane on which `bar` overlaps nothing, and the bar. If all lanes are taken, the bar is
    /// moved to the end of the lane that is free first.
    fn free_lane(&mut self, row: &StepRow, bar: CycleRange) -> (u8, CycleRange) {
        let first = row.sub_lane.unwrap_or(0);
        let mut lanes =
            (first..MAX_SUB_LANES).map(|lane| (self.lanes.end(lane_of(row.ipu, lane)), lane));
        if let Some((_, lane)) = lanes.find(|(end, _)| *end <= bar.start) {
            return (lane, bar);
        }
        self.squeezed += 1;
        let lanes =
            (first..MAX_SUB_LANES).map(|lane| (self.lanes.end(lane_of(row.ipu, lane)), lane));
        // The lane that is free first needs the smallest move.
        let (end, lane) = lanes.min().unwrap_or_default();
        (lane, CycleRange::new(end, bar.end.max(end)))
    }

    fn record_row_position(&mut self, step: StepId, row: i64) -> Result<(), ReportError> {
        self.last_marked = Some(step);
        let insert = "INSERT OR IGNORE INTO step_rows VALUES (?, ?)";
        let to_error = |e: rusqlite::Error| ReportError::sqlite_writing(&e, self.rows.path);
        let mut statement = self.rows.connection.prepare_cached(insert).map_err(to_error)?;
        statement.execute(params![step.0 as i64, row]).map_err(to_error)?;
        Ok(())
    }

    fn finish(self) -> Result<(), ReportError> {
        let Self { build, rows, lanes, executed, unusable, squeezed, .. } = self;
        lanes.finish(&rows)?;
        let insert = "INSERT INTO executed_programs VALUES (?, ?, ?, ?)";
        let failed = |e: rusqlite::Error| ReportError::sqlite_writing(&e, rows.path);
        let mut statement = rows.connection.prepare(insert).map_err(failed)?;
        for (id, ExecutedProgram { source, class, compute_set, .. }) in executed {
            let code = class.code() as i64;
            let set = compute_set.map(|set| set.0);
            statement.execute(params![id, source.0, code, set]).map_err(failed)?;
        }
        let warnings = &build.source.warnings;
        if unusable > 0 {
            warnings.add(format!("{unusable} rows of steps_by_ipu are unusable: left out"));
        }
        if squeezed > 0 {
            warnings.add(format!("{squeezed} steps overlap too many others: drawn after them"));
        }
        Ok(())
    }
}
