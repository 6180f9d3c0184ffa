//! Forward passes that run a second time where memory would allow to keep what they made.

use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::is_of_recomputation;
use serde_json::json;
use tilescope_report::ProgramNode;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "recomputed_passes",
    description: "forward passes that are computed again in the backward pass",
    keys: &[KEY],
    find,
};

/// Less is a fair price for memory.
const MIN_SHARE: f64 = 0.02;

const KEY: &str = "options.recomputation";

fn again(program: &ProgramNode) -> bool {
    is_of_recomputation(&program.name)
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    if facts.spec(KEY).is_none() {
        return Vec::new();
    }
    let gain = facts.gain_of(1.0, again);
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, again) else { return Vec::new() };
    let saved = saved.anywhere();
    let words = FindingWords {
        sentence: format!(
            "IPU {} computes forward passes again for {} of the run.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "Without recomputation activations are kept, where they fit.".to_owned(),
        formula: "run without recomputed steps: what is left of the critical path, and of the IPU \
                  that works longest",
    };
    let proposal = facts.proposal([(KEY, json!("none"))], "Memory for all activations of a stage");
    vec![saved.finding(&RULE, words, proposal)]
}
