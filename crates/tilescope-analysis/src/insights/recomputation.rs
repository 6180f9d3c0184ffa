//! Activations kept for the backward pass that could be computed again.

use super::{Facts, Finding, Gain, Place, Rule, Subject, counted};
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: Rule =
    Rule { name: "recomputation", looks_for: "stashed activations that could be recomputed", find };

/// Smaller stashes are not worth a second forward pass.
const WORTH: f64 = 0.05;

fn find(facts: &Facts) -> Vec<Finding> {
    let bytes = |live: &crate::liveness::Live| live.bytes.iter().sum::<u64>();
    let all: u64 = facts.stashes.iter().map(bytes).sum();
    let share = all as f64 / facts.used_bytes().max(1) as f64;
    let largest = facts.stashes.iter().max_by_key(|live| bytes(live));
    let Some(largest) = largest.filter(|_| share >= WORTH) else { return Vec::new() };
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Memory,
        sentence: format!(
            "{} hold {} ({} of the memory in use); the largest is {} with {}.",
            counted(facts.stashes.len() as u64, "stash").replace("stashs", "stashes"),
            Bytes(all),
            percent(share),
            largest.name,
            Bytes(bytes(largest)),
        ),
        advice: "With recomputation a stage keeps its inputs only, and runs its forward pass \
                 again before the backward pass."
            .to_owned(),
        formula: "bytes of stashes over all tiles / bytes in use without gaps; what stages would \
                  still keep of their inputs is not taken off",
        gain: Gain::Memory(share),
        place: Place { variable: Some(largest.id), ..Place::view("liveness") },
    }]
}
