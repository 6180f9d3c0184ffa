//! Allocation of addresses: location of each variable of a tile, and unused gaps.
//!
//! On one tile:
//!
//! 1. Code is stacked from the bottom of memory, because it can only be fetched from the
//!    non-interleaved part. Data begin at the next memory element, so that fetches and loads do not
//!    conflict (the adder report of graphcore/tensorflow docs/logging.rst: 16 KiB, then stack and
//!    data).
//! 2. Always-live data follow.
//! 3. Variables whose vertices need 128-bit access go to the bottom of interleaved memory. Those
//!    that need a separate memory element go to the bottom of the next element.
//! 4. All others are placed largest first, each at the lowest address that no variable with an
//!    overlapping lifetime uses. They may share addresses over time.
//! 5. Always-live data of uneven size fill the remaining gaps, so that they do not shift everything
//!    else to other addresses on every tile.
//!
//! If this overflows, variables of step 3 are placed by size in step 4 instead, provided that this
//! ends at a lower address. Variables that do not fit are placed beyond the end of memory: an
//! overflow is a result, not an error. The order within these steps is assumed, because Poplar's
//! allocator is closed.
//!
//! Tiles that hold the same variables in the same sizes get the same addresses, so the work is done
//! once per class of tiles. If there are too many classes, tiles that hold the same variables share
//! addresses, computed for the largest size of each. All sums except gaps remain those of each
//! tile.

mod address_ranges;
mod interference;
mod live_addresses;
mod placement;
mod slots;
mod tile_sums;

use super::work::MemoryConstraint;
use crate::targets::Chip;
use interference::SlotInterference;
use rayon::prelude::*;
use slots::AllocationSlot;
use std::collections::HashMap;
use std::ops::Range;
use tilescope_report::units::{Bytes, TileRange, TileRuns};
use tilescope_report::{CategoryBytes, MemoryCategory, TileMemory, VariablePlacement};

/// Variable to be placed in memory.
#[derive(Clone, Debug)]
pub(crate) struct AllocationRequest {
    /// Category of its content.
    pub category: MemoryCategory,
    /// Liveness steps in which it is live. `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// Constraint of its vertices on its placement.
    pub memory_constraint: MemoryConstraint,
    /// Bytes on each tile.
    pub bytes: TileRuns<Bytes>,
}

/// Result of the allocation for all tiles.
#[derive(Clone, Debug, Default)]
pub(crate) struct TileMemoryAllocation {
    /// Placement of each variable, in the order given.
    pub placements: Vec<TileRuns<VariablePlacement>>,
    pub memory: TileRuns<TileMemory>,
    pub categories: TileRuns<Vec<CategoryBytes>>,
}

/// Largest number of interference checks for placing each class of one IPU separately.
const MAX_INTERFERENCE_CHECKS: usize = 40_000_000;

/// Places all variables on the tiles `0..tiles`, IPU by IPU.
pub(crate) fn allocate(
    chip: &Chip,
    variables: &[AllocationRequest],
    tiles: u32,
) -> TileMemoryAllocation {
    let slots = slots::assign_slots(variables);
    let mut ipus: Vec<Vec<AllocationSlot>> = Vec::new();
    let all = TileRange::first_tiles(tiles);
    let ranges: Vec<TileRange> = all
        .iter()
        .step_by(chip.tiles as usize)
        .map(|first| TileRange::new(first, all.end.min(first + chip.tiles)))
        .collect();
    for range in &ranges {
        // Slots on other IPUs would only enlarge the tables.
        let mut own_slots = Vec::new();
        for slot in &slots {
            let first = slot.bytes.iter().next();
            let last = slot.bytes.iter().last();
            if let Some(((first, _), (last, _))) = first.zip(last)
                && first.first < range.end
                && last.end > range.first
            {
                own_slots.push(slot.clone());
            }
        }
        ipus.push(own_slots);
    }
    let placed: Vec<IpuMemoryAllocator> = ranges
        .par_iter()
        .zip(ipus)
        .map(|(range, slots)| IpuMemoryAllocator::new(*range, slots).place(chip))
        .collect();
    let mut allocation = TileMemoryAllocation {
        placements: vec![TileRuns::empty(); variables.len()],
        ..TileMemoryAllocation::default()
    };
    for ipu in placed {
        ipu.append_to(&mut allocation);
    }
    debug_assert_eq!(allocation.placements.len(), variables.len());
    debug_assert!(
        allocation.placements.iter().zip(variables).all(|(placed, variable)| {
            placed.map(|on| on.bytes).total() == variable.bytes.total()
        }),
        "every variable is placed as a whole"
    );
    allocation
}

/// Slot on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct HeldSlot {
    slot: usize,
    bytes: Bytes,
}

fn slot_numbers(held: &[HeldSlot]) -> Vec<usize> {
    held.iter().map(|held| held.slot).collect()
}

/// State of allocating the tiles of one IPU.
struct IpuMemoryAllocator {
    tiles: TileRange,
    slots: Vec<AllocationSlot>,
    /// Ranges of adjacent tiles that hold the same bytes of every slot.
    columns: Vec<TileRange>,
    /// Column of each tile.
    column_of_tile: Vec<usize>,
    /// Slots on one tile of each column, in order.
    held: Vec<Vec<HeldSlot>>,
    /// Class of the tiles of each column.
    classes: Vec<usize>,
    /// Addresses in each class, parallel to the slots that its tiles hold.
    offsets: Vec<Vec<Bytes>>,
    /// Sums of one tile of each column.
    sums: Vec<(TileMemory, Vec<CategoryBytes>)>,
}

/// Positions in `tiles` of the tiles that are also in `range`.
fn positions_within(tiles: TileRange, range: TileRange) -> Range<usize> {
    let common = range.intersection(tiles);
    (common.first - tiles.first) as usize..(common.end - tiles.first) as usize
}

impl IpuMemoryAllocator {
    fn new(tiles: TileRange, slots: Vec<AllocationSlot>) -> Self {
        let mut begins = vec![false; tiles.count() as usize];
        for slot in &slots {
            for (range, _) in slot.bytes.iter() {
                let range = positions_within(tiles, range);
                if range.is_empty() {
                    continue;
                }
                begins[range.start] = true;
                if let Some(behind) = begins.get_mut(range.end) {
                    *behind = true;
                }
            }
        }
        let mut columns: Vec<TileRange> = Vec::new();
        let mut column_of_tile = Vec::with_capacity(begins.len());
        for (tile, begins) in tiles.iter().zip(begins) {
            match columns.last_mut().filter(|_| !begins) {
                Some(column) => column.end = tile + 1,
                None => columns.push(TileRange::single(tile)),
            }
            column_of_tile.push(columns.len() - 1);
        }
        let held = vec![Vec::new(); columns.len()];
        let (classes, offsets, sums) = Default::default();
        let mut ipu = Self { tiles, slots, columns, column_of_tile, held, classes, offsets, sums };
        for slot in 0..ipu.slots.len() {
            for (columns, bytes) in ipu.column_runs(slot) {
                for held in &mut ipu.held[columns] {
                    held.push(HeldSlot { slot, bytes });
                }
            }
        }
        ipu
    }

    /// Columns that hold a slot, and its bytes on one tile of each.
    fn column_runs(&self, slot: usize) -> Vec<(Range<usize>, Bytes)> {
        let mut runs = Vec::new();
        for (range, bytes) in self.slots[slot].bytes.iter() {
            let range = positions_within(self.tiles, range);
            if !range.is_empty() && !bytes.is_zero() {
                let last = self.column_of_tile[range.end - 1];
                runs.push((self.column_of_tile[range.start]..last + 1, *bytes));
            }
        }
        runs
    }

    /// Determines the classes of tiles, places their variables and sums the memory of each tile.
    fn place(mut self, chip: &Chip) -> Self {
        let interference = SlotInterference::new(&self.slots);
        let (classes, mut largest) = classify(&self.held, <[HeldSlot]>::to_vec);
        self.classes = classes;
        // There are too many different tiles to place each separately. Tiles with the same
        // variables share addresses regardless of sizes, which only enlarges gaps.
        if interference.count().saturating_mul(largest.len()) > MAX_INTERFERENCE_CHECKS {
            (self.classes, largest) = classify(&self.held, slot_numbers);
        }
        let slots = &self.slots;
        self.offsets = largest
            .par_iter()
            .map_init(
                || vec![None; slots.len()],
                |found, held| placement::place(chip, slots, &interference, held, found),
            )
            .collect();
        let peaks = self.peaks();
        // Neighbours with equal sizes have equal sums.
        self.sums = self
            .held
            .par_iter()
            .enumerate()
            .map(|(column, held)| {
                let offsets = &self.offsets[self.classes[column]];
                tile_sums::account(chip, &self.slots, held, offsets, peaks[column])
            })
            .collect();
        self
    }

    /// Peak of the bytes of not-always-live variables at any step, for a tile of each column.
    fn peaks(&self) -> Vec<Bytes> {
        // Ends precede beginnings at the same step.
        let mut changes: Vec<(u32, bool, usize)> = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            for life in slot.live_ranges.iter().filter(|life| !life.is_empty()) {
                changes.push((life.start, true, number));
                changes.push((life.end, false, number));
            }
        }
        // `false` sorts before `true`, so variables that end free their memory before others begin
        // at the same step.
        changes.sort_unstable();
        let mut live = vec![Bytes::ZERO; self.columns.len()];
        let mut peaks = live.clone();
        for (_, begins, slot) in changes {
            for (columns, bytes) in self.column_runs(slot) {
                for column in columns {
                    if begins {
                        live[column] += bytes;
                        peaks[column] = peaks[column].max(live[column]);
                    } else {
                        live[column] -= bytes;
                    }
                }
            }
        }
        debug_assert!(live.iter().all(|bytes| bytes.is_zero()), "what begins to live ends");
        peaks
    }

    /// Appends this IPU's tiles to the result.
    fn append_to(self, allocation: &mut TileMemoryAllocation) {
        for (range, (memory, categories)) in self.columns.iter().copied().zip(self.sums) {
            allocation.memory.push(range, memory);
            if !categories.is_empty() {
                allocation.categories.push(range, categories);
            }
        }
        for (column, range) in self.columns.iter().enumerate() {
            let offsets = &self.offsets[self.classes[column]];
            for (held, offset) in self.held[column].iter().zip(offsets) {
                let first = self.slots[held.slot].members[0];
                let placement = VariablePlacement { bytes: held.bytes, offset: *offset };
                allocation.placements[first].push(*range, placement);
            }
        }
        // Members are never live together and have the same bytes, so they share every address.
        for slot in &self.slots {
            if let [first, others @ ..] = slot.members.as_slice() {
                for other in others {
                    allocation.placements[*other] = allocation.placements[*first].clone();
                }
            }
        }
    }
}

/// Classifies tiles by the `key` of the slots that they hold. Returns the class of each tile, and
/// for each class its slots with their largest sizes.
fn classify<K: std::hash::Hash + Eq>(
    tiles: &[Vec<HeldSlot>],
    key: impl Fn(&[HeldSlot]) -> K,
) -> (Vec<usize>, Vec<Vec<HeldSlot>>) {
    let mut numbers: HashMap<K, usize> = HashMap::new();
    let mut largest: Vec<Vec<HeldSlot>> = Vec::new();
    let classes = tiles.iter().map(|tile| {
        let class = *numbers.entry(key(tile)).or_insert(largest.len());
        match largest.get_mut(class) {
            None => largest.push(tile.clone()),
            Some(largest) => {
                for (most, held) in largest.iter_mut().zip(tile) {
                    most.bytes = most.bytes.max(held.bytes);
                }
            }
        }
        class
    });
    (classes.collect(), largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::MK2;
    use proptest::prelude::*;
    use tilescope_report::units::TileId;
    use tilescope_test_tiers::cases;

    fn wanted(bytes: u64, lifetime: Option<Range<u32>>, interleaved: bool) -> AllocationRequest {
        let place = if interleaved { MemoryConstraint::Interleaved } else { MemoryConstraint::Any };
        placed(bytes, lifetime, place)
    }

    fn placed(
        bytes: u64,
        lifetime: Option<Range<u32>>,
        place: MemoryConstraint,
    ) -> AllocationRequest {
        let tiles = TileRange::first_tiles(1);
        AllocationRequest {
            category: MemoryCategory::Variable,
            lifetime,
            memory_constraint: place,
            bytes: TileRuns::uniform(tiles, Bytes(bytes)),
        }
    }

    /// Returns true if two lifetimes share a step. `None` means always live.
    fn meet(a: &Option<Range<u32>>, b: &Option<Range<u32>>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => a.start < b.end && b.start < a.end,
            _ => true,
        }
    }

    fn memory(variables: &[AllocationRequest]) -> TileMemory {
        *allocate(&MK2, variables, 1).memory.get(TileId(0)).expect("tile 0 exists")
    }

    #[test]
    fn variables_with_disjoint_lifetimes_share_addresses() {
        let tile = memory(&[wanted(1000, Some(0..3), false), wanted(800, Some(3..5), false)]);
        assert_eq!((tile.excluding_gaps(), tile.including_gaps), (Bytes(1000), Bytes(1000)));
        assert_eq!(tile.peak_not_always_live, Bytes(1000));
    }

    #[test]
    fn variables_begin_at_the_width_of_a_load() {
        let sizes = [1001, 777, 335, 12, 3];
        let variables: Vec<AllocationRequest> =
            sizes.iter().map(|bytes| wanted(*bytes, Some(0..2), false)).collect();
        for placed in allocate(&MK2, &variables, 1).placements {
            let offset = placed.get(TileId(0)).expect("placed").offset;
            assert!(offset.0.is_multiple_of(8), "{offset:?}");
        }
    }

    #[test]
    fn one_interleaved_variable_makes_the_extent_jump() {
        let tile = memory(&[wanted(100, None, false), wanted(6400, Some(1..2), true)]);
        assert_eq!(tile.including_gaps, Bytes(212_992 + 24 + 6400));
        assert_eq!((tile.non_interleaved, tile.interleaved), (Bytes(100), Bytes(6400)));
    }

    #[test]
    fn an_own_memory_element_starts_above_existing_variables() {
        let tile = memory(&[
            wanted(1320, None, false),
            placed(32, Some(1..2), MemoryConstraint::OwnMemoryElement),
        ]);
        assert_eq!(tile.including_gaps, Bytes(16_384 + 24 + 32));
    }

    /// A small variable at the bottom of interleaved memory would leave too little space for a
    /// large one.
    #[test]
    fn another_order_is_tried_before_memory_overflows() {
        let [small, large] = [wanted(10_000, Some(0..3), true), wanted(420_000, Some(0..3), false)];
        assert_eq!(memory(&[small, large]).including_gaps, Bytes(430_000));
    }

    /// Temporaries of equal operations share an address, which is in use while any of them is live.
    #[test]
    fn an_address_is_in_use_during_every_lifetime_that_shares_it() {
        let temporary = wanted(1000, Some(0..2), false);
        let again = AllocationRequest { lifetime: Some(4..6), ..temporary.clone() };
        let beside = wanted(900, Some(4..6), false);
        let found = allocate(&MK2, &[temporary, again, beside], 1).placements;
        let offset = |at: usize| found[at].get(TileId(0)).expect("placed").offset;
        assert_eq!([offset(0), offset(1), offset(2)], [Bytes(0), Bytes(0), Bytes(1000)]);
    }

    #[test]
    fn oversized_variables_overflow() {
        let tile = memory(&[wanted(700_000, None, false)]);
        assert_eq!(tile.overflowed, Bytes(700_000 - 638_976));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn sums_agree(sizes in prop::collection::vec((1u64..40_000, 0u32..20, 0u32..10, any::<bool>(), any::<bool>()), 1..40)) {
            let variables: Vec<AllocationRequest> = sizes
                .iter()
                .map(|(bytes, start, length, always, interleaved)| {
                    let lifetime = (!always).then_some(*start..start + length + 1);
                    wanted(*bytes, lifetime, *interleaved)
                })
                .collect();
            let allocation = allocate(&MK2, &variables, 1);
            let tile = *allocation.memory.get(TileId(0)).expect("tile 0 exists");
            let parts = allocation.categories.get(TileId(0)).expect("tile 0 exists");
            let owned: Bytes = parts.iter().map(|part| part.bytes).sum();
            prop_assert_eq!(owned, tile.excluding_gaps());
            prop_assert!(tile.including_gaps >= tile.excluding_gaps());
            prop_assert!(tile.excluding_gaps() >= tile.always_live.max(tile.peak_not_always_live));
            prop_assert!(tile.excluding_gaps() <= sizes.iter().map(|size| Bytes(size.0)).sum());
            // Variables that are live together never overlap.
            for (a, first) in allocation.placements.iter().enumerate() {
                for (b, second) in allocation.placements.iter().enumerate().take(a) {
                    if meet(&variables[a].lifetime, &variables[b].lifetime) {
                        let x = first.get(TileId(0)).expect("placed");
                        let y = second.get(TileId(0)).expect("placed");
                        prop_assert!(x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset);
                    }
                }
            }
        }
    }
}
