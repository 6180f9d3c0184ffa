//! How far measured figures are from simulated ones: what bands on predictions are made of.

use super::summary::{RowCosts, ValidationSummary};
use crate::error_bands::{ALL_ROWS, HEAD, WORST_ROWS, group_of_family};
use std::collections::BTreeMap;

/// Shares of the rows that lie below a band and below its upper end: nine of ten are inside.
const BAND_ENDS: [f64; 2] = [0.05, 0.95];

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
    lines.push(line(WORST_ROWS, &all, [0.0, 1.0]));
    lines.push(String::new());
    lines.join("\n")
}

fn line(group: &str, rows: &[&RowCosts], ends: [f64; 2]) -> String {
    let factors = |error: usize| {
        // An error is simulated / measured - 1.
        let mut factors: Vec<f64> =
            rows.iter().map(|row| 1.0 / (1.0 + row.errors()[error])).collect();
        factors.sort_by(f64::total_cmp);
        ends.map(|end| format!("{:.3}", quantile(&factors, end))).join(",")
    };
    format!("{group},{},{},{}", rows.len(), factors(0), factors(1))
}

/// The value below which a share of sorted values lies, between two of them in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 1.0 };
    let position = share * last as f64;
    let index = sorted.len().min(position.floor() as usize);
    let value = |index: usize| sorted.get(index.min(last)).copied().unwrap_or(1.0);
    value(index) + (value(index + 1) - value(index)) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|share| quantile(&values, share)),
            [1.0, 1.5, 2.0, 4.0]
        );
        assert_eq!(quantile(&[3.0], 0.05), 3.0);
    }
}
