//! Weight updates that every replica does in full.

use super::accumulation::union;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use serde_json::json;
use tilescope_report::MarkKind;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "sharded_optimizer",
    description: "weight updates that every replica does in full",
    keys: &[KEY],
    find,
};

/// Less is not worth a collective.
const MIN_SHARE: f64 = 0.02;

const KEY: &str = "options.location.optimizer_state.replicated_tensor_sharding";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let replicas = facts.target.replicas;
    let update = facts.share(union(facts.marks_of(MarkKind::Update)));
    let gain = update * (1.0 - 1.0 / f64::from(replicas.max(1)));
    if replicas < 2 || facts.spec(KEY) != Some("false") || gain < MIN_SHARE {
        return Vec::new();
    }
    let first = facts.marks_of(MarkKind::Update).next();
    vec![InsightFinding {
        sentence: format!(
            "Each of {replicas} replicas updates all weights, for {} of the run.",
            percent(update)
        ),
        advice: "With the optimiser state sharded, each replica updates its share and gathers the \
                 others; the state takes as much less memory."
            .to_owned(),
        formula: "union of the updates / cycles of the run x (1 - 1 / replicas)",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal([(KEY, json!(true))], "Weights are gathered after each update"),
        place: ViewLocation {
            ipu: first.and_then(|mark| mark.ipu),
            cycles: first.map(|mark| mark.cycles),
            ..ViewLocation::view("execution-trace")
        },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
