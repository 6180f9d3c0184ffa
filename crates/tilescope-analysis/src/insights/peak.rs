//! Contents of the fullest tile at its peak.

use super::{Facts, Finding, Gain, Place, Rule, Subject};
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: Rule =
    Rule { name: "peak", looks_for: "what fills the fullest tile at its peak", find };

fn find(facts: &Facts) -> Vec<Finding> {
    let Some(peak) = &facts.peak else { return Vec::new() };
    let Some(largest) = peak.variables.first().filter(|_| peak.bytes > 0) else {
        return Vec::new();
    };
    let bytes: u64 = largest.bytes.iter().sum();
    let share = bytes as f64 / peak.bytes as f64;
    let others: Vec<String> = peak.variables[1..]
        .iter()
        .take(2)
        .map(|live| format!("{} ({})", live.name, Bytes(live.bytes.iter().sum())))
        .collect();
    let rest =
        if others.is_empty() { String::new() } else { format!(", then {}", others.join(" and ")) };
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Memory,
        sentence: format!(
            "Tile {} is fullest at step {} of the program with {} live; {} takes {} of that ({}){rest}.",
            peak.tile,
            peak.step,
            Bytes(peak.bytes),
            largest.name,
            percent(share),
            Bytes(bytes),
        ),
        advice: "What is live at this step limits the batch size.".to_owned(),
        formula: "always-live bytes of the tile + most other bytes live on it at one step",
        gain: Gain::Memory(share),
        place: Place {
            program: Some(peak.program),
            variable: Some(largest.id),
            ..Place::view("liveness")
        },
    }]
}
