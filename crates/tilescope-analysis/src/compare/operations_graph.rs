//! The model's graph: how many operations of each operator, and how many results they read.

use super::comparison_table::{ComparisonRow, ComparisonTable, pair_by_key};
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
    type GraphFigureFn = fn(&(u64, u64)) -> u64;
    let figures: [(&'static str, GraphFigureFn); 2] =
        [("Operations", |k| k.0), ("Inputs", |k| k.1)];
    let table = |(title, figure): (&'static str, GraphFigureFn)| {
        let sum = |of: &BTreeMap<String, _>| Some(TableCell::Count(of.values().map(figure).sum()));
        let keyed = |of: &BTreeMap<String, (u64, u64)>| -> Vec<(String, (String, u64))> {
            of.iter().map(|(kind, of)| (kind.clone(), (kind.clone(), figure(of)))).collect()
        };
        let rows =
            pair_by_key(keyed(&source), keyed(&target)).into_iter().map(|(source, target)| {
                let name = source.as_ref().or(target.as_ref()).map(|(kind, _)| kind.clone());
                let cell =
                    |side: Option<(String, u64)>| side.map(|(_, count)| TableCell::Count(count));
                ComparisonRow::new(name.unwrap_or_default(), cell(source), cell(target))
            });
        let table = ComparisonTable::new(title, "Operator", rows.collect()).by_change();
        table.with_total(sum(&source), sum(&target))
    };
    Ok(figures.into_iter().map(table).collect())
}
