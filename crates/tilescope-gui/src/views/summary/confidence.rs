//! How sure the figures of the run are, as rows of the summary.

use super::{SummaryFactRow, derived};
use tilescope_analysis::confidence::Confidence;
use tilescope_report::units::{grouped, percent};

/// The throughput to expect, and what the cycles rest on.
pub(super) fn rows(confidence: &Confidence) -> impl Iterator<Item = SummaryFactRow> {
    let rate = confidence.samples_per_second.map(|band| {
        let [low, high] = [band.low, band.high].map(|rate| grouped(rate.round() as u64));
        let formula = "nine of ten runs, costed again with the errors of each kind of operation";
        derived("Samples per second, expected", format!("{low} to {high}"), formula)
    });
    let shares = confidence.shares.iter().filter(|(_, share)| *share >= 0.0005);
    let shares: Vec<String> =
        shares.map(|(name, share)| format!("{} {name}", percent(share))).collect();
    let formula = "shares of the run's cycles on the IPU that works longest";
    rate.into_iter().chain([derived("Cycles rest on", shares.join(", "), formula)])
}
