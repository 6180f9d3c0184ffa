//! Tensors that could wait in streaming memory, where tiles have no room for them.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::TileVariable;
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::{is_accumulator, is_optimizer_state, is_stash};
use serde_json::json;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "offloading",
    description: "tensors on full tiles that could wait in streaming memory",
    find,
};

/// A kind of tensors, and the key that says where they are.
struct OffloadedKind {
    key: &'static str,
    what: &'static str,
    cost: &'static str,
    holds: fn(&InsightFacts, &TileVariable) -> bool,
}

/// Those that are used least often come first.
const KINDS: [OffloadedKind; 4] = [
    OffloadedKind {
        key: "options.location.optimizer_state.on_chip",
        what: "Tensors of optimiser state",
        cost: "Copied from streaming memory and back for each weight update",
        holds: |_, of| is_optimizer_state(&of.name),
    },
    OffloadedKind {
        key: "options.location.activations.on_chip",
        what: "Stashed activations",
        cost: "Copied to streaming memory and back for each micro-batch",
        holds: |_, of| is_stash(&of.name),
    },
    OffloadedKind {
        key: "options.location.accumulators.on_chip",
        what: "Gradient accumulators",
        cost: "Copied from streaming memory and back for each micro-batch",
        holds: |_, of| is_accumulator(&of.name),
    },
    OffloadedKind {
        key: "options.location.weights.on_chip",
        what: "Weights",
        cost: "Copied from streaming memory for each pass of each micro-batch",
        holds: |facts, of| facts.is_weight(of),
    },
];

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    // Phases keep nothing on the chip.
    if facts.spec("options.execution") == Some("phased") {
        return Vec::new();
    }
    KINDS.iter().filter_map(|kind| offloaded(facts, kind)).collect()
}

fn offloaded(facts: &InsightFacts, kind: &OffloadedKind) -> Option<InsightFinding> {
    let removed = |of: &TileVariable| if (kind.holds)(facts, of) { 1.0 } else { 0.0 };
    let saved = SavedMemory::of(facts, removed)?;
    let proposal = facts.proposal([(kind.key, json!(false))], kind.cost)?;
    let words = MemoryWords {
        what: kind.what,
        advice: "In streaming memory they take none of it but while they are used.".to_owned(),
        formula: "most that is live on a tile at once without them / what the fullest tile needs; \
                  the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}
