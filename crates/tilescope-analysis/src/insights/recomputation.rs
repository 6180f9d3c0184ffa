//! Activations that are stored for the backward pass but could be recomputed.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::TileVariable;
use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation,
    pluralised,
};
use crate::label_conventions::stashed_tensor;
use crate::liveness::LiveVariable;
use serde_json::json;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, IpuId, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "recomputation",
    description: "stashed activations that could be recomputed",
    keys: &["options.recomputation"],
    find,
};

/// Smaller stashes do not justify a second forward pass.
const MIN_SHARE: f64 = 0.05;

const ADVICE: &str = "With recomputation, a stage stores only its inputs and repeats its forward \
pass before the backward pass.";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    recomputed(facts).or_else(|| kept(facts)).into_iter().collect()
}

/// Rule for stashes on full tiles, if the spec can be changed.
fn recomputed(facts: &InsightFacts) -> Option<InsightFinding> {
    let made_on: BTreeMap<&str, IpuId> =
        facts.operations.iter().filter_map(|of| Some((of.name.as_str(), of.ipu?))).collect();
    // Tensors from another IPU are inputs of the stage, which are stored as its starting point.
    let goes = |of: &TileVariable| {
        let tensor = stashed_tensor(&of.name);
        tensor.is_some_and(|name| made_on.get(name).is_none_or(|ipu| *ipu == of.ipu))
    };
    let saved = SavedMemory::of(facts, |of| f64::from(goes(of)))?;
    let is_kept = facts.spec("options.recomputation") == Some("none");
    let changes = [("options.recomputation", json!("pipeline"))];
    let cost = "Forward passes run twice";
    let proposal = facts.proposal(changes, cost).filter(|_| is_kept)?;
    let words = MemoryWords {
        what: "Stashed activations",
        advice: ADVICE.to_owned(),
        formula: "peak live bytes of a tile without stashes, except those of tensors from other \
        IPUs / bytes that the fullest tile needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}

/// Rule for the stashes of all tiles.
fn kept(facts: &InsightFacts) -> Option<InsightFinding> {
    let all: Bytes = facts.stashes.iter().map(LiveVariable::total_bytes).sum();
    let share = all.as_f64() / (facts.used_bytes().max(Bytes(1))).as_f64();
    let largest = facts.stashes.iter().max_by_key(|live| live.total_bytes());
    let largest = largest.filter(|_| share >= MIN_SHARE)?;
    Some(InsightFinding {
        sentence: format!(
            "{} hold {} ({} of the memory in use); the largest is {} with {}.",
            pluralised(facts.stashes.len() as u64, "stash").replace("stashs", "stashes"),
            facts.numbers.bytes(all.0),
            percent(share),
            largest.name,
            facts.numbers.bytes(largest.total_bytes().0),
        ),
        advice: ADVICE.to_owned(),
        formula: "bytes of stashes over all tiles / bytes in use without gaps; inputs that stages \
        would still keep are not subtracted",
        gain: InsightGain::Memory(share),
        place: ViewLocation { variable: Some(largest.id), ..ViewLocation::view("liveness") },
        ..InsightFinding::about(InsightSubject::Memory, &RULE)
    })
}
