//! The model's graph: operations per operator, and results that they read.

use super::comparison_table::{ComparedThing, ComparisonTable};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use std::collections::BTreeMap;
use tilescope_report::{Report, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "operations-graph", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let counted = |report: &Report| -> Result<BTreeMap<String, (u64, u64)>, ReportError> {
        let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for operation in report.operations()?.iter() {
            let kind = kinds.entry(operation.kind.clone()).or_default();
            kind.0 += 1;
            kind.1 += operation.inputs.len() as u64;
        }
        Ok(kinds)
    };
    let (source, target) = sides.both(counted)?;
    let table = |title, figure: fn(&(u64, u64)) -> u64| {
        let [source, target] = [&source, &target].map(|kinds| {
            kinds.iter().map(|(kind, of)| (kind, ComparedThing::new(kind, figure(of))))
        });
        let table = ComparisonTable::paired(title, "Operator", source, target).by_change();
        table.with_sums(TableCell::Count(0))
    };
    Ok(vec![table("Operations", |kind| kind.0), table("Inputs", |kind| kind.1)])
}
