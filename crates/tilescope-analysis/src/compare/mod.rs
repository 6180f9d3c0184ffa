//! Two reports side by side: the figures of every view as source, target and difference.
//!
//! A difference is target minus source; its percentage is of the source. Figures that one report
//! lacks count as zero there. Figures of a run are given per unit of work, see [`WorkUnit`]: twice
//! the work takes twice the time, and is not slower. Entities correspond by name and order, never
//! by the ids of a file: see [`ProgramPairs`] for programs and [`StepAlignment`] for executed
//! steps.
//!
//! Tests check these laws: a report does not differ from itself; exchanging source and target
//! negates every difference; if rows have a total, their differences add up to the total's.

mod comparison_table;
mod critical_path;
mod cycle_owners;
mod exchange_code;
mod execution_trace;
mod insights;
mod limits;
mod liveness;
mod markdown;
mod matched_entities;
mod memory;
mod normalization;
mod operations;
mod operations_graph;
mod overview;
mod program_pairs;
mod program_tree;
mod sequence_alignment;
mod step_alignment;
mod summary;
mod tile_mapping;
mod topics;

pub use comparison_table::{ComparisonRow, ComparisonTable};
pub(crate) use cycle_owners::{CycleOwner, RunCycles, run_cycles};
pub use execution_trace::{StepDrift, drift};
pub use markdown::markdown;
pub(crate) use matched_entities::MatchedEntities;
pub use normalization::{WorkDivisors, WorkNormalization, WorkUnit};
pub use overview::{ComparisonOverview, outcome, overview};
pub(crate) use program_pairs::ProgramPairs;
pub use step_alignment::{
    ComparedStepLocation, LanePair, MAX_STEPS, MatchedStepRun, StepAlignment, StepChange,
    StepChangeKind, StepChangeSum,
};

use crate::calibration::is_measured;
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError};

/// The alignment of two reports.
#[derive(Clone, Debug, Default)]
pub struct ReportAlignment {
    pub programs: ProgramPairs,
    /// Executed steps; `None` if one report was not executed.
    pub steps: Option<StepAlignment>,
    pub links: MatchedEntities,
}

impl ReportAlignment {
    /// Aligns two reports: O(n log n) in programs, variables and steps.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn read(source: &Report, target: &Report) -> Result<Self, ReportError> {
        let links = MatchedEntities::read(source, target)?;
        Ok(Self { links, ..Self::aligned(source, target, MAX_STEPS)? })
    }

    /// Aligns two reports for their figures alone. Executions of programs, operations and variables
    /// are not matched one by one, so the cost does not grow with the length of the runs.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn without_links(source: &Report, target: &Report) -> Result<Self, ReportError> {
        Self::aligned(source, target, 0)
    }

    fn aligned(source: &Report, target: &Report, steps: u64) -> Result<Self, ReportError> {
        // The kinds of programs of foreign files are known only after their trace is prepared.
        source.trace()?;
        target.trace()?;
        let programs = ProgramPairs::read(source, target)?;
        let steps = StepAlignment::read(source, target, &programs, steps)?;
        Ok(Self { programs, steps, links: MatchedEntities::default() })
    }
}

/// Two reports and their alignment.
#[derive(Clone, Copy)]
pub struct ComparedReports<'a> {
    /// The report that is compared: the baseline of differences.
    pub source: &'a Report,
    /// The report it is compared with.
    pub target: &'a Report,
    pub alignment: &'a ReportAlignment,
    /// The number format of texts.
    pub numbers: NumberFormat,
    /// The unit of work of the run's figures.
    pub unit: WorkUnit,
}

/// The titles of the sides: measured and simulated if another tool recorded the run of one report
/// and the other was simulated, source and target otherwise.
pub fn side_titles(source: &Report, target: &Report) -> [&'static str; 2] {
    match [source, target].map(is_measured) {
        [true, false] => ["Measured", "Simulated"],
        [false, true] => ["Simulated", "Measured"],
        _ => ["Source", "Target"],
    }
}

impl ComparedReports<'_> {
    /// The normalization that makes figures of both runs comparable.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn normalization(&self) -> Result<WorkNormalization, ReportError> {
        WorkNormalization::read(self.source, self.target, self.unit)
    }

    /// Evaluates the same function on both reports in parallel.
    fn both<T: Send>(
        &self,
        question: impl Fn(&Report) -> Result<T, ReportError> + Sync,
    ) -> Result<(T, T), ReportError> {
        let (source, target) = rayon::join(|| question(self.source), || question(self.target));
        Ok((source?, target?))
    }
}

/// The comparison of one view.
pub struct ViewComparison {
    /// Name of the view, in the spelling of the command line.
    pub view: &'static str,
    pub tables: fn(&ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError>,
}

/// Every comparison, in the order of the views.
pub static COMPARISONS: &[ViewComparison] = &[
    summary::COMPARISON,
    insights::COMPARISON,
    memory::COMPARISON,
    liveness::COMPARISON,
    program_tree::COMPARISON,
    operations::COMPARISON,
    limits::COMPARISON,
    operations_graph::COMPARISON,
    execution_trace::COMPARISON,
    exchange_code::COMPARISON,
    tile_mapping::COMPARISON,
    topics::COMPARISON,
];

/// Aligns two reports and compares them in one view, with figures of the run per `unit`. Returns
/// the view's tables of differences, for files and the command line.
///
/// # Errors
/// Parts of the files that cannot be read.
pub fn differences(
    source: &Report,
    target: &Report,
    one: &ViewComparison,
    unit: WorkUnit,
) -> Result<Vec<ComparisonTable>, ReportError> {
    let alignment = &ReportAlignment::without_links(source, target)?;
    let numbers = NumberFormat::default();
    (one.tables)(&ComparedReports { source, target, alignment, numbers, unit })
}

/// Error for the name of a table that a comparison does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown table {name:?}; known: {}", known.join(", "))]
pub struct UnknownDifferencesError {
    name: String,
    known: Vec<String>,
}

/// The table with this name in the spelling of the command line, or the first table without a name.
///
/// # Errors
/// No table with this name; the error lists the known ones.
pub fn table_named<'a>(
    tables: &'a [ComparisonTable],
    name: Option<&str>,
) -> Result<&'a ComparisonTable, UnknownDifferencesError> {
    let found = match name {
        Some(name) => tables.iter().find(|table| table.name() == name),
        None => tables.first(),
    };
    found.ok_or_else(|| {
        let name = name.unwrap_or_default().to_owned();
        UnknownDifferencesError { name, known: tables.iter().map(ComparisonTable::name).collect() }
    })
}

/// The comparison of a view.
pub fn comparison(view: &str) -> Option<&'static ViewComparison> {
    COMPARISONS.iter().find(|comparison| comparison.view == view)
}
