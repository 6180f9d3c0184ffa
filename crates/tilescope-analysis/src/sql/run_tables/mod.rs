//! Tables of the executed steps that are made while they are read, out of the trace index.
//!
//! Some stand for the tables of the same name that a report of a long run has no rows of. The others
//! are functions of a window of cycles, and answer on every report: sums that the index has at hand,
//! where going through all steps would take minutes.

mod activity_cycles;
mod marks;
mod packed_rows;
mod program_cycles;
mod step_merge;
mod steps;
mod steps_between;
mod steps_by_ipu;
mod tile_samples;

use super::clock::QueryClock;
use rusqlite::types::ValueRef;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tilescope_report::trace::{LaneInfo, Trace};
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{Report, ReportError};
use tilescope_vtab::{
    ColumnBounds, ColumnRole, RowEstimate, VirtualColumn, VirtualRows, VirtualTable,
    VirtualTableError,
};

/// A table of the run.
pub(super) struct RunTable {
    pub(super) name: &'static str,
    /// What a row is.
    pub(super) about: &'static str,
    /// Of a table that stands in for rows, which reports have none of; else it is a function.
    pub(super) stands_in: Option<fn(&Report) -> bool>,
    columns: fn() -> &'static [VirtualColumn],
    /// Columns by which rows come in order.
    order: &'static [usize],
    estimate: fn(&RunReader, Asked) -> RowEstimate,
    rows: fn(&Arc<RunReader>, &ColumnBounds, WantedColumns) -> FoundRows,
}

/// Tells of a column whether its values are asked for.
type WantedColumns<'a> = &'a dyn Fn(usize) -> bool;
type FoundRows = Result<Box<dyn VirtualRows>, VirtualTableError>;

/// Columns that a query bounds, and those of them that it gives one value.
#[derive(Clone, Copy)]
struct Asked<'a> {
    bounded: &'a [usize],
    fixed: &'a [usize],
}

impl Asked<'_> {
    /// The share of rows that bounds on a column leave, about.
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

/// Every table of the run.
pub(super) const RUN_TABLES: &[RunTable] = &[
    steps::TABLE,
    steps_by_ipu::TABLE,
    marks::TABLE,
    tile_samples::TABLE,
    program_cycles::TABLE,
    activity_cycles::TABLE,
    steps_between::TABLE,
];

/// Whether a question names a function of the run, which reads the trace index.
pub(super) fn are_named_in(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    RUN_TABLES.iter().any(|table| table.is_function() && sql.contains(table.name))
}

impl RunTable {
    /// Whether it is a function of a window of cycles, which every report answers.
    pub(super) fn is_function(&self) -> bool {
        self.stands_in.is_none()
    }

    /// Whether it stands in for rows that a report does not have.
    pub(super) fn stands_in(&self, report: &Report) -> bool {
        self.stands_in.is_some_and(|is_in| is_in(report))
    }

    pub(super) fn columns(&self) -> &'static [VirtualColumn] {
        (self.columns)()
    }

    /// The table over a report.
    pub(super) fn of(&'static self, run: Arc<RunReader>) -> Arc<dyn VirtualTable> {
        Arc::new(BoundRunTable { table: self, run })
    }
}

/// A table of the run of one report.
struct BoundRunTable {
    table: &'static RunTable,
    run: Arc<RunReader>,
}

impl VirtualTable for BoundRunTable {
    fn columns(&self) -> &'static [VirtualColumn] {
        self.table.columns()
    }

    fn order(&self) -> &'static [usize] {
        self.table.order
    }

    fn estimate(&self, bounded: &[usize], fixed: &[usize]) -> RowEstimate {
        (self.table.estimate)(&self.run, Asked { bounded, fixed })
    }

    fn rows(&self, bounds: &ColumnBounds, wanted: WantedColumns) -> FoundRows {
        (self.table.rows)(&self.run, bounds, wanted)
    }
}

/// The run of a report, as tables read it.
pub(super) struct RunReader {
    pub(super) report: Arc<Report>,
    pub(super) clock: Arc<QueryClock>,
}

impl RunReader {
    /// The trace, if there is an execution.
    fn trace(&self) -> Result<Option<Trace>, ReportError> {
        self.report.trace()
    }

    /// (Step, IPU) pairs, and lanes, as far as that is known at once.
    fn size(&self) -> (f64, f64) {
        // An estimate must not read a file of another tool from end to end.
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

    /// Refuses to go on once time is up.
    fn check_time(&self, steps: usize) -> Result<(), VirtualTableError> {
        self.clock.count_steps(steps as u64);
        if self.clock.is_over() { Err("interrupted".into()) } else { Ok(()) }
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

/// A column that rows have to be looked at for.
const fn plain(
    name: &'static str,
    declaration: &'static str,
    unit: &'static str,
    about: &'static str,
) -> VirtualColumn {
    VirtualColumn { name, declaration, role: ColumnRole::Plain, unit, about }
}

/// The lane that a row is of, which comes first.
const LANE: [VirtualColumn; 2] = [
    bounded("ipu", "INTEGER", "number", "IPU of the replica"),
    bounded("sub_lane", "INTEGER", "number", "0 for compute tiles, higher for those beside them"),
];
const IPU: usize = 0;
const SUB_LANE: usize = 1;

/// The program of steps, which queries may bound or not.
const fn program(role: ColumnRole) -> VirtualColumn {
    let about = "programs.id; NULL for steps of none";
    VirtualColumn { name: "program", declaration: "INTEGER", role, unit: "id", about }
}
const NAME: VirtualColumn = plain("name", "TEXT", "", "debug name of the program");

/// What steps do.
const TYPE: VirtualColumn = plain("type", "TEXT", "", "steps.type");
const ACTIVITY: VirtualColumn = plain(
    "activity",
    "TEXT",
    "",
    "compute, internal_exchange, global_exchange, host, remote_buffer, sync or other",
);

/// The arguments of functions of a window, which come behind all columns.
const WINDOW: [VirtualColumn; 2] = [
    VirtualColumn {
        name: "first_cycle",
        declaration: "INTEGER",
        role: ColumnRole::Argument,
        unit: "cycles",
        about: "argument: where the window begins; all of the run without it",
    },
    VirtualColumn {
        name: "end_cycle",
        declaration: "INTEGER",
        role: ColumnRole::Argument,
        unit: "cycles",
        about: "argument: where the window ends; the end of the run without it",
    },
];

/// The window that the arguments from column `first` on give; none where they give none.
fn window(bounds: &ColumnBounds, first: usize) -> Option<CycleRange> {
    let cycle = |value: i64| Cycles(u64::try_from(value).unwrap_or(0));
    let (start, end) = (bounds.value(first), bounds.value(first + 1));
    (start.is_some() || end.is_some()).then(|| {
        let end = end.map_or(Cycles(i64::MAX.unsigned_abs()), cycle);
        CycleRange::new(start.map_or(Cycles::ZERO, cycle), end)
    })
}

/// Places of the lanes of a trace whose IPU and sub-lane are within bounds.
fn lanes_within(
    trace: &Trace,
    ipu: &RangeInclusive<i64>,
    sub_lane: &RangeInclusive<i64>,
) -> Vec<usize> {
    let is_within = |lane: &LaneInfo| {
        ipu.contains(&i64::from(lane.ipu.0)) && sub_lane.contains(&i64::from(lane.sub_lane))
    };
    let lanes = trace.lanes().iter().enumerate();
    lanes.filter(|(_, lane)| is_within(lane)).map(|(at, _)| at).collect()
}

/// A whole number as a cell.
fn whole(number: impl Into<u64>) -> ValueRef<'static> {
    ValueRef::Integer(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

/// A whole number as a cell; NULL where there is none.
fn whole_or_null(number: Option<impl Into<u64>>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, whole)
}

fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

/// No rows at all.
struct NoRows;

impl VirtualRows for NoRows {
    fn advance(&mut self) -> Result<bool, VirtualTableError> {
        Ok(false)
    }

    fn value(&self, _: usize) -> ValueRef<'_> {
        ValueRef::Null
    }
}
