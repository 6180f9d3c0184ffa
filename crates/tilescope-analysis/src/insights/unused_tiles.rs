//! Tiles that never compute.

use super::{Facts, Finding, Gain, Place, Rule, Subject, counted};
use tilescope_report::units::percent;

pub(crate) const RULE: Rule =
    Rule { name: "unused_tiles", looks_for: "tiles that never compute", find };

/// Fewer are what is left over by any plan.
const WORTH: f64 = 0.02;

fn find(facts: &Facts) -> Vec<Finding> {
    let tiles = facts.target.tiles_per_replica();
    let mut used = vec![false; tiles as usize];
    let sets = facts.compute_sets.values().filter(|set| !set.cycles.is_empty());
    for (range, _) in sets.flat_map(|set| set.cycles.iter()) {
        let end = range.end.min(tiles);
        used[range.first.min(end) as usize..end as usize].fill(true);
    }
    let per_ipu = facts.target.tiles_per_ipu.max(1);
    let io = facts.target.io_tiles_per_ipu;
    // Tiles set aside for I/O are not meant to compute.
    let idle = |tile: &u32| !used[*tile as usize] && tile % per_ipu < per_ipu - io.min(per_ipu);
    let unused: Vec<u32> = (0..tiles).filter(idle).collect();
    let share = unused.len() as f64 / f64::from(tiles.max(1));
    if !used.contains(&true) || share < WORTH {
        return Vec::new();
    }
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Time,
        sentence: format!(
            "{} never run a vertex, {} of all tiles.",
            counted(unused.len() as u64, "tile"),
            percent(share)
        ),
        advice: "A larger micro-batch or fewer IPUs would put them to work.".to_owned(),
        formula: "tiles without cycles in any compute set, I/O tiles left out / tiles",
        gain: Gain::Unknown,
        place: Place { tiles: unused.into_iter().take(1).collect(), ..Place::view("memory") },
    }]
}
