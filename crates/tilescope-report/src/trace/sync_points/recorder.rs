//! Finds the sync points of a run, step by step.
//!
//! Steps come in the order of the program. A sync of several lanes is complete when all its parts
//! are in, which is when the next step comes. Waits of a lane for other tiles of its IPU are
//! reported by the simulation. For a run that was only recorded, they are inferred: from a lane
//! that is idle until another one ends, and from lanes that are idle until the last of them has
//! reached a shared step.
//!
//! # Cost
//!
//! A step is added to the sums of its lane, without any lookup. In memory are those sums for each
//! lane, and one block of points.

use super::super::lane_number::LaneNumber;
use super::super::step_record::StepRecord;
use super::overlap::{BesideCompute, IpuOverlap};
use super::point::{
    AwaitedLane, JoinMember, LaneHandOver, LaneJoin, LanePlace, StretchSums, SyncPoint,
    SyncPointBlock, SyncPointKind,
};
use crate::model::{INTERNAL_SYNC, ProgramKind};
use crate::units::{CycleRange, Cycles, ProgramId, ReplicaIpu, StepId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Index of a lane in a recorder, in the order of their first steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneIndex(usize);

/// The syncs within one IPU, and those of all replicas.
#[derive(Clone, Debug, Default)]
pub(crate) struct SyncPrograms {
    internal: Vec<bool>,
    joins_replicas: BTreeSet<ProgramId>,
}

impl SyncPrograms {
    /// The syncs within one IPU among programs, each given by index, kind and name.
    pub(crate) fn among<'n>(
        programs: impl Iterator<Item = (ProgramId, ProgramKind, &'n str)>,
    ) -> Self {
        let mut found = Self::default();
        programs
            .filter(|(_, kind, name)| *kind == ProgramKind::Sync && *name == INTERNAL_SYNC)
            .for_each(|(program, ..)| found.add(program));
        found
    }

    /// Adds the programs in which replicas that differ wait for each other.
    pub(crate) fn joining_replicas(self, programs: impl IntoIterator<Item = ProgramId>) -> Self {
        Self { joins_replicas: programs.into_iter().collect(), ..self }
    }

    /// Adds a program within one IPU, of any kind.
    pub(crate) fn add(&mut self, program: ProgramId) {
        let at = program.index();
        if self.internal.len() <= at {
            self.internal.resize(at + 1, false);
        }
        self.internal[at] = true;
    }

    fn is_internal(&self, program: Option<ProgramId>) -> bool {
        let known = program.and_then(|program| self.internal.get(program.index()));
        known.is_some_and(|internal| *internal)
    }

    fn joins_replicas(&self, program: Option<ProgramId>) -> bool {
        program.is_some_and(|program| self.joins_replicas.contains(&program))
    }
}

/// The progress of a lane.
struct LaneProgress {
    number: LaneNumber,
    /// Index of its IPU.
    ipu: usize,
    sub_lane: u8,
    /// Number of steps so far.
    steps: u64,
    /// The last step.
    last: CycleRange,
    /// Sums over its steps since its last point.
    stretch: Option<StretchSums>,
    /// The position that it waited for last.
    waited_for: Option<LanePlace>,
}

impl LaneProgress {
    fn end(&self) -> Cycles {
        self.last.end
    }

    fn take(&mut self, record: &StepRecord) {
        self.sum(record);
        self.pass(record);
    }

    /// Adds a step, or a part of one, to its sums.
    fn sum(&mut self, record: &StepRecord) {
        match &mut self.stretch {
            Some(stretch) => stretch.totals.add_step(record),
            None => self.stretch = Some(StretchSums::from_record(record)),
        }
    }

    fn pass(&mut self, record: &StepRecord) {
        self.steps += 1;
        self.last = record.range;
    }

    fn place(&self) -> LanePlace {
        LanePlace { lane: self.number.number(), behind: self.steps }
    }
}

/// The lanes of an IPU.
struct IpuLanes {
    at: ReplicaIpu,
    lanes: Vec<LaneIndex>,
    /// The overlap of other tiles with compute tiles; `None` if there are no other tiles.
    overlap: Option<IpuOverlap>,
}

/// The next step of a lane must wait for the work so far of another one.
struct OpenHandOver {
    from: LanePlace,
    /// End of the awaited work.
    end: Cycles,
    /// Sums over the other lane's steps since its last point.
    stretch: Option<StretchSums>,
    number: u64,
}

/// Finds sync points and encodes them in blocks.
#[derive(Default)]
pub(crate) struct SyncPointRecorder {
    programs: SyncPrograms,
    lanes: Vec<LaneProgress>,
    ipus: Vec<IpuLanes>,
    /// True if an IPU has other tiles than compute tiles.
    has_overlaps: bool,
    /// Parts of the last step, if it may be a join.
    shared: Vec<(LaneIndex, StepRecord)>,
    /// By waiting lane, which may have no step yet.
    open: BTreeMap<u32, OpenHandOver>,
    /// True if hand-overs are reported, so that none is inferred.
    is_recorded: bool,
    /// Number of the last awaited lane.
    awaited: u64,
    points: u64,
    block: SyncPointBlock,
    full: Vec<Vec<u8>>,
}

impl SyncPointRecorder {
    pub(crate) fn new(programs: SyncPrograms) -> Self {
        Self { programs, ..Self::default() }
    }

    /// Adds a lane.
    pub(crate) fn add_lane(&mut self, number: LaneNumber) -> LaneIndex {
        let lane = LaneIndex(self.lanes.len());
        let own = number.at();
        let sub_lane = number.sub_lane();
        let at = self.ipus.iter().position(|lanes| lanes.at == own).unwrap_or(self.ipus.len());
        if at == self.ipus.len() {
            self.ipus.push(IpuLanes { at: own, lanes: Vec::new(), overlap: None });
        }
        let of_ipu = &mut self.ipus[at];
        if sub_lane > 0 && of_ipu.overlap.is_none() {
            // So far the IPU had only compute tiles, so its overlaps start after their last step.
            let compute = of_ipu.lanes.iter().map(|lane| &self.lanes[lane.0]);
            let last = compute.filter(|lane| lane.sub_lane == 0).map(|lane| lane.last).next();
            of_ipu.overlap = Some(IpuOverlap::behind(last.unwrap_or_default()));
            self.has_overlaps = true;
        }
        of_ipu.lanes.push(lane);
        self.lanes.push(LaneProgress {
            number,
            ipu: at,
            sub_lane,
            steps: 0,
            last: CycleRange::default(),
            stretch: None,
            waited_for: None,
        });
        lane
    }

    /// Records that the next step of the lane `to` of an IPU waits for the work of the lane `from`
    /// so far.
    pub(crate) fn hand_over(&mut self, at: ReplicaIpu, from: u8, to: u8) {
        self.end_shared_step();
        self.is_recorded = true;
        let Some(from) = self.lane_of(at, from) else { return };
        let to_lane = self.lane_of(at, to).map(|to| &self.lanes[to.0]);
        // If it waited for the same work before, there is nothing left to wait for.
        if to_lane.and_then(|to| to.waited_for) != Some(self.lanes[from.0].place()) {
            let number = LaneNumber::new(at.class, at.ipu, to);
            let unseen = LanePlace { lane: number.number(), behind: 0 };
            self.open_hand_over(to_lane.map_or(unseen, LaneProgress::place), from, true);
        }
    }

    /// Number of points so far.
    pub(super) fn point_count(&self) -> u64 {
        self.points
    }

    /// Marks all steps before this one as complete.
    pub(super) fn end_step_before(&mut self, step: StepId) {
        if self.shared.first().is_some_and(|(_, first)| first.step != step) {
            self.end_shared_step();
        }
    }

    /// Disables inference: hand-overs are reported from the first step on.
    pub(super) fn infer_nothing(&mut self) {
        self.is_recorded = true;
    }

    fn lane_of(&self, at: ReplicaIpu, sub_lane: u8) -> Option<LaneIndex> {
        let of_ipu = self.ipus.iter().find(|lanes| lanes.at == at)?;
        of_ipu.lanes.iter().find(|lane| self.lanes[lane.0].sub_lane == sub_lane).copied()
    }

    /// Records that a lane waits for the work of another one so far. An earlier record without a
    /// step since then is replaced.
    fn open_hand_over(&mut self, waiting: LanePlace, from: LaneIndex, is_recorded: bool) {
        self.awaited += 1;
        let from = &self.lanes[from.0];
        let number = self.awaited;
        let end = from.end();
        let stretch = from.stretch;
        let lane = from.place();
        self.open.insert(waiting.lane, OpenHandOver { from: lane, end, stretch, number });
        let awaited = AwaitedLane { number, lane, waiting, is_recorded };
        let kind = SyncPointKind::Awaited(awaited);
        self.add_point(SyncPoint { release: end, kind, stretch: None });
    }

    fn add_point(&mut self, point: SyncPoint) {
        self.points += 1;
        self.block.add(&point);
        if self.block.is_full() {
            self.full.push(self.block.take());
        }
    }

    /// Adds a step of a lane.
    pub(crate) fn push(&mut self, lane: LaneIndex, record: &StepRecord) {
        self.end_step_before(record.step);
        let kind = record.class.kind();
        let may_join = match kind {
            ProgramKind::Sync => !self.programs.is_internal(record.program),
            // Waits of lanes outside of steps are only inferred.
            ProgramKind::GlobalExchange => !self.is_recorded,
            _ => false,
        };
        let is_sync = kind == ProgramKind::Sync;
        if may_join {
            self.watch_overlap(lane, record, is_sync);
            // Which lane arrived last is known only after all parts of the step.
            self.shared.push((lane, *record));
            return;
        }
        let waits = is_sync && self.waits_in(lane, record);
        self.watch_overlap(lane, record, waits);
        if !waits {
            self.go_on(lane, record);
            self.lanes[lane.0].take(record);
        }
    }

    /// Adds consecutive steps of a lane.
    pub(super) fn push_all(&mut self, lane: LaneIndex, records: &[StepRecord]) {
        let mut rest = records;
        while let Some((first, later)) = rest.split_first() {
            self.push(lane, first);
            let own = self.sum_own(lane, later);
            rest = later.get(own..).unwrap_or_default();
        }
    }

    /// Adds the first of some steps to the sums of their lane, up to one that may wait for another
    /// lane. Returns their number.
    fn sum_own(&mut self, lane: LaneIndex, records: &[StepRecord]) -> usize {
        if !self.shared.is_empty() || !self.open.is_empty() || self.has_overlaps {
            return 0;
        }
        let lane = &mut self.lanes[lane.0];
        let mut own = 0;
        for record in records {
            let kind = record.class.kind();
            // Waits that were not recorded are inferred from gaps.
            let may_wait = !self.is_recorded
                && (kind == ProgramKind::GlobalExchange || lane.end() < record.range.start);
            if may_wait || kind == ProgramKind::Sync {
                break;
            }
            lane.take(record);
            own += 1;
        }
        own
    }

    fn watch_overlap(&mut self, lane: LaneIndex, record: &StepRecord, waits: bool) {
        if !self.has_overlaps {
            return;
        }
        let own = &self.lanes[lane.0];
        if let Some(overlap) = &mut self.ipus[own.ipu].overlap {
            overlap.push(own.sub_lane, own.number.number(), record, waits);
        }
    }

    /// True if there are blocks of points that are complete.
    pub(super) fn has_complete(&self) -> bool {
        !self.full.is_empty()
    }

    /// Blocks of points that are complete.
    pub(crate) fn complete(&mut self) -> std::vec::Drain<'_, Vec<u8>> {
        self.full.drain(..)
    }

    /// Ends the run. Returns the remaining points, and the work beside compute tiles by lane,
    /// program and class of step.
    pub(crate) fn finish(mut self) -> (Vec<Vec<u8>>, Vec<BesideCompute>) {
        self.end_shared_step();
        self.end_run();
        let mut blocks = std::mem::take(&mut self.full);
        if !self.block.is_empty() {
            blocks.push(self.block.take());
        }
        let overlaps = self.ipus.into_iter().filter_map(|lanes| lanes.overlap);
        let mut beside: Vec<BesideCompute> = overlaps.flat_map(IpuOverlap::finish).collect();
        // By lane, so that the table does not depend on the order in which IPUs appear.
        beside.sort_unstable_by_key(|sum| (sum.lane, sum.program, sum.class.code()));
        (blocks, beside)
    }

    /// Adds the join of all lanes at the end of the run.
    fn end_run(&mut self) {
        let iter_lanes = || self.lanes.iter().filter(|lane| lane.steps > 0);
        let Some((last, end)) = first_max(iter_lanes().map(LaneProgress::end)) else { return };
        let stretch = iter_lanes().nth(last).and_then(|lane| lane.stretch);
        let members = iter_lanes()
            .map(|lane| {
                let wait = end - lane.end();
                let tail = Cycles::ZERO;
                JoinMember { lane: lane.number.number(), behind: lane.steps, wait, tail }
            })
            .collect();
        let program = None;
        let cost = Cycles::ZERO;
        self.add_join(
            LaneJoin { program, in_shared_step: false, cost, last, members },
            end,
            stretch,
        );
    }

    /// Marks the last step as complete.
    pub(super) fn end_shared_step(&mut self) {
        if self.shared.is_empty() {
            return;
        }
        let mut shared = std::mem::take(&mut self.shared);
        for (lane, record) in &shared {
            self.go_on(*lane, record);
        }
        let mut rest = shared.as_slice();
        while !rest.is_empty() {
            // Classes of replicas that do not meet in this step have separate joins.
            let first = rest.chunk_by(|a, b| self.meet(a, b)).next().map_or(0, <[_]>::len);
            let (group, others) = rest.split_at(first);
            self.join(group);
            rest = others;
        }
        // Its memory is reused.
        shared.clear();
        self.shared = shared;
    }

    /// True if the lanes of two parts of a step may wait for each other. Parts come by class of
    /// replicas; classes wait on their own except where all replicas meet.
    fn meet(&self, one: &(LaneIndex, StepRecord), other: &(LaneIndex, StepRecord)) -> bool {
        let get_class = |part: &(LaneIndex, StepRecord)| self.lanes[part.0.0].number.class();
        self.programs.joins_replicas(one.1.program) || get_class(one) == get_class(other)
    }

    /// Adds the join of parts of a step whose lanes may wait for each other.
    fn join(&mut self, shared: &[(LaneIndex, StepRecord)]) {
        if !self.join_in_front(shared) && !self.join_within(shared) {
            shared.iter().for_each(|(lane, record)| self.lanes[lane.0].take(record));
        }
    }

    /// Adds a join before a step if its lanes were idle until the last of them arrived.
    fn join_in_front(&mut self, shared: &[(LaneIndex, StepRecord)]) -> bool {
        if self.is_recorded || shared.len() < 2 {
            return false;
        }
        let iter_lanes = || shared.iter().map(|(lane, _)| &self.lanes[lane.0]);
        let Some((last, arrived)) = first_max(iter_lanes().map(LaneProgress::end)) else {
            return false;
        };
        let mut parts = shared.iter().zip(iter_lanes());
        // Without a gap before the step, no lane waited for another one.
        let idle = parts.any(|((_, record), lane)| lane.end() < record.range.start);
        // Lanes of other tools may overlap: a lane that is still busy when the step begins proves
        // no join.
        let have_come = iter_lanes().all(|lane| lane.steps > 0)
            && shared.iter().all(|(_, record)| arrived <= record.range.start);
        if !idle || !have_come {
            return false;
        }
        let members = iter_lanes()
            .map(|lane| JoinMember {
                lane: lane.number.number(),
                behind: lane.steps,
                wait: arrived - lane.end(),
                tail: Cycles::ZERO,
            })
            .collect();
        let stretch = iter_lanes().nth(last).and_then(|lane| lane.stretch);
        for (lane, record) in shared {
            let lane = &mut self.lanes[lane.0];
            // Later cycles without a step count for the next stretch.
            lane.stretch = Some(StretchSums::empty(arrived));
            lane.take(record);
        }
        let join = LaneJoin {
            program: shared.first().and_then(|(_, record)| record.program),
            in_shared_step: false,
            cost: Cycles::ZERO,
            last,
            members,
        };
        self.add_join(join, arrived, stretch);
        true
    }

    /// Adds a join inside a sync if lanes wait in it until the last of them arrives.
    fn join_within(&mut self, shared: &[(LaneIndex, StepRecord)]) -> bool {
        let starts = shared.iter().map(|(_, record)| record.range.start);
        let Some((_, arrived)) = first_max(starts) else { return false };
        // A lane that was released before the last one arrived did not wait for it.
        let is_waiting = |record: &StepRecord| record.range.end >= arrived;
        let is_sync = shared.iter().all(|(_, record)| record.class.kind() == ProgramKind::Sync);
        let iter_joined = || shared.iter().filter(|(_, record)| is_waiting(record));
        // Lanes may leave a sync at different cycles; the sync ends when the first one leaves.
        let release = iter_joined().map(|(_, record)| record.range.end).min();
        let last = iter_joined().position(|(_, record)| record.range.start == arrived);
        if !is_sync || iter_joined().count() < 2 {
            return false;
        }
        let Some(release) = release else { return false };
        let Some(last) = last else { return false };
        let mut stretch = None;
        let mut members = Vec::with_capacity(shared.len());
        for (lane, record) in shared {
            let lane = &mut self.lanes[lane.0];
            if !is_waiting(record) {
                lane.take(record);
                continue;
            }
            let CycleRange { start, end } = record.range;
            // The path goes through the last lane to arrive, so its stretch includes the sync.
            if members.len() == last {
                lane.sum(&StepRecord { range: CycleRange::new(start, release), ..*record });
                stretch = lane.stretch;
            }
            lane.pass(record);
            // Cycles after the release belong to the lane alone, and to its next stretch.
            let rest = StepRecord { range: CycleRange::new(release, end), ..*record };
            lane.stretch = Some(StretchSums::empty(release));
            if !rest.range.is_empty() {
                lane.sum(&rest);
            }
            let wait = arrived - start;
            let tail = end - release;
            members.push(JoinMember { lane: lane.number.number(), behind: lane.steps, wait, tail });
        }
        let join = LaneJoin {
            program: shared.first().and_then(|(_, record)| record.program),
            in_shared_step: true,
            cost: release - arrived,
            last,
            members,
        };
        self.add_join(join, release, stretch);
        true
    }

    fn add_join(&mut self, mut join: LaneJoin, release: Cycles, stretch: Option<StretchSums>) {
        let last = join.members.get(join.last).map_or(0, |member| member.lane);
        // Lane numbers that rise are stored as small differences.
        join.members.sort_unstable_by_key(|member| member.lane);
        join.last = join.members.partition_point(|member| member.lane < last);
        self.add_point(SyncPoint { release, kind: SyncPointKind::Join(join), stretch });
    }

    /// True if a lane waits in a sync for other tiles of its IPU, and continues when they are done.
    fn waits_in(&mut self, lane: LaneIndex, record: &StepRecord) -> bool {
        let CycleRange { start, end } = record.range;
        // A sync of no cycles delays nothing.
        if start == end {
            return false;
        }
        if !self.is_recorded {
            self.infer(lane, |other| other.end() == end && other.steps > 0);
        }
        let number = self.lanes[lane.0].number.number();
        // A hand-over with an earlier end belongs to the start of this step.
        let Some(open) = self.open.get(&number).filter(|open| open.end == end) else {
            return false;
        };
        let OpenHandOver { from, stretch, number: of, .. } = *open;
        self.open.remove(&number);
        let lane = &mut self.lanes[lane.0];
        lane.pass(record);
        lane.stretch = Some(StretchSums::empty(end));
        lane.waited_for = Some(from);
        let lag = Cycles::ZERO;
        let wait = end - start;
        let from = from.lane;
        let to = lane.place();
        let hand_over = LaneHandOver { number: of, from, to, lag, wait, in_step: true };
        let kind = SyncPointKind::HandOver(hand_over);
        self.add_point(SyncPoint { release: end, kind, stretch });
        true
    }

    /// Adds the hand-over that the next step of a lane waited for, if any.
    fn go_on(&mut self, lane: LaneIndex, record: &StepRecord) {
        let start = record.range.start;
        let end = self.lanes[lane.0].end();
        if !self.is_recorded && end < start {
            self.infer(lane, |other| other.end() > end && other.end() <= start);
        }
        if self.open.is_empty() {
            return;
        }
        let lane = &mut self.lanes[lane.0];
        let open = self.open.remove(&lane.number.number());
        // Lanes of other tools may overlap; in that case it did not wait.
        let Some(open) = open.filter(|open| open.end <= start) else { return };
        let from = open.from.lane;
        let number = open.number;
        let release = open.end;
        let to = lane.place();
        let lag = start - release;
        let wait = start - end;
        let hand_over = LaneHandOver { number, from, to, lag, wait, in_step: false };
        lane.waited_for = Some(open.from);
        let mut stretch = None;
        if hand_over.holds_back() {
            stretch = open.stretch;
            // Later cycles without a step count for the next stretch.
            lane.stretch = Some(StretchSums::empty(release));
        }
        let kind = SyncPointKind::HandOver(hand_over);
        self.add_point(SyncPoint { release, kind, stretch });
    }

    /// Infers that a lane waits for the last of the lanes of its IPU that satisfy `may`.
    fn infer(&mut self, lane: LaneIndex, may: impl Fn(&LaneProgress) -> bool) {
        let ipu = self.lanes[lane.0].ipu;
        let waiting = self.lanes[lane.0].place();
        let others = self.ipus[ipu].lanes.iter().filter(|other| **other != lane);
        let others = others.filter(|other| may(&self.lanes[other.0]));
        // The last lane to end determines the wait; of several, the one with the lowest index.
        let from = others.max_by_key(|other| {
            let other = &self.lanes[other.0];
            (other.end(), Reverse(other.number))
        });
        if let Some(from) = from.copied() {
            self.open_hand_over(waiting, from, false);
        }
    }
}

/// The largest of some cycles, and the first index that has it.
fn first_max(cycles: impl Iterator<Item = Cycles>) -> Option<(usize, Cycles)> {
    cycles.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best })
}
