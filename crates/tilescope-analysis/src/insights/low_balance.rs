//! Compute sets in which most tiles wait for a few tiles.

use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::ComputeSet;
use tilescope_report::units::{Cycles, ProgramId, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "low_balance",
    description: "compute sets in which most tiles wait for a few",
    keys: &[],
    find,
};

/// Smaller shares of idle time are not reported.
const MIN_SHARE: f64 = 0.01;
/// The largest number of compute sets that are named.
const MAX_NAMED_COMPUTE_SETS: usize = 3;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some(runs) = &facts.runs else { return Vec::new() };
    let tiles = facts.known_tiles_per_ipu();
    let mut found: Vec<(ProgramId, f64, f64)> = Vec::new();
    for of in runs.shares() {
        let set = facts.programs.get(of.program).and_then(|program| program.compute_set);
        let Some(set) = set.and_then(|id| facts.compute_sets.get(&id)) else { continue };
        let Some(balance) = balance(set, tiles) else { continue };
        let idle = of.share.value() * (1.0 - balance);
        if idle >= MIN_SHARE {
            found.push((of.program, balance, idle));
        }
    }
    found.sort_by(|a, b| b.2.total_cmp(&a.2));
    found.truncate(MAX_NAMED_COMPUTE_SETS);
    let finding = |(id, balance, _): (ProgramId, f64, f64)| InsightFinding {
        sentence: format!(
            "{} keeps its tiles busy for only {} of its time.",
            facts.name(id),
            percent(balance)
        ),
        advice: "The other tiles wait for the slowest one. Sizes that divide evenly over the \
                 tiles, or a larger micro-batch, spread the work."
            .to_owned(),
        formula: "tile balance: mean cycles of the tiles of the IPU that are recorded / cycles of the \
                  slowest tile; gain: (1 - tile balance) x its cycles on the critical path / cycles of the run",
        gain: facts.gain_of_program(1.0 - balance, id),
        place: ViewLocation { program: Some(id), ..ViewLocation::view("program-tree") },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    };
    found.into_iter().map(finding).collect()
}

/// Mean cycles over the tiles of an IPU divided by the cycles of the slowest tile.
fn balance(set: &ComputeSet, tiles: u32) -> Option<f64> {
    let slowest = set.cycles.max();
    let mean = set.cycles.total().as_f64() / f64::from(tiles);
    (slowest > Cycles::ZERO).then(|| (mean / slowest.as_f64()).min(1.0))
}
