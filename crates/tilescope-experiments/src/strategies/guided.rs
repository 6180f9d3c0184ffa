//! The guided search: proceeds from the best point so far to better ones, round by round.
//!
//! A round tries a few changes of the best point; the best of them is the next step. Other changes
//! that gained are combined with it in the next round, before the proposals of insights at the new
//! point, other numbers and other options. If nothing gains, the proposals at the next best points
//! are considered, as far as their bounds could beat the best. The choice depends only on figures,
//! never on the number of parallel simulations or the order in which they end.

use super::moves::{TuneMove, TuneSpace};
use super::smallest_fit::{FitFound, smallest_fit};
use crate::ExperimentError;
use crate::objective::{Score, ScoreClass, TuneObjective};
use crate::point::Point;
use crate::trial::TrialOutcome;
use crate::trial_store::{TrialStore, TrialTask};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tilescope_analysis::insights::SpecChanges;

/// Number of simulations of a round.
const ROUND: usize = 8;

/// The largest number of points beside the path whose proposals are considered.
const MOST_DETOURS: usize = 6;

/// Number of points whose proposals are computed at once.
const DETOURS_AT_ONCE: usize = 2;

/// Number of the changes with the smallest loss that are tried in pairs at the end.
const PAIRED: usize = 8;

/// The largest loss of a change, as a share, to be one of them.
const MOST_LOST: f64 = 0.02;

/// Share by which runs vary without a reason.
const SAME: f64 = 1e-4;

/// A step of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneStep {
    #[serde(flatten)]
    pub moved: TuneMove,
    pub point: Point,
    /// Its gain in the objective, as a share; `None` if it makes the program fit.
    pub gain: Option<f64>,
}

/// A change that was tried without success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadEnd {
    #[serde(flatten)]
    pub moved: TuneMove,
    /// Number of steps of the path before it.
    #[serde(rename = "after_step")]
    pub after: usize,
    pub point: Point,
    /// Its gain over the best point at that time, as a share: zero or negative; `None` if they
    /// cannot be compared.
    pub gain: Option<f64>,
}

/// A proposal that was not tried because of its bound, or because of fixed keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Untried {
    #[serde(flatten)]
    pub moved: TuneMove,
    /// Fixed keys; empty if its bound was too small.
    #[serde(rename = "fixed")]
    pub forbidden: Vec<String>,
}

/// The result of a search.
pub struct TunePath {
    pub base: Point,
    pub steps: Vec<TuneStep>,
    pub dead_ends: Vec<DeadEnd>,
    pub untried: Vec<Untried>,
    /// The smallest change that makes the spec fit, if it changes fixed keys and no other change
    /// helps.
    pub fits_if_free: Option<FitFound>,
    /// Places of the points, among those of the store, that were tried for it.
    pub beyond: Range<usize>,
    /// Number of proposals beside the path that could not beat it, according to their bounds.
    pub skipped_proposals: usize,
    /// True if no changes were left to try.
    pub exhausted: bool,
}

impl TunePath {
    /// The last point of the path, or the original spec.
    pub fn best(&self) -> &Point {
        self.steps.last().map_or(&self.base, |step| &step.point)
    }
}

/// A search in progress.
pub struct Tuner<'a, 's> {
    space: &'a TuneSpace,
    store: &'a mut TrialStore<'s>,
    path: TunePath,
    score: Score,
    /// Changes that gained but are not on the path.
    gained: Vec<TuneMove>,
    /// Numeric keys that proposals named.
    proposed: Vec<String>,
    /// Points beside the path whose proposals were computed.
    detours: Vec<SpecChanges>,
}

impl<'a, 's> Tuner<'a, 's> {
    /// Simulates the original spec.
    ///
    /// # Errors
    /// A spec that cannot be simulated.
    pub fn begin(
        space: &'a TuneSpace,
        store: &'a mut TrialStore<'s>,
    ) -> Result<Self, ExperimentError> {
        let none = SpecChanges::new();
        store.run(vec![TrialTask::Figures(none.clone()), TrialTask::Findings(none.clone())])?;
        let Some(base) = store.point(&none).cloned() else {
            return Err(ExperimentError::NothingSimulated);
        };
        let Some(score) = space.objective.score(&base, &space.conditions) else {
            let problem = base.problem().to_string();
            return Err(match base.outcome {
                TrialOutcome::Refused(_) => ExperimentError::BaseRefused(problem),
                _ => ExperimentError::BaseFailed(problem),
            });
        };
        let path = TunePath {
            base,
            steps: Vec::new(),
            dead_ends: Vec::new(),
            untried: Vec::new(),
            fits_if_free: None,
            beyond: 0..0,
            skipped_proposals: 0,
            exhausted: false,
        };
        let gained = Vec::new();
        let proposed = Vec::new();
        let detours = Vec::new();
        Ok(Self { space, store, path, score, gained, proposed, detours })
    }

    /// Searches until the budget is used up or no changes are left. Returns the path, and the error
    /// that ended it, if any. `found` is called after each round.
    pub fn run(
        mut self,
        mut found: impl FnMut(&TunePath, &TrialStore<'s>),
    ) -> (TunePath, Option<ExperimentError>) {
        if let Err(error) = self.fit() {
            return (self.path, Some(error));
        }
        loop {
            found(&self.path, self.store);
            match self.round() {
                Ok(true) => {}
                Ok(false) => return (self.path, None),
                Err(error) => return (self.path, Some(error)),
            }
        }
    }

    /// Makes the smallest change that makes the spec fit the first step, if the original spec does
    /// not fit.
    fn fit(&mut self) -> Result<(), ExperimentError> {
        if self.score.class != ScoreClass::DoesNotFit {
            return Ok(());
        }
        let allowed = self.space.fit.allowed(self.space);
        let fit = smallest_fit(self.space, &allowed, self.store)?;
        let Some(FitFound { moved, point }) = fit.found.into_iter().next() else {
            if allowed.levers.len() < self.space.fit.levers.len() {
                let first = self.store.points().len();
                let fit = smallest_fit(self.space, &self.space.fit, self.store)?;
                self.path.beyond = first..self.store.points().len();
                self.path.fits_if_free = fit.found.into_iter().next();
            }
            return Ok(());
        };
        if let Some(score) = self.space.objective.score(&point, &self.space.conditions) {
            self.score = score;
            self.path.steps.push(TuneStep { moved, point, gain: None });
        }
        Ok(())
    }

    /// Tries a few changes; returns true if more may follow.
    fn round(&mut self) -> Result<bool, ExperimentError> {
        let left = self.store.left();
        if left == 0 {
            return Ok(false);
        }
        let at = self.path.best().changes.clone();
        let asks = self.store.findings(&at).is_none();
        self.note_proposals(&at);
        let mut moves = self.candidates(&at);
        moves.truncate(ROUND.min(left));
        let mut tasks: Vec<TrialTask> = Vec::new();
        if asks {
            // Its proposals have priority over other changes.
            tasks.push(TrialTask::Findings(at.clone()));
            moves.truncate(left - 1);
        }
        if moves.is_empty() && !asks {
            return self.detour();
        }
        let points = moves.iter().map(|by| self.space.moved(&at, by));
        tasks.extend(points.map(TrialTask::Figures));
        self.store.run(tasks)?;
        self.judge(&at, moves)?;
        Ok(true)
    }

    /// Records the numeric keys that proposals name, and the proposals that are not tried.
    fn note_proposals(&mut self, at: &SpecChanges) {
        let Some(findings) = self.store.findings(at) else { return };
        for by in self.space.proposals(findings, self.saves_memory()) {
            let forbidden: Vec<String> =
                self.space.forbidden(&by).into_iter().map(str::to_owned).collect();
            let is_untried = !forbidden.is_empty() || self.space.is_bound_too_low(&by);
            let is_noted = self.path.untried.iter().any(|noted| {
                noted.moved.reasons[0].rule == by.reasons[0].rule && noted.forbidden == forbidden
            });
            if is_untried && !is_noted {
                self.path.untried.push(Untried { moved: by, forbidden });
            } else if !is_untried {
                let new = by.changes.keys().filter(|key| !self.proposed.contains(key));
                let new: Vec<String> = new.cloned().collect();
                self.proposed.extend(new);
            }
        }
    }

    /// True if the search has to save memory.
    fn saves_memory(&self) -> bool {
        self.space.objective == TuneObjective::Memory || self.score.class == ScoreClass::DoesNotFit
    }

    /// Changes worth trying from the best point, the most promising first.
    fn candidates(&self, at: &SpecChanges) -> Vec<TuneMove> {
        let mut moves = Vec::new();
        if self.gained.len() > 1 {
            moves.push(TuneMove::together(&self.gained));
        }
        moves.extend(self.gained.iter().cloned());
        match self.store.findings(at) {
            Some(findings) => {
                let saves_memory = self.saves_memory();
                let proposals = self.space.proposals(findings, saves_memory).into_iter();
                moves.extend(proposals.filter(|proposal| !self.space.is_bound_too_low(proposal)));
                let mut numbers = self.space.neighbours(at, &self.proposed).into_iter();
                moves.extend(self.space.fewer_ipus(at));
                moves.extend(self.space.more_replicas(at));
                moves.extend(numbers.next().unwrap_or_default());
                moves.extend(self.space.levers(at, saves_memory));
                moves.extend(self.space.stage_moves(at));
                moves.extend(numbers.flatten());
            }
            // Until proposals are known, only changes that are known to help.
            None => {
                moves.extend(self.space.neighbours(at, &[]).into_iter().next().unwrap_or_default())
            }
        }
        let mut seen: Vec<SpecChanges> = Vec::new();
        moves.retain(|change| {
            let point = self.space.moved(at, change);
            let is_new = self.store.point(&point).is_none() && !seen.contains(&point);
            let is_wanted = is_new && self.space.allows(at, change);
            seen.push(point);
            is_wanted
        });
        moves
    }

    /// Proceeds to the best point of a round if it is better; the other changes gained too or are
    /// dead ends.
    fn judge(&mut self, at: &SpecChanges, moves: Vec<TuneMove>) -> Result<(), ExperimentError> {
        let before = self.score;
        let mut tried: Vec<(TuneMove, Point, Option<Score>)> = Vec::new();
        for by in moves {
            if let Some(point) = self.store.point(&self.space.moved(at, &by)).cloned() {
                let score = self.space.objective.score(&point, &self.space.conditions);
                tried.push((by, point, score));
            }
        }
        let best = tried
            .iter()
            .enumerate()
            .filter_map(|(place, (.., score))| Some((place, (*score)?)))
            .filter(|(_, score)| score.beats(before))
            .min_by(|(_, a), (_, b)| a.class.cmp(&b.class).then(a.value.total_cmp(&b.value)));
        let after = self.path.steps.len();
        let winner = best.map(|(place, score)| {
            let (moved, point, _) = tried.remove(place);
            let gain = score.gain_over(before);
            self.score = score;
            // A change of the same keys cannot be combined with it.
            self.gained.retain(|by| !by.overlaps(&moved));
            self.path.steps.push(TuneStep { moved: moved.clone(), point, gain });
            moved
        });
        for (moved, point, score) in tried {
            let gains = score.is_some_and(|score| score.beats(before));
            let adds = winner.as_ref().is_some_and(|winner| !winner.overlaps(&moved));
            let is_known = self.gained.contains(&moved);
            if gains && adds && !is_known && moved.reasons.len() == 1 {
                self.gained.push(moved);
            } else if !gains {
                self.gained.retain(|by| *by != moved);
                let gain = score.and_then(|score| score.gain_over(before));
                self.path.dead_ends.push(DeadEnd { moved, after, point, gain });
            }
        }
        match winner {
            Some(winner) if winner.reasons.len() > 1 => self.trim(at, &winner, before),
            _ => Ok(()),
        }
    }

    /// Removes all parts from the last step, a combination, that do not contribute to it.
    fn trim(
        &mut self,
        at: &SpecChanges,
        whole: &TuneMove,
        before: Score,
    ) -> Result<(), ExperimentError> {
        let parts = whole.parts();
        let without = |left_out: &[usize]| {
            let kept = parts.iter().enumerate().filter(|(place, _)| !left_out.contains(place));
            TuneMove::together(&kept.map(|(_, part)| part.clone()).collect::<Vec<_>>())
        };
        let all: Vec<TuneMove> = (0..parts.len()).map(|place| without(&[place])).collect();
        self.figures_of(at, &all)?;
        let idle: Vec<usize> =
            (0..parts.len()).filter(|place| self.is_as_good(at, &all[*place])).collect();
        let mut kept = without(&idle);
        self.figures_of(at, std::slice::from_ref(&kept))?;
        let mut idle = idle;
        if !self.is_as_good(at, &kept) {
            // Each of them can be removed alone, but not all together.
            idle.truncate(1);
            kept = without(&idle);
        }
        let Some(point) = self.store.point(&self.space.moved(at, &kept)).cloned() else {
            return Ok(());
        };
        let score = self.space.objective.score(&point, &self.space.conditions);
        let (Some(score), false) = (score, idle.is_empty()) else { return Ok(()) };
        let gain = score.gain_over(before);
        if let Some(step) = self.path.steps.last_mut() {
            let whole = std::mem::replace(step, TuneStep { moved: kept, point, gain });
            let after = self.path.steps.len();
            let gain = self.score.gain_over(score);
            self.path.dead_ends.extend(idle.into_iter().map(|place| {
                let moved = parts[place].clone();
                let point = whole.point.clone();
                DeadEnd { moved, after, point, gain }
            }));
            self.score = score;
        }
        Ok(())
    }

    /// Simulates changes of a point that are not simulated yet, within the budget.
    fn figures_of(&mut self, at: &SpecChanges, moves: &[TuneMove]) -> Result<(), ExperimentError> {
        let points = moves.iter().map(|by| self.space.moved(at, by));
        let new = points.filter(|to| self.store.point(to).is_none()).take(self.store.left());
        let tasks = new.map(TrialTask::Figures).collect();
        self.store.run(tasks)
    }

    /// True if a change of a point is as good as the best one.
    fn is_as_good(&self, at: &SpecChanges, by: &TuneMove) -> bool {
        let Some(point) = self.store.point(&self.space.moved(at, by)) else { return false };
        let score = self.space.objective.score(point, &self.space.conditions);
        score.is_some_and(|score| {
            let same = self.score.value.abs() * SAME;
            score.class == self.score.class && score.value <= self.score.value + same
        })
    }

    /// Tries proposals at the next best points; returns true if it found any.
    fn detour(&mut self) -> Result<bool, ExperimentError> {
        let room = MOST_DETOURS.saturating_sub(self.detours.len()).min(DETOURS_AT_ONCE);
        let next: Vec<SpecChanges> = self.next_best().into_iter().take(room).collect();
        if !next.is_empty() {
            let tasks = next.iter().cloned().map(TrialTask::Findings).take(self.store.left());
            self.detours.extend(next.iter().cloned());
            self.store.run(tasks.collect())?;
        }
        let (moves, skipped) = self.promising();
        self.path.skipped_proposals = skipped;
        if moves.is_empty() && !next.is_empty() {
            return Ok(true);
        }
        if moves.is_empty() {
            return self.pairs();
        }
        let left = self.store.left();
        let moves: Vec<_> = moves.into_iter().take(ROUND.min(left)).collect();
        let tasks = moves.iter().map(|(from, by)| TrialTask::Figures(self.space.moved(from, by)));
        self.store.run(tasks.collect())?;
        let at = self.path.best().changes.clone();
        // From the best point, such a change is the only way to the other point.
        let moves =
            moves.into_iter().map(|(from, by)| self.seen_from_best(&at, &from, by)).collect();
        self.judge(&at, moves)?;
        Ok(true)
    }

    /// Tries the changes with the smallest loss in pairs; returns true if there were any left.
    fn pairs(&mut self) -> Result<bool, ExperimentError> {
        let at = self.path.best().changes.clone();
        let after = self.path.steps.len();
        // A change without any effect has none in a pair either.
        let does_something = |gain: f64| gain.abs() > SAME && gain > -MOST_LOST;
        let single = |end: &&DeadEnd| {
            end.after == after
                && end.moved.reasons.len() == 1
                && end.gain.is_some_and(does_something)
        };
        let mut ends: Vec<&DeadEnd> = self.path.dead_ends.iter().filter(single).collect();
        ends.sort_by(|a, b| b.gain.unwrap_or(0.0).total_cmp(&a.gain.unwrap_or(0.0)));
        ends.truncate(PAIRED);
        let mut moves = Vec::new();
        for (place, one) in ends.iter().enumerate() {
            let others = ends[place + 1..].iter().filter(|other| !other.moved.overlaps(&one.moved));
            moves.extend(
                others.map(|other| TuneMove::together(&[one.moved.clone(), other.moved.clone()])),
            );
        }
        moves.retain(|by| {
            self.store.point(&self.space.moved(&at, by)).is_none() && self.space.allows(&at, by)
        });
        moves.truncate(ROUND.min(self.store.left()));
        self.path.exhausted = moves.is_empty();
        self.figures_of(&at, &moves)?;
        let tried = !moves.is_empty();
        self.judge(&at, moves)?;
        Ok(tried)
    }

    /// Points beside the path without computed proposals, the best first.
    fn next_best(&self) -> Vec<SpecChanges> {
        let mut points: Vec<(SpecChanges, f64)> = Vec::new();
        for (place, point) in self.store.points().iter().enumerate() {
            let score = self.space.objective.score(point, &self.space.conditions);
            let is_new = self.store.findings(&point.changes).is_none();
            if let Some(score) = score.filter(|score| score.class == self.score.class)
                && is_new
                && !self.path.beyond.contains(&place)
            {
                points.push((point.changes.clone(), score.value));
            }
        }
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        points.into_iter().map(|(changes, _)| changes).collect()
    }

    /// Proposals beside the path whose bounds could beat the best point, and the number of the
    /// others.
    fn promising(&self) -> (Vec<(SpecChanges, TuneMove)>, usize) {
        let mut found = Vec::new();
        let mut skipped = 0;
        for from in &self.detours {
            let (Some(point), Some(findings)) = (self.store.point(from), self.store.findings(from))
            else {
                continue;
            };
            let Some(score) = self.space.objective.score(point, &self.space.conditions) else {
                continue;
            };
            for by in self.space.proposals(findings, self.saves_memory()) {
                let may_improve = !self.space.objective.is_time()
                    || by.bound().is_none_or(|bound| score.may_beat(bound, self.score));
                let is_new = self.store.point(&self.space.moved(from, &by)).is_none();
                if !is_new || !self.space.allows(from, &by) {
                    continue;
                }
                if may_improve {
                    found.push((from.clone(), by));
                } else {
                    skipped += 1;
                }
            }
        }
        (found, skipped)
    }

    /// A change of another point, expressed as a change of the best point.
    fn seen_from_best(&self, at: &SpecChanges, from: &SpecChanges, by: TuneMove) -> TuneMove {
        let to = self.space.moved(from, &by);
        let keys = at.keys().chain(to.keys());
        let value = |path: &String| {
            let value = self.space.value(&to, path)?;
            (self.space.value(at, path) != Some(value)).then(|| (path.clone(), value.clone()))
        };
        let changes: SpecChanges = keys.filter_map(value).collect();
        let mut reasons = by.reasons;
        // Only the change as a whole leads there.
        reasons.truncate(1);
        reasons.iter_mut().for_each(|reason| reason.changes.clone_from(&changes));
        TuneMove { changes, reasons }
    }
}
