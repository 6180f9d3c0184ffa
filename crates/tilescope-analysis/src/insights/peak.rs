//! Contents of the fullest tile at its peak.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "peak",
    description: "what fills the fullest tile at its peak",
    keys: &[],
    find,
};

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some(peak) = &facts.peak else { return Vec::new() };
    let Some(largest) = peak.variables.first().filter(|_| peak.bytes > Bytes::ZERO) else {
        return Vec::new();
    };
    let bytes = largest.total_bytes();
    let share = bytes.as_f64() / peak.bytes.as_f64();
    let others: Vec<String> = peak.variables[1..]
        .iter()
        .take(2)
        .map(|live| format!("{} ({})", live.name, facts.numbers.bytes(live.total_bytes().0)))
        .collect();
    let rest =
        if others.is_empty() { String::new() } else { format!(", then {}", others.join(" and ")) };
    vec![InsightFinding {
        sentence: format!(
            "Tile {} reaches its peak at step {} of the program with {} live. {} takes {} of that \
             ({}){rest}.",
            peak.tile,
            peak.step,
            facts.numbers.bytes(peak.bytes.0),
            largest.name,
            percent(share),
            facts.numbers.bytes(bytes.0),
        ),
        advice: "The variables live at this step limit the micro-batch.".to_owned(),
        formula: "always-live bytes of the tile + the most other bytes live on it at one step",
        gain: InsightGain::Memory(share),
        place: ViewLocation {
            program: Some(peak.program),
            variable: Some(largest.id),
            ..ViewLocation::view("liveness")
        },
        ..InsightFinding::about(InsightSubject::Memory, &RULE)
    }]
}
