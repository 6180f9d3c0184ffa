//! Slots in which a pipeline is full, counted by block of their row, so that a reader need not tell
//! them from the others mark by mark.

// Pieces come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::block::MarkBlock;
use crate::codec::{VarintReader, pack, unpack, write_varint};
use crate::model::TraceMark;
use crate::units::{CycleRange, Cycles};

/// Largest unpacked list: as many blocks as a row can have.
const MAX_LIST_BYTES: usize = 1 << 24;

/// True for labels of phases in which a pipeline fills or drains. The simulator labels marks of
/// phases `ramp-up`, `main` and `ramp-down` (`PipelinePhase::name` of its schedule).
pub fn is_ramp(label: &str) -> bool {
    matches!(label, "ramp-up" | "ramp-down")
}

/// Marks of a block that count: all, or slots that end in a phase in which the pipeline is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedMarks {
    pub count: u64,
    /// Length of the shortest of them; 0 if there are none.
    pub shortest: Cycles,
    /// Length of the longest of them; 0 if there are none.
    pub longest: Cycles,
}

impl CountedMarks {
    /// Adds other marks.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        self.count = self.count.saturating_add(other.count);
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
    }
}

impl From<&MarkBlock> for CountedMarks {
    /// All marks of a block.
    fn from(block: &MarkBlock) -> Self {
        Self { count: block.count, shortest: block.shortest, longest: block.longest }
    }
}

/// Phases of a run, by start. A slot belongs to the phase in which it ends, since it may begin before
/// the end of the previous phase.
#[derive(Clone, Debug, Default)]
pub struct PhaseRanges(Vec<CycleRange>);

impl PhaseRanges {
    /// Phases that follow each other.
    pub fn new(ranges: Vec<CycleRange>) -> Self {
        Self(ranges)
    }

    /// Adds the next phase.
    pub fn push(&mut self, range: CycleRange) {
        self.0.push(range);
    }

    /// True if marks that end in a range of cycles, with both ends, all end in one of the phases.
    pub fn contain(&self, ends: CycleRange) -> bool {
        let before = self.0.partition_point(|range| range.start < ends.start);
        let last = before.checked_sub(1).and_then(|at| self.0.get(at));
        last.is_some_and(|range| ends.end <= range.end)
    }

    /// True if some of the marks that end in a range of cycles may end in a phase.
    pub fn may_contain(&self, ends: CycleRange) -> bool {
        let first = self.0.partition_point(|range| range.end < ends.start);
        self.0.get(first).is_some_and(|range| range.start < ends.end)
    }

    /// The slots of some blocks that end in a phase; `None` if a block has to be read to know them.
    pub(crate) fn slots_of(&self, blocks: &[MarkBlock]) -> Option<CountedMarks> {
        let mut slots = CountedMarks::default();
        for block in blocks {
            if self.contain(block.ends()) {
                slots.add(&CountedMarks::from(block));
            } else if self.may_contain(block.ends()) {
                return None;
            }
        }
        Some(slots)
    }
}

/// Slots of one block whose phase is not known yet.
#[derive(Clone, Copy)]
struct PendingSlots {
    block: usize,
    slots: CountedMarks,
    /// The ends of the first and of the last of them.
    ends: (Cycles, Cycles),
}

/// Counts slots in which a pipeline is full, while marks are written. The mark of a phase follows
/// its slots.
#[derive(Default)]
pub(super) struct FullSlotCounter {
    blocks: Vec<CountedMarks>,
    pending: Vec<PendingSlots>,
    has_phases: bool,
    /// True if slots that were written before a phase do not all end in it.
    is_unknown: bool,
}

impl FullSlotCounter {
    /// Adds the next slot, which is in the block at an index.
    pub(super) fn push(&mut self, block: usize, slot: &TraceMark) {
        let length = slot.cycles.length();
        let end = slot.cycles.end;
        let slots = CountedMarks { count: 1, shortest: length, longest: length };
        match self.pending.last_mut().filter(|last| last.block == block) {
            Some(last) => {
                last.slots.add(&slots);
                last.ends = (last.ends.0.min(end), last.ends.1.max(end));
            }
            None => self.pending.push(PendingSlots { block, slots, ends: (end, end) }),
        }
    }

    /// Ends a phase.
    pub(super) fn phase(&mut self, phase: &TraceMark) {
        self.has_phases = true;
        for PendingSlots { block, slots, ends } in self.pending.drain(..) {
            if ends.0 <= phase.cycles.start || phase.cycles.end < ends.1 {
                self.is_unknown = true;
            } else if !is_ramp(&phase.label) {
                if self.blocks.len() <= block {
                    self.blocks.resize(block + 1, CountedMarks::default());
                }
                if let Some(counted) = self.blocks.get_mut(block) {
                    counted.add(&slots);
                }
            }
        }
    }

    /// The packed counts of `blocks` blocks; `None` without phases, or if they are not known.
    pub(super) fn finish(mut self, blocks: usize) -> Option<Vec<u8>> {
        if !self.has_phases || self.is_unknown {
            return None;
        }
        self.blocks.resize(blocks, CountedMarks::default());
        let mut raw = Vec::new();
        for slots in &self.blocks {
            write_varint(&mut raw, slots.count);
            if slots.count > 0 {
                write_varint(&mut raw, slots.shortest.0);
                write_varint(&mut raw, (slots.longest - slots.shortest).0);
            }
        }
        Some(pack(&raw))
    }
}

/// Decodes the counts of the blocks of a row; `None` if they are damaged.
pub(crate) fn decode(blob: &[u8], blocks: &[MarkBlock]) -> Option<Vec<CountedMarks>> {
    let raw = unpack(blob, MAX_LIST_BYTES)?;
    let mut cursor = VarintReader::new(&raw);
    let mut all = Vec::with_capacity(blocks.len());
    for block in blocks {
        let mut slots = CountedMarks { count: cursor.take()?, ..CountedMarks::default() };
        if slots.count > block.count {
            return None;
        }
        if slots.count > 0 {
            slots.shortest = Cycles(cursor.take()?);
            slots.longest = slots.shortest.checked_add(Cycles(cursor.take()?))?;
            if slots.shortest < block.shortest || block.longest < slots.longest {
                return None;
            }
        }
        all.push(slots);
    }
    if cursor.is_done() { Some(all) } else { None }
}
