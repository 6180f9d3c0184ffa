//! Sequential weight updates of several IPUs.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::trace::{MarkedPart, Share};
use serde_json::json;
use std::collections::BTreeMap;
use tilescope_report::units::IpuId;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "update_schedule",
    description: "weight updates that IPUs run one after another",
    keys: &["options.accumulate_outer_schedule"],
    find,
};

/// Smaller shares are negligible.
const MIN_SHARE: f64 = 0.02;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    if facts.spec("options.accumulate_outer_schedule") != Some("serial") {
        return Vec::new();
    }
    let updates = &facts.marks.updates;
    let mut ipus: BTreeMap<Option<IpuId>, Share<MarkedPart>> = BTreeMap::new();
    for mark in updates.iter() {
        let sum = ipus.entry(mark.ipu()).or_insert_with(|| updates.nothing());
        *sum = *sum + mark.length();
    }
    let longest = ipus.values().copied().max_by(|a, b| a.value().total_cmp(&b.value()));
    let Some(longest) = longest else { return Vec::new() };
    let all = updates.union();
    let gain = (all - longest).clamped().of_run();
    if ipus.len() < 2 || gain.value() < MIN_SHARE {
        return Vec::new();
    }
    let first = updates.iter().next();
    vec![InsightFinding {
        sentence: format!(
            "The weight updates of {} IPUs run one after another and take {} of the run.",
            ipus.len(),
            all.of_run(),
        ),
        advice: "In parallel they take as long as the longest update.".to_owned(),
        formula: "(union of all updates - updates of the IPU with most of them) / cycles of the run",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal(
            [("options.accumulate_outer_schedule", json!("overlap_cycle_optimized"))],
            "Temporary tensors of all updates are live at the same time",
        ),
        place: first.map_or_else(|| ViewLocation::view("execution-trace"), |mark| mark.place()),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
