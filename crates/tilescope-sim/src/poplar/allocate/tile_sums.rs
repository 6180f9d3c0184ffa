//! Sums of the memory of one tile: by region, by owner, and by sharing of addresses over time.

use super::HeldSlot;
use super::slots::AllocationSlot;
use crate::targets::Chip;
use std::collections::{BTreeMap, BinaryHeap};
use tilescope_report::units::Bytes;
use tilescope_report::{CategoryBytes, MemoryCategory, MemoryRegion, TileMemory};

/// Sums of a tile that holds slots at the given addresses. `peak` is the maximum over all steps of
/// the bytes of its not-always-live variables.
pub(super) fn account(
    chip: &Chip,
    slots: &[AllocationSlot],
    held: &[HeldSlot],
    offsets: &[Bytes],
    peak: Bytes,
) -> (TileMemory, Vec<CategoryBytes>) {
    let mut owners: BTreeMap<(MemoryCategory, MemoryRegion, bool), Bytes> = BTreeMap::new();
    owned_stretches(held, offsets, |start, end, owner, overlapped| {
        // A variable may cross a border between regions. Each byte counts in its own region.
        for (region, from, to) in regions(chip) {
            let bytes = end.min(to).saturating_sub(start.max(from));
            if !bytes.is_zero() {
                *owners
                    .entry((slots[held[owner].slot].category, region, overlapped))
                    .or_default() += bytes;
            }
        }
    });
    let categories: Vec<CategoryBytes> = owners
        .into_iter()
        .map(|((category, region, overlapped), bytes)| CategoryBytes {
            category,
            region,
            overlapped,
            bytes,
        })
        .collect();
    let always = held.iter().filter(|held| slots[held.slot].is_always_live());
    let ends = offsets.iter().zip(held).map(|(offset, held)| *offset + held.bytes);
    let memory = TileMemory {
        including_gaps: ends.max().unwrap_or_default(),
        non_interleaved: bytes_in_region(&categories, MemoryRegion::NonInterleaved),
        interleaved: bytes_in_region(&categories, MemoryRegion::Interleaved),
        overflowed: bytes_in_region(&categories, MemoryRegion::Overflowed),
        always_live: always.map(|held| held.bytes).sum(),
        peak_not_always_live: peak,
    };
    debug_assert!(memory.including_gaps >= memory.excluding_gaps(), "gaps only add");
    debug_assert!(
        memory.excluding_gaps() >= memory.always_live.max(memory.peak_not_always_live),
        "what lives at once has addresses of its own"
    );
    debug_assert_eq!(
        categories.iter().map(|part| part.bytes).sum::<Bytes>(),
        memory.excluding_gaps(),
        "every byte has one owner"
    );
    (memory, categories)
}

fn bytes_in_region(categories: &[CategoryBytes], region: MemoryRegion) -> Bytes {
    categories.iter().filter(|part| part.region == region).map(|part| part.bytes).sum()
}

/// Regions of tile memory as address ranges. Addresses beyond the end overflow.
fn regions(chip: &Chip) -> [(MemoryRegion, Bytes, Bytes); 3] {
    [
        (MemoryRegion::NonInterleaved, Bytes::ZERO, chip.interleaved_offset),
        (MemoryRegion::Interleaved, chip.interleaved_offset, chip.bytes_per_tile),
        (MemoryRegion::Overflowed, chip.bytes_per_tile, Bytes::MAX),
    ]
}

/// Calls `found` with each range of addresses in use: start, end, index of the largest user, and
/// true if there are several.
fn owned_stretches(
    held: &[HeldSlot],
    offsets: &[Bytes],
    mut found: impl FnMut(Bytes, Bytes, usize, bool),
) {
    let mut starts: Vec<(Bytes, usize)> =
        offsets.iter().enumerate().map(|(user, offset)| (*offset, user)).collect();
    let mut ends: Vec<Bytes> =
        offsets.iter().zip(held).map(|(offset, held)| *offset + held.bytes).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    // Users of the current address, the largest on top. Those that ended are dropped when they
    // reach the top.
    let mut users: BinaryHeap<(Bytes, usize)> = BinaryHeap::new();
    let mut next_start = 0;
    let mut next_end = 0;
    let mut at = Bytes::ZERO;
    while next_end < ends.len() {
        let start = starts.get(next_start).map_or(Bytes::MAX, |(offset, _)| *offset);
        let address = start.min(ends[next_end]);
        let live = next_start - next_end;
        // Between two borders the same variables occupy every address. A report names one owner for
        // each, the largest.
        if live > 0 && address > at {
            while users.peek().is_some_and(|(bytes, user)| offsets[*user] + *bytes <= at) {
                users.pop();
            }
            if let Some((_, owner)) = users.peek() {
                found(at, address, *owner, live > 1);
            }
        }
        at = address;
        while starts.get(next_start).is_some_and(|(offset, _)| *offset == at) {
            let user = starts[next_start].1;
            users.push((held[user].bytes, user));
            next_start += 1;
        }
        while ends.get(next_end).is_some_and(|end| *end == at) {
            next_end += 1;
        }
    }
}
