//! Memory of exchange programs.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "exchange_code",
    description: "memory taken by exchange code",
    keys: &[],
    find,
};

/// Smaller shares are normal.
const MIN_SHARE: f64 = 0.08;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let kinds = [
        (MemoryCategory::InternalExchangeCode, "internal"),
        (MemoryCategory::HostExchangeCode, "host"),
        (MemoryCategory::GlobalExchangeCode, "global"),
    ];
    let bytes = kinds.map(|(category, name)| (facts.bytes_of(&[category]), name));
    let all: Bytes = bytes.iter().map(|(bytes, _)| bytes).sum();
    let share = all.as_f64() / (facts.used_bytes().max(Bytes(1))).as_f64();
    if share < MIN_SHARE {
        return Vec::new();
    }
    let parts: Vec<String> = bytes
        .iter()
        .filter(|(bytes, _)| *bytes > Bytes::ZERO)
        .map(|(bytes, name)| format!("{} {name}", facts.numbers.bytes(bytes.0)))
        .collect();
    vec![InsightFinding {
        sentence: format!(
            "Exchange code takes {} of the memory in use: {}.",
            percent(share),
            parts.join(", ")
        ),
        advice: "Fewer and larger messages need less code: outline repeated layers, avoid \
                 scattered slices, use fewer replicas per program."
            .to_owned(),
        formula: "bytes of internal, host and global exchange code / bytes in use without gaps",
        gain: InsightGain::Memory(share),
        place: ViewLocation::view("exchange-code"),
        ..InsightFinding::about(InsightSubject::Memory, &RULE)
    }]
}
