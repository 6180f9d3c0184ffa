//! Host copies that could have been prefetched.

use super::host_wait::waiting_share;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "prefetch",
    description: "waits for the host that prefetching would hide",
    find,
};

/// Below this there is nothing to hide.
const MIN_SHARE: f64 = 0.02;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let depth: u64 = facts.option("prefetch_depth").and_then(|text| text.parse().ok()).unwrap_or(0);
    let share = waiting_share(facts).map_or(0.0, |(share, _)| share);
    if share < MIN_SHARE || depth > 1 {
        return Vec::new();
    }
    let now = match depth {
        0 => "no prefetch_depth is set".to_owned(),
        depth => format!("prefetch_depth is {depth}"),
    };
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!("Waiting for the host takes {} of the run, and {now}.", percent(share)),
        advice: "A deeper prefetch lets the host work ahead while the IPU computes.".to_owned(),
        formula: "cycles of StreamCopyBegin with the host, less the shortest handshake for each, / \
                  cycles of the run, on the IPU with most",
        gain: InsightGain::Time(share),
        place: ViewLocation::view("summary"),
    }]
}
