//! Writes a report: first the compilation, then steps and marks as they arrive.
//!
//! One transaction without a journal: on any failure, the unfinished file is discarded. Memory is
//! bounded by the compiled program, not by the number of steps.

mod compilation;
mod execution;
mod execution_rows;
mod host;
mod mark_lanes;
mod recorder;
mod routes;
mod tile_patterns;
mod tile_samples;

pub use recorder::Recorder;

use super::atomic_file::AtomicFile;
use super::database::ReportDatabase;
use super::error::ReportError;
use super::model::{
    CompilationReport, ExecutionStep, ImportedModel, SampleLabel, SliceOrigin, TileSample,
    TraceMark,
};
use super::open_file::REPORT_FILE;
use super::row_writer::RowWriter;
use super::schema;
use super::table_checksums::{TableChecksums, TablePart};
use super::trace::{CriticalPath, Trace, TraceIndexWriter};
use crate::units::{IpuId, ReplicaClassId};
use execution::{ExecutionWriter, sync_programs};
use rusqlite::{Connection, OpenFlags, ToSql, params};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tile_samples::TileSampleWriter;

const PAGE_BYTES: u64 = 4096;

/// Facts about a report itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportMeta {
    /// Program and version that made the report: `tilescope 0.2.0`.
    pub generator: String,
    /// The spec that it was made from, verbatim.
    pub spec: Option<String>,
    /// The file that its model was imported from.
    pub imported: Option<ImportedModel>,
}

/// The storage of the steps and marks of an execution. Readers see no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepLayout {
    /// As in Poplar's files, so that scripts can query them: some 65 B and 2 us per step and IPU.
    #[default]
    Rows,
    /// As compressed columns: some 0.5 B per step and IPU and ten times as fast, but not accessible
    /// to scripts.
    Columns,
}

impl StepLayout {
    /// The number of steps x IPUs up to which rows are worth their size.
    pub(crate) const MOST_ROWS: u64 = 1 << 16;

    /// The layout for a number of bars, steps x IPUs.
    pub fn for_bars(bars: u64) -> Self {
        if bars <= Self::MOST_ROWS { Self::Rows } else { Self::Columns }
    }

    /// The approximate size of a bar in bytes.
    pub fn bytes_per_bar(self) -> u64 {
        match self {
            Self::Rows => 65,
            Self::Columns => 1,
        }
    }

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Columns => "columns",
        }
    }
}

/// Tables that are only created if they have rows.
fn tables_of_few() -> impl Iterator<Item = &'static str> {
    let few = schema::REPLICA_TABLES.into_iter().chain(schema::RING_TABLES);
    few.chain(schema::SAMPLE_TABLES)
        .chain(schema::MARK_ROW_TABLES)
        .chain([schema::TILE_SAMPLES, schema::PATH_INDEX])
}

/// Opens the trace in a file that is being written, between transactions.
fn open_written_trace(path: &Path) -> Result<Trace, ReportError> {
    let bytes = fs::metadata(path).map_err(|e| ReportError::reading(e, path))?.len();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)
        .map_err(|e| ReportError::sqlite_reading(&e, "header", path))?;
    let tables: Vec<&str> =
        schema::TRACE_TABLES.iter().chain(&schema::REPLICA_TABLES).copied().collect();
    Trace::open(ReportDatabase::new(connection, path, bytes, &tables, Arc::default())?, None)
}

/// Writes one `profile.pop`.
///
/// The file is written under a temporary name beside its place and renamed in
/// [`ReportWriter::finish`]; until then an older report stays unchanged. Dropping the writer
/// earlier, or after an error, leaves nothing behind. The same calls give the same bytes.
pub struct ReportWriter {
    // Closed before the file is removed or put in place: fields drop in this order.
    connection: Connection,
    part: AtomicFile,
    layout: StepLayout,
    checksums: RefCell<TableChecksums>,
    execution: Option<(ExecutionWriter, TraceIndexWriter)>,
    samples: Option<TileSampleWriter>,
    failed: bool,
}

impl ReportWriter {
    /// Starts a report in `directory`, which is created if it does not exist.
    pub fn create(directory: &Path, meta: &ReportMeta) -> Result<Self, ReportError> {
        if directory.is_file() {
            let problem = "the output must be a directory, and this is a file".to_owned();
            return Err(ReportError::Write { problem, path: directory.to_owned() });
        }
        fs::create_dir_all(directory).map_err(|e| ReportError::writing(&e, directory))?;
        let part = AtomicFile::create_exclusive(&directory.join(REPORT_FILE))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(part.temporary_path(), flags)
            .map_err(|e| ReportError::sqlite_writing(&e, part.temporary_path()))?;
        // Rows go into all tables in turn, so each table keeps its statement.
        connection.set_prepared_statement_cache_capacity(schema::TABLES.len());
        let writer = Self {
            connection,
            part,
            layout: StepLayout::default(),
            checksums: RefCell::default(),
            execution: None,
            samples: None,
            failed: false,
        };
        // No journal and no syncs: the file has a temporary name until it is complete, so a crash
        // leaves nothing that a reader could open.
        writer.rows().execute(&format!(
            "PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             PRAGMA cache_size = -32768; PRAGMA secure_delete = FAST;
             PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN",
            schema::APPLICATION_ID,
            schema::user_version(schema::FORMAT),
        ))?;
        // An empty table takes a page, so tables that few reports need are created on demand.
        let is_for_few = |name| tables_of_few().any(|few| few == name);
        for table in schema::TABLES.iter().filter(|table| !is_for_few(table.name)) {
            writer.rows().execute(&table.create())?;
        }
        for view in schema::VIEWS {
            writer.rows().execute(&view.create())?;
        }
        let format = format!("{}.{}", schema::FORMAT.0, schema::FORMAT.1);
        let write_fact = |key: &str, value: &str| writer.rows().insert("meta", params![key, value]);
        write_fact("format", &format)?;
        write_fact("generator", &meta.generator)?;
        meta.spec.as_ref().map_or(Ok(()), |spec| write_fact("spec", spec))?;
        if let Some(imported) = &meta.imported {
            let json = serde_json::to_string(imported).map_err(|error| {
                ReportError::invalid_input(format!("the imported model is not valid JSON: {error}"))
            })?;
            write_fact("onnx", &json)?;
        }
        Ok(writer)
    }

    /// Records the report that this one is a slice of.
    pub(crate) fn slice_of(&mut self, origin: &SliceOrigin) -> Result<(), ReportError> {
        let json = serde_json::to_string(origin).map_err(|error| {
            ReportError::invalid_input(format!(
                "the origin of the slice is not valid JSON: {error}"
            ))
        })?;
        self.rows().insert("meta", params!["slice", json])
    }

    /// Refuses to let the file grow beyond `bytes`, as a full disk would.
    pub fn limit_size(&mut self, bytes: u64) -> Result<(), ReportError> {
        let pages = (bytes / PAGE_BYTES).clamp(1, u64::from(u32::MAX - 2));
        self.rows().execute(&format!("PRAGMA max_page_count = {pages}"))
    }

    /// Writes the compiled program. Must be called once, before any step.
    pub fn compilation(&mut self, compilation: &CompilationReport) -> Result<(), ReportError> {
        // A second compilation would mix the ids of two programs.
        if self.execution.is_some() {
            return self.refuse_after_failure(|_| {
                Err(ReportError::invalid_input("a report has one compilation"))
            });
        }
        let layout = self.layout;
        let execution = ExecutionWriter::new(compilation, layout);
        self.refuse_after_failure(|writer| {
            if !compilation.replica_rings.is_empty() {
                writer.create_tables(&schema::RING_TABLES)?;
            }
            if !compilation.replica_classes.classes.is_empty() {
                writer.create_tables(&schema::REPLICA_TABLES)?;
            }
            if layout == StepLayout::Columns {
                writer.create_tables(&schema::MARK_ROW_TABLES)?;
            }
            compilation::write(&writer.rows(), compilation)
        })?;
        self.execution = Some((execution, TraceIndexWriter::new(sync_programs(compilation))));
        Ok(())
    }

    /// Sets the storage of steps and marks. Must be called before the compilation.
    pub fn step_layout(&mut self, layout: StepLayout) -> Result<(), ReportError> {
        self.refuse_after_failure(|writer| {
            if writer.execution.is_some() {
                let problem = "the layout is chosen before the compilation";
                return Err(ReportError::invalid_input(problem));
            }
            writer.layout = layout;
            Ok(())
        })
    }

    /// Writes the next executed step; its id is the number of steps before it. Steps of one lane
    /// (class of replicas, IPU and sub-lane) must not overlap. A report without steps has no
    /// execution.
    pub fn step(&mut self, step: &ExecutionStep) -> Result<(), ReportError> {
        self.executing(|execution| execution.step(step))
    }

    /// Records that the next step of the tiles `waiting` of an IPU waits for the work of its tiles
    /// `awaited` so far; both by sub-lane. If this is never called, waits are inferred from the
    /// times of steps.
    pub fn wait_for_tiles(
        &mut self,
        ipu: IpuId,
        waiting: u8,
        awaited: u8,
    ) -> Result<(), ReportError> {
        self.executing(|execution| {
            execution.hand_over(ipu, awaited, waiting);
            Ok(())
        })
    }

    /// Writes the labels of samples of tiles. Must be called after the compilation and before the
    /// first sample.
    pub fn sample_labels(&mut self, labels: &[SampleLabel]) -> Result<(), ReportError> {
        self.refuse_after_failure(|writer| {
            let Some((execution, _)) =
                writer.execution.as_ref().filter(|_| writer.samples.is_none())
            else {
                let problem = "labels of samples come once, after the compilation";
                return Err(ReportError::invalid_input(problem));
            };
            let tiles = execution.tiles();
            writer.create_tables(&schema::SAMPLE_TABLES)?;
            writer.rows().execute(&schema::view_of_samples())?;
            writer.samples = Some(TileSampleWriter::new(labels, tiles, &writer.rows())?);
            Ok(())
        })
    }

    /// Writes the samples of tiles for the last step, by tile and time.
    pub fn tile_samples(
        &mut self,
        samples: impl IntoIterator<Item = TileSample>,
    ) -> Result<(), ReportError> {
        self.refuse_after_failure(|writer| {
            let last = writer.execution.as_ref().and_then(|(execution, _)| execution.last_step());
            let (Some(step), Some(mut packed)) = (last, writer.samples.take()) else {
                let problem = "samples come after their step and the labels of samples";
                return Err(ReportError::invalid_input(problem));
            };
            for sample in samples {
                packed.sample(step, &sample, &writer.rows())?;
            }
            writer.samples = Some(packed);
            Ok(())
        })
    }

    /// Writes a mark. Marks may come in any order.
    pub fn mark(&mut self, mark: &TraceMark) -> Result<(), ReportError> {
        self.mark_of_class(ReplicaClassId(0), mark)
    }

    /// Writes a mark of the replicas of a class.
    pub fn mark_of_class(
        &mut self,
        class: ReplicaClassId,
        mark: &TraceMark,
    ) -> Result<(), ReportError> {
        self.executing(|execution| execution.mark(class, mark))
    }

    /// Writes the compiled program while `run` passes executed steps and marks to a recorder on
    /// another thread, and a third thread builds their trace index; then writes those. Replaces
    /// [`ReportWriter::compilation`].
    ///
    /// # Errors
    /// An error of writing, or otherwise that of `run`.
    pub fn record<R>(
        &mut self,
        compilation: &CompilationReport,
        layout: StepLayout,
        run: R,
    ) -> Result<(), ReportError>
    where
        R: FnOnce(&mut Recorder) -> Result<(), ReportError> + Send,
    {
        self.step_layout(layout)?;
        let (mut recorder, index, pieces) = Recorder::new(compilation, layout);
        std::thread::scope(|scope| {
            let running = scope.spawn(move || run(&mut recorder).and_then(|()| recorder.end()));
            let indexing = scope.spawn(|| index.run());
            // Pieces queue up while the compiled program is written: the connection stays on one
            // thread, and rows are written in the same order as without a recorder.
            let written = self.compilation(compilation).and_then(|()| {
                pieces.iter().flatten().try_for_each(|piece| piece.insert(&self.rows()))
            });
            // A recorder that waits for space in the queue sees that the receiver is gone.
            drop(pieces);
            let lanes = indexing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let ran = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let ended = written.and(ran).inspect_err(|_| self.failed = true)?;
            self.execution = Some((ended, lanes));
            Ok(())
        })
    }

    /// Completes the report and moves it to its place. Returns its path.
    pub fn finish(mut self) -> Result<PathBuf, ReportError> {
        if self.failed {
            return Err(ReportError::invalid_input("an earlier part could not be written"));
        }
        let Some((execution, lanes)) = self.execution.take() else {
            return Err(ReportError::invalid_input("a report has a compilation"));
        };
        self.rows().insert("meta", params!["layout", self.layout.name()])?;
        let is_executed = execution.last_step().is_some();
        execution.finish(lanes, &self.rows())?;
        if let Some(mut samples) = self.samples.take() {
            samples.complete(&self.rows())?;
        }
        if is_executed {
            self.write_path()?;
        }
        // After all summed rows, before views replace empty tables.
        self.write_checksums()?;
        match self.layout {
            StepLayout::Columns => self.rows().execute(&schema::views_without_rows())?,
            // Indexed once at the end: updating an index with every mark moves its pages again and
            // again.
            StepLayout::Rows => self.rows().execute(schema::MARKS_INDEX)?,
        }
        self.rows().execute("COMMIT")?;
        let Self { connection, part, .. } = self;
        connection
            .close()
            .map_err(|(_, e)| ReportError::sqlite_writing(&e, part.temporary_path()))?;
        Ok(part.commit()?)
    }

    /// Writes the critical path, and the sums of programs over it. The search starts at the end of
    /// the run and reads its steps, so everything else must be in the file by now.
    fn write_path(&self) -> Result<(), ReportError> {
        self.rows().execute("COMMIT")?;
        let path = open_written_trace(self.part.temporary_path())?.critical_path()?;
        let programs = path.as_ref().map(CriticalPath::programs).transpose()?;
        self.rows().execute("BEGIN")?;
        let Some(path) = path else { return Ok(()) };
        let Some(programs) = programs else { return Ok(()) };
        path.write_programs(&programs, &self.rows())?;
        // The walk over one block takes no time, so a short run needs no further table.
        if path.block_count() > 1 {
            self.create_tables(&[schema::PATH_INDEX])?;
            path.write_index(&self.rows())?;
        }
        Ok(())
    }

    /// Creates tables that not every report has.
    fn create_tables(&self, names: &[&str]) -> Result<(), ReportError> {
        let tables = names.iter().filter_map(|name| schema::find(name));
        tables.map(schema::SchemaTable::create).try_for_each(|sql| self.rows().execute(&sql))
    }

    fn rows(&self) -> RowWriter<'_> {
        RowWriter {
            connection: &self.connection,
            path: self.part.temporary_path(),
            checksums: Some(&self.checksums),
        }
    }

    /// Writes the checksums of all rows so far, except those of the checksums themselves.
    fn write_checksums(&self) -> Result<(), ReportError> {
        let rows = RowWriter::plain(&self.connection, self.part.temporary_path());
        for (table, part, sum) in self.checksums.borrow().parts() {
            let part: &dyn ToSql = match part {
                TablePart::Ids(number) => number,
                TablePart::Text(text) => text,
            };
            let count = sum.rows as i64;
            rows.insert("checksums", params![table, part, count, sum.checksum as i64])?;
        }
        Ok(())
    }

    /// Calls `take` on the execution, and writes the resulting pieces.
    fn executing(
        &mut self,
        take: impl FnOnce(&mut ExecutionWriter) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        self.refuse_after_failure(|writer| {
            let Some((execution, lanes)) = &mut writer.execution else {
                return Err(ReportError::invalid_input(
                    "the compilation comes before its execution",
                ));
            };
            take(execution)?;
            let mut pieces = Vec::new();
            execution.pieces().for_each(|piece| piece.index(lanes, &mut pieces));
            pieces.into_iter().try_for_each(|piece| piece.insert(&writer.rows()))
        })
    }

    /// Refuses any call after a failure: rows would be missing.
    fn refuse_after_failure(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        if self.failed {
            return Err(ReportError::invalid_input("an earlier part could not be written"));
        }
        let done = write(self);
        self.failed = done.is_err();
        done
    }
}
