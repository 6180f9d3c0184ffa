//! A sync point, and the encoding of blocks of them.

// Blobs come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::{ACTIVITIES, LongestStep, PerActivity, StepTotals};
use super::super::program_totals::{program_code, program_from_code};
use super::super::step_record::{StepClass, StepRecord};
use crate::codec::{self, VarintReader, apply_zigzag_difference, difference, write_varint};
use crate::limits::{MAX_CYCLES, MAX_STEPS};
use crate::units::{Bytes, Cycles, ProgramId};
use std::collections::BTreeMap;

/// Points of a full block. Few in tests, so that these have several blocks.
const BLOCK_POINTS: u64 = if cfg!(test) { 4 } else { 1024 };
/// The size in bytes from which a block with fewer points is full: points of many lanes take some
/// bytes per lane.
const FULL_BLOCK_BYTES: usize = 1 << 16;
/// The largest unpacked block: a full one, and a point with the most lanes.
const MAX_BLOCK_BYTES: usize = 1 << 22;

/// Bits of the first byte of a point: its kind, then its flags.
const KIND: u64 = 0b11;
const JOIN: u64 = 0;
const AWAITED: u64 = 1;
const HAND_OVER: u64 = 2;
const HAS_STRETCH: u64 = 1 << 2;
const IN_STEP: u64 = 1 << 3;
const IS_RECORDED: u64 = 1 << 3;
const SAME_LANES: u64 = 1 << 4;
const SAME_STEPS: u64 = 1 << 5;
const NO_WAITS: u64 = 1 << 6;
const NO_TAILS: u64 = 1 << 7;
const KNOWN_MARKS: u64 = (1 << 8) - 1;

/// A point of the run at which lanes wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyncPoint {
    /// The cycle at which the last of the awaited lanes is done. On a path through the run, their
    /// work ends here and that of the others begins.
    pub(crate) release: Cycles,
    pub(crate) kind: SyncPointKind,
    /// The sums over the awaited lane's steps since its previous point, or its first step; `None`
    /// if no lane waited for it or it did nothing.
    pub(crate) stretch: Option<StretchSums>,
}

/// The dependency between lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SyncPointKind {
    Join(LaneJoin),
    Awaited(AwaitedLane),
    HandOver(LaneHandOver),
}

/// Several lanes continue when the last of them has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneJoin {
    /// The program of the step that they share.
    pub(crate) program: Option<ProgramId>,
    /// True if the lanes wait inside that step, as in a sync; false if they wait before it.
    pub(crate) in_shared_step: bool,
    /// Cycles from the last arrival to the release.
    pub(crate) cost: Cycles,
    /// The index of the last arrival among the members.
    pub(crate) last: usize,
    /// The members by lane number. All lanes join at the end of the run; elsewhere at least two.
    pub(crate) members: Vec<JoinMember>,
}

/// A lane at a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinMember {
    /// The number of the lane.
    pub(crate) lane: u32,
    /// Position on the lane of the first step after the join.
    pub(crate) behind: u64,
    /// Cycles from its arrival to the last one.
    pub(crate) wait: Cycles,
    /// Cycles from the release to the end of the shared step, for clocks that differ.
    pub(crate) tail: Cycles,
}

/// The next step of a lane waits for the work so far of another lane of its IPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AwaitedLane {
    /// A number that identifies it; numbers ascend.
    pub(crate) number: u64,
    /// The awaited lane, and its progress.
    pub(crate) lane: LanePlace,
    /// The waiting lane, and its progress.
    pub(crate) waiting: LanePlace,
    /// True if the dependency was recorded, false if it was inferred.
    pub(crate) is_recorded: bool,
}

/// A lane continues when another lane of its IPU has finished the awaited work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneHandOver {
    /// The number of the [`AwaitedLane`].
    pub(crate) number: u64,
    /// The number of the awaited lane.
    pub(crate) from: u32,
    /// The lane that continues.
    pub(crate) to: LanePlace,
    /// Cycles from the release to the next step of the lane that continues.
    pub(crate) lag: Cycles,
    /// Idle cycles of that lane before this step.
    pub(crate) wait: Cycles,
    /// True if it waited in a step, the one before [`LanePlace::behind`].
    pub(crate) in_step: bool,
}

/// A position on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LanePlace {
    /// The number of the lane.
    pub(crate) lane: u32,
    /// Position of the first step after it.
    pub(crate) behind: u64,
}

impl LaneHandOver {
    /// True if the continuing lane was held back: it was done before the awaited one.
    pub(crate) fn holds_back(&self) -> bool {
        self.lag < self.wait
    }
}

/// Sums over the steps of a lane from one point to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StretchSums {
    pub(crate) start: Cycles,
    pub(crate) totals: StepTotals,
}

impl StretchSums {
    pub(crate) fn from_record(record: &StepRecord) -> Self {
        Self { start: record.range.start, totals: StepTotals::from_record(record) }
    }

    /// Sums over no steps yet, from a cycle on.
    pub(crate) fn empty(start: Cycles) -> Self {
        Self { start, totals: StepTotals::default() }
    }
}

/// Packs points, one after another.
#[derive(Default)]
pub(super) struct SyncPointBlock {
    raw: Vec<u8>,
    points: u64,
    base: PointBase,
}

/// The state that a point is encoded relative to.
#[derive(Default)]
struct PointBase {
    release: Cycles,
    /// The position of each lane at its last point. Lanes are few: a search costs less than a hash.
    positions: BTreeMap<u32, u64>,
    /// Lanes of the last join.
    lanes: Vec<u32>,
    /// Number of the last awaited lane.
    awaited: u64,
}

impl PointBase {
    /// Number of steps since the lane's last point.
    fn steps(&mut self, lane: u32, behind: u64) -> u64 {
        behind - self.positions.insert(lane, behind).unwrap_or(0)
    }

    /// The position `steps` steps after the lane's last point.
    fn position(&mut self, lane: u32, steps: u64) -> Option<u64> {
        let known = self.positions.entry(lane).or_default();
        *known = known.checked_add(steps).filter(|behind| *behind <= MAX_STEPS)?;
        Some(*known)
    }
}

impl SyncPointBlock {
    pub(super) fn is_full(&self) -> bool {
        self.points >= BLOCK_POINTS || self.raw.len() >= FULL_BLOCK_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// The points so far, not packed yet. Later points start a new block.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let Self { raw, points, .. } = std::mem::take(self);
        let mut all = Vec::with_capacity(raw.len() + 8);
        write_varint(&mut all, points);
        all.extend_from_slice(&raw);
        all
    }

    pub(super) fn add(&mut self, point: &SyncPoint) {
        let release = difference(point.release.0, self.base.release.0);
        self.base.release = point.release;
        self.points += 1;
        let has_stretch = if point.stretch.is_some() { HAS_STRETCH } else { 0 };
        match &point.kind {
            SyncPointKind::Join(join) => self.add_join(join, has_stretch, release),
            SyncPointKind::Awaited(awaited) => {
                let Self { raw, base, .. } = self;
                let AwaitedLane { number, lane, waiting, is_recorded } = *awaited;
                write_varint(raw, AWAITED | if is_recorded { IS_RECORDED } else { 0 });
                write_varint(raw, release);
                write_varint(raw, number - std::mem::replace(&mut base.awaited, number));
                for place in [lane, waiting] {
                    write_varint(raw, u64::from(place.lane));
                    write_varint(raw, base.steps(place.lane, place.behind));
                }
            }
            SyncPointKind::HandOver(hand_over) => {
                self.add_hand_over(hand_over, has_stretch, release);
            }
        }
        if let Some(stretch) = &point.stretch {
            write_stretch(&mut self.raw, stretch, point.release);
        }
    }

    fn add_join(&mut self, join: &LaneJoin, has_stretch: u64, release: u64) {
        let Self { raw, base, .. } = self;
        let lanes: Vec<u32> = join.members.iter().map(|member| member.lane).collect();
        let steps = join.members.iter().map(|member| base.steps(member.lane, member.behind));
        let steps: Vec<u64> = steps.collect();
        // Lanes in lock-step, the usual case, take no bytes each.
        let set_flag = |bit: u64, holds: bool| if holds { bit } else { 0 };
        let marks = JOIN
            | has_stretch
            | set_flag(IN_STEP, join.in_shared_step)
            | set_flag(SAME_LANES, base.lanes == lanes)
            | set_flag(SAME_STEPS, steps.iter().all(|own| Some(own) == steps.first()))
            | set_flag(NO_WAITS, join.members.iter().all(|member| member.wait.is_zero()))
            | set_flag(NO_TAILS, join.members.iter().all(|member| member.tail.is_zero()));
        write_varint(raw, marks);
        write_varint(raw, release);
        write_varint(raw, program_code(join.program));
        write_varint(raw, join.cost.0);
        write_varint(raw, join.last as u64);
        if marks & SAME_LANES == 0 {
            write_varint(raw, lanes.len() as u64);
            let mut before = 0;
            for lane in &lanes {
                write_varint(raw, u64::from(lane - before));
                before = *lane;
            }
            base.lanes = lanes;
        }
        match (marks & SAME_STEPS, steps.first()) {
            (0, _) | (_, None) => steps.iter().for_each(|own| write_varint(raw, *own)),
            (_, Some(all)) => write_varint(raw, *all),
        }
        if marks & NO_WAITS == 0 {
            join.members.iter().for_each(|member| write_varint(raw, member.wait.0));
        }
        if marks & NO_TAILS == 0 {
            join.members.iter().for_each(|member| write_varint(raw, member.tail.0));
        }
    }

    fn add_hand_over(&mut self, of: &LaneHandOver, has_stretch: u64, release: u64) {
        let Self { raw, base, .. } = self;
        let in_step = if of.in_step { IN_STEP } else { 0 };
        write_varint(raw, HAND_OVER | has_stretch | in_step);
        write_varint(raw, release);
        // It may refer to an earlier block, for the first points of a block.
        write_varint(raw, difference(of.number, base.awaited));
        write_varint(raw, u64::from(of.from));
        write_varint(raw, u64::from(of.to.lane));
        write_varint(raw, base.steps(of.to.lane, of.to.behind));
        write_varint(raw, of.lag.0);
        write_varint(raw, of.wait.0);
    }
}

/// Writes sums over a stretch that ends at `release`.
pub(super) fn write_stretch(raw: &mut Vec<u8>, stretch: &StretchSums, release: Cycles) {
    // Steps of a damaged file may begin after the end of later ones.
    write_varint(raw, release.saturating_sub(stretch.start).0);
    let StepTotals { steps, longest, .. } = stretch.totals;
    write_varint(raw, steps);
    let class = longest.map_or(0, |l| StepClass::from_activity(l.kind, l.activity).code() + 1);
    write_varint(raw, class);
    if let Some(longest) = longest {
        write_varint(raw, program_code(longest.program));
        write_varint(raw, longest.cycles.0);
    }
    // One bit per sum that is present; most activities never occur in a stretch.
    let columns = stretch.totals.columns();
    let sums = columns.as_flattened();
    let used = (0u32..).zip(sums).filter(|(_, sum)| **sum != 0);
    write_varint(raw, used.clone().map(|(place, _)| 1u64 << place).sum());
    used.for_each(|(_, sum)| write_varint(raw, *sum));
}

/// The points of a block, if it is sound.
pub(crate) fn decode(blob: &[u8]) -> Option<Vec<SyncPoint>> {
    decode_raw(&unpack(blob)?)
}

/// Unpacks a block without decoding it.
pub(crate) fn unpack(blob: &[u8]) -> Option<Vec<u8>> {
    codec::unpack(blob, MAX_BLOCK_BYTES)
}

/// The same for a block that is not packed.
pub(super) fn decode_raw(raw: &[u8]) -> Option<Vec<SyncPoint>> {
    let mut cursor = VarintReader::new(raw);
    let count = usize::try_from(cursor.take()?).ok()?;
    // Every point takes several bytes, so a count that is too large is refused before any
    // allocation.
    if count == 0 || count > cursor.left() {
        return None;
    }
    let mut base = PointBase::default();
    let mut points = Vec::with_capacity(count);
    for _ in 0..count {
        points.push(read_point(&mut cursor, &mut base)?);
    }
    if cursor.is_done() { Some(points) } else { None }
}

fn read_point(cursor: &mut VarintReader<'_>, base: &mut PointBase) -> Option<SyncPoint> {
    let marks = cursor.take()?;
    if marks & !KNOWN_MARKS != 0 {
        return None;
    }
    let release = cycles(apply_zigzag_difference(cursor.take()?, base.release.0))?;
    base.release = release;
    let kind = match marks & KIND {
        JOIN => SyncPointKind::Join(read_join(cursor, base, marks, release)?),
        AWAITED => {
            base.awaited = base.awaited.checked_add(cursor.take()?)?;
            let number = base.awaited;
            let is_recorded = marks & IS_RECORDED != 0;
            let lane = read_place(cursor, base)?;
            let waiting = read_place(cursor, base)?;
            SyncPointKind::Awaited(AwaitedLane { number, lane, waiting, is_recorded })
        }
        HAND_OVER => SyncPointKind::HandOver(read_hand_over(cursor, base, marks)?),
        _ => return None,
    };
    let stretch = match marks & HAS_STRETCH {
        0 => None,
        _ => Some(read_stretch(cursor, release)?),
    };
    Some(SyncPoint { release, kind, stretch })
}

fn cycles(number: u64) -> Option<Cycles> {
    Some(Cycles(number)).filter(|cycles| *cycles <= MAX_CYCLES)
}

fn read_join(
    cursor: &mut VarintReader<'_>,
    base: &mut PointBase,
    marks: u64,
    release: Cycles,
) -> Option<LaneJoin> {
    let program = program_from_code(cursor.take()?)?;
    let cost = cycles(cursor.take()?).filter(|cost| *cost <= release)?;
    let last = usize::try_from(cursor.take()?).ok()?;
    if marks & SAME_LANES == 0 {
        let count = usize::try_from(cursor.take()?).ok()?;
        if count > cursor.left() {
            return None;
        }
        base.lanes.clear();
        let mut lane = 0u32;
        for place in 0..count {
            let apart = u32::try_from(cursor.take()?).ok()?;
            // Sorted, and without duplicates.
            if place != 0 && apart == 0 {
                return None;
            }
            lane = lane.checked_add(apart)?;
            base.lanes.push(lane);
        }
    }
    let lanes = std::mem::take(&mut base.lanes);
    if last >= lanes.len() {
        return None;
    }
    let every = if marks & SAME_STEPS == 0 { None } else { Some(cursor.take()?) };
    let mut members = Vec::with_capacity(lanes.len());
    for lane in &lanes {
        let steps = if let Some(every) = every { every } else { cursor.take()? };
        let behind = base.position(*lane, steps)?;
        members.push(JoinMember { lane: *lane, behind, wait: Cycles::ZERO, tail: Cycles::ZERO });
    }
    base.lanes = lanes;
    if marks & NO_WAITS == 0 {
        let arrived = release.saturating_sub(cost);
        for member in &mut members {
            member.wait = cycles(cursor.take()?).filter(|wait| *wait <= arrived)?;
        }
    }
    if marks & NO_TAILS == 0 {
        for member in &mut members {
            member.tail = cycles(cursor.take()?)?;
        }
    }
    // The last arrival does not wait.
    if members.get(last).is_none_or(|last| !last.wait.is_zero()) {
        return None;
    }
    Some(LaneJoin { program, in_shared_step: marks & IN_STEP != 0, cost, last, members })
}

fn read_place(cursor: &mut VarintReader<'_>, base: &mut PointBase) -> Option<LanePlace> {
    let lane = u32::try_from(cursor.take()?).ok()?;
    let behind = base.position(lane, cursor.take()?)?;
    Some(LanePlace { lane, behind })
}

fn read_hand_over(
    cursor: &mut VarintReader<'_>,
    base: &mut PointBase,
    marks: u64,
) -> Option<LaneHandOver> {
    let number = apply_zigzag_difference(cursor.take()?, base.awaited);
    let from = u32::try_from(cursor.take()?).ok()?;
    let to = read_place(cursor, base)?;
    if from == to.lane {
        return None;
    }
    let lag = cycles(cursor.take()?)?;
    let wait = cycles(cursor.take()?)?;
    Some(LaneHandOver { number, from, to, lag, wait, in_step: marks & IN_STEP != 0 })
}

/// Reads the output of [`write_stretch`].
pub(super) fn read_stretch(cursor: &mut VarintReader<'_>, release: Cycles) -> Option<StretchSums> {
    let start = release.checked_sub(Cycles(cursor.take()?))?;
    let steps = cursor.take()?;
    if steps > MAX_STEPS {
        return None;
    }
    let longest = match cursor.take()?.checked_sub(1) {
        None => None,
        Some(class) => {
            let class = StepClass::from_code(class)?;
            let kind = class.kind();
            let activity = class.activity();
            let program = program_from_code(cursor.take()?)?;
            Some(LongestStep { program, kind, activity, cycles: cycles(cursor.take()?)? })
        }
    };
    let used = cursor.take()?;
    let mut columns = [[0u64; ACTIVITIES]; 4];
    if used >> columns.as_flattened().len() != 0 {
        return None;
    }
    for (place, sum) in columns.as_flattened_mut().iter_mut().enumerate() {
        if used & (1 << place) != 0 {
            *sum = cursor.take()?;
        }
    }
    let [spent, balance, bytes_in, bytes_out] = columns;
    let totals = StepTotals {
        steps,
        cycles: PerActivity(spent.map(Cycles)),
        balance: PerActivity(balance),
        bytes_in: PerActivity(bytes_in.map(Bytes)),
        bytes_out: PerActivity(bytes_out.map(Bytes)),
        longest,
    };
    // Steps of a lane do not overlap, so no stretch is busy for longer than its length.
    let fits = totals.cycles.total() <= release - start && totals.is_balanced();
    if fits { Some(StretchSums { start, totals }) } else { None }
}
