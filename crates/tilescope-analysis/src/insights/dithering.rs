//! Convolutions that all begin at the same tile.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::TileVariable;
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::memory::needed;
use serde_json::json;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "dithering",
    description: "full tiles that hold more of convolutions and their weights than others",
    find,
};

/// Less than this many times the mean is spread well.
const MIN_RATIO: f64 = 1.1;

const KEY: &str = "options.conv_dithering";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    spread(facts).into_iter().collect()
}

fn spread(facts: &InsightFacts) -> Option<InsightFinding> {
    let full = facts.full_tiles.as_ref()?;
    let tiles = f64::from(facts.memory.tile_count().max(1));
    let mean = facts.memory.map(needed).total().as_f64() / tiles;
    if full.needed.as_f64() < MIN_RATIO * mean {
        return None;
    }
    let moves = |of: &TileVariable| {
        let operation = of.operation.and_then(|id| facts.operations.get(id.index()));
        facts.is_weight(of) || operation.is_some_and(|operation| operation.plan.is_some())
    };
    let saved = SavedMemory::of(facts, |of| if moves(of) { 1.0 } else { 0.0 })?;
    let saved = saved.at_most(facts, 1.0 - mean / full.needed.as_f64())?;
    let proposal = facts.proposal([(KEY, json!(true))], "Operands cross more of the chip")?;
    let words = MemoryWords {
        what: "Convolutions, matmuls and weights",
        advice: "With dithering each convolution begins at a tile of its own, so that what is left \
                 over does not pile up on the first tiles."
            .to_owned(),
        formula: "most that is live on a tile at once without them, or the mean of all tiles if that is \
                  more / what the fullest tile needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}
