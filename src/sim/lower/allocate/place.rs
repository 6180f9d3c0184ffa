//! Addresses of the variables of one tile.

use super::slots::{Meetings, Rank, Slot};
use crate::sim::lower::work::Place;
use crate::sim::targets::Chip;
use std::cmp::Reverse;

/// Bytes at the bottom of an element or region that are taken before the first variable for which
/// it is opened: fullest tiles of Poplar's op benchmarks are its start + 24 + that variable.
const ELEMENT_RESERVED_BYTES: u64 = 24;

/// Alignment of variables: the width of a load.
const ALIGNMENT: u64 = 8;

/// Address of a slot that a tile does not hold.
pub const ABSENT: u64 = u64::MAX;

/// Addresses on one tile, slot by slot; [`ABSENT`] where the size is 0.
pub fn place(chip: &Chip, slots: &[Slot], meetings: &Meetings, sizes: &[u64]) -> Vec<u64> {
    let mut tile = Tile { sizes, offsets: vec![ABSENT; slots.len()], conflicts: Vec::new() };
    let by_rank = |rank: Rank| -> Vec<usize> {
        (0..slots.len()).filter(|slot| sizes[*slot] > 0 && slots[*slot].rank == rank).collect()
    };
    let (code, steady) = (by_rank(Rank::Code), by_rank(Rank::Steady));
    let (mut passing, uneven) = (by_rank(Rank::Passing), by_rank(Rank::Uneven));
    let code_end = tile.stack_up(&code, 0);
    let steady_end = tile.stack_up(&steady, code_end.next_multiple_of(chip.memory_element_bytes));
    // Those that need most of their place first.
    passing.sort_by_key(|slot| (Reverse(slots[*slot].place), Reverse(sizes[*slot]), *slot));
    for slot in passing {
        let lowest = lowest_address(chip, slots[slot].place, steady_end);
        if slots[slot].is_always_live() {
            tile.fit_beside_all(slot, lowest);
        } else {
            tile.fit(slot, lowest, &meetings.of(slot));
        }
    }
    for slot in uneven {
        tile.fit_beside_all(slot, steady_end);
    }
    tile.offsets
}

/// Where a variable may begin that needs `place`, above what ends at `below`.
fn lowest_address(chip: &Chip, place: Place, below: u64) -> u64 {
    let element = chip.memory_element_bytes;
    match place {
        Place::Any => below,
        Place::OwnElement => below.next_multiple_of(element) + ELEMENT_RESERVED_BYTES,
        Place::Interleaved => below.max(chip.interleaved_offset + ELEMENT_RESERVED_BYTES),
    }
}

/// A tile while it is filled.
struct Tile<'a> {
    sizes: &'a [u64],
    offsets: Vec<u64>,
    conflicts: Vec<(u64, u64)>,
}

impl Tile<'_> {
    /// Stacks slots from `start` upwards; returns the end.
    fn stack_up(&mut self, slots: &[usize], start: u64) -> u64 {
        let mut next = start;
        for slot in slots {
            self.offsets[*slot] = next;
            next += self.sizes[*slot].next_multiple_of(ALIGNMENT);
        }
        next
    }

    /// The lowest address from `lowest` on where `slot` meets none of `others`.
    fn fit(&mut self, slot: usize, lowest: u64, others: &[&[u32]; 2]) {
        let (sizes, offsets) = (self.sizes, &self.offsets);
        let placed = others.iter().flat_map(|list| list.iter()).map(|other| *other as usize);
        let placed = placed.filter(|other| offsets[*other] != ABSENT);
        let taken = placed.map(|other| (offsets[other], offsets[other] + sizes[other]));
        self.conflicts.clear();
        self.conflicts.extend(taken.filter(|(_, end)| *end > lowest));
        self.settle(slot, lowest);
    }

    /// The same for a slot that meets all others.
    fn fit_beside_all(&mut self, slot: usize, lowest: u64) {
        let (sizes, offsets) = (self.sizes, &self.offsets);
        let placed = offsets.iter().zip(sizes).filter(|(offset, _)| **offset != ABSENT);
        let taken = placed.map(|(offset, size)| (*offset, offset + size));
        self.conflicts.clear();
        self.conflicts.extend(taken.filter(|(_, end)| *end > lowest));
        self.settle(slot, lowest);
    }

    /// Places `slot` in the first gap between the conflicts.
    fn settle(&mut self, slot: usize, lowest: u64) {
        self.conflicts.sort_unstable();
        let mut offset = lowest;
        for (start, end) in &self.conflicts {
            if offset + self.sizes[slot] <= *start {
                break;
            }
            offset = offset.max(end.next_multiple_of(ALIGNMENT));
        }
        self.offsets[slot] = offset;
    }
}
