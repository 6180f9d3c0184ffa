//! Walks backwards over sync points to find the critical path and the slack of lanes.
//!
//! Pure: depends only on the points, not on files or steps.

// Points come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::StepTotals;
use super::point::{AwaitedLane, LaneHandOver, LaneJoin, SyncPoint, SyncPointKind};
use crate::units::{CycleRange, Cycles, ProgramId};
use std::collections::BTreeMap;

/// Indices of lanes in a trace, by number.
pub(crate) type LanePlaces = BTreeMap<u32, usize>;

/// The points contradict each other or the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

/// The hop by which the critical path reaches a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathHop {
    /// The lane waited, in or before a step that it shares with others, for the last of them. The
    /// value is the program of that step.
    Join(Option<ProgramId>),
    /// The lane waited for other tiles of its IPU.
    HandOver,
}

/// Receives the results of the walk, from the end of the run to its start.
pub(super) trait WalkObserver {
    /// A stretch of the path.
    fn stretch(&mut self, found: FoundStretch);

    /// Steps of a lane at positions below `limit`, down to the next reported limit, could end
    /// `slack` later.
    fn slack(&mut self, lane: usize, limit: u64, slack: Cycles);

    /// A lane works for `cycles` with this slack.
    fn work(&mut self, lane: usize, cycles: Cycles, slack: Cycles);

    /// A lane waits for others.
    fn wait(&mut self, lane: usize, cycles: Cycles);

    /// The path waits for a lane, at the shared step of a program: it arrives `lead` later than the
    /// next lane.
    fn lead(&mut self, lane: usize, program: Option<ProgramId>, lead: Cycles);
}

/// Consecutive steps of one lane that are on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundStretch {
    pub(super) lane: usize,
    pub(super) range: CycleRange,
    pub(super) totals: StepTotals,
    /// The hop by which the path reaches it; `None` for the first one.
    pub(super) hop: Option<PathHop>,
}

/// The state of the walk before a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WalkState {
    pub(super) lanes: Vec<LaneState>,
    pub(super) path: OpenStretch,
    /// Numbers of hand-overs, each with the slack of its awaited work.
    pub(super) bounds: BTreeMap<u64, Cycles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneState {
    /// The slack of the lane at this point of the walk.
    pub(super) slack: Cycles,
    /// The start of its following work.
    pub(super) until: Cycles,
}

/// The stretch of the path that the walk is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenStretch {
    pub(super) lane: usize,
    pub(super) range: CycleRange,
    pub(super) totals: StepTotals,
}

impl WalkState {
    /// The state after the last step of a run with `lanes` lanes that ends at `end`.
    pub(super) fn at_end(lanes: usize, end: Cycles) -> Self {
        let state = LaneState { slack: Cycles::ZERO, until: end };
        let range = CycleRange::new(end, end);
        let totals = StepTotals::default();
        Self {
            lanes: vec![state; lanes],
            path: OpenStretch { lane: 0, range, totals },
            bounds: BTreeMap::new(),
        }
    }

    /// Walks backwards over a point.
    pub(super) fn go_back(
        &mut self,
        point: &SyncPoint,
        places: &LanePlaces,
        seen: &mut impl WalkObserver,
    ) -> Result<(), Contradiction> {
        match &point.kind {
            SyncPointKind::Join(join) => self.join(join, point, places, seen),
            SyncPointKind::HandOver(of) => self.hand_over(of, point, places, seen),
            SyncPointKind::Awaited(awaited) => self.awaited(awaited, point.release, places, seen),
        }
    }

    /// Ends at the start of the run, given the start of each lane. Returns the first lane of the
    /// path.
    pub(super) fn end(
        mut self,
        starts: &[Cycles],
        seen: &mut impl WalkObserver,
    ) -> Result<usize, Contradiction> {
        for (lane, (state, start)) in self.lanes.iter().zip(starts).enumerate() {
            seen.work(lane, state.until.saturating_sub(*start), state.slack);
        }
        // Missing points would leave the path in the middle of a lane.
        let OpenStretch { lane, range, .. } = self.path;
        if starts.get(lane) != Some(&range.start) {
            return Err(Contradiction);
        }
        let first = starts.iter().copied().min().unwrap_or_default();
        // Nothing is recorded before the first step of its lane, but the path covers the run.
        self.path.range = CycleRange::new(first, range.end);
        self.path.tell(None, seen);
        Ok(lane)
    }

    fn join(
        &mut self,
        join: &LaneJoin,
        point: &SyncPoint,
        places: &LanePlaces,
        seen: &mut impl WalkObserver,
    ) -> Result<(), Contradiction> {
        let release = point.release;
        let arrived = release.checked_sub(join.cost).ok_or(Contradiction)?;
        let find_place = |lane: u32| places.get(&lane).copied().ok_or(Contradiction);
        let mut least = Cycles::MAX;
        let mut second = None;
        let mut is_on_path = false;
        for (at, member) in join.members.iter().enumerate() {
            let lane = find_place(member.lane)?;
            let state = self.lanes.get_mut(lane).ok_or(Contradiction)?;
            let begins = release.saturating_add(member.tail);
            seen.work(lane, state.until.saturating_sub(begins), state.slack);
            least = least.min(state.slack);
            is_on_path |= lane == self.path.lane;
            if at != join.last {
                second = second.into_iter().chain([member.wait]).min();
            }
        }
        for member in &join.members {
            let lane = find_place(member.lane)?;
            let state = self.lanes.get_mut(lane).ok_or(Contradiction)?;
            state.until = arrived.checked_sub(member.wait).ok_or(Contradiction)?;
            state.slack = least.saturating_add(member.wait);
            if join.in_shared_step {
                seen.slack(lane, member.behind, least);
            }
            let limit = member.behind.saturating_sub(u64::from(join.in_shared_step));
            seen.slack(lane, limit, state.slack);
            seen.wait(lane, member.wait);
        }
        let last = join.members.get(join.last).ok_or(Contradiction)?;
        if is_on_path && self.path.begins_at(release)? {
            let last = find_place(last.lane)?;
            // A single lane is late by all its work.
            seen.lead(last, join.program, second.unwrap_or(arrived));
            self.path.go_to(last, point, PathHop::Join(join.program), seen);
        }
        Ok(())
    }

    fn hand_over(
        &mut self,
        of: &LaneHandOver,
        point: &SyncPoint,
        places: &LanePlaces,
        seen: &mut impl WalkObserver,
    ) -> Result<(), Contradiction> {
        let find_place = |lane: u32| places.get(&lane).copied().ok_or(Contradiction);
        let from = find_place(of.from)?;
        let to = find_place(of.to.lane)?;
        let next = point.release.saturating_add(of.lag);
        let going_on = self.lanes.get_mut(to).ok_or(Contradiction)?;
        // If it was held back, the lag is part of its work, and moves with the release.
        let spare = if of.holds_back() { Cycles::ZERO } else { of.lag };
        self.bounds.insert(of.number, going_on.slack.saturating_add(spare));
        // At most one wait per lane can be open at a time.
        if self.bounds.len() > places.len() {
            return Err(Contradiction);
        }
        if !of.holds_back() {
            return Ok(());
        }
        seen.work(to, going_on.until.saturating_sub(next), going_on.slack);
        going_on.until = next.checked_sub(of.wait).ok_or(Contradiction)?;
        if of.in_step {
            seen.slack(to, of.to.behind, going_on.slack);
        }
        let held_back = of.wait - of.lag;
        going_on.slack = going_on.slack.saturating_add(held_back);
        let limit = of.to.behind.saturating_sub(u64::from(of.in_step));
        seen.slack(to, limit, going_on.slack);
        seen.wait(to, held_back);
        if to == self.path.lane && self.path.begins_at(point.release)? {
            seen.lead(from, None, held_back);
            self.path.go_to(from, point, PathHop::HandOver, seen);
        }
        Ok(())
    }

    fn awaited(
        &mut self,
        of: &AwaitedLane,
        end: Cycles,
        places: &LanePlaces,
        seen: &mut impl WalkObserver,
    ) -> Result<(), Contradiction> {
        // No lane may have waited for it.
        let Some(bound) = self.bounds.remove(&of.number) else { return Ok(()) };
        let lane = *places.get(&of.lane.lane).ok_or(Contradiction)?;
        let awaited = self.lanes.get_mut(lane).ok_or(Contradiction)?;
        if bound < awaited.slack {
            seen.work(lane, awaited.until.saturating_sub(end), awaited.slack);
            *awaited = LaneState { slack: bound, until: end.min(awaited.until) };
            seen.slack(lane, of.lane.behind, bound);
        }
        Ok(())
    }
}

impl OpenStretch {
    /// True if the path reaches this stretch at a point of its lane with this release. False if it
    /// left the lane before, for a later hand-over.
    fn begins_at(&self, release: Cycles) -> Result<bool, Contradiction> {
        // After a point that the path must pass, there is nothing more of the lane.
        if release < self.range.start {
            Err(Contradiction)
        } else {
            Ok(release == self.range.start)
        }
    }

    /// Continues with the stretch that a point waits for.
    fn go_to(
        &mut self,
        lane: usize,
        point: &SyncPoint,
        hop: PathHop,
        seen: &mut impl WalkObserver,
    ) {
        let start = point.stretch.map_or(point.release, |stretch| stretch.start);
        let mut totals = point.stretch.map(|stretch| stretch.totals).unwrap_or_default();
        let mut range = CycleRange::new(start, point.release);
        if lane == self.lane {
            totals.add(&self.totals);
            range = range.union(self.range);
        } else {
            self.tell(Some(hop), seen);
        }
        *self = Self { lane, range, totals };
    }

    fn tell(&self, hop: Option<PathHop>, seen: &mut impl WalkObserver) {
        let Self { lane, range, totals } = *self;
        if !range.is_empty() {
            seen.stretch(FoundStretch { lane, range, totals, hop });
        }
    }
}
