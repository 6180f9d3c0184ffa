//! Findings that appeared, vanished or stayed.

use super::table::{Row, Table, joined};
use super::{Comparison, Sides};
use crate::data_table::TableCell;
use crate::insights::{Finding, insights};
use tilescope_report::ReportError;

pub(super) const COMPARISON: Comparison = Comparison { view: "insights", tables };

fn tables(sides: &Sides<'_>) -> Result<Vec<Table>, ReportError> {
    let (source, target) = sides.both(insights)?;
    let ruled = |found: Vec<Finding>| found.into_iter().map(|finding| (finding.rule, finding));
    let (mut appeared, mut vanished, mut stayed) = (Vec::new(), Vec::new(), Vec::new());
    for (source, target) in joined(ruled(source), ruled(target)) {
        let list = match (&source, &target) {
            (None, _) => &mut appeared,
            (_, None) => &mut vanished,
            _ => &mut stayed,
        };
        list.push(row(source, target));
    }
    let parts = [("Appeared", appeared), ("Vanished", vanished), ("In both", stayed)];
    Ok(parts.map(|(title, rows)| Table::new(title, "Finding", rows)).into())
}

/// What the rule says on each side.
fn row(source: Option<Finding>, target: Option<Finding>) -> Row {
    let name = source.as_ref().or(target.as_ref()).map_or("", |finding| finding.rule);
    let words = |side: &Option<Finding>| {
        side.as_ref().map(|finding| TableCell::Text(finding.sentence.clone()))
    };
    Row {
        source: words(&source),
        target: words(&target),
        source_place: source.map(|finding| finding.place),
        target_place: target.map(|finding| finding.place),
        ..Row::new(name.replace('_', " "), None, None)
    }
}
