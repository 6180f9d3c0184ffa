//! Tiles that never compute.

use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject, ViewLocation, pluralised};
use tilescope_report::units::{TileId, TileRange, percent};

pub(crate) const RULE: InsightRule =
    InsightRule { name: "unused_tiles", description: "tiles that never compute", keys: &[], find };

/// Smaller shares are a normal remainder of plans.
const MIN_SHARE: f64 = 0.02;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    // Tiles that were not measured may have computed.
    if facts.measured_tiles.is_some() {
        return Vec::new();
    }
    let tiles = TileRange::first_tiles(facts.target.tiles_per_replica());
    let mut used = vec![false; tiles.count() as usize];
    let sets = facts.compute_sets.values().filter(|set| !set.cycles.is_empty());
    for (range, _) in sets.flat_map(|set| set.cycles.iter()) {
        let end = range.end.min(tiles.end);
        used[TileRange::new(range.first.min(end), end).indices()].fill(true);
    }
    let per_ipu = facts.target.tiles_per_ipu.max(1);
    let io = facts.target.io_tiles_per_ipu;
    // Tiles that are reserved for I/O do not compute by design.
    let first_io = TileId(per_ipu - io.min(per_ipu));
    let idle = |tile: &TileId| !used[tile.index()] && *tile % per_ipu < first_io;
    let unused: Vec<TileId> = tiles.iter().filter(idle).collect();
    let share = unused.len() as f64 / f64::from(tiles.count().max(1));
    if !used.contains(&true) || share < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        sentence: format!(
            "{} ({} of all tiles) never run a vertex.",
            pluralised(unused.len() as u64, "tile"),
            percent(share)
        ),
        advice: "A larger micro-batch or fewer IPUs would use them.".to_owned(),
        formula: "tiles without cycles in any compute set, excluding I/O tiles / tiles",
        place: ViewLocation {
            tiles: unused.into_iter().take(1).collect(),
            ..ViewLocation::view("memory")
        },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
