//! Findings that appeared, vanished or stayed.

use super::comparison_table::{ComparisonRow, ComparisonTable, pair_by_key};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::insights::{InsightFinding, insights};
use tilescope_report::ReportError;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "insights", tables };

pub(super) fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| insights(report, sides.numbers))?;
    let ruled =
        |found: Vec<InsightFinding>| found.into_iter().map(|finding| (finding.rule, finding));
    let (mut appeared, mut vanished, mut stayed) = (Vec::new(), Vec::new(), Vec::new());
    for (source, target) in pair_by_key(ruled(source), ruled(target)) {
        let list = match (&source, &target) {
            (None, _) => &mut appeared,
            (_, None) => &mut vanished,
            _ => &mut stayed,
        };
        list.push(row(source, target));
    }
    let parts = [("New", appeared), ("Resolved", vanished), ("In both", stayed)];
    Ok(parts.map(|(title, rows)| ComparisonTable::new(title, "Finding", rows)).into())
}

/// What the rule says on each side.
fn row(source: Option<InsightFinding>, target: Option<InsightFinding>) -> ComparisonRow {
    let name = source.as_ref().or(target.as_ref()).map_or("", |finding| finding.rule);
    let words = |side: &Option<InsightFinding>| {
        side.as_ref().map(|finding| TableCell::Text(finding.sentence.clone()))
    };
    ComparisonRow {
        source: words(&source),
        target: words(&target),
        source_place: source.map(|finding| finding.place),
        target_place: target.map(|finding| finding.place),
        ..ComparisonRow::new(name.replace('_', " "), None, None)
    }
}
