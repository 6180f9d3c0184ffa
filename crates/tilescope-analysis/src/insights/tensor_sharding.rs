//! Tensors that every replica holds in full, on tiles that are short of memory.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::TileVariable;
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::{is_accumulator, is_optimizer_state};
use serde_json::json;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "tensor_sharding",
    description: "tensors on full tiles that every replica stores in full",
    keys: &[
        "options.location.optimizer_state.replicated_tensor_sharding",
        "options.location.accumulators.replicated_tensor_sharding",
        "options.location.weights.replicated_tensor_sharding",
    ],
    find,
};

/// A kind of tensors, and the key that shards them.
struct ShardedKind {
    key: &'static str,
    what: &'static str,
    cost: &'static str,
    /// The minimum gain that justifies the cost.
    least: f64,
    holds: fn(&InsightFacts, &TileVariable) -> bool,
}

const KINDS: [ShardedKind; 3] = [
    ShardedKind {
        key: "options.location.optimizer_state.replicated_tensor_sharding",
        what: "Optimiser state tensors",
        cost: "Replicas gather weights after each update",
        least: 0.05,
        holds: |_, of| is_optimizer_state(&of.name),
    },
    ShardedKind {
        key: "options.location.accumulators.replicated_tensor_sharding",
        what: "Gradient accumulators",
        cost: "Replicas reduce gradients for each micro-batch, not for each update",
        least: 0.05,
        holds: |_, of| is_accumulator(&of.name),
    },
    ShardedKind {
        key: "options.location.weights.replicated_tensor_sharding",
        what: "Weights",
        cost: "Replicas gather weights for each pass of each micro-batch",
        least: 0.1,
        holds: |facts, of| facts.is_weight(of),
    },
];

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let number = |key| facts.spec_number(key).unwrap_or(1).max(1);
    // A tensor is sharded over the replicas of an instance.
    let replicas = number("options.replication_factor") / number("options.num_instances");
    if replicas < 2 {
        return Vec::new();
    }
    KINDS.iter().filter_map(|kind| sharded(facts, kind, replicas)).collect()
}

fn sharded(facts: &InsightFacts, kind: &ShardedKind, replicas: u64) -> Option<InsightFinding> {
    let others = 1.0 - 1.0 / replicas as f64;
    let removed = |of: &TileVariable| if (kind.holds)(facts, of) { others } else { 0.0 };
    let saved = SavedMemory::of(facts, removed)?.at_least(kind.least)?;
    let proposal = facts.proposal([(kind.key, json!(true))], kind.cost)?;
    let words = MemoryWords {
        what: kind.what,
        advice: format!("Sharded over {replicas} replicas, each replica holds its share."),
        formula: "peak live bytes of a tile with 1 / replicas of them / bytes that the fullest \
                  tile needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}
