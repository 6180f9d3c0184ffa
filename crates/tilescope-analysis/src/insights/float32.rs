//! Large float32 variables on the fullest tile at its peak.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::is_float32;
use crate::liveness::LiveVariable;
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "float32",
    description: "float32 variables that fill the fullest tile",
    find,
};

/// Less than this on the tile is not worth a loss of precision.
const MIN_SHARE: f64 = 0.05;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some(peak) = facts.peak.as_ref().filter(|peak| peak.bytes > Bytes::ZERO) else {
        return Vec::new();
    };
    // The largest come first.
    let wide = peak.variables.iter().filter(|live| is_float32(&live.about));
    let candidates: Vec<&LiveVariable> = wide.collect();
    let bytes = |live: &LiveVariable| live.bytes.iter().sum::<Bytes>();
    let all: Bytes = candidates.iter().map(|live| bytes(live)).sum();
    let share = all.as_f64() / peak.bytes.as_f64();
    let Some(first) = candidates.first().filter(|_| share >= MIN_SHARE) else { return Vec::new() };
    let names: Vec<String> = candidates
        .iter()
        .take(3)
        .map(|live| format!("{} ({})", live.name, facts.numbers.bytes(bytes(live).0)))
        .collect();
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Memory,
        sentence: format!(
            "float32 variables take {} of tile {} at its peak: {}.",
            percent(share),
            peak.tile,
            names.join(", ")
        ),
        advice: "In float16 they take half; weights and activations are the usual candidates."
            .to_owned(),
        formula: "half of the bytes of float32 variables live on the fullest tile at its peak / \
                  bytes live there",
        gain: InsightGain::Memory(share / 2.0),
        proposal: None,
        measured: None,
        place: ViewLocation {
            program: Some(peak.program),
            variable: Some(first.id),
            ..ViewLocation::view("liveness")
        },
    }]
}
