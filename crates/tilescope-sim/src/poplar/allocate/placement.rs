//! Placement of the variables of one tile.

use super::slots::{AllocationSlot, PlacementClass, SlotInterferenceMatrix};
use crate::cost_constants::ELEMENT_RESERVED_BYTES;
use crate::poplar::work::MemoryConstraint;
use crate::targets::Chip;
use std::cmp::Reverse;
use tilescope_report::units::Bytes;

/// Alignment of variables: the width of a load.
const ALIGNMENT: Bytes = Bytes(8);

/// Address of a slot that is absent from a tile.
pub(crate) const ABSENT: Bytes = Bytes::MAX;

/// Addresses on one tile, slot by slot. [`ABSENT`] for slots of size 0.
pub(crate) fn place(
    chip: &Chip,
    slots: &[AllocationSlot],
    meetings: &SlotInterferenceMatrix,
    sizes: &[Bytes],
) -> Vec<Bytes> {
    let first = place_in_order(chip, slots, meetings, sizes, PlacementOrder::ByMemoryConstraint);
    // Variables that need interleaved memory have the fewest choices, so they go first. Only if
    // that overflows, try the order by size, which leaves smaller gaps.
    if extent(&first, sizes) <= chip.bytes_per_tile {
        return first;
    }
    let second = place_in_order(chip, slots, meetings, sizes, PlacementOrder::BySize);
    if extent(&second, sizes) < extent(&first, sizes) { second } else { first }
}

/// Order of placing variables that are not always live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlacementOrder {
    /// Those with the strictest constraint first, and of these the largest.
    ByMemoryConstraint,
    /// The largest first, which leaves smaller gaps if most variables need interleaved memory.
    BySize,
}

/// End of the highest address in use.
fn extent(offsets: &[Bytes], sizes: &[Bytes]) -> Bytes {
    let held = offsets.iter().zip(sizes).filter(|(offset, _)| **offset != ABSENT);
    held.map(|(offset, size)| *offset + *size).max().unwrap_or_default()
}

fn place_in_order(
    chip: &Chip,
    slots: &[AllocationSlot],
    meetings: &SlotInterferenceMatrix,
    sizes: &[Bytes],
    order: PlacementOrder,
) -> Vec<Bytes> {
    let mut tile =
        TileMemoryAllocator { sizes, offsets: vec![ABSENT; slots.len()], ..Default::default() };
    let code = slots_of_class(slots, sizes, PlacementClass::Code);
    let steady = slots_of_class(slots, sizes, PlacementClass::AlwaysLiveEven);
    let mut passing = slots_of_class(slots, sizes, PlacementClass::FirstFit);
    let uneven = slots_of_class(slots, sizes, PlacementClass::AlwaysLiveUneven);
    let code_end = tile.stack_up(&code, Bytes::ZERO);
    // Code fetches and data loads from the same memory element would conflict.
    let steady_end = tile.stack_up(&steady, code_end.next_multiple_of(chip.memory_element_bytes));
    passing.sort_by_key(|slot| {
        let place = match order {
            PlacementOrder::ByMemoryConstraint => Some(slots[*slot].memory_constraint),
            PlacementOrder::BySize => None,
        };
        (Reverse(place), Reverse(sizes[*slot]), *slot)
    });
    for slot in passing {
        let lowest = lowest_address(chip, slots[slot].memory_constraint, steady_end);
        let always_live = slots[slot].is_always_live();
        if let Some(few) = meetings.few(slot).filter(|_| !always_live) {
            tile.place_among(slot, lowest, few);
            continue;
        }
        tile.place_first_fit(slot, lowest, |other| {
            // Always-live slots interfere with all others and are in no row of the matrix.
            always_live || slots[other].is_always_live() || meetings.interferes(slot, other)
        });
        if always_live {
            tile.stay(slot);
        }
    }
    // These go last because their size differs on nearly every tile. Placed earlier they would
    // shift all others, and each tile would need its own addresses.
    for slot in uneven {
        tile.place_first_fit(slot, steady_end, |_| true);
    }
    tile.offsets
}

/// The slots of a class that are not empty on the tile.
fn slots_of_class(slots: &[AllocationSlot], sizes: &[Bytes], class: PlacementClass) -> Vec<usize> {
    (0..slots.len()).filter(|slot| !sizes[*slot].is_zero() && slots[*slot].class == class).collect()
}

/// Lowest address from `below` on at which a variable with the constraint `place` may begin.
fn lowest_address(chip: &Chip, place: MemoryConstraint, below: Bytes) -> Bytes {
    let element = chip.memory_element_bytes;
    match place {
        MemoryConstraint::Any => below,
        MemoryConstraint::OwnMemoryElement => {
            // Two accesses to one element in a cycle conflict, so vertices that read one variable
            // while they write another need them in different elements.
            below.next_multiple_of(element) + ELEMENT_RESERVED_BYTES.bytes()
        }
        MemoryConstraint::Interleaved => {
            below.max(chip.interleaved_offset + ELEMENT_RESERVED_BYTES.bytes())
        }
    }
}

/// Number of unordered ranges up to which they are inserted one by one. More are merged by sorting.
const MOST_INSERTED: usize = 16;

fn insert(ranges: &mut Vec<PlacedSlotRange>, range: PlacedSlotRange) {
    let at = ranges.partition_point(|other| other.start < range.start);
    ranges.insert(at, range);
}

/// Slot at its address.
#[derive(Clone, Copy)]
struct PlacedSlotRange {
    start: Bytes,
    end: Bytes,
    slot: usize,
}

/// State of allocating one tile.
#[derive(Default)]
struct TileMemoryAllocator<'a> {
    sizes: &'a [Bytes],
    offsets: Vec<Bytes>,
    /// Ranges above the stacked ones, by address.
    placed: Vec<PlacedSlotRange>,
    /// Further ranges above the stacked ones, not yet sorted.
    unordered: Vec<PlacedSlotRange>,
    /// The always-live ones of these ranges, by address.
    staying: Vec<PlacedSlotRange>,
}

impl TileMemoryAllocator<'_> {
    /// Stacks slots from `start` upwards and returns the end.
    fn stack_up(&mut self, slots: &[usize], start: Bytes) -> Bytes {
        let mut next = start;
        for slot in slots {
            self.offsets[*slot] = next;
            next += self.sizes[*slot].next_multiple_of(ALIGNMENT);
        }
        next
    }

    /// Places `slot` in the first gap from `lowest` on between the slots that interfere with it.
    fn place_first_fit(&mut self, slot: usize, lowest: Bytes, meets: impl Fn(usize) -> bool) {
        if self.unordered.len() > MOST_INSERTED {
            self.placed.append(&mut self.unordered);
            self.placed.sort_by_key(|placed| placed.start);
        }
        for range in self.unordered.drain(..) {
            insert(&mut self.placed, range);
        }
        let above = self.placed.iter().filter(|other| other.end > lowest && meets(other.slot));
        let offset = first_gap(above, lowest, self.sizes[slot]);
        self.put(slot, offset);
    }

    /// As [`Self::place_first_fit`], for a slot that interferes with few others. Checking all slots
    /// would be quadratic in the temporaries of a long program.
    fn place_among(&mut self, slot: usize, lowest: Bytes, few: &[u32]) {
        let mut met = Vec::new();
        for other in few {
            let slot = *other as usize;
            let start = self.offsets[slot];
            if start != ABSENT {
                met.push(PlacedSlotRange { start, end: start + self.sizes[slot], slot });
            }
        }
        met.sort_by_key(|placed| placed.start);
        let mut passing = met.iter().peekable();
        let mut staying = self.staying.iter().peekable();
        let by_address = std::iter::from_fn(|| match (passing.peek(), staying.peek()) {
            (Some(passes), Some(stays)) if stays.start < passes.start => staying.next(),
            (Some(_), _) => passing.next(),
            (None, _) => staying.next(),
        });
        let offset = first_gap(by_address, lowest, self.sizes[slot]);
        self.put(slot, offset);
    }

    /// Records that a placed slot is always live.
    fn stay(&mut self, slot: usize) {
        let start = self.offsets[slot];
        let size = self.sizes[slot];
        insert(&mut self.staying, PlacedSlotRange { start, end: start + size, slot });
    }

    fn put(&mut self, slot: usize, offset: Bytes) {
        self.offsets[slot] = offset;
        let end = offset + self.sizes[slot];
        self.unordered.push(PlacedSlotRange { start: offset, end, slot });
    }
}

/// First address from `lowest` on at which a variable of this size overlaps none of `others`. They
/// are sorted by start only. Variables that never interfere may overlap, so a range may end after
/// the next one.
fn first_gap<'a>(
    others: impl Iterator<Item = &'a PlacedSlotRange>,
    lowest: Bytes,
    size: Bytes,
) -> Bytes {
    let mut offset = lowest;
    for other in others {
        if other.end <= offset {
            continue;
        }
        if offset + size <= other.start {
            break;
        }
        offset = other.end.next_multiple_of(ALIGNMENT);
    }
    offset
}
