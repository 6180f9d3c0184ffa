//! Expectations of the programs of a lane: the facts of their first execution.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::codec::{VarintReader, pack, unpack, write_varint};
use foldhash::{HashMap, HashMapExt};
use std::sync::OnceLock;

/// The maximum number of programs of a lane with expectations.
const MAX_EXPECTATIONS: usize = 1 << 16;
/// Number of facts about a step.
pub(super) const STEP_FIELD_COUNT: usize = 12;
/// The fact by which expectations are found: the program.
pub(super) const PROGRAM_FIELD: usize = 0;
const MAX_EXPECTATION_BYTES: usize = MAX_EXPECTATIONS * 10 * (STEP_FIELD_COUNT + 1) + 16;

/// Stands for an expectation that does not exist in [`StepPredictor::jumps`].
pub(super) const NO_EXPECTATION: u32 = u32::MAX;
/// Number of levels of jumps: the highest skips as many steps as a chunk has.
const JUMP_LEVELS: usize = 13;
/// The maximum number of jumps of a lane that are kept. With more programs there are fewer levels.
const MAX_JUMPS: usize = 1 << 16;

/// Facts about a step, relative to the step before it on the lane: see `chunk`.
pub(super) type StepFields = [u64; STEP_FIELD_COUNT];

/// The facts of a program's first execution on a lane.
#[derive(Clone, Copy)]
pub(super) struct StepPrediction {
    pub(super) facts: StepFields,
    /// Index of the expectation of the program that followed.
    next: Option<u32>,
}

/// The expectations of one lane.
#[derive(Default)]
pub(super) struct StepPredictor {
    entries: Vec<StepPrediction>,
    by_program: HashMap<u64, u32>,
    jumps: OnceLock<Vec<Vec<u32>>>,
}

impl StepPredictor {
    /// The expectation of a step's program after that of `current`, and true if it was expected
    /// there. A new program is learnt from `facts` if there is room.
    pub(super) fn learn(
        &mut self,
        current: Option<u32>,
        facts: &StepFields,
        room: &mut usize,
    ) -> (Option<u32>, bool) {
        // The usual case, without a search.
        let follower = self.follower(current);
        let known = follower.and_then(|follower| self.entries.get(follower as usize));
        if known.is_some_and(|known| known.facts[PROGRAM_FIELD] == facts[PROGRAM_FIELD]) {
            return (follower, true);
        }
        let index = self.known_or_new(facts, room);
        self.follow(current, index);
        (index, index.is_some() && self.follower(current) == index)
    }

    fn known_or_new(&mut self, facts: &StepFields, room: &mut usize) -> Option<u32> {
        if let Some(&known) = self.by_program.get(&facts[PROGRAM_FIELD]) {
            return Some(known);
        }
        // Bounded over all lanes: a run of millions of programs would otherwise fill the memory.
        // Steps of further programs are stored explicitly.
        if *room == 0 || self.entries.len() == MAX_EXPECTATIONS {
            return None;
        }
        let new = u32::try_from(self.entries.len()).ok()?;
        *room -= 1;
        self.entries.push(StepPrediction { facts: *facts, next: None });
        self.by_program.insert(facts[PROGRAM_FIELD], new);
        Some(new)
    }

    /// The expectation that follows `current`.
    pub(super) fn follower(&self, current: Option<u32>) -> Option<u32> {
        self.entries.get(current? as usize)?.next
    }

    /// The expectation that follows another one.
    pub(super) fn entry_after(&self, current: Option<&StepPrediction>) -> Option<&StepPrediction> {
        self.entries.get(current?.next? as usize)
    }

    /// The expectation of a program.
    pub(super) fn entry_of(&self, program: u64) -> Option<&StepPrediction> {
        self.entries.get(self.find(program)? as usize)
    }

    /// The expected facts; all 0 for an unknown program.
    pub(super) fn predicted_fields(&self, index: Option<u32>) -> StepFields {
        let entry = index.and_then(|index| self.entries.get(index as usize));
        entry.map_or([0; STEP_FIELD_COUNT], |entry| entry.facts)
    }

    /// The program of each expectation, and the index of the one that follows.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Option<u32>)> {
        self.entries.iter().map(|entry| (entry.facts[PROGRAM_FIELD], entry.next))
    }

    /// Number of expectations.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Index of the expectation of a program.
    pub(super) fn find(&self, program: u64) -> Option<u32> {
        self.by_program.get(&program).copied()
    }

    /// By level and expectation: the one that is reached when 2^level steps follow as expected, or
    /// [`NO_EXPECTATION`]. There is at least one level. No expectation is learnt after the first
    /// call.
    pub(super) fn jumps(&self) -> &[Vec<u32>] {
        self.jumps.get_or_init(|| {
            let next = |entry: &StepPrediction| entry.next.unwrap_or(NO_EXPECTATION);
            let mut levels: Vec<Vec<u32>> = vec![self.entries.iter().map(next).collect()];
            let most = (MAX_JUMPS / self.entries.len().max(1)).clamp(1, JUMP_LEVELS);
            while let Some(below) = levels.last().filter(|_| levels.len() < most) {
                let double = |&jump: &u32| below.get(jump as usize).copied();
                let level = below.iter().map(|jump| double(jump).unwrap_or(NO_EXPECTATION));
                levels.push(level.collect());
            }
            levels
        })
    }

    /// Records `next` as the follower of `current`, unless another one was seen there first.
    fn follow(&mut self, current: Option<u32>, next: Option<u32>) {
        let entry = current.and_then(|index| self.entries.get_mut(index as usize));
        if let Some(entry) = entry {
            // The first one stays: the decoder gets the final list, so earlier expectations must
            // still hold.
            entry.next = entry.next.or(next);
        }
    }

    /// Size in memory, decoded, with jumps.
    pub(super) fn bytes(&self) -> usize {
        self.entries.len() * (size_of::<StepPrediction>() + 32 + JUMP_LEVELS * size_of::<u32>())
    }

    /// All expectations as a blob.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut raw = Vec::new();
        write_varint(&mut raw, self.entries.len() as u64);
        for entry in &self.entries {
            entry.facts.iter().for_each(|&fact| write_varint(&mut raw, fact));
            // 0 stands for none; everything else is shifted by one.
            write_varint(&mut raw, entry.next.map_or(0, |next| u64::from(next) + 1));
        }
        pack(&raw)
    }

    /// The expectations of a blob, if it is sound.
    pub(super) fn decode(blob: &[u8]) -> Option<Self> {
        let raw = unpack(blob, MAX_EXPECTATION_BYTES)?;
        let mut cursor = VarintReader::new(&raw);
        let count = usize::try_from(cursor.take()?).ok()?;
        // Every entry takes at least a byte, so a count that is too large is refused before any
        // allocation.
        if count > MAX_EXPECTATIONS || count > raw.len() {
            return None;
        }
        let entries = Vec::with_capacity(count);
        let by_program = HashMap::with_capacity(count);
        let mut expected = Self { entries, by_program, jumps: OnceLock::new() };
        for index in (0u32..).take(count) {
            let mut facts = [0; STEP_FIELD_COUNT];
            for fact in &mut facts {
                *fact = cursor.take()?;
            }
            let next = cursor.take()?.checked_sub(1);
            let next = next.map(u32::try_from).transpose().ok()?;
            // An invalid follower would be looked up in every chunk.
            if next.is_some_and(|next| (next as usize) >= count) {
                return None;
            }
            expected.by_program.insert(facts[PROGRAM_FIELD], index);
            expected.entries.push(StepPrediction { facts, next });
        }
        if cursor.is_done() { Some(expected) } else { None }
    }
}
