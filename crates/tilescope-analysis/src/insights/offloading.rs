//! Tensors that could be kept in streaming memory if tiles have too little memory.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::{FullTileContents, TileVariable};
use super::{InsightFacts, InsightFinding, InsightRule, Proposal};
use crate::label_conventions::{is_accumulator, is_optimizer_state, is_stash};
use serde_json::json;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "offloading",
    description: "tensors on full tiles that could be offloaded to streaming memory",
    keys: &[STATE, ACTIVATIONS, ACCUMULATORS, WEIGHTS, EXECUTION, SETS],
    find,
};

const STATE: &str = "options.location.optimizer_state.on_chip";
const ACTIVATIONS: &str = "options.location.activations.on_chip";
const ACCUMULATORS: &str = "options.location.accumulators.on_chip";
const WEIGHTS: &str = "options.location.weights.on_chip";
const KINDS: [&str; 4] = [STATE, ACTIVATIONS, ACCUMULATORS, WEIGHTS];
const EXECUTION: &str = "options.execution";
const SETS: &str = "options.execution_phase_settings.stages";

/// The minimum gain that justifies phases: they multiply the run time.
const LEAST_BY_PHASES: f64 = 0.1;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    // Phased execution already keeps nothing on the chip between phases.
    if facts.spec(EXECUTION) == Some("phased") {
        return Vec::new();
    }
    // Weights and accumulators stay on the chip for a whole pass; only phases are shorter.
    [state(facts), activations(facts), phases(facts)].into_iter().flatten().collect()
}

fn finding(
    facts: &InsightFacts,
    saved: SavedMemory,
    (what, advice): (&'static str, &str),
    proposal: Proposal,
) -> InsightFinding {
    let words = MemoryWords {
        what,
        advice: advice.to_owned(),
        formula: "peak live bytes of a tile without them / bytes that the fullest tile needs; the \
                  gain is the rest",
    };
    saved.finding(facts, &RULE, words, proposal)
}

fn state(facts: &InsightFacts) -> Option<InsightFinding> {
    let saved = SavedMemory::of(facts, |of| f64::from(is_optimizer_state(&of.name)))?;
    let cost = "A copy from and to streaming memory for each weight update";
    let proposal = facts.proposal([(STATE, json!(false))], cost)?;
    let advice = "Offloaded to streaming memory, they use tile memory during the weight update \
                  only.";
    Some(finding(facts, saved, ("Optimiser state tensors", advice), proposal))
}

fn activations(facts: &InsightFacts) -> Option<InsightFinding> {
    let saved = SavedMemory::of(facts, |of| f64::from(is_stash(&of.name)))?;
    let cost = "A copy to and from streaming memory for each micro-batch";
    let proposal = facts.proposal([(ACTIVATIONS, json!(false))], cost)?;
    let advice = "Offloaded to streaming memory, they leave tile memory until the backward pass.";
    Some(finding(facts, saved, ("Stashed activations", advice), proposal))
}

/// Rule for a program that does not fit: offloads all stored tensors.
fn phases(facts: &InsightFacts) -> Option<InsightFinding> {
    facts.full_tiles.as_ref().filter(|full: &&FullTileContents| full.overflows())?;
    let is_kept = |of: &TileVariable| {
        let is_state = is_optimizer_state(&of.name) || is_accumulator(&of.name);
        is_state || is_stash(&of.name) || facts.is_weight(of)
    };
    let saved = SavedMemory::of(facts, |of| f64::from(is_kept(of)))?.at_least(LEAST_BY_PHASES)?;
    let cost = "A copy from and to streaming memory for each phase: several times slower";
    // Even and odd IPUs alternate; if that is not possible, all of them work on each phase.
    let mut proposal = facts.proposal([(EXECUTION, json!("phased"))], cost)?;
    if !facts.target.ipus_per_replica.is_multiple_of(2) {
        proposal.changes.insert(SETS.to_owned(), json!(1));
    }
    // Tensors that a spec keeps on the chip stay there in phases too.
    let off_chip = facts.proposal(KINDS.map(|kind| (kind, json!(false))), cost);
    proposal.changes.extend(off_chip.into_iter().flat_map(|off_chip| off_chip.changes));
    let advice = "Phased execution keeps them in streaming memory, and each phase loads its own \
    tensors.";
    let what = "Weights, gradients, optimiser state and stashed activations";
    Some(finding(facts, saved, (what, advice), proposal))
}
