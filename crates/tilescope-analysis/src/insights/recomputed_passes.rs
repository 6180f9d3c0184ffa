//! Forward passes that run a second time where memory would allow to keep what they made.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::is_of_recomputation;
use serde_json::json;
use tilescope_report::ProgramNode;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "recomputed_passes",
    description: "forward passes that are computed again in the backward pass",
    find,
};

/// Less is a fair price for memory.
const MIN_SHARE: f64 = 0.02;

const KEY: &str = "options.recomputation";

fn again(program: &ProgramNode) -> bool {
    is_of_recomputation(&program.name)
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let gain = facts.gain_of(1.0, again).unwrap_or(0.0);
    let Some((share, ipu)) = facts.busiest_share(again) else { return Vec::new() };
    if facts.spec(KEY).is_none() || gain < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "IPU {ipu} computes forward passes again for {} of the run.",
            percent(share)
        ),
        advice: "Without recomputation activations are kept, where they fit.".to_owned(),
        formula: "run without recomputed steps: what is left of the critical path, and of the IPU \
                  that works longest",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal([(KEY, json!("none"))], "Memory for all activations of a stage"),
        measured: None,
        place: ViewLocation {
            ipu: Some(ipu),
            program: facts.longest(ipu, again).map(|(program, _)| program),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
