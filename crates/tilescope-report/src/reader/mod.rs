//! Opening and querying a report.
//!
//! Opening takes milliseconds at any size; every answer is read on first use. Missing data are a
//! normal state: lists are empty, values are `None`, [`Report::has`] distinguishes "nothing" from
//! "not recorded", and [`Report::warnings`] lists anomalies. Errors are reserved for files that
//! cannot be read at all and for damaged parts.
//!
//! Files of other tools are read column by column, as far as they have them. Their ids need not be
//! dense, and their numbers need not be sane; all returned references are valid and free of cycles.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod compute_sets;
mod critical_path;
mod data_flow;
mod debug_info;
mod derived;
mod exchange;
mod execution;
mod filters_and_answers;
mod host;
mod index_cache;
mod mark_rows;
mod marks;
mod memory;
mod program;
mod program_use;
mod replicas;
mod routes;
mod sidecar_files;
mod step_row;
mod target;
mod tile_patterns;
mod tile_run_collector;
mod tile_samples;
mod trace_index;
mod variables;
mod verify;

pub use filters_and_answers::*;
pub use mark_rows::LongMarkRow;
pub use marks::PackedMarks;
pub use program::ProgramNodeTable;
pub use sidecar_files::SidecarFile;
pub use tile_samples::PackedSamples;

use super::database::{ReportDatabase, ReportWarnings, SelectQuery, lock};
use super::error::ReportError;
use super::held_file::HeldFile;
use super::model::*;
use super::remote::RemoteFile;
use super::trace::Trace;
use super::writer::StepLayout;
use super::{open_file, schema};
use crate::units::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// An answer that is read once. A failed read is repeated on the next call.
struct ReadOnceCell<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for ReadOnceCell<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> ReadOnceCell<T> {
    fn get(&self, read: impl FnOnce() -> Result<T, ReportError>) -> Result<Arc<T>, ReportError> {
        // Reading happens under the lock, so that two callers do not both read.
        let mut known = lock(&self.0);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let read = Arc::new(read()?);
        *known = Some(read.clone());
        Ok(read)
    }

    /// The answer, if it was read already.
    fn known(&self) -> Option<Arc<T>> {
        lock(&self.0).clone()
    }

    fn invalidate(&self) {
        *lock(&self.0) = None;
    }
}

/// An open report. Reading never changes the file or the files beside it.
pub struct Report {
    db: ReportDatabase,
    /// A second connection to the same file, for the trace: a long query on one connection does not
    /// block the other.
    second: Mutex<Option<ReportDatabase>>,
    /// The file of both connections.
    held: Arc<HeldFile>,
    path: PathBuf,
    /// The requested file: `path`, a file of another tool that it was converted from, or an
    /// address.
    source: PathBuf,
    /// The directory of the files beside `source`.
    directory: PathBuf,
    /// Sizes and times of files on another machine, including those that are not copied.
    elsewhere: Vec<RemoteFile>,
    /// Directories that are removed when the report is closed.
    _temporary: Vec<TempDir>,
    bytes: u64,
    origin: ReportOrigin,
    meta: BTreeMap<String, String>,
    warnings: Arc<ReportWarnings>,
    cache_directory: Option<PathBuf>,
    target: ReadOnceCell<Target>,
    operations: ReadOnceCell<Vec<ModelOperation>>,
    debug_info: ReadOnceCell<debug_info::DebugInfo>,
    programs: ReadOnceCell<ProgramNodeTable>,
    compute_set_names: ReadOnceCell<BTreeMap<ComputeSetId, String>>,
    vertex_types: ReadOnceCell<Vec<VertexTypeInfo>>,
    strings: ReadOnceCell<Vec<(i64, String)>>,
    categories: ReadOnceCell<BTreeMap<i64, MemoryCategory>>,
    tile_memory: ReadOnceCell<TileRuns<TileMemory>>,
    tile_categories: ReadOnceCell<TileRuns<Vec<CategoryBytes>>>,
    mark_chunks: ReadOnceCell<Vec<marks::PackedMarks>>,
    replica_mark_chunks: ReadOnceCell<Vec<marks::PackedMarks>>,
    long_mark_rows: ReadOnceCell<Vec<LongMarkRow>>,
    sample_labels: ReadOnceCell<Vec<SampleLabel>>,
    sample_chunks: ReadOnceCell<Vec<tile_samples::PackedSamples>>,
    derived: derived::DerivedAnswers,
    trace: Mutex<Option<trace_index::PreparedTrace>>,
    building: Mutex<()>,
}

impl Report {
    /// Opens a file of this machine that was located before.
    pub(crate) fn of_file(
        file: ReportFile,
        cache_directory: Option<PathBuf>,
    ) -> Result<Self, ReportError> {
        let ReportFile { path, source, directory, elsewhere, temporary } = file;
        let warnings = Arc::new(ReportWarnings::default());
        let shown = if elsewhere.is_empty() { &path } else { &source };
        let (bytes, [db, second], held) = open_whole(&path, shown, &warnings)?;
        if db.tables().next().is_none() {
            let found = "an SQLite file without any table of a report (steps, programs, vars_info, \
                         memory_by_tile, …)";
            return Err(ReportError::NotAReport { found: found.to_owned(), path });
        }
        let origin = origin(&db, &path)?;
        let meta =
            if origin == ReportOrigin::Tilescope { read_meta(&db)? } else { BTreeMap::new() };
        warn_of_unknown_layout(&meta, &warnings);
        warn_of_unplaced_steps(&db);
        Ok(Self {
            db,
            second: Mutex::new(Some(second)),
            held,
            path,
            source,
            directory,
            elsewhere,
            _temporary: temporary,
            bytes,
            origin,
            meta,
            warnings,
            cache_directory,
            target: ReadOnceCell::default(),
            operations: ReadOnceCell::default(),
            debug_info: ReadOnceCell::default(),
            programs: ReadOnceCell::default(),
            compute_set_names: ReadOnceCell::default(),
            vertex_types: ReadOnceCell::default(),
            strings: ReadOnceCell::default(),
            categories: ReadOnceCell::default(),
            tile_memory: ReadOnceCell::default(),
            tile_categories: ReadOnceCell::default(),
            mark_chunks: ReadOnceCell::default(),
            replica_mark_chunks: ReadOnceCell::default(),
            long_mark_rows: ReadOnceCell::default(),
            sample_labels: ReadOnceCell::default(),
            sample_chunks: ReadOnceCell::default(),
            derived: derived::DerivedAnswers::default(),
            trace: Mutex::new(None),
            building: Mutex::new(()),
        })
    }

    /// The second connection, or a further one to the same file if that is in use.
    fn another_connection(&self) -> Result<ReportDatabase, ReportError> {
        if let Some(second) = lock(&self.second).take() {
            return Ok(second);
        }
        let shown = if self.elsewhere.is_empty() { &self.path } else { &self.source };
        let another = connect(&self.path, shown, &self.warnings)?;
        if !self.held.has_its_name() {
            return Err(ReportError::Replaced { path: self.path.clone() });
        }
        Ok(another)
    }

    /// An SQLite connection to the same file, for queries in SQL, that changes neither the file nor
    /// those beside it. The caller must bound its queries, because the file is untrusted.
    ///
    /// # Errors
    /// The file cannot be opened, or was replaced.
    pub fn another_sqlite_connection(&self) -> Result<rusqlite::Connection, ReportError> {
        let whole =
            fs::canonicalize(&self.path).map_err(|e| ReportError::reading(e, &self.path))?;
        let (connection, _) = open_file::connect(&whole)?;
        if !self.held.has_its_name() {
            return Err(ReportError::Replaced { path: self.path.clone() });
        }
        Ok(connection)
    }

    /// Path of the opened file: a `profile.pop`, or a profile of another tool; its address if it is
    /// on another machine.
    #[expect(clippy::misnamed_getters, reason = "what it was made of is what users have opened")]
    pub fn path(&self) -> &Path {
        &self.source
    }

    /// Checks that the file was not written to since it was opened: answers may be of two versions of
    /// it.
    ///
    /// # Errors
    /// [`ReportError::Rewritten`] if it was.
    pub fn check_unchanged(&self) -> Result<(), ReportError> {
        if self.held.is_changed() {
            return Err(ReportError::Rewritten { path: self.path.clone() });
        }
        Ok(())
    }

    /// Size of the report file; of one made of a profile of another tool, not of that profile.
    pub fn file_size(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// The tool that wrote the report.
    pub fn origin(&self) -> ReportOrigin {
        self.origin
    }

    /// Anomalies found so far, as text for users. The list grows while more of the file is read.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.all()
    }

    /// Major and minor version of the format, from the header of the file.
    fn format(&self) -> (i64, i64) {
        format_of(&self.db)
    }

    /// Keys and values about the file itself: `generator`, `format`, …; empty for foreign files.
    pub fn meta(&self) -> &BTreeMap<String, String> {
        &self.meta
    }

    /// True if the execution is stored in columns, without rows of steps.
    pub fn has_columns(&self) -> bool {
        self.meta.get("layout").is_some_and(|layout| layout == StepLayout::Columns.name())
    }

    /// The spec that the report was made from, verbatim.
    pub fn spec(&self) -> Option<&str> {
        self.meta.get("spec").map(String::as_str)
    }

    /// The file that its model was imported from; `None` for built-in models, or if the entry
    /// cannot be parsed.
    pub fn imported_model(&self) -> Option<ImportedModel> {
        let read = serde_json::from_str(self.meta.get("onnx")?);
        let odd = |error| {
            self.warnings.add(format!("the description of the imported model is invalid: {error}"))
        };
        read.map_err(odd).ok()
    }

    /// True if a part was recorded.
    pub fn has(&self, part: ReportPart) -> bool {
        let has_rows = |table: &str| self.db.has_rows(table);
        let has_column = |table: &str, column: &str| self.db.has(table, column) && has_rows(table);
        match part {
            // The bytes moved by a measured step are not known.
            ReportPart::StepBytes if self.has_tile_samples() => false,
            ReportPart::Execution
            | ReportPart::TileBalance
            | ReportPart::ActiveTiles
            | ReportPart::StepBytes
                if self.has_columns() =>
            {
                has_rows("trace_lanes")
            }
            ReportPart::Execution => {
                STEP_KEYS.into_iter().all(|key| has_column("steps_by_ipu", key))
            }
            ReportPart::TileBalance => has_column("steps_by_ipu", "active_tile_balance"),
            ReportPart::ActiveTiles => has_column("steps_by_ipu", "active_tiles"),
            ReportPart::StepBytes => has_column("steps_by_ipu", "bytes_in"),
            ReportPart::Marks => has_rows("marks") || has_rows(schema::MARK_CHUNKS),
            ReportPart::Programs => has_column("programs", "id"),
            ReportPart::ProgramTree => has_rows("program_roots") || has_rows("program_children"),
            ReportPart::ComputeSets => has_column("compute_sets", "compute_set"),
            ReportPart::ComputeSetCycles => {
                has_rows("compute_set_cycles") || self.db.has_values("compute_sets", "pattern")
            }
            ReportPart::Vertices => has_rows("vertex_groups"),
            ReportPart::Exchanges => has_rows("exchanges"),
            ReportPart::Operations => has_rows("operations") || self.has_debug_operations(),
            ReportPart::OperationInputs => has_column("operation_inputs", "input"),
            ReportPart::Variables => has_rows("vars") || has_column("vars_info", "tile"),
            ReportPart::Addresses => {
                has_column("addresses", "data") || has_column("var_addresses", "data")
            }
            ReportPart::Lifetimes => has_column("vars", "first_live"),
            ReportPart::Liveness => has_rows("liveness_steps"),
            ReportPart::TileMemory => {
                has_column("memory_by_tile", "total") || has_column("vars_info", "tile")
            }
            ReportPart::Regions => has_column("memory_by_tile", "non_interleaved"),
            ReportPart::Categories => {
                has_rows("category_bytes") || has_column("vars_info", "category")
            }
            ReportPart::Options => has_rows("options"),
            ReportPart::Batching => has_rows("batching"),
            ReportPart::Spec => self.spec().is_some(),
        }
    }

    /// Options in effect, as keys and values.
    pub fn options(&self) -> Result<Vec<(String, String)>, ReportError> {
        let select = SelectQuery::all("options", &["key", "value"]);
        self.db.list(select, |cells| {
            (cells.text(0).unwrap_or_default(), cells.long_text(1).unwrap_or_default())
        })
    }

    /// Notes of the compiler.
    pub fn notes(&self) -> Result<Vec<String>, ReportError> {
        self.db.list(SelectQuery::all("notes", &["text"]), |cells| {
            cells.long_text(0).unwrap_or_default()
        })
    }

    /// The whole compiled program at once: everything except the execution. For reports with dense
    /// ids, as ours are.
    pub fn compilation(&self) -> Result<CompilationReport, ReportError> {
        let programs = self.programs()?;
        let all = VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
        Ok(CompilationReport {
            target: self.target()?.as_ref().clone(),
            bandwidths: self.bandwidths()?,
            compute_rates: self.compute_rates()?,
            action_costs: self.action_costs()?,
            sync_groups: self.sync_groups()?,
            error_bands: self.error_bands()?,
            program_errors: self.program_errors()?,
            running_costs: self.running_costs()?,
            graph: self.graph()?,
            options: self.options()?,
            batching: self.batching()?,
            operations: self.operations()?.as_ref().clone(),
            programs: programs.iter().map(|(_, program)| program.clone()).collect(),
            roots: programs.roots().to_vec(),
            compute_sets: self.compute_sets()?.into_iter().map(|(_, set)| set).collect(),
            vertex_types: self.vertex_types()?.as_ref().clone(),
            exchanges: self.exchanges()?,
            routes: self.routes()?,
            control_code: self.control_code()?.unwrap_or_default(),
            data_flows: self.data_flows()?,
            variables: self.variables(&all)?.into_iter().map(|(_, variable)| variable).collect(),
            variable_uses: self.variable_uses()?.unwrap_or_default(),
            tile_memory: self.tile_memory()?.as_ref().clone(),
            tile_categories: self.tile_categories()?.as_ref().clone(),
            liveness: self.liveness()?,
            host: self.host()?,
            replica_rings: self.replica_rings()?,
            replica_classes: self.replica_classes()?,
            notes: self.notes()?,
        })
    }

    /// The trace; `None` if there is no execution. Prepares it if necessary, which takes long for
    /// foreign files: see [`Report::prepare_trace`].
    pub fn trace(&self) -> Result<Option<Trace>, ReportError> {
        self.prepare_trace(&mut |_| {}, &Arc::default())?;
        Ok(self.prepared_trace())
    }
}

/// A report file of this machine, and its origin.
pub(crate) struct ReportFile {
    /// The file that is read.
    pub(crate) path: PathBuf,
    /// The requested file: the same, a file of another tool that it was converted from, or an
    /// address.
    pub(crate) source: PathBuf,
    /// The directory of the files beside `source`.
    pub(crate) directory: PathBuf,
    /// The files on another machine.
    pub(crate) elsewhere: Vec<RemoteFile>,
    /// Directories that are removed when the report is closed.
    pub(crate) temporary: Vec<TempDir>,
}

/// The number of attempts to open a file that is being replaced.
const OPENING_TRIES: usize = 8;

/// Opens two connections to a report file, with its size. Both refer to the same file, although
/// another one may take its name at any time.
fn open_whole(
    path: &Path,
    shown: &Path,
    warnings: &Arc<ReportWarnings>,
) -> Result<(u64, [ReportDatabase; 2], Arc<HeldFile>), ReportError> {
    for _ in 0..OPENING_TRIES {
        let bytes = open_file::check(path)?;
        let held = HeldFile::open(path)?;
        let connections = [connect(path, shown, warnings)?, connect(path, shown, warnings)?];
        if held.has_its_name() && !held.is_changed() {
            return Ok((bytes, connections, held));
        }
    }
    Err(ReportError::Replaced { path: path.to_owned() })
}

/// A connection to a report file that can read the tables of a report; errors name the path
/// `shown`.
fn connect(
    path: &Path,
    shown: &Path,
    warnings: &Arc<ReportWarnings>,
) -> Result<ReportDatabase, ReportError> {
    let whole = fs::canonicalize(path).map_err(|e| ReportError::reading(e, path))?;
    let bytes = fs::metadata(&whole).map_err(|e| ReportError::reading(e, path))?.len();
    let log = fs::metadata(open_file::with_suffix(&whole, "-wal")).map_or(0, |log| log.len());
    let (connection, warning) = open_file::connect(&whole)?;
    warning.into_iter().for_each(|warning| warnings.add(warning));
    let ours = schema::TABLES.iter().map(|table| table.name);
    let known: Vec<&str> = ours.chain(schema::tables_of_other_files()).collect();
    ReportDatabase::new(connection, shown, bytes + log, &known, warnings.clone())
}

/// The writer of a file, if this version can read it. Warns of parts that it cannot read.
fn origin(db: &ReportDatabase, path: &Path) -> Result<ReportOrigin, ReportError> {
    if db.application_id() != i64::from(schema::APPLICATION_ID) {
        if db.has("trace_lanes", "expectations") {
            db.warnings.add(
                "written by tilescope, but a copy without its application_id: read as a foreign \
                 file, without the data that only tilescope records",
            );
        }
        return Ok(ReportOrigin::Foreign);
    }
    let known = (i64::from(schema::FORMAT.0), i64::from(schema::FORMAT.1));
    let (major, minor) = format_of(db);
    if !(1..=known.0).contains(&major) || minor < 0 {
        let format = format!("{major}.{minor}");
        return Err(ReportError::UnknownFormat { format, path: path.to_owned() });
    }
    if (major, minor) > known {
        db.warnings.add(format!(
            "written in format {major}.{minor} by a newer tilescope: only the parts in format \
             {}.{} are shown",
            known.0, known.1
        ));
    }
    Ok(ReportOrigin::Tilescope)
}

/// Columns of `steps_by_ipu` that every usable row has.
const STEP_KEYS: [&str; 2] = ["step_id", "ipu"];

/// Warns of steps without a step id or an IPU.
fn warn_of_unplaced_steps(db: &ReportDatabase) {
    let missing = STEP_KEYS.into_iter().find(|key| !db.has("steps_by_ipu", key));
    if let Some(missing) = missing.filter(|_| db.has_table("steps_by_ipu")) {
        db.warnings.add(format!("steps_by_ipu has no column {missing}: its steps are left out"));
    }
}

/// Warns of steps in a layout that this version does not read.
fn warn_of_unknown_layout(meta: &BTreeMap<String, String>, warnings: &ReportWarnings) {
    let known = [StepLayout::Rows, StepLayout::Columns].map(StepLayout::name);
    if let Some(layout) = meta.get("layout").filter(|layout| !known.contains(&layout.as_str())) {
        warnings.add(format!(
            "steps have the layout {layout}, which this version of tilescope does not support: \
             only the tables of format {}.{} are shown",
            schema::FORMAT.0,
            schema::FORMAT.1
        ));
    }
}

/// Major and minor version of the format.
fn format_of(db: &ReportDatabase) -> (i64, i64) {
    let version = db.user_version();
    (version / 1000, version % 1000)
}

fn read_meta(db: &ReportDatabase) -> Result<BTreeMap<String, String>, ReportError> {
    let facts = db.list(SelectQuery::all("meta", &["key", "value"]), |cells| {
        (cells.text(0).unwrap_or_default(), cells.long_text(1).unwrap_or_default())
    })?;
    Ok(facts.into_iter().collect())
}
