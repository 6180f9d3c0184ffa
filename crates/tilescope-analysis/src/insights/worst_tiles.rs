//! A few tiles that are much fuller than all others.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::memory::needed;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "worst_tiles",
    description: "a few tiles that are much fuller than the rest",
    keys: &[],
    find,
};

/// Ratios to the mean below this one are not reported.
const MIN_RATIO: f64 = 1.25;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let worst = facts.fullest(5);
    let (Some((_, most)), Some((_, least))) = (worst.first(), worst.last()) else {
        return Vec::new();
    };
    let tiles = facts.memory.tile_count().max(1);
    let mean = facts.memory.map(needed).total().as_f64() / f64::from(tiles);
    let times = most.as_f64() / mean.max(1.0);
    if times < MIN_RATIO {
        return Vec::new();
    }
    let names: Vec<String> = worst.iter().map(|(tile, _)| tile.to_string()).collect();
    let ends = [least, most].map(|bytes| facts.numbers.bytes(bytes.0));
    let held = if ends[0] == ends[1] { ends[1].clone() } else { ends.join(" to ") };
    vec![InsightFinding {
        sentence: format!(
            "The five fullest tiles ({}) hold {held}, {times:.1} times the mean of {}.",
            names.join(", "),
            facts.numbers.bytes(mean as u64),
        ),
        advice: "Unevenly mapped tensors, or code that only some tiles need, fill them.".to_owned(),
        formula: "(fullest tile - mean of all tiles) / fullest tile, including gaps",
        gain: InsightGain::Memory(1.0 - mean / most.as_f64().max(1.0)),
        place: ViewLocation {
            tiles: worst.iter().map(|(tile, _)| *tile).collect(),
            ..ViewLocation::view("memory")
        },
        ..InsightFinding::about(InsightSubject::Memory, &RULE)
    }]
}
