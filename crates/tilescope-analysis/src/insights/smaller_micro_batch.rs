//! Samples of a micro-batch that fill the tiles.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::TileVariable;
use super::{InsightFacts, InsightFinding, InsightRule, Proposal};
use crate::label_conventions::{is_accumulator, is_optimizer_state};
use serde_json::json;
use tilescope_report::MemoryCategory;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "smaller_micro_batch",
    description: "micro-batches whose activations fill the tiles",
    keys: &["model.batch_size", "options.gradient_accumulation"],
    find,
};

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    halved(facts).into_iter().collect()
}

fn halved(facts: &InsightFacts) -> Option<InsightFinding> {
    let samples = facts.spec_number("model.batch_size")?;
    if samples < 2 || !samples.is_multiple_of(2) {
        return None;
    }
    use MemoryCategory::{ControlCode, ControlTable, HostExchangeCode, Stack, VertexCode};
    let stays = |of: &TileVariable| {
        let is_code = matches!(
            of.category,
            ControlCode | ControlTable | HostExchangeCode | Stack | VertexCode
        );
        is_code || facts.is_weight(of) || is_optimizer_state(&of.name) || is_accumulator(&of.name)
    };
    let saved = SavedMemory::of(facts, |of| if stays(of) { 0.0 } else { 0.5 })?;
    let words = MemoryWords {
        what: "Activations, temporaries and their vertices",
        advice: format!("Micro-batches of {} need half of it.", samples / 2),
        formula: "peak live bytes of a tile with all weights, gradient accumulators, optimiser \
        state and code, and half of the rest / bytes that the fullest tile needs; the gain is the \
        rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal(facts, samples / 2)?))
}

/// Proposes half the samples per micro-batch, and in training twice the micro-batches per weight
/// update.
fn proposal(facts: &InsightFacts, samples: u64) -> Option<Proposal> {
    const BATCH: &str = "model.batch_size";
    const STEPS: &str = "options.gradient_accumulation";
    let cost = "Twice as many handshakes, syncs and operation starts";
    if facts.spec("model.training") == Some("true") {
        let steps = facts.spec_number(STEPS)?.saturating_mul(2);
        facts.proposal([(BATCH, json!(samples)), (STEPS, json!(steps))], cost)
    } else {
        facts.proposal([(BATCH, json!(samples))], cost)
    }
}
