//! How far measured figures are from simulated ones: what bands on predictions are made of.

use super::summary::{RowCosts, ValidationSummary};
use crate::error_bands::{ALL_ROWS, ExtentRange, HEAD, WORST_ROWS, group_of_family};
use std::collections::BTreeMap;

/// What ends of bands count in.
const PARTS: usize = 20;
/// Parts of the rows that lie below a band and below its upper end: nine of ten are inside.
const BAND_ENDS: [usize; 2] = [1, PARTS - 1];

/// The lines of `error_bands/residuals.csv`: each group of rows, then all of them, and their ends.
pub fn residuals(validation: &ValidationSummary) -> String {
    let mut groups: BTreeMap<&str, Vec<&RowCosts>> = BTreeMap::new();
    for row in &validation.rows {
        groups.entry(group_of_family(row.family)).or_default().push(row);
    }
    let all: Vec<&RowCosts> = validation.rows.iter().collect();
    let mut lines = vec![HEAD.to_owned()];
    lines.extend(groups.iter().map(|(group, rows)| line(group, rows, BAND_ENDS)));
    lines.push(line(ALL_ROWS, &all, BAND_ENDS));
    lines.push(line(WORST_ROWS, &all, [0, PARTS]));
    lines.push(String::new());
    lines.join("\n")
}

fn line(group: &str, rows: &[&RowCosts], ends: [usize; 2]) -> String {
    let factors = |error: usize| {
        // An error is simulated / measured - 1.
        let mut factors: Vec<f64> =
            rows.iter().map(|row| 1.0 / (1.0 + row.errors()[error])).collect();
        factors.sort_by(f64::total_cmp);
        ends.map(|end| format!("{:.3}", quantile(&factors, end))).join(",")
    };
    let extents = ExtentRange::of(rows.iter().flat_map(|row| row.extents.iter().copied()));
    let bands = [0, 1, 2].map(factors).join(",");
    format!("{group},{},{bands},{}", rows.len(), extents.cells())
}

/// The value below which so many of [`PARTS`] of the sorted values lie, between two of them in
/// proportion.
fn quantile(sorted: &[f64], parts: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 1.0 };
    let (index, rest) = (parts * last / PARTS, parts * last % PARTS);
    let value = |index: usize| sorted.get(index.min(last)).copied().unwrap_or(1.0);
    value(index) + (value(index + 1) - value(index)) * rest as f64 / PARTS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!([0, 5, 10, PARTS].map(|parts| quantile(&values, parts)), [1.0, 1.5, 2.0, 4.0]);
        assert_eq!(quantile(&[3.0], 1), 3.0);
    }
}
