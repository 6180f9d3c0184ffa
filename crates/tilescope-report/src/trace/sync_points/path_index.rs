//! The result of a walk over all sync points of a run: sums over the critical path, slack and lead
//! of lanes, and the state of the walk after each block, so that a block can be walked again.

// Points come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::StepTotals;
use super::point::SyncPoint;
use super::walk::{Contradiction, FoundStretch, LanePlaces, WalkObserver, WalkState};
use crate::units::{CycleRange, Cycles, ProgramId};
use std::collections::BTreeMap;

/// The maximum number of sums over neighbouring stretches that are kept: 20 MB, and more than a
/// screen has pixels.
const MAX_SUMS: usize = 1 << 16;

/// The critical path and the slack of a lane in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneSlack {
    /// Cycles of the critical path that are on the lane.
    pub path_cycles: Cycles,
    /// Cycles in which the lane waits for others.
    pub waits: Cycles,
    /// Cycles in which it does not wait.
    pub works: Cycles,
    /// The least slack of its steps; `None` if all its steps have no cycles.
    pub least_slack: Option<Cycles>,
    /// Sum of slack x cycles over its steps; see [`LaneSlack::mean_slack`].
    pub(super) weighted_slack: u128,
    /// The sum of its delays against the next lane at points where the path waits for it: an upper
    /// bound on the gain from speeding up its own work.
    pub lead: Cycles,
}

impl LaneSlack {
    /// Mean slack over its working cycles.
    pub fn mean_slack(&self) -> f64 {
        if self.works.is_zero() { 0.0 } else { self.weighted_slack as f64 / self.works.as_f64() }
    }
}

/// Waits of the path for a lane, at one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathLead {
    /// Number of such waits.
    pub times: u64,
    /// Sum of the lane's delays against the next one.
    pub cycles: Cycles,
}

/// The state of the walk after a block of points, for everything before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockState {
    pub(super) behind: WalkState,
    /// The start of the first stretch of the path that begins in this block, or in the next one if
    /// none does.
    pub(super) from: Cycles,
    /// By lane: the slack of steps below these positions is found in this block or an earlier one.
    pub(super) limits: Vec<u64>,
}

/// Sums over neighbouring stretches of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StretchGroup {
    pub(super) range: CycleRange,
    pub(super) totals: StepTotals,
    pub(super) stretches: u64,
    /// Their lane, if all are on one.
    pub(super) lane: Option<usize>,
}

/// The critical path of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathIndex {
    pub(super) blocks: Vec<BlockState>,
    /// The first stretch, which begins in no block.
    pub(super) first: Option<FoundStretch>,
    pub(super) groups: Vec<StretchGroup>,
    pub(super) lanes: Vec<LaneSlack>,
    pub(super) leads: BTreeMap<(usize, Option<ProgramId>), PathLead>,
    pub(super) range: CycleRange,
    pub(super) totals: StepTotals,
    pub(super) stretches: u64,
}

impl PathIndex {
    /// True if the path goes through the run without a gap.
    pub(super) fn covers_its_range(&self) -> bool {
        let on_lanes = self.lanes.iter().map(|lane| lane.path_cycles);
        on_lanes.fold(Cycles::ZERO, Cycles::saturating_add) == self.range.length()
    }

    /// The details of a block with these points.
    pub(crate) fn details(
        &self,
        block: usize,
        points: &[SyncPoint],
        places: &LanePlaces,
    ) -> Result<BlockDetails, Contradiction> {
        BlockDetails::read(self.blocks.get(block).ok_or(Contradiction)?, points, places)
    }
}

/// Walks over all blocks, from the last to the first.
pub(crate) struct PathIndexBuilder {
    state: WalkState,
    found: IndexObserver,
    blocks: Vec<BlockState>,
}

struct IndexObserver {
    index: PathIndex,
    /// The number of stretches of a full group.
    group_size: u64,
    limits: Vec<u64>,
    from: Option<Cycles>,
}

impl PathIndexBuilder {
    /// A builder for lanes with these ranges.
    pub(crate) fn new(lanes: &[CycleRange]) -> Self {
        let range = lanes.iter().copied().reduce(CycleRange::union).unwrap_or_default();
        let index = PathIndex {
            range,
            lanes: vec![LaneSlack::default(); lanes.len()],
            ..PathIndex::default()
        };
        Self {
            state: WalkState::at_end(lanes.len(), range.end),
            found: IndexObserver { index, group_size: 1, limits: vec![0; lanes.len()], from: None },
            blocks: Vec::new(),
        }
    }

    /// Adds the block before the last one.
    pub(crate) fn block(
        &mut self,
        points: &[SyncPoint],
        places: &LanePlaces,
    ) -> Result<(), Contradiction> {
        let behind = self.state.clone();
        self.found.from = None;
        self.found.limits.iter_mut().for_each(|limit| *limit = 0);
        for point in points.iter().rev() {
            self.state.go_back(point, places, &mut self.found)?;
        }
        let next = self.blocks.last().map_or(self.found.index.range.end, |block| block.from);
        let from = self.found.from.unwrap_or(next);
        self.blocks.push(BlockState { behind, from, limits: self.found.limits.clone() });
        Ok(())
    }

    /// Completes the index at the start of the run. `starts` are the starts of the lanes.
    pub(crate) fn finish(mut self, starts: &[Cycles]) -> Result<PathIndex, Contradiction> {
        self.found.index.first = None;
        self.state.end(starts, &mut self.found)?;
        let mut index = self.found.index;
        index.groups.reverse();
        self.blocks.reverse();
        // A later block does not repeat steps of an earlier one.
        let mut limits = vec![0; starts.len()];
        for block in &mut self.blocks {
            for (known, own) in limits.iter_mut().zip(&mut block.limits) {
                *known = (*own).max(*known);
                *own = *known;
            }
        }
        index.blocks = self.blocks;
        // The walk ends with the first stretch, which begins in no block.
        if index.covers_its_range() { Ok(index) } else { Err(Contradiction) }
    }
}

impl WalkObserver for IndexObserver {
    fn stretch(&mut self, found: FoundStretch) {
        let FoundStretch { lane, range, totals, .. } = found;
        let Self { index, group_size, .. } = self;
        self.from = Some(range.start);
        index.stretches += 1;
        index.first = Some(found);
        if let Some(sums) = index.lanes.get_mut(lane) {
            sums.path_cycles = sums.path_cycles.saturating_add(range.length());
        }
        let mut whole = totals;
        whole.add(&index.totals);
        index.totals = whole;
        let fresh = StretchGroup { range, totals, stretches: 1, lane: Some(lane) };
        match index.groups.last_mut().filter(|group| group.stretches < *group_size) {
            Some(group) => *group = fresh.followed_by(group),
            None => index.groups.push(fresh),
        }
        if index.groups.len() > MAX_SUMS {
            let pairs = index.groups.chunks(2);
            let joined = pairs.map(|pair| match pair {
                [later, earlier] => earlier.followed_by(later),
                [alone, ..] => *alone,
                [] => fresh,
            });
            index.groups = joined.collect();
            *group_size *= 2;
        }
    }

    fn slack(&mut self, lane: usize, limit: u64, _slack: Cycles) {
        if let Some(known) = self.limits.get_mut(lane) {
            *known = limit.max(*known);
        }
    }

    fn work(&mut self, lane: usize, cycles: Cycles, slack: Cycles) {
        if let Some(sums) = self.index.lanes.get_mut(lane).filter(|_| !cycles.is_zero()) {
            sums.works = sums.works.saturating_add(cycles);
            sums.weighted_slack += u128::from(cycles.0) * u128::from(slack.0);
            sums.least_slack = sums.least_slack.into_iter().chain([slack]).min();
        }
    }

    fn wait(&mut self, lane: usize, cycles: Cycles) {
        if let Some(sums) = self.index.lanes.get_mut(lane) {
            sums.waits = sums.waits.saturating_add(cycles);
        }
    }

    fn lead(&mut self, lane: usize, program: Option<ProgramId>, lead: Cycles) {
        if let Some(sums) = self.index.lanes.get_mut(lane) {
            sums.lead = sums.lead.saturating_add(lead);
        }
        let sum = self.index.leads.entry((lane, program)).or_default();
        sum.times += 1;
        sum.cycles = sum.cycles.saturating_add(lead);
    }
}

impl StretchGroup {
    pub(super) fn followed_by(&self, later: &Self) -> Self {
        let mut totals = self.totals;
        totals.add(&later.totals);
        Self {
            range: self.range.union(later.range),
            totals,
            stretches: self.stretches + later.stretches,
            lane: self.lane.filter(|_| self.lane == later.lane),
        }
    }
}

/// The stretches of the path that begin in a block, and the slack of its steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockDetails {
    /// The stretches from the first to the last.
    pub(super) stretches: Vec<FoundStretch>,
    /// Lane, limit of positions, and slack below it; sorted.
    slacks: Vec<(usize, u64, Cycles)>,
}

impl BlockDetails {
    /// A stretch outside of all blocks, if any.
    pub(super) fn of(stretch: Option<FoundStretch>) -> Self {
        Self { stretches: stretch.into_iter().collect(), slacks: Vec::new() }
    }

    /// Walks over the points of a block again.
    pub(super) fn read(
        state: &BlockState,
        points: &[SyncPoint],
        places: &LanePlaces,
    ) -> Result<Self, Contradiction> {
        let mut walk = state.behind.clone();
        let mut found = Self::default();
        for point in points.iter().rev() {
            walk.go_back(point, places, &mut found)?;
        }
        found.stretches.reverse();
        // Of several slacks at one limit, the walk found the tightest last.
        found.slacks.reverse();
        found.slacks.sort_by_key(|(lane, limit, _)| (*lane, *limit));
        found.slacks.dedup_by_key(|(lane, limit, _)| (*lane, *limit));
        Ok(found)
    }

    /// The slack of the step of a lane at a position.
    pub(super) fn slack(&self, lane: usize, position: u64) -> Option<Cycles> {
        let at = self.slacks.partition_point(|(l, limit, _)| (*l, *limit) <= (lane, position));
        self.slacks.get(at).filter(|(own, ..)| *own == lane).map(|(.., slack)| *slack)
    }

    /// Size in memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.stretches.as_slice()) + size_of_val(self.slacks.as_slice())
    }
}

impl WalkObserver for BlockDetails {
    fn stretch(&mut self, found: FoundStretch) {
        self.stretches.push(found);
    }

    fn slack(&mut self, lane: usize, limit: u64, slack: Cycles) {
        self.slacks.push((lane, limit, slack));
    }

    fn work(&mut self, _lane: usize, _cycles: Cycles, _slack: Cycles) {}

    fn wait(&mut self, _lane: usize, _cycles: Cycles) {}

    fn lead(&mut self, _lane: usize, _program: Option<ProgramId>, _lead: Cycles) {}
}
