//! Placement of the variables of one tile.

use super::HeldSlot;
use super::address_ranges::{ALIGNMENT, AddressRanges, first_common_gap};
use super::interference::SlotInterference;
use super::live_addresses::LiveAddresses;
use super::slots::{AllocationSlot, PlacementClass};
use crate::cost_constants::ELEMENT_RESERVED_BYTES;
use crate::poplar::work::MemoryConstraint;
use crate::targets::Chip;
use std::cmp::Reverse;
use tilescope_report::units::Bytes;

/// Addresses of the slots that a tile holds. `positions` has an empty entry for every slot.
pub(super) fn place(
    chip: &Chip,
    slots: &[AllocationSlot],
    interference: &SlotInterference,
    held: &[HeldSlot],
    positions: &mut [Option<usize>],
) -> Vec<Bytes> {
    let mut place_in_order = |order| {
        let tile = TileMemoryAllocator::new(slots, interference, held, positions);
        tile.place(chip, order)
    };
    let first = place_in_order(PlacementOrder::ByMemoryConstraint);
    // Variables that need interleaved memory have the fewest choices, so they go first. Only if
    // that overflows, try the order by size, which leaves smaller gaps.
    if extent(&first, held) <= chip.bytes_per_tile {
        return first;
    }
    let second = place_in_order(PlacementOrder::BySize);
    if extent(&second, held) < extent(&first, held) { second } else { first }
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
fn extent(offsets: &[Bytes], held: &[HeldSlot]) -> Bytes {
    let ends = offsets.iter().zip(held).map(|(offset, held)| *offset + held.bytes);
    ends.max().unwrap_or_default()
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

/// State of allocating one tile. Slots are numbered by their position on the tile.
struct TileMemoryAllocator<'a> {
    slots: &'a [AllocationSlot],
    interference: &'a SlotInterference,
    held: &'a [HeldSlot],
    /// Addresses of the slots so far.
    offsets: Vec<Bytes>,
    /// Position of each slot of the IPU that is placed already.
    positions: &'a mut [Option<usize>],
    /// Addresses in use above the stacked slots.
    placed: AddressRanges,
    /// The always-live ones of these.
    staying: AddressRanges,
}

impl<'a> TileMemoryAllocator<'a> {
    fn new(
        slots: &'a [AllocationSlot],
        interference: &'a SlotInterference,
        held: &'a [HeldSlot],
        positions: &'a mut [Option<usize>],
    ) -> Self {
        let offsets = vec![Bytes::ZERO; held.len()];
        let (placed, staying) = Default::default();
        Self { slots, interference, held, offsets, positions, placed, staying }
    }

    /// Places all slots and returns their addresses.
    fn place(mut self, chip: &Chip, order: PlacementOrder) -> Vec<Bytes> {
        let code_end = self.stack_up(PlacementClass::Code, Bytes::ZERO);
        // Code fetches and data loads from the same memory element would conflict.
        let data = code_end.next_multiple_of(chip.memory_element_bytes);
        let steady_end = self.stack_up(PlacementClass::AlwaysLiveEven, data);
        let mut passing = self.of_class(PlacementClass::FirstFit);
        passing.sort_by_key(|at| {
            let place = match order {
                PlacementOrder::ByMemoryConstraint => Some(self.slot(*at).memory_constraint),
                PlacementOrder::BySize => None,
            };
            (Reverse(place), Reverse(self.held[*at].bytes), *at)
        });
        let mut live = None;
        if self.interference.is_dense() {
            let lives = passing.iter().flat_map(|at| &self.slot(*at).live_ranges);
            live = Some(LiveAddresses::new(lives));
        }
        for at in passing {
            let lowest = lowest_address(chip, self.slot(at).memory_constraint, steady_end);
            if self.slot(at).is_always_live() {
                self.place_always_live(at, lowest);
            } else if let Some(live) = &mut live {
                self.place_during(at, lowest, live);
            } else {
                self.place_among(at, lowest);
            }
        }
        // These go last because their size differs on nearly every tile. Placed earlier they would
        // shift all others, and each tile would need its own addresses.
        for at in self.of_class(PlacementClass::AlwaysLiveUneven) {
            self.place_always_live(at, steady_end);
        }
        for held in self.held {
            self.positions[held.slot] = None;
        }
        self.offsets
    }

    fn slot(&self, at: usize) -> &'a AllocationSlot {
        &self.slots[self.held[at].slot]
    }

    fn of_class(&self, class: PlacementClass) -> Vec<usize> {
        (0..self.held.len()).filter(|at| self.slot(*at).class == class).collect()
    }

    /// Stacks the slots of a class from `start` upwards and returns the end.
    fn stack_up(&mut self, class: PlacementClass, start: Bytes) -> Bytes {
        let mut next = start;
        for at in self.of_class(class) {
            self.offsets[at] = next;
            next += self.held[at].bytes.next_multiple_of(ALIGNMENT);
        }
        next
    }

    /// Places an always-live slot in the first gap from `lowest` on.
    fn place_always_live(&mut self, at: usize, lowest: Bytes) {
        let size = self.held[at].bytes;
        let offset = first_common_gap(&[&self.placed], lowest, size);
        self.put(at, offset);
        self.staying.insert(offset, size);
    }

    /// Places a slot in the first gap from `lowest` on between always-live slots and the listed
    /// ones that it interferes with.
    fn place_among(&mut self, at: usize, lowest: Bytes) {
        let mut others: Vec<(Bytes, Bytes)> = Vec::new();
        for other in self.interference.list(self.held[at].slot) {
            if let Some(other) = self.positions[*other as usize] {
                others.push((self.offsets[other], self.held[other].bytes));
            }
        }
        others.sort_unstable();
        let mut met = AddressRanges::default();
        for (start, size) in others {
            met.insert(start, size);
        }
        let offset = first_common_gap(&[&self.staying, &met], lowest, self.held[at].bytes);
        self.put(at, offset);
    }

    /// As [`Self::place_among`], for slots that interfere with many others.
    fn place_during(&mut self, at: usize, lowest: Bytes, live: &mut LiveAddresses) {
        let lives = &self.slot(at).live_ranges;
        let size = self.held[at].bytes;
        let mut sets = live.during(lives);
        sets.push(&self.staying);
        let offset = first_common_gap(&sets, lowest, size);
        self.put(at, offset);
        live.insert(lives, offset, size);
    }

    fn put(&mut self, at: usize, offset: Bytes) {
        self.offsets[at] = offset;
        self.positions[self.held[at].slot] = Some(at);
        self.placed.insert(offset, self.held[at].bytes);
    }
}
