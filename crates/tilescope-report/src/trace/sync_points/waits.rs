//! What single steps wait for, and what led to a place of a lane.

// Points may come from a file that anybody wrote.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::LaneStep;
use super::critical_path::{CriticalPath, PathStretch};
use super::point::{SyncPoint, SyncPointKind};
use super::walk::PathHop;
use crate::error::ReportError;
use crate::units::{CycleRange, Cycles};

/// Most stretches that are looked at for what led to a place.
const MAX_STRETCHES: usize = 1 << 14;

/// A lane waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneWait {
    /// Position of the lane that is waited for.
    pub awaited: usize,
    /// From when the lane waits to when the other one comes.
    pub range: CycleRange,
    /// Where they meet.
    pub hop: PathHop,
    /// Lanes that meet there.
    pub lanes: usize,
    /// How much later the awaited lane is than the one that comes before it.
    pub lead: Cycles,
}

impl CriticalPath {
    /// Whom the lane waits for in a step, or in front of it; none where it waits for no other lane.
    pub fn wait_of(&self, lane: usize, step: &LaneStep) -> Result<Option<LaneWait>, ReportError> {
        let Some(number) = self.lane_number(lane) else { return Ok(None) };
        // A wait in front of a step is told of with the steps before it.
        for (at, in_step) in [(step.position, true), (step.position.saturating_sub(1), false)] {
            let Some(block) = self.block_of(lane, at) else { continue };
            let behind = step.position + u64::from(in_step);
            for point in self.points(block)?.iter() {
                if let Some(wait) = self.wait_at(point, (number, behind, in_step)) {
                    return Ok(Some(wait));
                }
            }
        }
        Ok(None)
    }

    /// The wait of the lane with a number that goes on behind a position, at a point.
    fn wait_at(
        &self,
        point: &SyncPoint,
        (number, behind, in_step): (u32, u64, bool),
    ) -> Option<LaneWait> {
        let (awaited, wait, arrived, hop, lanes, lead) = match &point.kind {
            SyncPointKind::Join(join) if join.in_shared_step == in_step => {
                let own = |member: &&super::point::JoinMember| {
                    (member.lane, member.behind) == (number, behind)
                };
                let own = join.members.iter().find(own)?;
                let others = join.members.iter().enumerate().filter(|(at, _)| *at != join.last);
                let lead = others.map(|(_, member)| member.wait).min().unwrap_or_default();
                let last = join.members.get(join.last)?.lane;
                let arrived = point.release.saturating_sub(join.cost);
                (last, own.wait, arrived, PathHop::Join(join.program), join.members.len(), lead)
            }
            SyncPointKind::HandOver(of) if of.in_step == in_step && of.holds_back() => {
                ((of.to.lane, of.to.behind) == (number, behind)).then_some(())?;
                let wait = of.wait.saturating_sub(of.lag);
                (of.from, wait, point.release, PathHop::HandOver, 2, wait)
            }
            _ => return None,
        };
        let range = CycleRange::new(arrived.saturating_sub(wait), arrived);
        let awaited = self.lane_position(awaited).filter(|_| !range.is_empty())?;
        Some(LaneWait { awaited, range, hop, lanes, lead })
    }

    /// What led to a cycle of a lane, back to an earlier one: as the critical path would, had the
    /// run ended there. From the first stretch to the last.
    pub fn path_to(
        &self,
        lane: usize,
        window: CycleRange,
    ) -> Result<Vec<PathStretch>, ReportError> {
        let mut walk = WalkBack { lane, start: None, end: window.end, found: Vec::new() };
        let position = self.last_before(lane, window.end)?;
        let last = position.and_then(|position| self.block_of(lane, position));
        // Behind the last block, only what ends the run is told of.
        let last = last.or(self.block_count().checked_sub(1));
        for block in (0..last.map_or(0, |last| last + 1)).rev() {
            for point in self.points(block)?.iter().rev() {
                if walk.is_before(window.start) {
                    break;
                }
                self.step_back(point, &mut walk);
            }
            if walk.is_before(window.start) {
                break;
            }
        }
        walk.close(window.start.min(walk.end), None);
        walk.found.retain_mut(|stretch| {
            stretch.range = stretch.range.intersection(window);
            !stretch.range.is_empty()
        });
        walk.found.reverse();
        Ok(walk.found)
    }

    fn step_back(&self, point: &SyncPoint, walk: &mut WalkBack) {
        let own = |number: u32| self.lane_position(number) == Some(walk.lane);
        let (awaited, hop) = match &point.kind {
            SyncPointKind::Join(join) if join.members.iter().any(|member| own(member.lane)) => {
                let last = join.members.get(join.last).map(|last| last.lane);
                (last, PathHop::Join(join.program))
            }
            SyncPointKind::HandOver(of) if of.holds_back() && own(of.to.lane) => {
                (Some(of.from), PathHop::HandOver)
            }
            _ => return,
        };
        let is_start = match walk.start {
            Some(start) => point.release == start,
            None => point.release < walk.end,
        };
        let awaited = awaited.and_then(|number| self.lane_position(number));
        let Some(awaited) = awaited.filter(|_| is_start) else { return };
        walk.close(point.release, Some(hop));
        walk.lane = awaited;
        walk.end = point.release;
        walk.start = Some(point.stretch.map_or(point.release, |stretch| stretch.start));
    }
}

/// A walk back from a place of a lane.
struct WalkBack {
    lane: usize,
    /// Where what led here begins, where it is known.
    start: Option<Cycles>,
    end: Cycles,
    /// From the last to the first.
    found: Vec<PathStretch>,
}

impl WalkBack {
    fn is_before(&self, cycle: Cycles) -> bool {
        self.end <= cycle
            || self.start.is_some_and(|start| start < cycle)
            || self.found.len() >= MAX_STRETCHES
    }

    fn close(&mut self, start: Cycles, hop: Option<PathHop>) {
        let range = CycleRange::new(start, self.end);
        if range.is_empty() {
            return;
        }
        let totals = Default::default();
        self.found.push(PathStretch { lane: self.lane, range, totals, hop });
    }
}
