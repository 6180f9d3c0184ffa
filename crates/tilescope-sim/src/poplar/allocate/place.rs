//! Addresses of the variables of one tile.

use super::slots::{Meetings, Rank, Slot};
use crate::poplar::work::Place;
use crate::targets::Chip;
use std::cmp::Reverse;

/// Bytes at the bottom of an element or region that are taken before the first variable for which
/// it is opened: fullest tiles of Poplar's op benchmarks are its start + 24 + that variable.
const ELEMENT_RESERVED_BYTES: u64 = 24;

/// Alignment of variables: the width of a load.
const ALIGNMENT: u64 = 8;

/// Address of a slot that a tile does not hold.
pub(crate) const ABSENT: u64 = u64::MAX;

/// Addresses on one tile, slot by slot; [`ABSENT`] where the size is 0.
pub(crate) fn place(chip: &Chip, slots: &[Slot], meetings: &Meetings, sizes: &[u64]) -> Vec<u64> {
    let first = placed(chip, slots, meetings, sizes, Order::ByPlace);
    if extent(&first, sizes) <= chip.bytes_per_tile {
        return first;
    }
    let second = placed(chip, slots, meetings, sizes, Order::BySize);
    if extent(&second, sizes) < extent(&first, sizes) { second } else { first }
}

/// Which of the variables that pass is placed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Those that need most of their place, and of these the largest.
    ByPlace,
    /// The largest: leaves smaller gaps where most variables need interleaved memory.
    BySize,
}

/// End of the highest address in use.
fn extent(offsets: &[u64], sizes: &[u64]) -> u64 {
    let held = offsets.iter().zip(sizes).filter(|(offset, _)| **offset != ABSENT);
    held.map(|(offset, size)| offset + size).max().unwrap_or(0)
}

fn placed(
    chip: &Chip,
    slots: &[Slot],
    meetings: &Meetings,
    sizes: &[u64],
    order: Order,
) -> Vec<u64> {
    let mut tile = Tile { sizes, offsets: vec![ABSENT; slots.len()], placed: Vec::new() };
    let by_rank = |rank: Rank| -> Vec<usize> {
        (0..slots.len()).filter(|slot| sizes[*slot] > 0 && slots[*slot].rank == rank).collect()
    };
    let (code, steady) = (by_rank(Rank::Code), by_rank(Rank::Steady));
    let (mut passing, uneven) = (by_rank(Rank::Passing), by_rank(Rank::Uneven));
    let code_end = tile.stack_up(&code, 0);
    let steady_end = tile.stack_up(&steady, code_end.next_multiple_of(chip.memory_element_bytes));
    passing.sort_by_key(|slot| {
        let place = (order == Order::ByPlace).then_some(slots[*slot].place);
        (Reverse(place), Reverse(sizes[*slot]), *slot)
    });
    for slot in passing {
        let lowest = lowest_address(chip, slots[slot].place, steady_end);
        let stays = |slot: usize| slots[slot].is_always_live();
        let all = stays(slot);
        tile.fit(slot, lowest, |other| all || stays(other) || meetings.meet(slot, other));
    }
    for slot in uneven {
        tile.fit(slot, steady_end, |_| true);
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

/// A slot at its address.
struct Placed {
    start: u64,
    end: u64,
    slot: usize,
}

/// A tile while it is filled.
struct Tile<'a> {
    sizes: &'a [u64],
    offsets: Vec<u64>,
    /// What lies above what is stacked, by address.
    placed: Vec<Placed>,
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

    /// Places `slot` in the first gap from `lowest` on between those that it meets.
    fn fit(&mut self, slot: usize, lowest: u64, meets: impl Fn(usize) -> bool) {
        let size = self.sizes[slot];
        let mut offset = lowest;
        for other in &self.placed {
            if other.end <= offset || !meets(other.slot) {
                continue;
            }
            if offset + size <= other.start {
                break;
            }
            offset = other.end.next_multiple_of(ALIGNMENT);
        }
        self.offsets[slot] = offset;
        let at = self.placed.partition_point(|other| other.start < offset);
        self.placed.insert(at, Placed { start: offset, end: offset + size, slot });
    }
}
