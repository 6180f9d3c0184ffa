//! Tiles that need more memory than they have, so that the program cannot run.

use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation,
    pluralised,
};
use crate::label_conventions::is_float32;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tilescope_report::TileMemory;
use tilescope_report::units::Bytes;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "out_of_memory",
    description: "tiles that need more memory than they have",
    keys: &[],
    find,
};

/// Memory of a tile of an Mk2 IPU, the largest of any IPU.
const MK2_TILE_BYTES: Bytes = Bytes(624 * 1024);

/// The remedies for a tile that needs too much memory, the most likely first. Each is named only if
/// the report shows that it would free memory.
fn advice(facts: &InsightFacts, tile: &TileMemory) -> String {
    let mut remedies: Vec<String> = Vec::new();
    let wide: Bytes =
        facts.peak.iter().flat_map(|peak| &peak.variables).fold(Bytes::ZERO, |sum, live| {
            if is_float32(&live.about) { sum + live.total_bytes() } else { sum }
        });
    if wide * 20 >= tile.overflowed {
        let less = facts.numbers.bytes(wide.0 / 2);
        remedies.push(format!(
            "compute in float16 (model.precision), which saves up to {less} on the fullest tile"
        ));
    }
    let blocks: BTreeSet<_> = facts.operations.iter().map(|of| &of.block).collect();
    let divides = blocks.len() > facts.target.ipus_per_replica as usize;
    // More IPUs divide always-live memory; the working set of a single operation stays the same.
    if divides && tile.always_live >= tile.overflowed {
        remedies.push("spread the model over more IPUs (target.ipus)".to_owned());
    }
    if facts.batching.as_ref().is_some_and(|batching| batching.micro_batch > 1) {
        remedies.push("reduce the micro-batch (model.batch_size)".to_owned());
    }
    if facts.target.bytes_per_tile < MK2_TILE_BYTES {
        let room = facts.numbers.bytes(MK2_TILE_BYTES.0);
        remedies.push(format!("use a chip with more memory (Mk2 has {room} per tile)"));
    }
    if tile.peak_not_always_live >= tile.overflowed {
        remedies.push("lower available_memory_proportion".to_owned());
    }
    match remedies.split_last() {
        None => {
            "Most of the memory is always live: the model is too large for this number of IPUs."
                .into()
        }
        Some((last, [])) => format!("Try this: {last}."),
        Some((last, others)) => {
            format!("Try these, combined if needed: {}; {last}.", others.join("; "))
        }
    }
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let over = facts.memory.map(|tile| u64::from(tile.overflowed > Bytes::ZERO)).total();
    if over == 0 {
        return Vec::new();
    }
    let tiles = facts.memory.iter();
    let worst = tiles.max_by_key(|(range, tile)| (tile.overflowed, Reverse(range.first)));
    let Some((range, tile)) = worst else { return Vec::new() };
    let sentence = format!(
        "{} need more than the {} of a tile. Tile {} needs the most: {} more than it has.",
        pluralised(over, "tile"),
        facts.numbers.bytes(facts.target.bytes_per_tile.0),
        range.first,
        facts.numbers.bytes(tile.overflowed.0),
    );
    vec![InsightFinding {
        sentence,
        advice: advice(facts, tile),
        formula: "tiles with bytes beyond the end of their memory",
        gain: InsightGain::Everything,
        place: ViewLocation { tiles: vec![range.first], ..ViewLocation::view("memory") },
        ..InsightFinding::about(InsightSubject::Memory, &RULE)
    }]
}
