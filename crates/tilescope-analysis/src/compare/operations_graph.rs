//! The model's graph: how many operations of each operator, and how many results they read.

use super::table::{Row, Table, joined};
use super::{Comparison, Sides};
use crate::data_table::TableCell;
use std::collections::BTreeMap;
use tilescope_report::{Report, ReportError};

pub(super) const COMPARISON: Comparison = Comparison { view: "operations-graph", tables };

fn tables(sides: &Sides<'_>) -> Result<Vec<Table>, ReportError> {
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
    type Figure = fn(&(u64, u64)) -> u64;
    let figures: [(&'static str, Figure); 2] = [("Operations", |k| k.0), ("Inputs", |k| k.1)];
    let table = |(title, figure): (&'static str, Figure)| {
        let sum = |of: &BTreeMap<String, _>| Some(TableCell::Count(of.values().map(figure).sum()));
        let keyed = |of: &BTreeMap<String, (u64, u64)>| -> Vec<(String, (String, u64))> {
            of.iter().map(|(kind, of)| (kind.clone(), (kind.clone(), figure(of)))).collect()
        };
        let rows = joined(keyed(&source), keyed(&target)).into_iter().map(|(source, target)| {
            let name = source.as_ref().or(target.as_ref()).map(|(kind, _)| kind.clone());
            let cell = |side: Option<(String, u64)>| side.map(|(_, count)| TableCell::Count(count));
            Row::new(name.unwrap_or_default(), cell(source), cell(target))
        });
        let table = Table::new(title, "Operator", rows.collect()).by_larger();
        table.with_total(sum(&source), sum(&target))
    };
    Ok(figures.into_iter().map(table).collect())
}
