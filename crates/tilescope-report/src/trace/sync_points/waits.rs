//! The waits of single steps, and the stretches that led to a place of a lane.

// Points come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::LaneStep;
use super::critical_path::{CriticalPath, PathStretch};
use super::point::{SyncPoint, SyncPointKind};
use super::walk::PathHop;
use crate::error::ReportError;
use crate::units::{CycleRange, Cycles};

/// The maximum number of stretches that are searched for what led to a place.
const MAX_STRETCHES: usize = 1 << 14;

/// A lane waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneWait {
    /// Position of the awaited lane.
    pub awaited: usize,
    /// The cycles from the start of the wait to the arrival of the other lane.
    pub range: CycleRange,
    /// The hop at which they meet.
    pub hop: PathHop,
    /// Number of lanes that meet there.
    pub lanes: usize,
    /// The delay of the awaited lane against the arrival before it.
    pub lead: Cycles,
}

impl CriticalPath {
    /// The wait of a lane in a step, or before it; `None` if it waits for no other lane.
    pub fn wait_of(&self, lane: usize, step: &LaneStep) -> Result<Option<LaneWait>, ReportError> {
        let Some(number) = self.lane_number(lane) else { return Ok(None) };
        // A wait before a step is stored with the steps before it.
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

    /// The wait of the lane with a number that continues after a position, at a point.
    fn wait_at(
        &self,
        point: &SyncPoint,
        (number, behind, in_step): (u32, u64, bool),
    ) -> Option<LaneWait> {
        let (awaited, wait, arrived, hop, lanes, lead) = match &point.kind {
            SyncPointKind::Join(join) if join.in_shared_step == in_step => {
                let is_own = |member: &&super::point::JoinMember| {
                    (member.lane, member.behind) == (number, behind)
                };
                let own = join.members.iter().find(is_own)?;
                let others = join.members.iter().enumerate().filter(|(at, _)| *at != join.last);
                let lead = others.map(|(_, member)| member.wait).min().unwrap_or_default();
                let last = join.members.get(join.last)?.lane;
                let arrived = point.release.saturating_sub(join.cost);
                (last, own.wait, arrived, PathHop::Join(join.program), join.members.len(), lead)
            }
            SyncPointKind::HandOver(of) if of.in_step == in_step && of.holds_back() => {
                if (of.to.lane, of.to.behind) != (number, behind) {
                    return None;
                }
                let wait = of.wait.saturating_sub(of.lag);
                (of.from, wait, point.release, PathHop::HandOver, 2, wait)
            }
            _ => return None,
        };
        let range = CycleRange::new(arrived.saturating_sub(wait), arrived);
        let awaited = self.lane_position(awaited).filter(|_| !range.is_empty())?;
        Some(LaneWait { awaited, range, hop, lanes, lead })
    }

    /// The stretches that led to a cycle of a lane, back to an earlier one: the critical path if
    /// the run had ended there. From the first stretch to the last.
    pub fn path_to(
        &self,
        lane: usize,
        window: CycleRange,
    ) -> Result<Vec<PathStretch>, ReportError> {
        let mut walk = WalkBack { lane, start: None, end: window.end, found: Vec::new() };
        let position = self.last_before(lane, window.end)?;
        let last = position.and_then(|position| self.block_of(lane, position));
        // After the last block there is only the end of the run.
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
        let is_own = |number: u32| self.lane_position(number) == Some(walk.lane);
        let (awaited, hop) = match &point.kind {
            SyncPointKind::Join(join) if join.members.iter().any(|member| is_own(member.lane)) => {
                let last = join.members.get(join.last).map(|last| last.lane);
                (last, PathHop::Join(join.program))
            }
            SyncPointKind::HandOver(of) if of.holds_back() && is_own(of.to.lane) => {
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

/// A walk backwards from a place of a lane.
struct WalkBack {
    lane: usize,
    /// The start of the current stretch, if known.
    start: Option<Cycles>,
    end: Cycles,
    /// Stretches from the last to the first.
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
