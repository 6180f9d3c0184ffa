//! Host copies that could have been prefetched.

use super::host_wait::waits;
use super::{Facts, Finding, Gain, Place, Rule, Subject};
use tilescope_report::units::percent;

pub(crate) const RULE: Rule =
    Rule { name: "prefetch", looks_for: "waits for the host that prefetching would hide", find };

/// Below this there is nothing to hide.
const WORTH: f64 = 0.02;

fn find(facts: &Facts) -> Vec<Finding> {
    let depth: u64 = facts.option("prefetch_depth").and_then(|text| text.parse().ok()).unwrap_or(0);
    let share = facts.busiest_share(waits).map_or(0.0, |(share, _)| share);
    if share < WORTH || depth > 1 {
        return Vec::new();
    }
    let now = match depth {
        0 => "no prefetch_depth is set".to_owned(),
        depth => format!("prefetch_depth is {depth}"),
    };
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Time,
        sentence: format!("Waiting for the host takes {} of the run, and {now}.", percent(share)),
        advice: "A deeper prefetch lets the host work ahead while the IPU computes.".to_owned(),
        formula: "cycles of StreamCopyBegin with the host / cycles of the run, on the IPU with most",
        gain: Gain::Time(share),
        place: Place::view("summary"),
    }]
}
