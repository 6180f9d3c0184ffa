//! Activations kept for the backward pass that could be computed again.

use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation,
    pluralised,
};
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "recomputation",
    description: "stashed activations that could be recomputed",
    find,
};

/// Smaller stashes are not worth a second forward pass.
const MIN_SHARE: f64 = 0.05;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let bytes = |live: &crate::liveness::LiveVariable| live.bytes.iter().sum::<Bytes>();
    let all: Bytes = facts.stashes.iter().map(bytes).sum();
    let share = all.as_f64() / (facts.used_bytes().max(Bytes(1))).as_f64();
    let largest = facts.stashes.iter().max_by_key(|live| bytes(live));
    let Some(largest) = largest.filter(|_| share >= MIN_SHARE) else { return Vec::new() };
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Memory,
        sentence: format!(
            "{} hold {} ({} of the memory in use); the largest is {} with {}.",
            pluralised(facts.stashes.len() as u64, "stash").replace("stashs", "stashes"),
            facts.numbers.bytes(all.0),
            percent(share),
            largest.name,
            facts.numbers.bytes(bytes(largest).0),
        ),
        advice: "With recomputation a stage keeps its inputs only, and runs its forward pass \
                 again before the backward pass."
            .to_owned(),
        formula: "bytes of stashes over all tiles / bytes in use without gaps; what stages would \
                  still keep of their inputs is not taken off",
        gain: InsightGain::Memory(share),
        proposal: None,
        measured: None,
        place: ViewLocation { variable: Some(largest.id), ..ViewLocation::view("liveness") },
    }]
}
