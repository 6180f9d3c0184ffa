//! Steps of one lane, 4,096 at a time, each told apart only by what was not expected of it.
//!
//! A program that ran once mostly runs the same way again: same duration (a compute set is
//! measured once), same bytes, same balance, and the same program follows. So a lane keeps, for
//! each program, what its first execution was like: the *expectation*. A chunk then says of each
//! step in one byte which of eight facts differ, and lists only the differences:
//!
//! ```text
//!   program   ..  17  18  19  17  18  19  17  18   what follows 17 is expected to be 18
//!   facts     ..   0   0   0   0   0  16   0   0   bit 4: this 19 took longer or shorter
//!   durations ..                      +7           the only number stored
//! ```
//!
//! The bytes of a loop are almost all zero and deflate to nearly nothing: about 0.1 B per step when
//! durations repeat, 2 B when each one differs. Chunks share only the expectations, so any chunk
//! is decoded alone, in O(4,096).

use super::codec::{Cursor, apply, difference, pack, put, unpack};
use super::types::Balance;
use crate::report::limits::{MAX_CYCLES, MAX_STEP_BYTES, MAX_STEPS};
use crate::report::model::{Activity, ProgramKind, StreamEnd};
use crate::units::{CycleRange, ProgramId, StepId};
use std::collections::HashMap;

/// Steps of a full chunk.
pub(super) const CHUNK_STEPS: usize = 4096;
/// Most programs a lane keeps expectations of.
const MAX_EXPECTATIONS: usize = 1 << 16;
/// Facts that can differ from the expectation.
const FACTS: usize = 8;
const PROGRAM: usize = 0;
/// Stored in place of a program id where a step has none.
const NO_PROGRAM: u32 = u32::MAX;
/// Largest unpacked chunk: every fact of every step stored, ten bytes each.
const MAX_CHUNK_BYTES: usize = CHUNK_STEPS * (1 + 10 * FACTS) + 256;
const MAX_EXPECTATION_BYTES: usize = MAX_EXPECTATIONS * 10 * (FACTS + 1) + 16;

/// What a step does and where its data go, in one small number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    pub(crate) fn new(kind: ProgramKind, stream: StreamEnd) -> Self {
        let at = ProgramKind::ALL.iter().position(|&k| k == kind).unwrap_or_default();
        Self(at as u8 * 2 + u8::from(stream == StreamEnd::RemoteBuffer))
    }

    /// The class of a step of `kind` that spent its time on `activity`.
    pub(super) fn of(kind: ProgramKind, activity: Activity) -> Self {
        let remote = activity == Activity::RemoteBuffer;
        Self::new(kind, if remote { StreamEnd::RemoteBuffer } else { StreamEnd::Host })
    }

    pub(in crate::report) fn from_code(code: u64) -> Option<Self> {
        (code < 2 * ProgramKind::ALL.len() as u64).then_some(Self(code as u8))
    }

    pub(in crate::report) fn code(self) -> u64 {
        u64::from(self.0)
    }

    pub(in crate::report) fn kind(self) -> ProgramKind {
        ProgramKind::ALL.get(usize::from(self.0 / 2)).copied().unwrap_or(ProgramKind::Unknown)
    }

    pub(in crate::report) fn stream(self) -> StreamEnd {
        if self.0.is_multiple_of(2) { StreamEnd::Host } else { StreamEnd::RemoteBuffer }
    }

    pub(super) fn activity(self) -> Activity {
        Activity::of(self.kind(), self.stream())
    }
}

/// A step on a lane as the index keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) step: StepId,
    pub(crate) range: CycleRange,
    pub(crate) program: Option<ProgramId>,
    pub(crate) class: Class,
    pub(crate) balance: Balance,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// The eight facts of a step, relative to the step before it on the lane.
type Facts = [u64; FACTS];

/// Where a lane stands: what the next step is told relative to.
#[derive(Clone, Copy, Default)]
struct Position {
    step: u64,
    end: u64,
}

impl Position {
    fn facts(self, record: &Record) -> Facts {
        [
            u64::from(record.program.map_or(NO_PROGRAM, |program| program.0)),
            record.class.code(),
            record.step.0 - self.step,
            record.range.start - self.end,
            record.range.length(),
            u64::from(record.balance.0),
            record.bytes_in,
            record.bytes_out,
        ]
    }

    /// The step these facts describe; `None` if no step can have them.
    fn record(self, facts: &Facts) -> Option<Record> {
        let [program, class, steps, gap, cycles, balance, bytes_in, bytes_out] = *facts;
        let program = u32::try_from(program).ok()?;
        let start = self.end.checked_add(gap)?;
        let end = start.checked_add(cycles)?;
        let step = self.step.checked_add(steps)?;
        let sane = end <= MAX_CYCLES && step < MAX_STEPS;
        (sane && bytes_in <= MAX_STEP_BYTES && bytes_out <= MAX_STEP_BYTES).then_some(())?;
        Some(Record {
            step: StepId(step),
            range: CycleRange::new(start, end),
            program: (program != NO_PROGRAM).then_some(ProgramId(program)),
            class: Class::from_code(class)?,
            balance: Balance(u16::try_from(balance).ok()?),
            bytes_in,
            bytes_out,
        })
    }

    fn after(record: &Record) -> Self {
        Self { step: record.step.0, end: record.range.end }
    }
}

/// What a program's first execution on a lane was like.
#[derive(Clone, Copy)]
struct Expectation {
    facts: Facts,
    /// Index of the expectation of the program that followed.
    next: Option<u32>,
}

/// The expectations of one lane.
#[derive(Default)]
pub(super) struct Expectations {
    entries: Vec<Expectation>,
    by_program: HashMap<u64, u32>,
}

impl Expectations {
    /// The expectation of `program`, learnt from `facts` where it is new and there is room.
    fn learn(&mut self, facts: &Facts, room: &mut usize) -> Option<u32> {
        if let Some(&known) = self.by_program.get(&facts[PROGRAM]) {
            return Some(known);
        }
        if *room == 0 || self.entries.len() == MAX_EXPECTATIONS {
            return None;
        }
        *room -= 1;
        let new = self.entries.len() as u32;
        self.entries.push(Expectation { facts: *facts, next: None });
        self.by_program.insert(facts[PROGRAM], new);
        Some(new)
    }

    fn follower(&self, current: Option<u32>) -> Option<u32> {
        self.entries.get(current? as usize)?.next
    }

    fn facts(&self, index: Option<u32>) -> Facts {
        let entry = index.and_then(|index| self.entries.get(index as usize));
        entry.map_or([0; FACTS], |entry| entry.facts)
    }

    /// Decoded size in memory.
    pub(super) fn bytes(&self) -> usize {
        self.entries.len() * (size_of::<Expectation>() + 32)
    }

    /// All expectations as a blob.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut raw = Vec::new();
        put(&mut raw, self.entries.len() as u64);
        for entry in &self.entries {
            entry.facts.iter().for_each(|&fact| put(&mut raw, fact));
            put(&mut raw, entry.next.map_or(0, |next| u64::from(next) + 1));
        }
        pack(&raw)
    }

    /// The expectations of a blob, if it is sound.
    pub(super) fn decode(blob: &[u8]) -> Option<Self> {
        let raw = unpack(blob, MAX_EXPECTATION_BYTES)?;
        let mut cursor = Cursor::new(&raw);
        let count = usize::try_from(cursor.take()?).ok()?;
        (count <= MAX_EXPECTATIONS && count <= raw.len()).then_some(())?;
        let mut expected = Self::default();
        for index in 0..count {
            let mut facts = [0; FACTS];
            for fact in &mut facts {
                *fact = cursor.take()?;
            }
            let next = cursor.take()?.checked_sub(1);
            let next = next.map(u32::try_from).transpose().ok()?;
            next.is_none_or(|next| (next as usize) < count).then_some(())?;
            expected.by_program.insert(facts[PROGRAM], index as u32);
            expected.entries.push(Expectation { facts, next });
        }
        cursor.is_done().then_some(expected)
    }
}

/// Turns the steps of one lane into chunks.
pub(super) struct ChunkEncoder {
    expected: Expectations,
    before: Position,
}

impl ChunkEncoder {
    pub(super) fn new() -> Self {
        Self { expected: Expectations::default(), before: Position::default() }
    }

    /// One chunk. Records follow each other and the chunk before: ids do not fall, ranges do not
    /// overlap. `room` is how many more expectations may be learnt.
    pub(super) fn encode(&mut self, records: &[Record], room: &mut usize) -> Vec<u8> {
        let mut unexpected = Vec::with_capacity(records.len());
        let mut columns: [Vec<u8>; FACTS] = Default::default();
        let mut position = self.before;
        let mut current = None;
        for record in records {
            let facts = position.facts(record);
            let index = self.expected.learn(&facts, room);
            if let Some(entry) =
                current.and_then(|i: u32| self.expected.entries.get_mut(i as usize))
            {
                entry.next = entry.next.or(index);
            }
            let foreseen = index.is_some() && self.expected.follower(current) == index;
            let expected = self.expected.facts(index);
            let mut differs = u8::from(!foreseen);
            if !foreseen {
                put(&mut columns[PROGRAM], facts[PROGRAM]);
            }
            for fact in 1..FACTS {
                if facts[fact] != expected[fact] {
                    differs |= 1 << fact;
                    put(&mut columns[fact], difference(facts[fact], expected[fact]));
                }
            }
            unexpected.push(differs);
            current = index;
            position = Position::after(record);
        }
        let blob = envelope(self.before, &unexpected, &columns);
        self.before = position;
        blob
    }

    pub(super) fn expectations(&self) -> &Expectations {
        &self.expected
    }
}

fn envelope(before: Position, unexpected: &[u8], columns: &[Vec<u8>; FACTS]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(unexpected.len() * 2 + 64);
    put(&mut raw, unexpected.len() as u64);
    put(&mut raw, before.step);
    put(&mut raw, before.end);
    columns.iter().for_each(|column| put(&mut raw, column.len() as u64));
    raw.extend_from_slice(unexpected);
    columns.iter().for_each(|column| raw.extend_from_slice(column));
    pack(&raw)
}

/// The steps of a chunk, if the blob is sound and holds exactly `count` of them.
pub(super) fn decode(blob: &[u8], count: usize, expected: &Expectations) -> Option<Vec<Record>> {
    let raw = unpack(blob, MAX_CHUNK_BYTES)?;
    let mut cursor = Cursor::new(&raw);
    (cursor.take()? == count as u64).then_some(())?;
    let mut position = Position { step: cursor.take()?, end: cursor.take()? };
    let mut lengths = [0; FACTS];
    for length in &mut lengths {
        *length = usize::try_from(cursor.take()?).ok()?;
    }
    let unexpected = cursor.bytes(count)?;
    let mut columns = [Cursor::new(&[]); FACTS];
    for (column, length) in columns.iter_mut().zip(lengths) {
        *column = Cursor::new(cursor.bytes(length)?);
    }
    let mut records = Vec::with_capacity(count);
    let mut current = None;
    for &differs in unexpected {
        let (index, program) = if differs & 1 == 0 {
            let index = expected.follower(current);
            (index, expected.facts(Some(index?))[PROGRAM])
        } else {
            let program = columns[PROGRAM].take()?;
            (expected.by_program.get(&program).copied(), program)
        };
        let mut facts = expected.facts(index);
        facts[PROGRAM] = program;
        for fact in 1..FACTS {
            if differs & (1 << fact) != 0 {
                facts[fact] = apply(columns[fact].take()?, facts[fact]);
            }
        }
        let record = position.record(&facts)?;
        position = Position::after(&record);
        records.push(record);
        current = index;
    }
    let done = cursor.is_done() && columns.iter().all(Cursor::is_done);
    done.then_some(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(step: u64, start: u64, cycles: u64, program: u32) -> Record {
        Record {
            step: StepId(step),
            range: CycleRange::new(start, start + cycles),
            program: (program != 9).then_some(ProgramId(program)),
            class: Class::new(ProgramKind::OnTileExecute, StreamEnd::Host),
            balance: Balance(program as u16 * 1000),
            bytes_in: u64::from(program) * 64,
            bytes_out: 0,
        }
    }

    fn round_trip(records: &[Record], chunk: usize, mut room: usize) -> Vec<Record> {
        let mut encoder = ChunkEncoder::new();
        let chunks: Vec<_> = records
            .chunks(chunk)
            .map(|part| (part.len(), encoder.encode(part, &mut room)))
            .collect();
        let expected = Expectations::decode(&encoder.expectations().encode()).unwrap();
        let parts = chunks.iter().map(|(count, blob)| decode(blob, *count, &expected).unwrap());
        parts.flatten().collect()
    }

    #[test]
    fn a_loop_costs_next_to_nothing() {
        let records: Vec<_> = (0..4096).map(|i| record(i, i * 10, 10, (i % 3) as u32)).collect();
        let mut encoder = ChunkEncoder::new();
        let blob = encoder.encode(&records, &mut 100);
        assert!(blob.len() < 80, "{} B for 4,096 equal steps", blob.len());
    }

    proptest! {
        #[test]
        fn steps_come_back(
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
            prop_assert_eq!(round_trip(&records, chunk, room), records);
        }

        #[test]
        fn hostile_bytes_are_refused(raw in prop::collection::vec(any::<u8>(), 0..200)) {
            let expected = Expectations::default();
            let _ = decode(&pack(&raw), raw.first().copied().unwrap_or(0).into(), &expected);
            let _ = Expectations::decode(&pack(&raw));
        }
    }
}
