//! The topic of the summary: the most important figures.

use super::Topic;
use crate::headline::{HeadlineFigure, headline_figures};
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError};

pub(super) const TOPIC: Topic = Topic {
    id: "summary",
    title: "Summary",
    about: "How long does it take, and does it fit?",
    facts,
    figures: &[],
    has_view: true,
};

fn facts(report: &Report) -> Result<Vec<HeadlineFigure>, ReportError> {
    let summary = crate::summary::summary(report)?;
    let outcome = report.outcome()?;
    let target = report.target()?;
    Ok(headline_figures(&summary, outcome, &target, NumberFormat::default()))
}
