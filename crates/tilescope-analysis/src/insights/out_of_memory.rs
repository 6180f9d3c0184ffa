//! Tiles that need more than they have, so that nothing runs.

use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation,
    pluralised,
};
use std::cmp::Reverse;
use tilescope_report::TileMemory;
use tilescope_report::units::Bytes;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "out_of_memory",
    description: "tiles that need more memory than they have",
    find,
};

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let over = facts.memory.map(|tile| u64::from(tile.overflowed > Bytes::ZERO)).total();
    if over == 0 {
        return Vec::new();
    }
    let need = |tile: &TileMemory| tile.overflowed;
    let worst = facts.memory.iter().max_by_key(|(range, tile)| (need(tile), Reverse(range.first)));
    let Some((range, tile)) = worst else { return Vec::new() };
    let sentence = format!(
        "{} need more memory than the {} a tile has; tile {} is worst and needs {} more.",
        pluralised(over, "tile"),
        facts.numbers.bytes(facts.target.bytes_per_tile.0),
        range.first,
        facts.numbers.bytes(tile.overflowed.0),
    );
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Memory,
        sentence,
        advice: "Spread the model over more IPUs, make the micro-batch smaller, or lower \
                 available_memory_proportion."
            .to_owned(),
        formula: "tiles with bytes beyond the end of their memory",
        gain: InsightGain::Everything,
        place: ViewLocation { tiles: vec![range.first], ..ViewLocation::view("memory") },
    }]
}
