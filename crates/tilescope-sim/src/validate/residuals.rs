//! The ratios of measured to simulated figures, from which error bands of predictions are made.

use super::summary::{RowCosts, RowErrors, ValidationSummary};
use crate::error_bands::{ALL_ROWS, ExtentRange, HEAD, WORST_ROWS, group_of_family};
use std::collections::BTreeMap;

/// The unit in which ends of bands are counted.
const PARTS: usize = 20;
/// The parts of the rows below the lower end of a band and below its upper end: nine of ten are
/// inside.
const BAND_ENDS: [usize; 2] = [1, PARTS - 1];

/// Returns the lines of `error_bands/residuals.csv`: each group of rows, then all rows, and their
/// extremes. Bands apply to operations, so rows without bytes, such as those of single vertices,
/// are excluded.
pub fn residuals(validation: &ValidationSummary) -> String {
    let mut groups: BTreeMap<&str, Vec<MeasuredOperation>> = BTreeMap::new();
    let mut all = Vec::new();
    for row in &validation.rows {
        let Some(operation) = MeasuredOperation::of(row) else { continue };
        groups.entry(group_of_family(row.family)).or_default().push(operation);
        all.push(operation);
    }
    let mut lines = vec![HEAD.to_owned()];
    lines.extend(groups.iter().map(|(group, rows)| line(group, rows, BAND_ENDS)));
    lines.push(line(ALL_ROWS, &all, BAND_ENDS));
    lines.push(line(WORST_ROWS, &all, [0, PARTS]));
    lines.push(String::new());
    lines.join("\n")
}

/// A row that contributes to a band.
#[derive(Clone, Copy)]
struct MeasuredOperation<'a> {
    row: &'a RowCosts,
    /// Errors of cycles, memory and fullest tile.
    errors: [f64; 3],
}

impl<'a> MeasuredOperation<'a> {
    fn of(row: &'a RowCosts) -> Option<Self> {
        let RowErrors { cycles, memory, max_tile } = row.errors();
        Some(Self { row, errors: [cycles, memory?, max_tile?] })
    }
}

fn line(group: &str, rows: &[MeasuredOperation], ends: [usize; 2]) -> String {
    let extents = ExtentRange::of(rows.iter().flat_map(|each| each.row.extents.iter().copied()));
    let bands = [0, 1, 2]
        .map(|error| {
            // An error is `simulated / measured - 1`.
            let mut factors: Vec<f64> =
                rows.iter().map(|operation| 1.0 / (1.0 + operation.errors[error])).collect();
            factors.sort_by(f64::total_cmp);
            ends.map(|end| format!("{:.3}", quantile(&factors, end))).join(",")
        })
        .join(",");
    format!("{group},{},{bands},{}", rows.len(), extents.cells())
}

/// The value below which `parts` of [`PARTS`] of the sorted values are. Between two values it is
/// interpolated linearly.
fn quantile(sorted: &[f64], parts: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 1.0 };
    let index = parts * last / PARTS;
    let rest = parts * last % PARTS;
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
