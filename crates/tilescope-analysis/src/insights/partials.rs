//! Partial sums of matmuls and convolutions that are wider than their operands.

use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::is_of_convolution;
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "partials",
    description: "partial sums of matmuls and convolutions in single precision",
    keys: &[KEY],
    find,
};

/// Less is not worth losing digits.
const MIN_SHARE: f64 = 0.05;

/// The key of the type of partial sums.
const KEY: &str = "options.partials_type";

/// Whether a program computes or moves partial sums.
fn works_on_partials(program: &ProgramNode) -> bool {
    use ProgramKind::{DoExchange, OnTileExecute};
    matches!(program.kind, OnTileExecute | DoExchange) && is_of_convolution(&program.name)
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    // Operands in single precision have partial sums in single precision.
    let half = facts.spec("model.precision").is_some_and(|precision| precision != "float32");
    if !half || facts.spec(KEY) != Some("float32") {
        return Vec::new();
    }
    let gain = facts.gain_of_work(0.5, works_on_partials);
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, works_on_partials) else {
        return Vec::new();
    };
    let words = FindingWords {
        sentence: format!(
            "IPU {} works on matmuls and convolutions with 32-bit partial sums for {} of the \
             run.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "AMP units add up half partial sums twice as fast, and there is half as much to \
                 reduce."
            .to_owned(),
        formula: "steps of matmuls and convolutions without their starts / 2: what is left of the \
                  critical path, and of the IPU that works longest",
    };
    let proposal = facts.proposal([(KEY, json!("float16"))], "Digits of long sums");
    vec![saved.finding(&RULE, words, proposal)]
}
