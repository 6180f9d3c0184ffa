//! Weight updates that every replica computes in full.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use serde_json::json;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "sharded_optimizer",
    description: "weight updates that every replica repeats in full",
    keys: &[KEY],
    find,
};

/// Smaller shares do not justify a collective.
const MIN_SHARE: f64 = 0.02;

const KEY: &str = "options.location.optimizer_state.replicated_tensor_sharding";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let replicas = facts.target.replicas;
    let update = facts.marks.updates.union().of_run();
    let gain = update * (1.0 - 1.0 / f64::from(replicas.max(1)));
    if replicas < 2 || facts.spec(KEY) != Some("false") || gain.value() < MIN_SHARE {
        return Vec::new();
    }
    let first = facts.marks.updates.iter().next();
    vec![InsightFinding {
        sentence: format!(
            "Each of the {replicas} replicas updates all weights, which takes {update} of the run."
        ),
        advice: "With sharded optimiser state, each replica updates its own share of the weights \
                 and gathers the rest. The state needs that much less memory."
            .to_owned(),
        formula: "union of the updates / cycles of the run x (1 - 1 / replicas)",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal([(KEY, json!(true))], "Replicas gather weights after each update"),
        place: first.map_or_else(|| ViewLocation::view("execution-trace"), |mark| mark.place()),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
