//! Tables of a report whose rows are created as they are read. SQL accesses them as virtual tables;
//! Arrow tables and Parquet files use the same rows and columns.
//!
//! Some tables have the name and the columns of a table of the file, followed by columns for Arrow.
//! SQL then uses the table of the file, or the one here if a long run has no rows there. All other
//! tables are available in SQL for every report. Some of these are functions of a window of cycles:
//! the trace index has their sums, which would otherwise take minutes to compute from all steps.

mod activity_cycles;
mod clock;
mod kept_rows;
mod marks;
mod memory;
mod model;
mod packed_rows;
mod program_cycles;
mod row_selection;
mod step_lookup;
mod step_merge;
mod steps;
mod steps_between;
mod steps_by_ipu;
mod tile_samples;

pub(crate) use clock::QueryClock;
pub(crate) use memory::{LIVENESS_STEPS, MEMORY_BY_TILE};
pub(crate) use model::EXCHANGE_TOTALS;
pub use row_selection::{RowFilter, RowSelection};
pub use rusqlite::types::ValueRef;

use crate::data_table::{ColumnQuantity, DataTable, TableCell, TableColumn};
use kept_rows::{PagedRows, kept};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use step_lookup::StepLookup;
use tilescope_report::trace::Trace;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{Report, ReportError, schema};
use tilescope_vtab::{ColumnBounds, ColumnRole, RowEstimate, VirtualColumn};

/// A table with a name, a description and a source of rows.
#[derive(Debug)]
pub struct RecordTable {
    pub name: &'static str,
    /// The meaning of a row, as text.
    pub about: &'static str,
    /// For a name that files may use, the condition for SQL to use this table because the file's
    /// has no rows; `None` for names that no file uses.
    stands_in: Option<fn(&Report) -> bool>,
    /// Filters of its rows outside of SQL; `None` for tables of SQL alone.
    pub filters: Option<&'static [RowFilter]>,
    source: RecordSource,
}

#[derive(Debug)]
enum RecordSource {
    Streamed(StreamedRows),
    /// Functions that return the table without rows, and with the selected rows.
    Whole(fn() -> DataTable, fn(&Report, &RowSelection) -> Result<DataTable, ReportError>),
    /// Functions that return the table without rows, and with those of a page.
    Paged(fn() -> DataTable, ReadPage),
}

/// Reads a page of the selected rows: the given number at most, after the row with the given id.
/// The id is the first cell of a row.
type ReadPage = fn(&Report, &RowSelection, Option<u64>, usize) -> Result<DataTable, ReportError>;

/// Rows that are created as they are read.
#[derive(Debug)]
struct StreamedRows {
    /// Columns of the file's table that queries may bound.
    bounded: &'static [usize],
    /// Its columns after those of the file's table.
    columns: &'static [VirtualColumn],
    /// Columns that the rows are sorted by.
    order: &'static [usize],
    /// True if the selected rows can be returned in groups of equal values of some columns.
    groups: fn(&[usize], WantedColumns) -> bool,
    estimate: fn(&RecordReader, BoundColumns) -> RowEstimate,
    rows: fn(&Arc<RecordReader>, &RowBounds, WantedColumns) -> FoundRows,
}

/// The cells of a table for programs: those of the file's table of this name, then additional ones,
/// each with its quantity, name and description.
macro_rules! record {
    ($file:expr, $rows:expr, |$row:pat_param| [$($of_file:expr),*]
     $($quantity:ident $name:ident => $cell:expr, $about:expr;)*
     $(+ $more:expr => $cells:expr;)?) => {
        $crate::table! { $rows, |$row|
            all $crate::records::file_columns($file) =>
                Vec::<$crate::data_table::TableCell>::from([$($of_file.into()),*]);
            $(all [$crate::data_table::TableColumn::named(
                stringify!($name), $crate::data_table::ColumnQuantity::$quantity, $about,
            )] => [$cell];)*
            $(all $more => $cells;)?
        }
    };
}
use record;

/// The requested rows: bounds of columns in SQL, a selection elsewhere.
pub(crate) struct RowBounds<'a> {
    pub(crate) columns: &'a ColumnBounds,
    pub(crate) selection: Option<&'a RowSelection>,
}

/// An iterator over the rows of a table; it starts before the first row.
pub trait RecordRows: Send {
    /// Advances to the next row; returns `false` after the last.
    ///
    /// # Errors
    /// Rows that cannot be read.
    fn advance(&mut self) -> Result<bool, RecordError>;

    /// A cell of the row; never called for arguments.
    fn value(&self, column: usize) -> ValueRef<'_>;

    /// A number for the text of a column, if it may be long and many rows share it. Equal numbers of
    /// a column mean equal texts, so that a text need not be read to know it again.
    fn text_id(&self, _column: usize) -> Option<u64> {
        None
    }

    /// The `rowid` of the row, if it differs from its position.
    fn rowid(&self) -> Option<i64> {
        None
    }

    /// True if a row stands for several equal ones, which have no `rowid` of their own.
    fn stands_for_several(&self) -> bool {
        false
    }

    /// The number of rows, if it is known before the first one is read.
    fn count(&self) -> Option<u64> {
        None
    }
}

/// The reason that rows cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The time limit was reached, or the query was cancelled.
    #[error("interrupted")]
    Interrupted,
}

/// Returns true for columns whose values are needed.
pub(crate) type WantedColumns<'a> = &'a dyn Fn(usize) -> bool;
type FoundRows = Result<Box<dyn RecordRows>, RecordError>;

/// Columns that a query bounds, and those among them with a single value.
#[derive(Clone, Copy)]
pub(crate) struct BoundColumns<'a> {
    pub(crate) bounded: &'a [usize],
    pub(crate) fixed: &'a [usize],
}

impl BoundColumns<'_> {
    /// The approximate share of rows that remains after bounds on a column.
    fn share(&self, column: usize, if_fixed: f64) -> f64 {
        if self.fixed.contains(&column) {
            if_fixed
        } else if self.bounded.contains(&column) {
            0.1
        } else {
            1.0
        }
    }
}

/// Every table of records.
pub static RECORDS: &[RecordTable] = &[
    steps_between::TABLE,
    marks::TABLE,
    memory::MEMORY_BY_TILE,
    memory::VARIABLES,
    memory::LIVENESS_STEPS,
    model::PROGRAMS,
    model::COMPUTE_SET_TOTALS,
    model::EXCHANGE_TOTALS,
    model::OPERATIONS,
    model::OPERATION_INPUTS,
    program_cycles::TABLE,
    activity_cycles::TABLE,
    steps::TABLE,
    steps_by_ipu::TABLE,
    tile_samples::TABLE,
];

impl RecordTable {
    /// Creates a table that is read as a whole, with a name that no file uses.
    const fn whole(
        name: &'static str,
        about: &'static str,
        columns: fn() -> DataTable,
        read: fn(&Report, &RowSelection) -> Result<DataTable, ReportError>,
    ) -> Self {
        let source = RecordSource::Whole(columns, read);
        Self { name, about, stands_in: None, filters: Some(&[]), source }
    }

    /// Creates a table with a name that no file uses, which is read page by page.
    const fn paged(
        name: &'static str,
        about: &'static str,
        columns: fn() -> DataTable,
        read: ReadPage,
    ) -> Self {
        let source = RecordSource::Paged(columns, read);
        Self { name, about, stands_in: None, filters: Some(&[]), source }
    }

    /// The same with a name that files use; SQL uses this table instead if `stands_in` returns
    /// true.
    const fn in_place_of_file(self, stands_in: fn(&Report) -> bool) -> Self {
        Self { stands_in: Some(stands_in), ..self }
    }

    /// The same with filters of its rows.
    const fn by(self, filters: &'static [RowFilter]) -> Self {
        Self { filters: Some(filters), ..self }
    }

    /// True if no file has a table of its name, so that SQL uses it for every report.
    pub(crate) fn is_own(&self) -> bool {
        self.stands_in.is_none()
    }

    /// True if SQL uses it instead of the file's table, which has no rows.
    pub(crate) fn stands_in(&self, report: &Report) -> bool {
        self.stands_in.is_some_and(|is_in| is_in(report))
    }

    /// True for a function of a window of cycles, which reads the trace index.
    pub(crate) fn is_function(&self) -> bool {
        self.columns().iter().any(|column| column.role == ColumnRole::Argument)
    }

    /// Its columns: those of the file's table of its name, then its own.
    pub(crate) fn columns(&self) -> &'static [VirtualColumn] {
        static COLUMNS: LazyLock<Vec<Vec<VirtualColumn>>> =
            LazyLock::new(|| RECORDS.iter().map(RecordTable::all_columns).collect());
        let at = RECORDS.iter().position(|table| table.name == self.name);
        at.and_then(|at| COLUMNS.get(at)).map_or(&[], Vec::as_slice)
    }

    fn all_columns(&self) -> Vec<VirtualColumn> {
        let streamed = match &self.source {
            RecordSource::Streamed(streamed) => streamed,
            RecordSource::Whole(empty, _) | RecordSource::Paged(empty, _) => {
                return empty().columns.iter().map(virtual_column).collect();
            }
        };
        let mut columns = Vec::new();
        for (at, column) in schema::columns_of(self.name).iter().enumerate() {
            let declaration = column.declaration.split(' ').next().unwrap_or_default();
            columns.push(if streamed.bounded.contains(&at) {
                bounded(column.name, declaration, column.unit, column.about)
            } else {
                plain(column.name, declaration, column.unit, column.about)
            });
        }
        columns.extend(streamed.columns);
        columns
    }

    /// Columns that the rows are sorted by.
    pub(crate) fn order(&self) -> &'static [usize] {
        match &self.source {
            RecordSource::Streamed(streamed) => streamed.order,
            RecordSource::Whole(..) | RecordSource::Paged(..) => &[],
        }
    }

    /// True if rows with equal values of some columns can follow each other.
    pub(crate) fn groups(&self, columns: &[usize], wanted: WantedColumns) -> bool {
        match &self.source {
            RecordSource::Streamed(streamed) => (streamed.groups)(columns, wanted),
            RecordSource::Whole(..) | RecordSource::Paged(..) => false,
        }
    }

    pub(crate) fn estimate(&self, reader: &RecordReader, bound: BoundColumns) -> RowEstimate {
        match &self.source {
            RecordSource::Streamed(streamed) => (streamed.estimate)(reader, bound),
            RecordSource::Whole(..) | RecordSource::Paged(..) => {
                RowEstimate { rows: 10_000.0, unique: false }
            }
        }
    }

    pub(crate) fn rows(
        &self,
        reader: &Arc<RecordReader>,
        bounds: &RowBounds,
        wanted: WantedColumns,
    ) -> FoundRows {
        match (&self.source, bounds.selection) {
            (RecordSource::Streamed(streamed), _) => (streamed.rows)(reader, bounds, wanted),
            (RecordSource::Whole(_, read), selection) => {
                let all = RowSelection::default();
                let table = read(&reader.report, selection.unwrap_or(&all))?;
                kept(table.rows, |row, column| cell_value(row, column))
            }
            (RecordSource::Paged(_, read), selection) => {
                Ok(Box::new(PagedRows::new(reader, selection, *read)))
            }
        }
    }

    /// The selected rows of a table that is read as a whole; `None` for other tables.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read_whole(
        &self,
        report: &Report,
        selection: &RowSelection,
    ) -> Result<Option<DataTable>, ReportError> {
        match &self.source {
            RecordSource::Streamed(_) => Ok(None),
            RecordSource::Whole(_, read) => read(report, selection).map(Some),
            RecordSource::Paged(_, read) => read(report, selection, None, usize::MAX).map(Some),
        }
    }

    /// All rows of a table that is read as a whole; empty for other tables.
    pub(crate) fn all(&self, report: &Report) -> Result<DataTable, ReportError> {
        Ok(self.read_whole(report, &RowSelection::default())?.unwrap_or_default())
    }

    /// The columns that are read outside of SQL, with their indices; the columns after them are
    /// arguments.
    pub fn row_columns(&self) -> impl Iterator<Item = (usize, &'static VirtualColumn)> {
        // Rows of a file's marks have their ids before this column.
        let first = if self.name == marks::TABLE.name { marks::KIND } else { 0 };
        let columns = self.columns().iter().enumerate().skip(first);
        columns.take_while(|(_, column)| column.role != ColumnRole::Argument)
    }

    /// True if its rows may exceed the memory.
    pub fn is_long(&self) -> bool {
        self.name == steps_between::TABLE.name
    }

    /// All possible texts in columns of a table that is too long to be read for them.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn known_texts(
        &self,
        report: &Report,
    ) -> Result<Vec<(&'static str, Vec<String>)>, ReportError> {
        if self.is_long() { steps_between::texts(report) } else { Ok(Vec::new()) }
    }

    /// Reads the selected rows.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(&self, report: &Arc<Report>, selection: &RowSelection) -> FoundRows {
        let clock = Arc::new(QueryClock::new(Duration::MAX, Arc::default()));
        let reader = Arc::new(RecordReader::new(report.clone(), clock));
        let bounds = RowBounds { columns: &ColumnBounds::default(), selection: Some(selection) };
        self.rows(&reader, &bounds, &|_| true)
    }
}

/// The rule of tables whose only groups are those of their order.
fn no_groups(_: &[usize], _: WantedColumns) -> bool {
    false
}

/// The condition of tables that never replace the file's.
fn never(_: &Report) -> bool {
    false
}

/// The columns of the file's table of this name; empty if files have none.
fn file_columns(name: &str) -> Vec<TableColumn> {
    let columns = schema::columns_of(name).iter();
    columns.map(|of| TableColumn::named(of.name, ColumnQuantity::of_file(of), of.about)).collect()
}

fn virtual_column(of: &TableColumn) -> VirtualColumn {
    plain(of.name.unwrap_or_default(), of.quantity.declaration(), of.quantity.unit(), of.about)
}

/// The value of a cell in SQL and Arrow.
pub fn cell_value(row: &[TableCell], column: usize) -> ValueRef<'_> {
    match row.get(column) {
        Some(TableCell::Text(words)) => text(words),
        Some(cell) => match (cell.whole().map(i64::try_from), cell.number()) {
            (Some(Ok(whole)), _) => ValueRef::Integer(whole),
            (_, number) => number.map_or(ValueRef::Null, ValueRef::Real),
        },
        None => ValueRef::Null,
    }
}

/// A report as the input of tables.
pub(crate) struct RecordReader {
    pub(crate) report: Arc<Report>,
    pub(crate) clock: Arc<QueryClock>,
    lookup: StepLookup,
}

impl RecordReader {
    pub(crate) fn new(report: Arc<Report>, clock: Arc<QueryClock>) -> Self {
        Self { report, clock, lookup: StepLookup::default() }
    }

    /// The trace, if there is an execution.
    fn trace(&self) -> Result<Option<Trace>, ReportError> {
        self.report.trace()
    }

    /// Numbers of (step, IPU) pairs and of lanes, if known without reading.
    fn size(&self) -> (f64, f64) {
        // An estimate must not read another tool's whole file.
        match self.report.trace_state() {
            Ok(tilescope_report::TraceState::Ready) => {
                let trace = self.report.trace().ok().flatten();
                trace.map_or((0.0, 1.0), |trace| {
                    (trace.bars() as f64, trace.lanes().len().max(1) as f64)
                })
            }
            _ => (1e6, 4.0),
        }
    }

    /// Returns an error if the time limit is reached.
    fn check_time(&self, steps: usize) -> Result<(), RecordError> {
        self.clock.count_steps(steps as u64);
        if self.clock.is_over() { Err(RecordError::Interrupted) } else { Ok(()) }
    }
}

/// A column that queries may bound.
const fn bounded(
    name: &'static str,
    declaration: &'static str,
    unit: &'static str,
    about: &'static str,
) -> VirtualColumn {
    VirtualColumn { name, declaration, role: ColumnRole::Bounded, unit, about }
}

/// A column that queries cannot bound without reading rows.
const fn plain(
    name: &'static str,
    declaration: &'static str,
    unit: &'static str,
    about: &'static str,
) -> VirtualColumn {
    VirtualColumn { name, declaration, role: ColumnRole::Plain, unit, about }
}

/// The first columns of tables with lanes: the lane of a row.
const LANE: [VirtualColumn; 2] = [
    bounded("ipu", "INTEGER", "number", "IPU of the replica"),
    bounded("sub_lane", "INTEGER", "number", "0 for compute tiles, higher for those beside them"),
];
const IPU: usize = 0;
const SUB_LANE: usize = 1;

/// The program of steps, which queries may bound or not.
const fn program(role: ColumnRole) -> VirtualColumn {
    let about = "programs.id; NULL for steps without a program";
    VirtualColumn { name: "program", declaration: "INTEGER", role, unit: "id", about }
}
const NAME: VirtualColumn = plain("name", "TEXT", "", "debug name of the program");

/// The type and the activity of steps.
const TYPE: VirtualColumn = plain("type", "TEXT", "", "steps.type");
const ACTIVITY: VirtualColumn = plain(
    "activity",
    "TEXT",
    "",
    "compute, internal_exchange, global_exchange, host, remote_buffer, sync or other",
);

/// The arguments of functions of a window, after all columns.
const WINDOW: [VirtualColumn; 2] = [
    VirtualColumn {
        name: "first_cycle",
        declaration: "INTEGER",
        role: ColumnRole::Argument,
        unit: "cycles",
        about: "argument: start of the window; default: start of the run",
    },
    VirtualColumn {
        name: "end_cycle",
        declaration: "INTEGER",
        role: ColumnRole::Argument,
        unit: "cycles",
        about: "argument: end of the window; default: end of the run",
    },
];

/// The requested window, in SQL from the arguments in column `first` and the next; `None` for the
/// whole run.
fn window(bounds: &RowBounds, first: usize) -> Option<CycleRange> {
    if let Some(selection) = bounds.selection {
        return selection.window();
    }
    let start = bounds.columns.value(first);
    let end = bounds.columns.value(first + 1);
    if start.is_none() && end.is_none() {
        return None;
    }
    let start = u64::try_from(start.unwrap_or(0)).unwrap_or(0);
    let end = u64::try_from(end.unwrap_or(i64::MAX)).unwrap_or(0);
    Some(CycleRange::new(Cycles(start), Cycles(end)))
}

/// Indices of the requested lanes of a trace, by the columns of IPU and sub-lane.
fn lanes_within(trace: &Trace, bounds: &RowBounds, (ipu, sub_lane): (usize, usize)) -> Vec<usize> {
    let ipus = bounds.columns.of(ipu);
    let sub_lanes = bounds.columns.of(sub_lane);
    let mut lanes = Vec::new();
    for (at, lane) in trace.lanes().iter().enumerate() {
        let is_within = ipus.contains(&i64::from(lane.ipu.0))
            && sub_lanes.contains(&i64::from(lane.sub_lane))
            && bounds.selection.is_none_or(|selection| selection.has_ipu(lane.ipu));
        if is_within {
            lanes.push(at);
        }
    }
    lanes
}

/// Creates a cell of a whole number.
fn whole(number: impl Into<u64>) -> ValueRef<'static> {
    ValueRef::Integer(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

/// A whole number as a cell, or NULL.
fn whole_or_null(number: Option<impl Into<u64>>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, whole)
}

fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

/// A text as a cell, or NULL.
fn text_or_null(words: Option<&str>) -> ValueRef<'_> {
    words.map_or(ValueRef::Null, text)
}

/// An empty list of rows.
struct NoRows;

impl RecordRows for NoRows {
    fn advance(&mut self) -> Result<bool, RecordError> {
        Ok(false)
    }

    fn value(&self, _: usize) -> ValueRef<'_> {
        ValueRef::Null
    }

    fn count(&self) -> Option<u64> {
        Some(0)
    }
}
