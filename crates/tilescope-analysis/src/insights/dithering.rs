//! Convolutions that all start at the same tile.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::TileVariable;
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::memory::needed;
use serde_json::json;
use std::collections::BTreeSet;
use tilescope_report::ModelOperation;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "dithering",
    description: "full tiles with more convolution data and weights than others",
    keys: &[KEY],
    find,
};

/// Smaller deviations from the mean count as balanced.
const MIN_SHARE: f64 = 0.02;

const KEY: &str = "options.conv_dithering";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    spread(facts).into_iter().collect()
}

fn spread(facts: &InsightFacts) -> Option<InsightFinding> {
    let full = facts.full_tiles.as_ref()?;
    let tiles = f64::from(facts.memory.tile_count().max(1));
    let mean = facts.memory.map(needed).total().as_f64() / tiles;
    let above = 1.0 - mean / full.needed.as_f64().max(1.0);
    let is_convolution = |of: &&ModelOperation| of.kind.contains("conv");
    let names: BTreeSet<&str> =
        facts.operations.iter().filter(is_convolution).map(|of| of.name.as_str()).collect();
    // `layer/conv` owns `layer/conv/weight`.
    let is_of_one =
        |name: &str| name.rsplit_once('/').is_some_and(|(operation, _)| names.contains(operation));
    let moves = |of: &TileVariable| {
        let operation = of.operation.and_then(|id| facts.operations.get(id.index()));
        names.contains(of.name.as_str())
            || facts.is_weight(of) && is_of_one(&of.name)
            || operation.iter().any(is_convolution)
    };
    let saved = SavedMemory::of(facts, |of| if moves(of) { 1.0 } else { 0.0 })?;
    let saved = saved.at_most(above).at_least(MIN_SHARE)?;
    let proposal =
        facts.proposal([(KEY, json!(true))], "Operands travel further across the chip")?;
    let words = MemoryWords {
        what: "Convolutions, their weights and results",
        advice:
            "Dithering starts each convolution on a different tile, so that uneven remainders do \
             not accumulate on the first tiles."
                .to_owned(),
        formula: "peak live bytes of a tile without them, or the mean of all tiles if that is \
                  more / bytes that the fullest tile needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}
