//! Findings that appeared, vanished or stayed.

use super::comparison_table::{ComparedThing, ComparisonRow, ComparisonTable, pair_by_key};
use super::{ComparedReports, ViewComparison};
use crate::insights::{InsightFinding, insights};
use tilescope_report::ReportError;

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "insights", tables };

pub(super) fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| insights(report, sides.numbers))?;
    // The finding of the rule on each side.
    let ruled = |found: Vec<InsightFinding>| {
        found.into_iter().map(|of| {
            let thing = ComparedThing::new(of.rule.replace('_', " "), of.sentence).at(of.place);
            (of.rule, thing)
        })
    };
    let mut appeared = Vec::new();
    let mut vanished = Vec::new();
    let mut stayed = Vec::new();
    for (source, target) in pair_by_key(ruled(source), ruled(target)) {
        let list = match (&source, &target) {
            (None, _) => &mut appeared,
            (_, None) => &mut vanished,
            _ => &mut stayed,
        };
        list.push(ComparisonRow::paired(source, target));
    }
    let parts = [("New", appeared), ("Resolved", vanished), ("In both", stayed)];
    Ok(parts.map(|(title, rows)| ComparisonTable::new(title, "Finding", rows)).into())
}
