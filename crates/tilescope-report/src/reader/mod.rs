//! Opening a report and asking it questions.
//!
//! Opening takes milliseconds at any size; every answer is read when it is first asked for. What
//! a file does not have is a normal state: lists are empty, values are `None`, [`Report::has`]
//! tells apart "nothing" from "not recorded", and [`Report::warnings`] says what was odd. Errors
//! are left for files that cannot be read at all and for parts that are damaged.
//!
//! Files of other tools are read column by column, as far as they have them. Ids there need not
//! be dense, numbers need not be sane; nothing that is handed out points nowhere or runs in
//! circles.

mod beside;
mod cache;
mod compute;
mod exchange;
mod execution;
mod index;
mod memory;
mod program;
mod runs;
mod step_row;
mod target;
mod types;
mod variables;
mod verify;

pub use beside::FileBeside;
pub use program::Programs;
pub use types::*;

use super::db::{Db, Select, Warnings, lock};
use super::error::ReportError;
use super::model::*;
use super::trace::Trace;
use super::writer::StepLayout;
use super::{open, schema};
use crate::units::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// An answer that is read once. What failed is read again when asked again.
struct Once<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Once<T> {
    fn get(&self, read: impl FnOnce() -> Result<T, ReportError>) -> Result<Arc<T>, ReportError> {
        // Reading happens under the lock, so that two who ask do not both read.
        let mut known = lock(&self.0);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let read = Arc::new(read()?);
        *known = Some(read.clone());
        Ok(read)
    }

    fn forget(&self) {
        *lock(&self.0) = None;
    }
}

/// An open report. Reading never changes the file nor anything beside it.
pub struct Report {
    db: Db,
    path: PathBuf,
    bytes: u64,
    origin: Origin,
    meta: BTreeMap<String, String>,
    warnings: Arc<Warnings>,
    cache_directory: Option<PathBuf>,
    target: Once<Target>,
    operations: Once<Vec<Operation>>,
    programs: Once<Programs>,
    compute_set_names: Once<BTreeMap<ComputeSetId, String>>,
    vertex_types: Once<Vec<VertexType>>,
    strings: Once<Vec<(i64, String)>>,
    categories: Once<BTreeMap<i64, Category>>,
    tile_memory: Once<TileRuns<TileMemory>>,
    tile_categories: Once<TileRuns<Vec<CategoryBytes>>>,
    trace: Mutex<Option<index::Prepared>>,
    building: Mutex<()>,
}

impl Report {
    /// Opens a directory that holds a `profile.pop`, or such a file under any name.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReportError> {
        Self::open_with_cache(path, cache::user_directory())
    }

    /// Like [`Report::open`], with another place for trace indexes of foreign files; `None` keeps
    /// them only as long as the report is open.
    pub fn open_with_cache(
        path: impl AsRef<Path>,
        cache_directory: Option<PathBuf>,
    ) -> Result<Self, ReportError> {
        let path = open::locate(path.as_ref())?;
        let bytes = open::check(&path)?;
        let warnings = Arc::new(Warnings::default());
        let db = connect(&path, &warnings)?;
        if db.tables().next().is_none() {
            let found = "an SQLite file without any table of a report (steps, programs, vars_info, \
                         memory_by_tile, …)";
            return Err(ReportError::NotAReport { found: found.to_owned(), path });
        }
        let origin = origin(&db);
        let meta = if origin == Origin::Tilescope { read_meta(&db)? } else { BTreeMap::new() };
        Ok(Self {
            db,
            path,
            bytes,
            origin,
            meta,
            warnings,
            cache_directory,
            target: Once::default(),
            operations: Once::default(),
            programs: Once::default(),
            compute_set_names: Once::default(),
            vertex_types: Once::default(),
            strings: Once::default(),
            categories: Once::default(),
            tile_memory: Once::default(),
            tile_categories: Once::default(),
            trace: Mutex::new(None),
            building: Mutex::new(()),
        })
    }

    /// Path of the `profile.pop` file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the report file.
    pub fn file_size(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// The tool that wrote the report.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// What was odd so far, in words for people. Grows while more of the file is read.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.all()
    }

    /// Keys and values about the file itself: `generator`, `format`, …; empty for foreign files.
    pub fn meta(&self) -> &BTreeMap<String, String> {
        &self.meta
    }

    /// Whether the execution is kept in columns, without rows of steps.
    fn has_columns(&self) -> bool {
        self.meta.get("layout").is_some_and(|layout| layout == StepLayout::Columns.name())
    }

    /// The spec the report was made from, as it was written.
    pub fn spec(&self) -> Option<&str> {
        self.meta.get("spec").map(String::as_str)
    }

    /// Whether a part was recorded.
    pub fn has(&self, part: Part) -> bool {
        let any = |table: &str| self.db.has_rows(table);
        let column = |table: &str, column: &str| self.db.has(table, column) && any(table);
        match part {
            Part::Execution | Part::TileBalance | Part::ActiveTiles | Part::StepBytes
                if self.has_columns() =>
            {
                any("trace_lanes")
            }
            Part::Execution => column("steps_by_ipu", "step_id"),
            Part::TileBalance => column("steps_by_ipu", "active_tile_balance"),
            Part::ActiveTiles => column("steps_by_ipu", "active_tiles"),
            Part::StepBytes => column("steps_by_ipu", "bytes_in"),
            Part::Marks => any("marks"),
            Part::Programs => column("programs", "id"),
            Part::ProgramTree => any("program_roots") || any("program_children"),
            Part::ComputeSets => column("compute_sets", "compute_set"),
            Part::ComputeSetCycles => any("compute_set_cycles"),
            Part::Vertices => any("vertex_groups"),
            Part::Exchanges => any("exchanges"),
            Part::Operations => any("operations"),
            Part::OperationInputs => column("operation_inputs", "input"),
            Part::Variables => any("vars") || column("vars_info", "tile"),
            Part::Addresses => column("var_addresses", "data"),
            Part::Lifetimes => column("vars", "first_live"),
            Part::Liveness => any("liveness_steps"),
            Part::TileMemory => column("memory_by_tile", "total") || column("vars_info", "tile"),
            Part::Regions => column("memory_by_tile", "non_interleaved"),
            Part::Categories => any("category_bytes") || column("vars_info", "category"),
            Part::Options => any("options"),
            Part::Batching => any("batching"),
            Part::Spec => self.spec().is_some(),
        }
    }

    /// Options in effect, as keys and values.
    pub fn options(&self) -> Result<Vec<(String, String)>, ReportError> {
        let select = Select::all("options", &["key", "value"]);
        self.db.list(select, |cells| {
            (cells.text(0).unwrap_or_default(), cells.long_text(1).unwrap_or_default())
        })
    }

    /// Notes of the compiler.
    pub fn notes(&self) -> Result<Vec<String>, ReportError> {
        self.db
            .list(Select::all("notes", &["text"]), |cells| cells.long_text(0).unwrap_or_default())
    }

    /// The whole compiled program at once: everything but the execution. For reports whose ids
    /// are dense, as ours are.
    pub fn compilation(&self) -> Result<Compilation, ReportError> {
        let programs = self.programs()?;
        let all = VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
        Ok(Compilation {
            target: self.target()?.as_ref().clone(),
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
            variables: self.variables(&all)?.into_iter().map(|(_, variable)| variable).collect(),
            tile_memory: self.tile_memory()?.as_ref().clone(),
            tile_categories: self.tile_categories()?.as_ref().clone(),
            liveness: self.liveness()?,
            notes: self.notes()?,
        })
    }

    /// The trace; `None` if there is no execution. Prepares it if that was not done, which takes
    /// long for foreign files: see [`Report::prepare_trace`].
    pub fn trace(&self) -> Result<Option<Trace>, ReportError> {
        self.prepare_trace(&mut |_| {}, &Arc::default())?;
        Ok(self.prepared_trace())
    }
}

/// A connection to a report file that reads the tables of a report.
fn connect(path: &Path, warnings: &Arc<Warnings>) -> Result<Db, ReportError> {
    let whole = fs::canonicalize(path).map_err(|e| ReportError::reading(e, path))?;
    let bytes = fs::metadata(&whole).map_err(|e| ReportError::reading(e, path))?.len();
    let log = fs::metadata(open::beside(&whole, "-wal")).map_or(0, |log| log.len());
    let (connection, warning) = open::connect(&whole)?;
    warning.into_iter().for_each(|warning| warnings.add(warning));
    let ours = schema::TABLES.iter().map(|table| table.name);
    let known: Vec<&str> = ours.chain(schema::FOREIGN_TABLES.iter().copied()).collect();
    Db::new(connection, path, bytes + log, &known, warnings.clone())
}

fn origin(db: &Db) -> Origin {
    if db.pragma("application_id") != i64::from(schema::APPLICATION_ID) {
        return Origin::Foreign;
    }
    let version = db.pragma("user_version");
    if version / 1000 != i64::from(schema::FORMAT.0) {
        db.warnings.add(format!(
            "written in format {}.{} by another version of tilescope: parts may be missing",
            version / 1000,
            version % 1000
        ));
        return Origin::Foreign;
    }
    Origin::Tilescope
}

fn read_meta(db: &Db) -> Result<BTreeMap<String, String>, ReportError> {
    let facts = db.list(Select::all("meta", &["key", "value"]), |cells| {
        (cells.text(0).unwrap_or_default(), cells.long_text(1).unwrap_or_default())
    })?;
    Ok(facts.into_iter().collect())
}
