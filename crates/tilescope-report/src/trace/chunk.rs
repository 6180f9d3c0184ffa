//! Chunks of 4,096 steps of one lane, each step encoded by its deviations from expectation.
//!
//! A program that ran once mostly runs the same way again: with the same duration (a compute set is
//! measured once), bytes and balance, and followed by the same program. A lane therefore keeps, for
//! each program, the facts of its first execution: the *expectation*. A chunk has one byte per step
//! for which of eight facts differ, and lists only the differences:
//!
//! ```text
//!   program   ..  17  18  19  17  18  19  17  18   the step after 17 is expected to be 18
//!   facts     ..   0   0   0   0   0  16   0   0   bit 4: this 19 took longer or shorter
//!   durations ..                      +7           the only number stored
//! ```
//!
//! The bytes of a loop are almost all zero and deflate to nearly nothing: about 0.1 B per step when
//! durations repeat, 2 B when each one differs. Chunks share only the expectations, so any chunk
//! can be decoded alone, in O(4,096).
//!
//! In a report without rows of steps, a second blob beside the chunk encodes, in the same manner,
//! the four facts that views of the trace do not need.

// Blobs come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::answers::FixedPointBalance;
use super::equal_steps::EqualSteps;
use super::step_predictor::{
    NO_EXPECTATION, PROGRAM_FIELD, STEP_FIELD_COUNT, StepFields, StepPredictor,
};
use super::step_record::{StepClass, StepRecord, StepRecordDetails};
use crate::codec::{VarintReader, apply_zigzag_difference, difference, unpack, write_varint};
use crate::limits::{MAX_CYCLES, MAX_STEP_BYTES, MAX_STEPS};
use crate::units::{Bytes, CycleRange, Cycles, ProgramId, StepId};
use std::ops::Range;

/// The number of steps of a full chunk.
pub(super) const CHUNK_STEPS: usize = 4096;
/// The facts in a chunk, and those in the blob beside it.
const MAIN_FIELDS: Range<usize> = 0..8;
const DETAIL_FIELDS: Range<usize> = 8..STEP_FIELD_COUNT;
/// Stored in place of a program id if a step has none.
const NO_PROGRAM: u32 = u32::MAX;
/// The base of the difference of a program that is stored explicitly: an invalid program.
const SPELLED_OUT: u64 = u64::MAX;
/// The largest unpacked blob: every fact of every step stored, with ten bytes each.
const MAX_BLOB_BYTES: usize = CHUNK_STEPS * (1 + 10 * 8) + 256;

fn program_fact(record: &StepRecord) -> u64 {
    u64::from(record.program.map_or(NO_PROGRAM, |program| program.0))
}

/// A position on a lane that the next step is relative to.
#[derive(Clone, Copy, Default)]
struct StepDeltaBase {
    step: StepId,
    end: Cycles,
}

impl StepDeltaBase {
    fn facts(self, record: &StepRecord, details: &StepRecordDetails) -> StepFields {
        [
            program_fact(record),
            record.class.code(),
            // Relative to the previous step: a loop repeats these numbers exactly, but never
            // absolute ones.
            record.step - self.step,
            (record.range.start - self.end).0,
            record.range.length().0,
            u64::from(record.balance.0),
            record.bytes_in.0,
            record.bytes_out.0,
            details.from_spread.0,
            details.to_spread.0,
            u64::from(details.active_tiles),
            u64::from(details.balance_bits),
        ]
    }

    /// The step that these facts describe; `None` if no step can have them.
    fn record(self, facts: &StepFields) -> Option<StepRecord> {
        let [program, class, steps, gap, cycles, balance, bytes_in, bytes_out, ..] = *facts;
        let bytes_in = Bytes(bytes_in);
        let bytes_out = Bytes(bytes_out);
        // All sums are checked: the facts may come from a hostile file.
        let program = u32::try_from(program).ok()?;
        let start = self.end.checked_add(Cycles(gap))?;
        let end = start.checked_add(Cycles(cycles))?;
        let step = self.step.checked_add(steps)?;
        let sane = end <= MAX_CYCLES && step < StepId(MAX_STEPS);
        if !sane || bytes_in > MAX_STEP_BYTES || bytes_out > MAX_STEP_BYTES {
            return None;
        }
        Some(StepRecord {
            step,
            range: CycleRange::new(start, end),
            program: (program != NO_PROGRAM).then_some(ProgramId(program)),
            class: StepClass::from_code(class)?,
            balance: FixedPointBalance(u16::try_from(balance).ok()?),
            bytes_in,
            bytes_out,
        })
    }

    fn after(record: &StepRecord) -> Self {
        Self { step: record.step, end: record.range.end }
    }
}

/// Columns of one blob: the differing facts of each step, and the differences.
struct ChunkColumns {
    unexpected: Vec<u8>,
    differences: [Vec<u8>; 8],
}

impl ChunkColumns {
    fn new(steps: usize) -> Self {
        Self { unexpected: Vec::with_capacity(steps), differences: Default::default() }
    }

    /// Adds a step; only the facts in `kept` are compared.
    fn add(&mut self, facts: &StepFields, expected: &StepFields, kept: Range<usize>) {
        let mut differs = 0;
        let pairs = facts.iter().zip(expected).skip(kept.start).take(kept.len());
        for (bit, ((fact, expected), column)) in pairs.zip(&mut self.differences).enumerate() {
            if fact != expected {
                differs |= 1 << bit;
                write_varint(column, difference(*fact, *expected));
            }
        }
        self.unexpected.push(differs);
    }

    /// The columns one after another, not packed yet.
    fn raw(&self, before: StepDeltaBase) -> Vec<u8> {
        let mut raw = Vec::with_capacity(self.unexpected.len() * 2 + 64);
        write_varint(&mut raw, self.unexpected.len() as u64);
        // The absolute position of the chunk: it is decoded without the previous chunk.
        write_varint(&mut raw, before.step.0);
        write_varint(&mut raw, before.end.0);
        self.differences.iter().for_each(|column| write_varint(&mut raw, column.len() as u64));
        raw.extend_from_slice(&self.unexpected);
        self.differences.iter().for_each(|column| raw.extend_from_slice(column));
        raw
    }
}

/// The columns of a blob while they are read.
struct ChunkColumnReader<'a> {
    unexpected: &'a [u8],
    differences: [VarintReader<'a>; 8],
}

impl<'a> ChunkColumnReader<'a> {
    /// Reads the columns in `raw` and their start. `None` if they do not have `count` steps.
    fn new(raw: &'a [u8], count: usize) -> Option<(Self, StepDeltaBase)> {
        let mut cursor = VarintReader::new(raw);
        // The caller knows the number of steps from the lane; a blob that disagrees is refused.
        if cursor.take()? != count as u64 {
            return None;
        }
        let position = StepDeltaBase { step: StepId(cursor.take()?), end: Cycles(cursor.take()?) };
        let mut lengths = [0; 8];
        for length in &mut lengths {
            *length = usize::try_from(cursor.take()?).ok()?;
        }
        let unexpected = cursor.bytes(count)?;
        let mut differences = [VarintReader::new(&[]); 8];
        for (column, length) in differences.iter_mut().zip(lengths) {
            *column = VarintReader::new(cursor.bytes(length)?);
        }
        // Leftover bytes would mean that lengths and columns disagree.
        if cursor.is_done() { Some((Self { unexpected, differences }, position)) } else { None }
    }

    /// Adds the differences of one step to the expected facts.
    fn apply_differences(
        &mut self,
        differs: u8,
        facts: &mut StepFields,
        kept: Range<usize>,
    ) -> Option<()> {
        // Most steps are as expected: only the facts that differ are visited.
        let mut left = differs;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            if bit >= kept.len() {
                break;
            }
            let fact = facts.get_mut(kept.start + bit)?;
            *fact = apply_zigzag_difference(self.differences.get_mut(bit)?.take()?, *fact);
        }
        Some(())
    }

    fn is_done(&self) -> bool {
        self.differences.iter().all(VarintReader::is_done)
    }
}

/// Encodes the steps of one lane as chunks.
pub(super) struct ChunkEncoder {
    expected: StepPredictor,
    before: StepDeltaBase,
}

impl ChunkEncoder {
    pub(super) fn new() -> Self {
        Self { expected: StepPredictor::default(), before: StepDeltaBase::default() }
    }

    /// Encodes one chunk, and the blob beside it if there are `details`, one per record. Neither is
    /// packed yet. Records continue the previous chunk: ids do not descend, ranges do not overlap.
    /// `room` is the number of further expectations that may be learnt.
    pub(super) fn encode(
        &mut self,
        records: &[StepRecord],
        details: &[StepRecordDetails],
        room: &mut usize,
    ) -> (Vec<u8>, Option<Vec<u8>>) {
        debug_assert!(
            details.is_empty() || details.len() == records.len(),
            "details are given with every step or with none"
        );
        let mut main = ChunkColumns::new(records.len());
        let mut beside = ChunkColumns::new(details.len());
        let mut position = self.before;
        // Reset for each chunk, as in the decoder: no chunk depends on the previous one.
        let mut current = None;
        for (place, record) in records.iter().enumerate() {
            let detail = details.get(place).copied().unwrap_or_default();
            let facts = position.facts(record, &detail);
            let (index, foreseen) = self.expected.learn(current, &facts, room);
            let mut expected = self.expected.predicted_fields(index);
            // The program either follows as expected or is stored explicitly.
            expected[PROGRAM_FIELD] = if foreseen { facts[PROGRAM_FIELD] } else { SPELLED_OUT };
            main.add(&facts, &expected, MAIN_FIELDS);
            if !details.is_empty() {
                beside.add(&facts, &expected, DETAIL_FIELDS);
            }
            current = index;
            position = StepDeltaBase::after(record);
        }
        let before = std::mem::replace(&mut self.before, position);
        (main.raw(before), (!details.is_empty()).then(|| beside.raw(before)))
    }

    pub(super) fn expectations(&self) -> &StepPredictor {
        &self.expected
    }
}

/// The steps of a chunk, if the blob is sound and has exactly `count` of them.
pub(super) fn decode(
    blob: &[u8],
    count: usize,
    expected: &StepPredictor,
) -> Option<Vec<StepRecord>> {
    let raw = unpack(blob, MAX_BLOB_BYTES)?;
    let (mut reading, mut position) = ChunkColumnReader::new(&raw, count)?;
    let mut records = Vec::with_capacity(count);
    let mut current = None;
    for &differs in reading.unexpected {
        let record = if differs == 0 {
            // The usual case copies no facts.
            let follower = expected.entry_after(current)?;
            current = Some(follower);
            position.record(&follower.facts)?
        } else {
            // The program comes first, because all other expectations depend on it.
            let program = if differs & 1 == 0 {
                // Bit 0 unset: the program is the one expected to follow.
                current = Some(expected.entry_after(current)?);
                None
            } else {
                let stored = reading.differences[PROGRAM_FIELD].take()?;
                let program = apply_zigzag_difference(stored, SPELLED_OUT);
                current = expected.entry_of(program);
                Some(program)
            };
            let mut facts = current.map_or([0; STEP_FIELD_COUNT], |entry| entry.facts);
            facts[PROGRAM_FIELD] = program.unwrap_or(facts[PROGRAM_FIELD]);
            reading.apply_differences(differs & !1, &mut facts, MAIN_FIELDS)?;
            position.record(&facts)?
        };
        position = StepDeltaBase::after(&record);
        records.push(record);
    }
    if reading.is_done() { Some(records) } else { None }
}

/// Counts the steps of chunks of a lane. Most steps match an expectation; these are counted by
/// expectation, and their facts are evaluated once.
pub(super) struct StepTally<'a> {
    expected: &'a StepPredictor,
    jumps: &'a [Vec<u32>],
    /// By level and index of an expectation: how often as many steps as a jump of this level skips
    /// followed it as expected.
    counts: Vec<Vec<u64>>,
}

impl<'a> StepTally<'a> {
    pub(super) fn new(expected: &'a StepPredictor) -> Self {
        let jumps = expected.jumps();
        Self { expected, jumps, counts: vec![vec![0; expected.len()]; jumps.len()] }
    }

    /// Adds a chunk, if the blob is sound and has exactly `count` steps. Passes on those that are
    /// not as expected.
    pub(super) fn add(
        &mut self,
        blob: &[u8],
        count: usize,
        each: &mut dyn FnMut(&EqualSteps),
    ) -> Option<()> {
        let raw = unpack(blob, MAX_BLOB_BYTES)?;
        let (mut reading, _) = ChunkColumnReader::new(&raw, count)?;
        let mut current = None;
        let mut rest = reading.unexpected;
        loop {
            let run = count_leading_zeros(rest);
            if run > 0 {
                current = Some(self.add_run(current?, run)?);
            }
            rest = rest.get(run..)?;
            let Some((&differs, others)) = rest.split_first() else { break };
            rest = others;
            let program = if differs & 1 == 0 {
                current = Some(self.expected.follower(current)?);
                None
            } else {
                let stored = reading.differences[PROGRAM_FIELD].take()?;
                let program = apply_zigzag_difference(stored, SPELLED_OUT);
                current = self.expected.find(program);
                Some(program)
            };
            let mut facts = self.expected.predicted_fields(current);
            facts[PROGRAM_FIELD] = program.unwrap_or(facts[PROGRAM_FIELD]);
            reading.apply_differences(differs & !1, &mut facts, MAIN_FIELDS)?;
            each(&equal_steps(&facts, 1)?);
        }
        if reading.is_done() { Some(()) } else { None }
    }

    /// Adds some steps that follow `current` as expected. Returns the expectation of the last one.
    fn add_run(&mut self, mut current: u32, mut steps: usize) -> Option<u32> {
        let top = self.jumps.len().checked_sub(1)?;
        while steps > 0 {
            // The largest jump that fits, so a run takes about as many lookups as its length has
            // bits.
            let level = (steps.ilog2() as usize).min(top);
            *self.counts.get_mut(level)?.get_mut(current as usize)? += 1;
            current = *self.jumps.get(level)?.get(current as usize)?;
            steps -= 1 << level;
        }
        if current == NO_EXPECTATION { None } else { Some(current) }
    }

    /// Passes on the steps that are as expected.
    pub(super) fn finish(mut self, each: &mut dyn FnMut(&EqualSteps)) -> Option<()> {
        // A jump is two jumps of the level below.
        while self.counts.len() > 1 {
            let counts = self.counts.pop()?;
            let jumps = self.jumps.get(self.counts.len() - 1)?;
            let lower = self.counts.last_mut()?;
            for ((at, times), &jump) in counts.into_iter().enumerate().zip(jumps) {
                if times > 0 {
                    *lower.get_mut(at)? += times;
                    *lower.get_mut(jump as usize)? += times;
                }
            }
        }
        // A jump of the lowest level is a single step.
        let mut steps = vec![0; self.expected.len()];
        for (times, &follower) in self.counts.first()?.iter().zip(self.jumps.first()?) {
            if *times > 0 {
                *steps.get_mut(follower as usize)? += times;
            }
        }
        for (index, times) in (0u32..).zip(steps).filter(|(_, times)| *times > 0) {
            each(&equal_steps(&self.expected.predicted_fields(Some(index)), times)?);
        }
        Some(())
    }
}

/// The number of zeros at the start of some bytes.
fn count_leading_zeros(bytes: &[u8]) -> usize {
    // Runs of expected steps are long, and words are compared faster than bytes.
    let (words, _) = bytes.as_chunks::<16>();
    let whole = words.iter().take_while(|word| u128::from_ne_bytes(**word) == 0).count() * 16;
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().take_while(|byte| **byte == 0).count()
}

/// Steps with these facts; `None` if no step can have them.
fn equal_steps(facts: &StepFields, times: u64) -> Option<EqualSteps> {
    // The position does not matter here: equal steps are counted by length and bytes.
    let record = StepDeltaBase::default().record(facts)?;
    Some(EqualSteps { times, ..EqualSteps::of(&record) })
}

/// The details in the blob beside a chunk of `records`, if it is sound.
pub(super) fn decode_details(
    blob: &[u8],
    records: &[StepRecord],
    expected: &StepPredictor,
) -> Option<Vec<StepRecordDetails>> {
    let raw = unpack(blob, MAX_BLOB_BYTES)?;
    let (mut reading, _) = ChunkColumnReader::new(&raw, records.len())?;
    let mut details = Vec::with_capacity(records.len());
    let mut current = None;
    for (record, &differs) in records.iter().zip(reading.unexpected) {
        // Programs are known from the chunk by now. Most follow as expected and need no search.
        let program = program_fact(record);
        let follower = expected.entry_after(current);
        current = match follower {
            Some(entry) if entry.facts[PROGRAM_FIELD] == program => follower,
            _ => expected.entry_of(program),
        };
        // Most are as expected, and copy no facts.
        let mut changed = [0; STEP_FIELD_COUNT];
        let mut facts = current.map_or(&changed, |entry| &entry.facts);
        if differs != 0 {
            changed = *facts;
            reading.apply_differences(differs, &mut changed, DETAIL_FIELDS)?;
            facts = &changed;
        }
        details.push(details_of(facts)?);
    }
    if reading.is_done() { Some(details) } else { None }
}

/// The details that these facts describe; `None` if no step can have them.
fn details_of(facts: &StepFields) -> Option<StepRecordDetails> {
    let [.., from_spread, to_spread, active_tiles, balance_bits] = *facts;
    let balance_bits = u32::try_from(balance_bits).ok()?;
    // Views sort and sum these shares; a NaN from the file would spread.
    if !f32::from_bits(balance_bits).is_finite() {
        return None;
    }
    Some(StepRecordDetails {
        from_spread: Cycles(from_spread),
        to_spread: Cycles(to_spread),
        active_tiles: u32::try_from(active_tiles).ok()?,
        balance_bits,
    })
}

/// Compares the details of a lane with its steps, chunk by chunk from the first.
///
/// Most details are as expected, of steps that are so too: these are compared once.
pub(super) struct DetailComparison {
    tiles_per_ipu: u32,
    /// By index of the expectation.
    agreed: Vec<AgreedStep>,
}

/// The last step with which the expected details agreed.
#[derive(Clone, Copy)]
struct AgreedStep {
    program: u64,
    /// Index of the expectation that follows.
    next: Option<u32>,
    /// Its length and balance; `None` if there was none.
    step: Option<(Cycles, FixedPointBalance)>,
}

impl DetailComparison {
    /// A comparison for a lane with these expectations.
    pub(super) fn new(expected: &StepPredictor, tiles_per_ipu: u32) -> Self {
        let all = expected.iter();
        let agreed = all.map(|(program, next)| AgreedStep { program, next, step: None }).collect();
        Self { tiles_per_ipu, agreed }
    }

    /// The first of `records` that the blob beside its chunk contradicts, if any; the outer `None`
    /// if the blob is not sound.
    #[expect(clippy::option_option, reason = "an unsound blob is no contradiction")]
    pub(super) fn find_contradiction<'r>(
        &mut self,
        blob: &[u8],
        records: &'r [StepRecord],
        expected: &StepPredictor,
    ) -> Option<Option<&'r StepRecord>> {
        let raw = unpack(blob, MAX_BLOB_BYTES)?;
        let (mut reading, _) = ChunkColumnReader::new(&raw, records.len())?;
        let mut contradicted = None;
        let mut current: Option<u32> = None;
        for (record, &differs) in records.iter().zip(reading.unexpected) {
            let program = program_fact(record);
            let follower = current.and_then(|index| self.agreed.get(index as usize)?.next);
            let mut known = follower.and_then(|index| self.agreed.get_mut(index as usize));
            current = follower;
            if known.as_ref().is_none_or(|known| known.program != program) {
                current = expected.find(program);
                known = current.and_then(|index| self.agreed.get_mut(index as usize));
            }
            let step = Some((record.range.length(), record.balance));
            // Spreads that reach back to the first cycle reach less far in later steps.
            if differs == 0 && known.as_ref().is_some_and(|known| known.step == step) {
                continue;
            }
            let mut facts = expected.predicted_fields(current);
            reading.apply_differences(differs, &mut facts, DETAIL_FIELDS)?;
            if !details_of(&facts)?.are_of(record, self.tiles_per_ipu) {
                contradicted = contradicted.or(Some(record));
            } else if let Some(known) = known.filter(|_| differs == 0) {
                known.step = step;
            }
        }
        if reading.is_done() { Some(contradicted) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::pack;
    use crate::model::{ProgramKind, StreamEndpoint};
    use proptest::prelude::*;
    use std::collections::HashMap;
    use tilescope_test_tiers::cases;

    fn record(step: u64, start: u64, cycles: u64, program: u32) -> StepRecord {
        StepRecord {
            step: StepId(step),
            range: CycleRange::new(Cycles(start), Cycles(start + cycles)),
            program: (program != 9).then_some(ProgramId(program)),
            class: StepClass::new(ProgramKind::OnTileExecute, StreamEndpoint::Host),
            balance: FixedPointBalance(program as u16 * 1000),
            bytes_in: Bytes(u64::from(program) * 64),
            bytes_out: Bytes::ZERO,
        }
    }

    fn details(records: &[StepRecord]) -> Vec<StepRecordDetails> {
        let detail = |record: &StepRecord| StepRecordDetails {
            from_spread: Cycles(record.range.start.0 % 3),
            to_spread: Cycles(record.range.end.0 % 2),
            active_tiles: u32::from(record.balance.0),
            balance_bits: (record.bytes_in.0 as f32 / 640.0).to_bits(),
        };
        records.iter().map(detail).collect()
    }

    /// Counts the steps of a chunk, and compares them with its records.
    fn check_tally(blob: &[u8], part: &[StepRecord], expected: &StepPredictor) {
        let mut found: HashMap<EqualSteps, u64> = HashMap::new();
        let mut count = |steps: &EqualSteps| {
            *found.entry(EqualSteps { times: 1, ..*steps }).or_default() += steps.times;
        };
        let mut tally = StepTally::new(expected);
        tally.add(blob, part.len(), &mut count).unwrap();
        tally.finish(&mut count).unwrap();
        let mut own: HashMap<EqualSteps, u64> = HashMap::new();
        part.iter().for_each(|record| *own.entry(EqualSteps::of(record)).or_default() += 1);
        assert_eq!(found, own);
    }

    fn check_round_trip(records: &[StepRecord], chunk: usize, mut room: usize) {
        let mut encoder = ChunkEncoder::new();
        let chunks: Vec<_> = records
            .chunks(chunk)
            .map(|part| (part, encoder.encode(part, &details(part), &mut room)))
            .collect();
        let expected = StepPredictor::decode(&encoder.expectations().encode()).unwrap();
        for (part, (main, beside)) in chunks {
            assert_eq!(decode(&pack(&main), part.len(), &expected).unwrap(), part);
            check_tally(&pack(&main), part, &expected);
            let read = decode_details(&pack(&beside.unwrap()), part, &expected).unwrap();
            assert_eq!(read, details(part));
        }
    }

    #[test]
    fn a_loop_takes_hardly_any_bytes() {
        let records: Vec<_> = (0..4096).map(|i| record(i, i * 10, 10, (i % 3) as u32)).collect();
        let (main, beside) = ChunkEncoder::new().encode(&records, &[], &mut 100);
        let packed = pack(&main).len();
        assert!(packed < 80, "{packed} B for 4,096 equal steps");
        assert_eq!(beside, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn steps_round_trip(
            steps in prop::collection::vec((0u64..3, 0u64..5, 0u64..9, 0u32..10), 1..200),
            chunk in 1usize..60,
            room in 0usize..12,
        ) {
            let (mut step, mut clock) = (0, 0);
            let records: Vec<_> = steps.into_iter().map(|(ids, gap, cycles, program)| {
                step += ids;
                let start = clock + gap;
                clock = start + cycles;
                record(step, start, cycles, program)
            }).collect();
            check_round_trip(&records, chunk, room);
        }

        #[test]
        fn hostile_bytes_are_refused(raw in prop::collection::vec(any::<u8>(), 0..200)) {
            let expected = StepPredictor::default();
            let count = usize::from(raw.first().copied().unwrap_or(0));
            let _ = decode(&pack(&raw), count, &expected);
            let _ = decode_details(&pack(&raw), &vec![record(0, 0, 0, 0); count], &expected);
            let _ = StepPredictor::decode(&pack(&raw));
        }
    }
}
