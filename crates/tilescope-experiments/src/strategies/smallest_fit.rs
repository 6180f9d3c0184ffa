//! The smallest change with which a program fits that does not.
//!
//! Each lever is tried by itself, then two at once, then three, until something fits. Levers multiply:
//! two that each save a third are expected to save five ninths, so that only combinations that can fit
//! are simulated. Of those that fit, the fastest comes first.

use super::fit_levers::FitLevers;
use super::levers::{MEANING, is_below};
use super::moves::{TuneMove, TuneSpace};
use crate::ExperimentError;
use crate::point::Point;
use crate::trial::TrialFigures;
use crate::trial_store::{TrialStore, TrialTask};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use tilescope_analysis::confidence::MemoryFit;
use tilescope_analysis::insights::SpecChanges;

/// Most levers that are changed at once.
const MOST_LEVERS: usize = 3;

/// The maximum number of simulated combinations of one size.
const ROUND: usize = 12;

/// Number of combinations of a round that are chosen for the least memory, regardless of cost.
const SMALLEST: usize = 4;

/// The share of the fullest tile by which an expectation may be too high.
const MOST_TOO_HIGH: f64 = 0.15;

/// Changes of the fullest tile below this share count as no change.
const SAME: f64 = 1e-3;

/// The maximum number of results.
const GIVEN: usize = 3;

/// A change with which the program fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitFound {
    #[serde(flatten)]
    pub moved: TuneMove,
    pub point: Point,
}

impl FitFound {
    fn cost(&self) -> FitCost {
        let figures = self.point.figures();
        FitCost {
            levers: self.moved.reasons.len(),
            ipus: figures.map_or(u32::MAX, |figures| figures.ipus),
            seconds: figures.and_then(TrialFigures::seconds_per_sample).unwrap_or(f64::INFINITY),
        }
    }

    /// True if the program fits by more than the errors of the model.
    pub fn is_certain(&self) -> bool {
        self.point.figures().is_some_and(|figures| figures.fit != Some(MemoryFit::FitsUncertain))
    }
}

/// Result of a search for the smallest change that fits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SmallestFit {
    /// Changes that fit: the fastest of the smallest ones first. If it is not certain to fit, the
    /// fastest extension that is certain follows.
    pub found: Vec<FitFound>,
    /// The change that comes closest, if none fits.
    pub closest: Option<FitFound>,
}

/// Levers, with the effect of each alone on the fullest tile.
struct TriedLever {
    moved: TuneMove,
    /// Memory of the fullest tile divided by that of a tile, over the same without the lever.
    effect: f64,
}

/// Most simulations that a search takes with a number of levers.
pub fn most_trials(levers: usize) -> usize {
    // Single levers, combinations of two and of three, and an extension of an uncertain result.
    levers + (MOST_LEVERS - 1) * ROUND + levers
}

/// Finds the smallest change that makes a spec fit. The original spec was already simulated and
/// does not fit.
///
/// # Errors
/// Children that cannot be started, and results that cannot be written.
pub fn smallest_fit(
    space: &TuneSpace,
    levers: &FitLevers,
    store: &mut TrialStore<'_>,
) -> Result<SmallestFit, ExperimentError> {
    let mut search = FitSearch { space, store, tried: Vec::new() };
    let Some(base) = search.bytes(&SpecChanges::new()) else { return Ok(SmallestFit::default()) };
    search.simulate(levers.levers.iter().map(|lever| lever.moved.clone()).collect())?;
    let mut useful = Vec::new();
    for lever in &levers.levers {
        let Some(bytes) = search.bytes(&space.moved(&SpecChanges::new(), &lever.moved)) else {
            continue;
        };
        let effect = bytes / base / lever.room;
        if effect < 1.0 - SAME {
            useful.push(TriedLever { moved: lever.moved.clone(), effect });
        }
    }
    let fullness = base / levers.tile.as_f64().max(1.0);
    for size in 2..=MOST_LEVERS {
        if search.best().is_none() {
            search.simulate(combinations(&useful, size, fullness))?;
        }
    }
    search.make_certain(&useful)?;
    Ok(search.result())
}

/// Combinations of `size` levers that may fit: those that save the most, and those that save just
/// enough.
/// `fullness` is the memory of the fullest tile divided by that of a tile.
fn combinations(levers: &[TriedLever], size: usize, fullness: f64) -> Vec<TuneMove> {
    let mut sets: Vec<(Vec<usize>, f64)> = vec![(Vec::new(), fullness)];
    for _ in 0..size {
        let mut larger = Vec::new();
        for (set, expected) in &sets {
            let first = set.last().map_or(0, |last| last + 1);
            for (at, lever) in levers.iter().enumerate().skip(first) {
                let overlaps = set.iter().any(|of| levers[*of].moved.overlaps(&lever.moved));
                if !overlaps {
                    larger.push(([set.as_slice(), &[at]].concat(), expected * lever.effect));
                }
            }
        }
        sets = larger;
    }
    sets.retain(|(_, expected)| expected * (1.0 - MOST_TOO_HIGH) <= 1.0);
    sets.sort_by(|a, b| a.1.total_cmp(&b.1));
    // The others, ordered by their free memory, the least first.
    let smallest = SMALLEST.min(sets.len());
    sets[smallest..].reverse();
    sets.truncate(ROUND);
    let mut moves = Vec::new();
    for (set, _) in sets {
        let parts: Vec<TuneMove> = set.iter().map(|at| levers[*at].moved.clone()).collect();
        moves.push(TuneMove::together(&parts));
    }
    moves
}

/// A search in progress.
struct FitSearch<'a, 's, 'p> {
    space: &'a TuneSpace,
    store: &'s mut TrialStore<'p>,
    tried: Vec<TuneMove>,
}

impl FitSearch<'_, '_, '_> {
    fn point(&self, by: &TuneMove) -> Option<&Point> {
        self.store.point(&self.space.moved(&SpecChanges::new(), by))
    }

    /// Simulates changes within the budget.
    fn simulate(&mut self, moves: Vec<TuneMove>) -> Result<(), ExperimentError> {
        let mut tasks = Vec::new();
        let left = self.store.left();
        for by in &moves {
            if self.point(by).is_none() && tasks.len() < left {
                tasks.push(TrialTask::Figures(self.space.moved(&SpecChanges::new(), by)));
            }
        }
        self.tried.extend(moves);
        self.store.run(tasks)
    }

    /// Bytes that the fullest tile needs at a point.
    fn bytes(&self, at: &SpecChanges) -> Option<f64> {
        let bytes = self.store.point(at)?.figures()?.fullest_tile_bytes.as_f64();
        (bytes > 0.0).then_some(bytes)
    }

    /// Changes that were tried, with their points.
    fn outcomes(&self) -> Vec<FitFound> {
        let mut found: Vec<FitFound> = Vec::new();
        for moved in &self.tried {
            let is_new = found.iter().all(|of| of.moved.changes != moved.changes);
            if let Some(point) = self.point(moved).filter(|_| is_new) {
                found.push(FitFound { moved: moved.clone(), point: point.clone() });
            }
        }
        found
    }

    /// Changes that fit, the best first.
    fn fits(&self) -> Vec<FitFound> {
        let mut found = self.outcomes();
        found.retain(|found| found.point.fits());
        found.sort_by(|a, b| a.cost().total_order(b.cost()));
        found
    }

    fn best(&self) -> Option<FitFound> {
        self.fits().into_iter().next()
    }

    /// Adds one more lever to the best change if that is not certain to fit.
    fn make_certain(&mut self, useful: &[TriedLever]) -> Result<(), ExperimentError> {
        let Some(best) = self.best().filter(|best| !best.is_certain()) else { return Ok(()) };
        let mut moves = Vec::new();
        for lever in useful {
            if !lever.moved.overlaps(&best.moved) {
                moves.push(TuneMove::together(&[best.moved.clone(), lever.moved.clone()]));
            }
        }
        self.simulate(moves)
    }

    /// The best change, and later ones that are better than each earlier one in some respect.
    fn result(&self) -> SmallestFit {
        let mut found: Vec<FitFound> = Vec::new();
        for other in self.fits() {
            let is_new = found.iter().all(|before| self.has_something_over(&other, before));
            if is_new && found.len() < GIVEN {
                found.push(other);
            }
        }
        let mut closest = None;
        if found.is_empty() {
            let mut outcomes = self.outcomes();
            outcomes.retain(|found| found.point.figures().is_some());
            closest = outcomes.into_iter().min_by_key(|found| {
                found.point.figures().map_or(u64::MAX, |figures| figures.fullest_tile_bytes.0)
            });
        }
        SmallestFit { found, closest }
    }

    /// True if `found` is better than `other` in one respect: it is certain to fit and the other is
    /// not, it changes fewer keys of the computation, or it is certain to fit and faster.
    fn has_something_over(&self, found: &FitFound, other: &FitFound) -> bool {
        let is_faster = found.cost().seconds < other.cost().seconds;
        (found.is_certain() && !other.is_certain())
            || self.changed_meaning(found) < self.changed_meaning(other)
            || (found.is_certain() && is_faster)
    }

    /// Keys of a change that determine the computation or the machine.
    fn changed_meaning(&self, found: &FitFound) -> usize {
        found.moved.changes.keys().filter(|key| is_below(key, MEANING)).count()
    }
}

/// The cost of a change, where smaller is better: levers, IPUs, seconds per sample.
struct FitCost {
    levers: usize,
    ipus: u32,
    seconds: f64,
}

impl FitCost {
    fn total_order(&self, other: Self) -> Ordering {
        let order = self.levers.cmp(&other.levers).then(self.ipus.cmp(&other.ipus));
        order.then(self.seconds.total_cmp(&other.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lever(key: &str, effect: f64) -> TriedLever {
        let changes = [(key.to_owned(), json!(1))].into();
        TriedLever { moved: TuneMove::of("test", changes, String::new()), effect }
    }

    #[test]
    fn only_combinations_that_may_fit_are_tried() {
        let levers = [lever("a", 0.9), lever("b", 0.5), lever("c", 0.6), lever("d", 0.99)];
        // Needs 2.2 times the memory of a tile: factors of 0.5 and 0.6 leave 0.66, other pairs
        // more.
        let pairs = combinations(&levers, 2, 2.2);
        let texts: Vec<String> = pairs.iter().map(TuneMove::text).collect();
        assert_eq!(texts, ["b = 1, c = 1", "a = 1, b = 1", "b = 1, d = 1"]);
        assert!(combinations(&levers, 2, 10.0).is_empty());
        assert_eq!(combinations(&levers, 3, 2.2).len(), 4);
    }

    #[test]
    fn levers_that_set_the_same_key_are_not_combined() {
        let levers = [lever("a", 0.5), lever("a", 0.4), lever("b", 0.5)];
        for pair in combinations(&levers, 2, 1.5) {
            assert_eq!(pair.changes.len(), 2, "{pair:?}");
        }
        assert_eq!(combinations(&levers, 2, 1.5).len(), 2);
    }

    #[test]
    fn rounds_are_bounded() {
        let levers: Vec<TriedLever> = (0..40)
            .map(|key| lever(&format!("key{key:02}"), 0.5 + 0.01 * f64::from(key)))
            .collect();
        let pairs = combinations(&levers, 2, 1.2);
        assert_eq!(pairs.len(), ROUND);
        // Combinations that save the most come first, then those that save just enough.
        assert_eq!(pairs[0].text(), "key00 = 1, key01 = 1");
        assert!(most_trials(levers.len()) >= levers.len() + 2 * ROUND);
    }
}
