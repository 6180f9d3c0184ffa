//! Memory that goes to exchange programs.

use super::{Facts, Finding, Gain, Place, Rule, Subject};
use tilescope_report::Category;
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: Rule =
    Rule { name: "exchange_code", looks_for: "memory taken by exchange code", find };

/// Smaller shares are usual.
const WORTH: f64 = 0.08;

fn find(facts: &Facts) -> Vec<Finding> {
    let kinds = [
        (Category::InternalExchangeCode, "internal"),
        (Category::HostExchangeCode, "host"),
        (Category::GlobalExchangeCode, "global"),
    ];
    let bytes = kinds.map(|(category, name)| (facts.bytes_of(&[category]), name));
    let all: u64 = bytes.iter().map(|(bytes, _)| bytes).sum();
    let share = all as f64 / facts.used_bytes().max(1) as f64;
    if share < WORTH {
        return Vec::new();
    }
    let parts: Vec<String> = bytes
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, name)| format!("{} {name}", Bytes(*bytes)))
        .collect();
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Memory,
        sentence: format!(
            "Exchange code takes {} of the memory in use: {}.",
            percent(share),
            parts.join(", ")
        ),
        advice: "Fewer and larger messages need less code: outline repeated layers, avoid \
                 scattered slices, use fewer replicas per program."
            .to_owned(),
        formula: "bytes of internal, host and global exchange code / bytes in use without gaps",
        gain: Gain::Memory(share),
        place: Place::view("exchange-code"),
    }]
}
