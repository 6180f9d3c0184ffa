//! Weight updates of several IPUs, one after the other.

use super::accumulation::union;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use serde_json::json;
use std::collections::BTreeMap;
use tilescope_report::MarkKind;
use tilescope_report::units::{Cycles, IpuId, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "update_schedule",
    description: "weight updates of IPUs that wait for each other",
    keys: &["options.accumulate_outer_schedule"],
    find,
};

/// Less is not worth a thought.
const MIN_SHARE: f64 = 0.02;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    if facts.spec("options.accumulate_outer_schedule") != Some("serial") {
        return Vec::new();
    }
    let all = union(facts.marks_of(MarkKind::Update));
    let mut ipus: BTreeMap<Option<IpuId>, Cycles> = BTreeMap::new();
    for mark in facts.marks_of(MarkKind::Update) {
        *ipus.entry(mark.ipu).or_default() += mark.cycles.length();
    }
    let longest = ipus.values().copied().max().unwrap_or_default();
    let gain = facts.share(all.saturating_sub(longest));
    if ipus.len() < 2 || gain < MIN_SHARE {
        return Vec::new();
    }
    let first = facts.marks_of(MarkKind::Update).next();
    vec![InsightFinding {
        sentence: format!(
            "The weight updates of {} IPUs come one after the other and take {} of the run.",
            ipus.len(),
            percent(facts.share(all)),
        ),
        advice: "Side by side they take as long as the longest of them.".to_owned(),
        formula: "(union of all updates - updates of the IPU with most of them) / cycles of the run",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal(
            [("options.accumulate_outer_schedule", json!("overlap_cycle_optimized"))],
            "Temporary tensors of all updates are live at once",
        ),
        place: ViewLocation {
            ipu: first.and_then(|mark| mark.ipu),
            cycles: first.map(|mark| mark.cycles),
            ..ViewLocation::view("execution-trace")
        },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
