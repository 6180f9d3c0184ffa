//! Partial sums of matmuls and convolutions that are wider than their operands.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::is_of_convolution;
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "partials",
    description: "partial sums of matmuls and convolutions in single precision",
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
    let gain = facts.gain_of(0.5, works_on_partials).unwrap_or(0.0);
    let Some((share, ipu)) = facts.busiest_share(works_on_partials) else { return Vec::new() };
    if gain < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "IPU {ipu} works on matmuls and convolutions with 32-bit partial sums for {} of the \
             run.",
            percent(share)
        ),
        advice: "AMP units add up half partial sums twice as fast, and there is half as much to \
                 reduce."
            .to_owned(),
        formula: "steps of matmuls and convolutions / 2: what is left of the critical path, and of \
                  the IPU that works longest",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal([(KEY, json!("float16"))], "Digits of long sums"),
        measured: None,
        place: ViewLocation {
            ipu: Some(ipu),
            program: facts.longest(ipu, works_on_partials).map(|(program, _)| program),
            cycles: Some(facts.typical_window()),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
