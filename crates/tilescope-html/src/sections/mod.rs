//! The sections of a page, one file each: their content, and the reason if they have none.

mod comparison;
mod critical_path;
mod insights;
mod limits;
mod liveness;
mod memory;
mod operations;
mod summary;
pub(crate) mod topics;
mod trace;

use crate::block::Block;
use crate::page::{ComparedPage, PageReport, Section};
use crate::table::HtmlTable;
use std::sync::Arc;
use tilescope_analysis::limits::ReportLimits;
use tilescope_analysis::summary::ReportSummary;
use tilescope_analysis::tables::named;
use tilescope_report::trace::Trace;
use tilescope_report::units::{Cycles, NumberFormat, seconds};
use tilescope_report::{ReplicaClasses, Report, ReportError, Target};

/// A section that pages may have; by default of pages of reports.
pub(crate) struct SectionEntry<B = fn(&PageFacts<'_>) -> Result<Vec<Block>, ReportError>> {
    /// Its name in links.
    pub id: &'static str,
    pub title: &'static str,
    /// Builds the blocks; no blocks leave the section out.
    pub build: B,
}

impl<B> SectionEntry<B> {
    /// The section with these blocks; `None` if there are none.
    pub(crate) fn of(&self, blocks: Vec<Block>) -> Option<Section> {
        if blocks.is_empty() {
            None
        } else {
            Some(Section { id: self.id, title: self.title, blocks })
        }
    }
}

/// All sections, in the order of a page.
pub(crate) static SECTIONS: &[SectionEntry] = &[
    comparison::SECTION,
    summary::SECTION,
    insights::SECTION,
    trace::SECTION,
    critical_path::SECTION,
    limits::SECTION,
    memory::SECTION,
    liveness::SECTION,
    operations::SECTION,
];

/// The reason for absent sections about the execution.
pub(crate) const NOT_RUN: &str = "The report has no executed steps: the program was only compiled, \
    or did not fit in memory.";

/// The data that all sections use.
pub(crate) struct PageFacts<'a> {
    pub report: &'a Report,
    pub name: &'a str,
    pub compared: Option<ComparedPage<'a>>,
    pub numbers: NumberFormat,
    pub summary: ReportSummary,
    pub target: Arc<Target>,
    pub limits: Arc<ReportLimits>,
    pub classes: ReplicaClasses,
    /// The run; `None` if the program was only compiled.
    pub trace: Option<Trace>,
}

impl<'a> PageFacts<'a> {
    pub(crate) fn read(
        PageReport { report, name }: PageReport<'a>,
        compared: Option<ComparedPage<'a>>,
    ) -> Result<Self, ReportError> {
        Ok(Self {
            report,
            name,
            compared,
            numbers: NumberFormat::default(),
            // First: the output of `summary` must not depend on the other parts.
            summary: tilescope_analysis::summary::summary(report)?,
            target: report.target()?,
            limits: tilescope_analysis::limits::limits(report)?,
            classes: report.replica_classes()?,
            trace: report.trace()?,
        })
    }

    /// A table of a view under its own name.
    pub(crate) fn table(&self, view: &str, name: &str) -> Result<HtmlTable, ReportError> {
        let found = named(view, Some(name));
        debug_assert!(found.is_ok(), "{view} has no table {name}");
        let Ok(table) = found else {
            return Ok(HtmlTable::new(name, "", &Default::default()));
        };
        let data = (table.read)(self.report)?;
        Ok(HtmlTable::new(format!("{view}/{name}"), table.about, &data))
    }

    /// Cycles, with their time if the clock is known.
    pub(crate) fn cycles_and_time(&self, cycles: Cycles) -> String {
        match self.target.clock.0 {
            0 => format!("{cycles} cycles"),
            _ => format!("{cycles} cycles ({})", seconds(cycles.seconds_at(self.target.clock))),
        }
    }
}

/// `1 tile`, `7 tiles`
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", tilescope_report::units::grouped(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SERIES_SECTIONS;

    fn check<B>(sections: &[SectionEntry<B>]) {
        for (at, section) in sections.iter().enumerate() {
            assert!(!section.title.is_empty());
            assert!(section.id.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'));
            assert!(sections[..at].iter().all(|other| other.id != section.id), "{}", section.id);
        }
    }

    #[test]
    fn sections_have_unique_names() {
        check(SECTIONS);
        check(SERIES_SECTIONS);
    }
}
