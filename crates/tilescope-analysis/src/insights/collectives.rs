//! Collectives of many small tensors.

use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::collective;
use serde_json::json;
use tilescope_report::ProgramNode;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "collectives",
    description: "collectives between replicas, one for each tensor",
    keys: &[KEY],
    find,
};

/// Less is not worth a buffer.
const MIN_SHARE: f64 = 0.02;

const KEY: &str = "options.merge_collectives";

fn reduces(program: &ProgramNode) -> bool {
    collective(&program.name).is_some()
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    if facts.spec(KEY) != Some("false") {
        return Vec::new();
    }
    let gain = facts.gain_of(1.0, reduces);
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, reduces) else { return Vec::new() };
    let saved = saved.anywhere();
    let words = FindingWords {
        sentence: format!(
            "IPU {} exchanges gradients or weights with other replicas for {} of the run, tensor \
             by tensor.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "Merged, they go round in one buffer per element type.".to_owned(),
        formula: "run without exchanges between replicas: what is left of the critical path, and of \
                  the IPU that works longest",
    };
    let proposal = facts.proposal([(KEY, json!(true))], "A buffer as large as the gradients");
    vec![saved.finding(&RULE, words, proposal)]
}
