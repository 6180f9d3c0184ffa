//! The error bands of the run's figures, as rows of the summary.

use super::{SummaryFactRow, derived};
use tilescope_analysis::confidence::Confidence;
use tilescope_report::units::percent;

/// The expected figures, and the basis of the cycles.
pub(super) fn rows(confidence: &Confidence) -> Vec<SummaryFactRow> {
    let formula = "run estimated again with the error of each kind of operation and the error of \
                   published programs; wider for copies between layouts, formulas without measurements, odd row counts, the host and imported operators";
    let band =
        |(name, words): (&str, String)| derived(&format!("{name}, expected"), words, formula);
    let mut rows: Vec<SummaryFactRow> = confidence.rows().map(band).collect();
    let shares = confidence.shares.iter().filter(|(_, share)| *share >= 0.0005);
    let shares: Vec<String> =
        shares.map(|(name, share)| format!("{} {name}", percent(share))).collect();
    let formula = "shares of the cycles of the run on the IPU that works longest";
    rows.push(derived("Basis of the cycle estimate", shares.join(", "), formula));
    rows
}
