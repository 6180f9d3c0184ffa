//! Totals by program, exact at any length of the run and for any part of it.
//!
//! A *segment* holds the totals of each program over 2^18 consecutive steps of a lane, and 16
//! segments are merged into one of the next level, like nodes of the pyramid. A report has few
//! programs, each executed often, so that a segment is small compared to its steps: a few thousand
//! entries for a quarter of a million.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::length_groups::{LengthGroup, LengthGroups};
use super::log_histogram::LogHistogram;
use super::pyramid::FAN_OUT;
use super::recent_places::RecentPlaces;
use super::step_record::{StepClass, StepRecord};
use crate::codec::{VarintReader, unpack, write_varint};
use crate::limits::{MAX_CYCLES, MAX_STEPS};
use crate::model::{ProgramKind, StepActivity, StreamEndpoint};
use crate::units::{Bytes, Cycles, ProgramId};
use foldhash::HashMap;

/// Steps of a segment of level 0. Few in tests, so that these reach higher levels.
pub(super) const SEGMENT_STEPS: u64 = if cfg!(test) { 1 << 5 } else { 1 << 18 };
/// Levels that [`MAX_STEPS`] steps can need.
const MAX_SEGMENT_LEVELS: u32 = 5;
/// The maximum number of entries of a segment: all programs of the largest report, of several kinds
/// each.
const MAX_ENTRIES: usize = 1 << 21;
/// Number of columns of an entry besides its lengths.
const COLUMNS: usize = 12;
/// The maximum number of bytes of a segment, unpacked.
const MAX_SEGMENT_BYTES: usize = 256 << 20;

/// Number of steps below a full segment of `level`.
pub(super) fn steps_per_segment(level: u32) -> u64 {
    SEGMENT_STEPS * FAN_OUT.pow(level)
}

/// Levels of a lane of `steps` steps: the top one has at most 16 segments.
pub(super) fn segment_level_count(steps: u64) -> u32 {
    (0..MAX_SEGMENT_LEVELS)
        .find(|level| steps.div_ceil(steps_per_segment(*level)) <= FAN_OUT)
        .unwrap_or(MAX_SEGMENT_LEVELS)
        + 1
}

/// Totals of the steps of one program, of one kind, on a lane.
///
/// A program may have steps of several kinds: in files, the begin, middle and end of a stream copy
/// share one id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramStepTotals {
    /// The program; `None` for steps without one.
    pub program: Option<ProgramId>,
    class: StepClass,
    pub steps: u64,
    /// Sum of their lengths.
    pub cycles: Cycles,
    /// Bytes received by tiles.
    pub bytes_in: Bytes,
    /// Bytes sent by tiles.
    pub bytes_out: Bytes,
    /// Bytes moved: for each step the larger of received and sent bytes.
    pub bytes_moved: Bytes,
    /// The fewest bytes moved by one of the steps.
    pub least_bytes_moved: Bytes,
    /// The most bytes moved by one of the steps.
    pub most_bytes_moved: Bytes,
    /// Sum of the squares of their lengths in cycles.
    pub squared_cycles: u128,
    /// Position on the lane of the first of them.
    pub first_position: u64,
    /// The distribution of their lengths.
    pub lengths: LogHistogram,
    /// Sums by length; none if only the totals were read.
    groups: LengthGroups,
}

/// Sums of the steps of one program, of one kind, on a lane: [`ProgramStepTotals`] without the
/// distribution of lengths and bytes, which is most of the content of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramStepSums {
    /// The program; `None` for steps without one.
    pub program: Option<ProgramId>,
    class: StepClass,
    pub steps: u64,
    /// Sum of their lengths.
    pub cycles: Cycles,
    /// Bytes moved: for each step the larger of received and sent bytes.
    pub bytes_moved: Bytes,
    /// Position on the lane of the first of them.
    pub first_position: u64,
}

impl ProgramStepSums {
    /// The kind of its steps.
    pub fn kind(&self) -> ProgramKind {
        self.class.kind()
    }

    /// The activity of the steps.
    pub fn activity(&self) -> StepActivity {
        self.class.activity()
    }

    /// The sums of several parts of a lane merged into one list, ordered by program and kind.
    pub(super) fn joined(parts: impl IntoIterator<Item = Vec<Self>>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for part in parts {
            let mut pairs = all.iter().zip(&part);
            if all.len() == part.len() && pairs.all(|(sums, more)| sums.key() == more.key()) {
                // The usual case: a long run executes the same programs all the time.
                all.iter_mut().zip(&part).for_each(|(sums, more)| sums.add(more));
            } else {
                // Parts with other programs are rare: sort, then merge neighbours with equal keys.
                all.extend(part);
                all.sort_by_key(Self::key);
                all.dedup_by(|more, sums| {
                    let same = more.key() == sums.key();
                    if same {
                        sums.add(more);
                    }
                    same
                });
            }
        }
        all
    }

    /// The sort key: program and kind.
    fn key(&self) -> (Option<ProgramId>, u64) {
        (self.program, self.class.code())
    }

    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
        self.first_position = self.first_position.min(other.first_position);
    }

    /// The sums in the blob of a segment that begins at position `first` and has `steps` steps, if
    /// it is sound.
    pub(super) fn decode(blob: &[u8], first: u64, steps: u64) -> Option<Vec<Self>> {
        let raw = unpack(blob, MAX_SEGMENT_BYTES)?;
        let mut cursor = VarintReader::new(&raw);
        let count = entry_count(&mut cursor)?;
        // Columns are stored one after the other, so each is read for all entries at once, and
        // those that sums do not need are skipped without being decoded.
        let empty = ProgramStepSums::from(&empty_totals((None, StepClass::default()), first));
        let mut all = vec![empty; count];
        for sums in &mut all {
            sums.program = program_from_code(cursor.take()?)?;
        }
        for sums in &mut all {
            sums.class = StepClass::from_code(cursor.take()?)?;
        }
        for sums in &mut all {
            sums.steps = cursor.take()?;
        }
        for sums in &mut all {
            sums.cycles = Cycles(cursor.take()?);
        }
        // Bytes received and sent.
        cursor.skip(2 * count)?;
        for sums in &mut all {
            sums.bytes_moved = Bytes(cursor.take()?);
        }
        // Least and most bytes, and squares.
        cursor.skip(4 * count)?;
        for sums in &mut all {
            let place = cursor.take()?;
            if !is_sane(sums.steps, sums.cycles.0, (first, place), steps) {
                return None;
            }
            sums.first_position = first + place;
        }
        // Every step of a segment belongs to exactly one entry.
        let counted = all.iter().try_fold(0u64, |sum, sums| sum.checked_add(sums.steps));
        if counted == Some(steps) { Some(all) } else { None }
    }
}

impl From<&ProgramStepTotals> for ProgramStepSums {
    fn from(totals: &ProgramStepTotals) -> Self {
        let &ProgramStepTotals { program, class, steps, cycles, .. } = totals;
        let &ProgramStepTotals { bytes_moved, first_position, .. } = totals;
        Self { program, class, steps, cycles, bytes_moved, first_position }
    }
}

impl ProgramStepTotals {
    /// The key that identifies its steps.
    pub(super) fn key(&self) -> TotalsKey {
        (self.program, self.class)
    }

    /// The kind of its steps.
    pub fn kind(&self) -> ProgramKind {
        self.class.kind()
    }

    pub(super) fn class(&self) -> StepClass {
        self.class
    }

    /// True for steps of a program of `kind` whose streams end at `stream`.
    pub(crate) fn is_of(&self, kind: ProgramKind, stream: StreamEndpoint) -> bool {
        self.class == StepClass::new(kind, stream)
    }

    /// The activity of the steps.
    pub fn activity(&self) -> StepActivity {
        self.class.activity()
    }

    /// Counts `times` equal steps, starting at `position`.
    fn add_steps(&mut self, position: u64, each: StepAmounts, times: u64) {
        let StepAmounts { length, bytes_in, bytes_out } = each;
        self.steps += times;
        self.cycles = self.cycles.saturating_add(length.saturating_mul(times));
        self.bytes_in = self.bytes_in.saturating_add(bytes_in.saturating_mul(times));
        self.bytes_out = self.bytes_out.saturating_add(bytes_out.saturating_mul(times));
        let moved = bytes_in.max(bytes_out);
        self.bytes_moved = self.bytes_moved.saturating_add(moved.saturating_mul(times));
        self.least_bytes_moved = self.least_bytes_moved.min(moved);
        self.most_bytes_moved = self.most_bytes_moved.max(moved);
        let squared = u128::from(length.0) * u128::from(length.0);
        let all_squared = squared.saturating_mul(u128::from(times));
        self.squared_cycles = self.squared_cycles.saturating_add(all_squared);
        self.first_position = self.first_position.min(position);
        self.lengths.count_times(length.0, times);
        if times > 0 {
            self.groups.add(&LengthGroup::of_equal(length, moved, times));
        }
    }

    /// Adds other steps of the same program, anywhere on the lane.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
        self.least_bytes_moved = self.least_bytes_moved.min(other.least_bytes_moved);
        self.most_bytes_moved = self.most_bytes_moved.max(other.most_bytes_moved);
        self.squared_cycles = self.squared_cycles.saturating_add(other.squared_cycles);
        self.first_position = self.first_position.min(other.first_position);
        self.lengths.add(&other.lengths);
        other.groups.groups().iter().for_each(|group| self.groups.add(group));
    }
}

/// The key of steps that are summed together: those of a program and of a class.
pub(super) type TotalsKey = (Option<ProgramId>, StepClass);

/// Totals by program.
#[derive(Clone, Default)]
pub(super) struct ProgramTotals {
    entries: Vec<ProgramStepTotals>,
    index: HashMap<TotalsKey, usize>,
}

impl ProgramTotals {
    /// Adds the totals of other steps of the lane.
    #[expect(clippy::indexing_slicing, reason = "entries are never taken away")]
    pub(super) fn add(&mut self, other: &Self) {
        for totals in &other.entries {
            let at = self.known_or_new(totals.key(), totals.first_position);
            self.entries[at].add(totals);
        }
    }

    /// All totals, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ProgramStepTotals> {
        self.entries.iter()
    }

    /// All totals, ordered by program and kind.
    pub(super) fn into_totals(mut self) -> Vec<ProgramStepTotals> {
        self.sort();
        self.entries
    }

    /// The index of the entry with a key; a new entry begins at `position`.
    fn known_or_new(&mut self, key: TotalsKey, position: u64) -> usize {
        *self.index.entry(key).or_insert_with(|| {
            self.entries.push(empty_totals(key, position));
            self.entries.len() - 1
        })
    }

    fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|totals| (totals.program, totals.class.code()));
    }

    /// A segment that begins at a position, not packed yet: column after column.
    pub(super) fn encode(mut self, first: u64) -> EncodedSegment {
        // Readers merge segments entry by entry (see `ProgramStepSums::joined`), which requires the
        // same order in all of them.
        self.sort();
        let mut groups = Vec::with_capacity(self.entries.len() * 4);
        self.entries.iter().for_each(|totals| totals.groups.write(&mut groups));
        let mut raw = Vec::with_capacity(self.entries.len() * 16 + 16);
        write_varint(&mut raw, self.entries.len() as u64);
        let mut write_column = |value: &dyn Fn(&ProgramStepTotals) -> u64| {
            self.entries.iter().for_each(|totals| write_varint(&mut raw, value(totals)));
        };
        write_column(&|totals| program_code(totals.program));
        write_column(&|totals| totals.class.code());
        write_column(&|totals| totals.steps);
        write_column(&|totals| totals.cycles.0);
        write_column(&|totals| totals.bytes_in.0);
        write_column(&|totals| totals.bytes_out.0);
        write_column(&|totals| totals.bytes_moved.0);
        write_column(&|totals| totals.least_bytes_moved.0);
        // A difference, because a program mostly moves the same bytes: a column of zeros packs to
        // almost nothing.
        write_column(&|totals| (totals.most_bytes_moved - totals.least_bytes_moved).0);
        // A varint holds 64 bits, so the squares take two columns.
        write_column(&|totals| (totals.squared_cycles >> 64) as u64);
        write_column(&|totals| low_half(totals.squared_cycles));
        // Relative to the segment, so that the number stays small in long runs.
        write_column(&|totals| totals.first_position - first);
        for totals in &self.entries {
            totals.lengths.write(&mut raw);
        }
        EncodedSegment { totals: raw, groups }
    }

    /// Decodes the sums by length of each entry in the blob of this segment, if it is sound.
    pub(super) fn decode_groups(&self, blob: &[u8]) -> Option<Vec<LengthGroups>> {
        let raw = unpack(blob, MAX_SEGMENT_BYTES)?;
        let mut cursor = VarintReader::new(&raw);
        let mut all = Vec::with_capacity(self.entries.len());
        for totals in &self.entries {
            all.push(LengthGroups::read(&mut cursor, totals)?);
        }
        if cursor.is_done() { Some(all) } else { None }
    }

    /// The same totals with sums by length of each entry.
    pub(super) fn with_groups(mut self, groups: Vec<LengthGroups>) -> Self {
        for (totals, groups) in self.entries.iter_mut().zip(groups) {
            totals.groups = groups;
        }
        self
    }

    /// The same totals without sums by length.
    pub(super) fn without_groups(mut self) -> Self {
        self.entries.iter_mut().for_each(|totals| totals.groups = LengthGroups::default());
        self
    }

    /// Decodes the blob of a segment that begins at position `first` and has `steps` steps, if it
    /// is sound.
    pub(super) fn decode(blob: &[u8], first: u64, steps: u64) -> Option<Self> {
        Self::decode_raw(&unpack(blob, MAX_SEGMENT_BYTES)?, first, steps)
    }

    /// The same for a blob that is not packed.
    pub(super) fn decode_raw(raw: &[u8], first: u64, steps: u64) -> Option<Self> {
        let mut cursor = VarintReader::new(raw);
        let count = entry_count(&mut cursor)?;
        let mut columns: [Vec<u64>; COLUMNS] = Default::default();
        for column in &mut columns {
            *column = (0..count).map(|_| cursor.take()).collect::<Option<_>>()?;
        }
        let mut decoded = Self::default();
        let mut counted = 0u64;
        for row in 0..count {
            let mut values = [0u64; COLUMNS];
            for (value, column) in values.iter_mut().zip(&columns) {
                *value = *column.get(row)?;
            }
            let totals = entry(&values, first, steps, &mut cursor)?;
            counted = counted.checked_add(totals.steps)?;
            let place = decoded.entries.len();
            // A repeated program would be counted once.
            if decoded.index.insert(totals.key(), place).is_some() {
                return None;
            }
            decoded.entries.push(totals);
        }
        if cursor.is_done() && counted == steps { Some(decoded) } else { None }
    }

    /// Size in memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let of_lengths =
            |totals: &ProgramStepTotals| totals.lengths.bytes() + totals.groups.bytes();
        let lengths: usize = self.entries.iter().map(of_lengths).sum();
        lengths + self.entries.len() * (size_of::<ProgramStepTotals>() + 40)
    }
}

/// The pieces of a segment, not packed yet.
pub(super) struct EncodedSegment {
    pub(super) totals: Vec<u8>,
    /// Sums by length of each entry.
    pub(super) groups: Vec<u8>,
}

/// The amounts of a step that are summed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StepAmounts {
    length: Cycles,
    bytes_in: Bytes,
    bytes_out: Bytes,
}

impl StepAmounts {
    fn of(record: &StepRecord) -> Self {
        let length = record.range.length();
        Self { length, bytes_in: record.bytes_in, bytes_out: record.bytes_out }
    }
}

/// Equal steps of a program that are counted but not summed yet.
struct RepeatedStep {
    key: TotalsKey,
    each: StepAmounts,
    times: u64,
    first_position: u64,
}

/// Totals by program, built from single steps.
///
/// A program mostly takes the same time and moves the same bytes as last time. Such a repetition
/// only increments a counter, which keeps the totals of thousands of programs out of the
/// processor's caches.
#[derive(Default)]
pub(super) struct StepCounter {
    totals: ProgramTotals,
    /// For each entry of the totals.
    repeated: Vec<RepeatedStep>,
    recent: RecentPlaces,
}

impl StepCounter {
    /// Counts the step at a position.
    pub(super) fn add_step(&mut self, position: u64, record: &StepRecord) {
        let key = (record.program, record.class);
        let each = StepAmounts::of(record);
        let Self { totals, repeated, recent } = self;
        let place = recent.find(
            record.program,
            |at| repeated.get(at).is_some_and(|step| step.key == key),
            || Some(totals.known_or_new(key, position)),
        );
        let Some(at) = place else { return };
        if at == repeated.len() {
            repeated.push(RepeatedStep { key, each, times: 0, first_position: position });
        }
        let Some(step) = repeated.get_mut(at) else { return };
        debug_assert_eq!(step.key, key, "steps of a program are counted together");
        // The amounts differ from those counted so far: sum these, and start a new count.
        if step.each != each {
            if let Some(entry) = totals.entries.get_mut(at) {
                entry.add_steps(step.first_position, step.each, step.times);
            }
            *step = RepeatedStep { key, each, times: 0, first_position: position };
        }
        step.times += 1;
    }

    /// The totals of all steps so far. Restarts from zero.
    pub(super) fn take(&mut self) -> ProgramTotals {
        let Self { mut totals, repeated, .. } = std::mem::take(self);
        for (entry, step) in totals.entries.iter_mut().zip(repeated) {
            entry.add_steps(step.first_position, step.each, step.times);
        }
        totals
    }
}

/// The low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "the high half is kept beside it")]
fn low_half(value: u128) -> u64 {
    value as u64
}

fn empty_totals((program, class): TotalsKey, first_position: u64) -> ProgramStepTotals {
    ProgramStepTotals {
        program,
        class,
        steps: 0,
        cycles: Cycles::ZERO,
        bytes_in: Bytes::ZERO,
        bytes_out: Bytes::ZERO,
        bytes_moved: Bytes::ZERO,
        // The neutral element of a minimum.
        least_bytes_moved: Bytes(u64::MAX),
        most_bytes_moved: Bytes::ZERO,
        squared_cycles: 0,
        first_position,
        lengths: LogHistogram::default(),
        groups: LengthGroups::default(),
    }
}

/// The number of entries at the start of a segment.
fn entry_count(cursor: &mut VarintReader<'_>) -> Option<usize> {
    let count = usize::try_from(cursor.take()?).ok()?;
    // Every entry takes several bytes, so a count that is too large is refused before any
    // allocation.
    if count <= MAX_ENTRIES && count <= cursor.left() { Some(count) } else { None }
}

/// The program of an entry as a number: 0 for none.
pub(super) fn program_code(program: Option<ProgramId>) -> u64 {
    program.map_or(0, |program| u64::from(program.0) + 1)
}

/// The program of an entry; none for 0.
pub(super) fn program_from_code(code: u64) -> Option<Option<ProgramId>> {
    Some(code.checked_sub(1).map(u32::try_from).transpose().ok()?.map(ProgramId))
}

/// True if an entry of `count` steps can be in a segment of `steps` steps.
fn is_sane(count: u64, cycles: u64, (first, place): (u64, u64), steps: u64) -> bool {
    let fits = count > 0 && count <= steps && place < steps && first < MAX_STEPS;
    fits && cycles <= MAX_CYCLES.0
}

/// Decodes one entry of a segment of `steps` steps from position `first` on.
fn entry(
    values: &[u64; COLUMNS],
    first: u64,
    steps: u64,
    cursor: &mut VarintReader<'_>,
) -> Option<ProgramStepTotals> {
    let &[program, class, count, cycles, bytes_in, bytes_out, moved, ..] = values;
    let &[.., least_moved, more_moved, high, low, place] = values;
    let program = program_from_code(program)?;
    let class = StepClass::from_code(class)?;
    if !is_sane(count, cycles, (first, place), steps) {
        return None;
    }
    Some(ProgramStepTotals {
        steps: count,
        cycles: Cycles(cycles),
        bytes_in: Bytes(bytes_in),
        bytes_out: Bytes(bytes_out),
        bytes_moved: Bytes(moved),
        least_bytes_moved: Bytes(least_moved),
        most_bytes_moved: Bytes(least_moved.checked_add(more_moved)?),
        squared_cycles: (u128::from(high) << 64) | u128::from(low),
        lengths: LogHistogram::read(cursor, count)?,
        ..empty_totals((program, class), first + place)
    })
}

#[cfg(test)]
mod tests {
    use super::super::answers::FixedPointBalance;
    use super::super::lane_builder::{LaneBuilder, TraceIndexBlob};
    use super::super::lane_number::LaneNumber;
    use super::*;
    use crate::codec::pack;
    use crate::units::{CycleRange, IpuId, ReplicaClassId, StepId};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use tilescope_test_tiers::cases;

    fn lane() -> LaneNumber {
        LaneNumber::new(ReplicaClassId(1), IpuId(0), 3)
    }

    fn record(step: u64, start: u64, program: u64) -> StepRecord {
        let kinds = [ProgramKind::OnTileExecute, ProgramKind::DoExchange];
        StepRecord {
            step: StepId(step),
            range: CycleRange::new(Cycles(start), Cycles(start + program * 3 + step % 5)),
            program: u32::try_from(program).ok().filter(|id| *id > 0).map(ProgramId),
            class: StepClass::new(kinds[(step % 7 / 6) as usize], StreamEndpoint::Host),
            balance: FixedPointBalance::from_share(0.5),
            bytes_in: Bytes(program * 4),
            bytes_out: Bytes(step % 16),
        }
    }

    /// The segments of a lane with their sums by length, by key.
    fn segments(records: &[StepRecord]) -> BTreeMap<i64, [Vec<u8>; 2]> {
        let (mut room, mut blobs) = (100, Vec::new());
        let mut builder = LaneBuilder::new(lane());
        records.iter().for_each(|record| builder.push(*record, None, &mut room, &mut blobs));
        builder.finish(&mut room, &mut blobs);
        let mut found: BTreeMap<i64, [Vec<u8>; 2]> = BTreeMap::new();
        for blob in blobs {
            match blob {
                TraceIndexBlob::Totals(key, raw) => found.entry(key).or_default()[0] = pack(&raw),
                TraceIndexBlob::Lengths(key, raw) => found.entry(key).or_default()[1] = pack(&raw),
                _ => {}
            }
        }
        found
    }

    fn slow(records: &[StepRecord], first: u64) -> Vec<ProgramStepTotals> {
        let mut sum = ProgramTotals::default();
        for (position, record) in (first..).zip(records) {
            let at = sum.known_or_new((record.program, record.class), position);
            sum.entries[at].add_steps(position, StepAmounts::of(record), 1);
        }
        sum.into_totals()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(40), ..ProptestConfig::default() })]

        #[test]
        fn segments_of_all_levels_are_sums_of_their_steps(
            programs in prop::collection::vec(0u64..6, 1..20_000),
        ) {
            let mut start = 0;
            let records = (0u64..).zip(programs).map(|(step, program)| {
                let record = record(step, start, program);
                start = record.range.end.0;
                record
            });
            let records: Vec<StepRecord> = records.collect();
            let (mut found, all) = (segments(&records), records.len() as u64);
            let whole = slow(&records, 0);
            let whole: Vec<ProgramStepSums> = whole.iter().map(ProgramStepSums::from).collect();
            for level in 0..segment_level_count(all) {
                let size = steps_per_segment(level);
                let mut sums = Vec::new();
                for at in 0..all.div_ceil(size) {
                    let steps = at * size..((at + 1) * size).min(all);
                    let blobs = found.remove(&lane().block_key(level, at));
                    let [blob, groups] = blobs.expect("a segment");
                    let count = steps.end - steps.start;
                    let decoded = ProgramTotals::decode(&blob, steps.start, count);
                    sums.push(ProgramStepSums::decode(&blob, steps.start, count).expect("sound"));
                    let own = &records[steps.start as usize..steps.end as usize];
                    let decoded = decoded.expect("sound");
                    let groups = decoded.decode_groups(&groups).expect("sound");
                    let decoded = decoded.with_groups(groups);
                    prop_assert_eq!(decoded.into_totals(), slow(own, steps.start));
                }
                prop_assert_eq!(&ProgramStepSums::joined(sums), &whole);
            }
            prop_assert!(found.is_empty(), "segments that no level needs: {:?}", found.keys());
        }

        #[test]
        fn any_bytes_are_a_segment_or_nothing(
            raw in prop::collection::vec(any::<u8>(), 0..200),
            steps in 0u64..100,
        ) {
            let blob = pack(&raw);
            let sums = ProgramStepSums::decode(&blob, 0, steps);
            if let Some(read) = ProgramTotals::decode(&blob, 0, steps) {
                let counted: u64 = read.into_totals().iter().map(|totals| totals.steps).sum();
                prop_assert_eq!(counted, steps);
                prop_assert!(sums.is_some(), "what is sound is so in short");
            }
        }
    }
}
