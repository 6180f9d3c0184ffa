//! The critical path: found from the recorded sync points, or, in reports of older versions, by one
//! pass over the steps.

use super::{Report, index_cache};
use crate::database::{ReportDatabase, lock};
use crate::error::ReportError;
use crate::row_writer::RowWriter;
use crate::schema;
use crate::trace::{CriticalPath, Trace};
use index_cache::CacheFile;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The kind of caches of critical paths.
const INDEX_CACHE: &str = "path-index";
/// Tables of a cache of sync points.
const TABLES: [&str; 2] = ["trace_sync_points", "trace_beside"];

impl Report {
    /// The critical path of the execution; `None` if nothing was executed. Prepares the trace if
    /// necessary. In a report of an older version, reads all steps once.
    pub fn critical_path(&self) -> Result<Option<CriticalPath>, ReportError> {
        self.critical_path_with(&mut |_| {}, &Arc::default())
    }

    /// The critical path, if it is known without reading all steps: for figures that must be
    /// available at once.
    pub fn known_critical_path(&self) -> Result<Option<CriticalPath>, ReportError> {
        let Some(trace) = self.trace()? else { return Ok(None) };
        if !trace.has_sync_points() && !self.open_cached_points(&trace)? {
            return Ok(None);
        }
        self.path_of(&trace)
    }

    /// Like [`Report::critical_path`]. `progress` gets a share from 0 to 1 if the search takes
    /// long. Setting `cancel` aborts with [`ReportError::Cancelled`].
    pub fn critical_path_with(
        &self,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<Option<CriticalPath>, ReportError> {
        let Some(trace) = self.trace()? else { return Ok(None) };
        if !trace.has_sync_points() {
            // One thread builds; other callers wait for it.
            let _building = lock(&self.building);
            if !trace.has_sync_points() && !self.open_cached_points(&trace)? {
                self.build_points(&trace, progress, cancel)?;
            }
        }
        self.path_of(&trace)
    }

    /// The critical path of a trace with sync points. It is cached if finding it takes long.
    fn path_of(&self, trace: &Trace) -> Result<Option<CriticalPath>, ReportError> {
        if trace.has_path_index()? {
            return trace.critical_path();
        }
        let place = self.cache_place(INDEX_CACHE)?;
        let found = place.as_ref().and_then(|place| place.open(|found| use_path(trace, found)));
        let path = trace.critical_path()?;
        if let (None, Some(path), Some(place)) = (found, &path, &place) {
            index_cache::write(Some(place), &self.warnings, |rows| {
                create_table(schema::PATH_INDEX, rows)?;
                path.write_index(rows)
            })?;
        }
        Ok(path)
    }

    fn open_cached_points(&self, trace: &Trace) -> Result<bool, ReportError> {
        let place = self.cache_place("path")?;
        let found = place.and_then(|place| place.open(|found| use_points(trace, found)));
        Ok(found.is_some())
    }

    fn build_points(
        &self,
        trace: &Trace,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<(), ReportError> {
        let mut done = 0;
        let all = trace.bars().max(1);
        let place = self.cache_place("path")?;
        let written = index_cache::write(place.as_ref(), &self.warnings, |rows| {
            TABLES.iter().try_for_each(|table| create_table(table, rows))?;
            trace.make_sync_points(
                self.sync_programs()?,
                &mut |steps| {
                    done += steps;
                    progress(done as f64 / all as f64);
                    if cancel.load(Ordering::Relaxed) {
                        Err(ReportError::Cancelled)
                    } else {
                        Ok(())
                    }
                },
                rows,
            )
        })?;
        use_points(trace, written)
    }
}

fn create_table(table: &str, rows: &RowWriter) -> Result<(), ReportError> {
    let table = schema::find(table).map(schema::SchemaTable::create).unwrap_or_default();
    rows.execute(&table)
}

fn use_path(trace: &Trace, cache: CacheFile) -> Result<(), ReportError> {
    let CacheFile { connection, bytes, file } = cache;
    let path = file.unwrap_or_default();
    let tables = [schema::PATH_INDEX];
    let db = ReportDatabase::new(connection, &path, bytes, &tables, Arc::default())?;
    trace.use_path_index(&db)
}

fn use_points(trace: &Trace, cache: CacheFile) -> Result<(), ReportError> {
    let CacheFile { connection, bytes, file } = cache;
    let path = file.clone().unwrap_or_default();
    let db = ReportDatabase::new(connection, &path, bytes, &TABLES, Arc::default())?;
    trace.use_sync_points(db, file);
    Ok(())
}
