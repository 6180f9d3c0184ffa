//! Tiles that are nearly full: the next larger batch may not fit.

use super::tile_contents::NEARLY_FULL;
use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule =
    InsightRule { name: "full_tiles", description: "tiles that are nearly full", keys: &[], find };

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let capacity = facts.target.bytes_per_tile.0;
    let Some((tile, bytes)) = facts.fullest(1).first().copied() else { return Vec::new() };
    let share = bytes.as_f64() / capacity.max(1) as f64;
    if capacity == 0 || !(NEARLY_FULL..=1.0).contains(&share) {
        return Vec::new();
    }
    vec![InsightFinding {
        sentence: format!(
            "The fullest tile, {tile}, is {} full: {} of {}.",
            percent(share),
            facts.numbers.bytes(bytes.0),
            facts.numbers.bytes(facts.target.bytes_per_tile.0),
        ),
        advice: "The program fits, but a larger micro-batch may not. The Memory view shows what \
                 fills this tile."
            .to_owned(),
        formula: "memory that the tile uses, including gaps / memory of a tile",
        place: ViewLocation { tiles: vec![tile], ..ViewLocation::view("memory") },
        ..InsightFinding::about(InsightSubject::Memory, &RULE)
    }]
}
