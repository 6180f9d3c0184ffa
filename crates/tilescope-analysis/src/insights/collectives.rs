//! Collectives of many small tensors.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::collective;
use serde_json::json;
use tilescope_report::ProgramNode;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "collectives",
    description: "collectives between replicas, one for each tensor",
    find,
};

/// Less is not worth a buffer.
const MIN_SHARE: f64 = 0.02;

const KEY: &str = "options.merge_collectives";

fn reduces(program: &ProgramNode) -> bool {
    collective(&program.name).is_some()
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let gain = facts.gain_of(1.0, reduces).unwrap_or(0.0);
    let Some((share, ipu)) = facts.busiest_share(reduces) else { return Vec::new() };
    if facts.spec(KEY) != Some("false") || gain < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "IPU {ipu} exchanges gradients or weights with other replicas for {} of the run, tensor \
             by tensor.",
            percent(share)
        ),
        advice: "Merged, they go round in one buffer per element type.".to_owned(),
        formula: "run without exchanges between replicas: what is left of the critical path, and of \
                  the IPU that works longest",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal([(KEY, json!(true))], "A buffer as large as the gradients"),
        measured: None,
        place: ViewLocation {
            ipu: Some(ipu),
            program: facts.longest(ipu, reduces).map(|(program, _)| program),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
