//! Two reports side by side: the figures of every view as source, target and difference.
//!
//! A difference is target less source; its percentage is of the larger side. What one report lacks
//! counts as nothing there. Things belong together by what they are called and in which order they
//! come, never by the ids of a file: see [`ProgramPairs`] for programs and [`Steps`] for what ran.
//!
//! Laws, kept by tests: a report differs from itself in nothing; exchanging source and target turns
//! every difference around; where rows have a total, their differences add up to the total's.

mod align;
mod exchange_code;
mod insights;
mod links;
mod liveness;
mod memory;
mod operations;
mod operations_graph;
mod program_tree;
mod programs;
mod steps;
mod summary;
mod table;
mod tile_mapping;
mod trace;

pub(crate) use links::Links;
pub(crate) use programs::ProgramPairs;
pub use steps::{Change, LanePair, MAX_STEPS, Run, Spot, Steps, Sum, What};
pub use table::{Row, Table};
pub use trace::{Drift, drift};

use tilescope_report::{Report, ReportError};

/// What belongs together in two reports.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    /// Programs.
    pub programs: ProgramPairs,
    /// Executed steps; `None` if one report was not executed.
    pub steps: Option<Steps>,
    /// Operations and variables.
    pub links: Links,
}

impl Alignment {
    /// Aligns two reports: O(n log n) in programs, variables and steps.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn read(source: &Report, target: &Report) -> Result<Self, ReportError> {
        // Kinds of programs of foreign files are known once their trace is prepared.
        source.trace()?;
        target.trace()?;
        let programs = ProgramPairs::read(source, target)?;
        let steps = Steps::read(source, target, &programs)?;
        Ok(Self { links: Links::read(source, target)?, programs, steps })
    }
}

/// Two reports and what belongs together in them.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// The report that is compared.
    pub source: &'a Report,
    /// The report it is compared with.
    pub target: &'a Report,
    /// What belongs together.
    pub alignment: &'a Alignment,
}

impl Sides<'_> {
    /// Asks both reports the same.
    fn both<T>(
        &self,
        question: impl Fn(&Report) -> Result<T, ReportError>,
    ) -> Result<(T, T), ReportError> {
        Ok((question(self.source)?, question(self.target)?))
    }
}

/// How the figures of one view are compared.
pub struct Comparison {
    /// Name of the view, as the command line spells it.
    pub view: &'static str,
    /// Compares.
    pub tables: fn(&Sides<'_>) -> Result<Vec<Table>, ReportError>,
}

/// Every comparison, in the order of the views.
pub static COMPARISONS: &[Comparison] = &[
    summary::COMPARISON,
    insights::COMPARISON,
    memory::COMPARISON,
    liveness::COMPARISON,
    program_tree::COMPARISON,
    operations::COMPARISON,
    operations_graph::COMPARISON,
    trace::COMPARISON,
    exchange_code::COMPARISON,
    tile_mapping::COMPARISON,
];

/// Aligns two reports and compares what a view shows of them: its tables of differences.
///
/// # Errors
/// Parts of the files that cannot be read.
pub fn differences(
    source: &Report,
    target: &Report,
    one: &Comparison,
) -> Result<Vec<Table>, ReportError> {
    let alignment = Alignment::read(source, target)?;
    (one.tables)(&Sides { source, target, alignment: &alignment })
}

/// The table of this name as the command line spells it, or the first.
///
/// # Errors
/// In words for people, if there is none.
pub fn table_named<'a>(tables: &'a [Table], name: Option<&str>) -> Result<&'a Table, String> {
    let found = match name {
        Some(name) => tables.iter().find(|table| table.name() == name),
        None => tables.first(),
    };
    found.ok_or_else(|| {
        let known: Vec<String> = tables.iter().map(Table::name).collect();
        let name = name.unwrap_or_default();
        format!("there is no table {name:?} here; known: {}", known.join(", "))
    })
}

/// The comparison of a view.
pub fn comparison(view: &str) -> Option<&'static Comparison> {
    COMPARISONS.iter().find(|comparison| comparison.view == view)
}
