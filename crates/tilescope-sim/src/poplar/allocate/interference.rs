//! Interference between slots: those that are live together may not share addresses.

use super::slots::{AllocationSlot, PlacementClass};
use std::ops::Range;

/// Mean number of overlaps of a lifetime with others above which pairs of slots are not listed.
const MOST_PER_LIFETIME: usize = 128;

/// Number of overlaps above which pairs of slots are not listed. Their lists take 64 MiB.
const MOST_LISTED: usize = 1 << 24;

/// Interference between slots that are not always live. Always-live slots interfere with all
/// others, and code is stacked.
pub(super) struct SlotInterference {
    /// For each slot the slots that it interferes with. `None` if they are many, as in training,
    /// where the results of the whole forward pass are live together.
    lists: Option<Vec<Vec<u32>>>,
    /// Number of overlaps between lifetimes. Slots that meet several times count as often.
    overlaps: usize,
}

impl SlotInterference {
    /// Determines interference between `slots`.
    pub(super) fn new(slots: &[AllocationSlot]) -> Self {
        let mut lives: Vec<(Range<u32>, u32)> = Vec::new();
        for (number, slot) in (0u32..).zip(slots) {
            if slot.class != PlacementClass::Code {
                lives.extend(slot.live_ranges.iter().map(|life| (life.clone(), number)));
            }
        }
        lives.sort_by_key(|(life, number)| (life.start, *number));
        let overlaps = count_overlaps(&lives);
        let most = MOST_LISTED.min(MOST_PER_LIFETIME * lives.len());
        let lists = (overlaps <= most).then(|| interference_lists(&lives, slots.len()));
        Self { lists, overlaps }
    }

    /// Number of pairs of slots that interfere, in either order.
    pub(super) fn count(&self) -> usize {
        match &self.lists {
            Some(lists) => lists.iter().map(Vec::len).sum(),
            None => self.overlaps,
        }
    }

    /// Returns true if slots interfere with too many others to list them.
    pub(super) fn is_dense(&self) -> bool {
        self.lists.is_none()
    }

    /// The slots that `slot` interferes with. Empty if [`Self::is_dense`].
    pub(super) fn list(&self, slot: usize) -> &[u32] {
        self.lists.as_ref().map_or(&[], |lists| &lists[slot])
    }
}

/// Number of overlaps between lifetimes that are sorted by their start, in either order.
fn count_overlaps(lives: &[(Range<u32>, u32)]) -> usize {
    // A lifetime without steps interferes where it begins, and has not ended before that.
    let get_end = |life: &Range<u32>| life.end.max(life.start.saturating_add(1));
    let mut ends: Vec<u32> = lives.iter().map(|(life, _)| get_end(life)).collect();
    ends.sort_unstable();
    let mut ended = 0;
    let mut overlaps = 0;
    for (begun, (life, _)) in lives.iter().enumerate() {
        while ends[ended] <= life.start {
            ended += 1;
        }
        overlaps += 2 * (begun - ended);
    }
    overlaps
}

/// For each slot the slots that it interferes with. `lives` are sorted by their start.
fn interference_lists(lives: &[(Range<u32>, u32)], slots: usize) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new(); slots];
    let mut current: Vec<(u32, u32)> = Vec::new();
    for (life, number) in lives {
        current.retain(|(end, _)| *end > life.start);
        for (_, other) in &current {
            lists[*number as usize].push(*other);
            lists[*other as usize].push(*number);
        }
        current.push((life.end, *number));
    }
    for list in &mut lists {
        list.sort_unstable();
        list.dedup();
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::super::HeldSlot;
    use super::super::placement::place;
    use super::*;
    use crate::poplar::work::MemoryConstraint;
    use crate::targets::MK2;
    use proptest::prelude::*;
    use tilescope_report::MemoryCategory;
    use tilescope_report::units::{Bytes, TileRange, TileRuns};
    use tilescope_test_tiers::cases;

    fn slot(live_ranges: Vec<Range<u32>>, memory_constraint: MemoryConstraint) -> AllocationSlot {
        AllocationSlot {
            category: MemoryCategory::Variable,
            memory_constraint,
            class: PlacementClass::FirstFit,
            live_ranges,
            bytes: TileRuns::uniform(TileRange::first_tiles(1), Bytes(8)),
            members: Vec::new(),
        }
    }

    /// Results of a forward pass of `count` operations, each of which the backward pass reads.
    fn kept_results(count: u32) -> Vec<AllocationSlot> {
        let lives = (0..count).map(|at| at..2 * count - at);
        lives.map(|life| slot(vec![life], MemoryConstraint::Any)).collect()
    }

    /// Twice as many results that are live together have four times as many pairs.
    #[test]
    fn pairs_of_results_that_training_keeps_are_counted_but_not_listed() {
        for count in [4096, 8192] {
            let interference = SlotInterference::new(&kept_results(count));
            assert!(interference.is_dense());
            let count = count as usize;
            assert_eq!(interference.count(), count * (count - 1));
        }
        assert!(!SlotInterference::new(&kept_results(100)).is_dense());
    }

    #[test]
    fn lifetimes_without_steps_overlap_those_that_began_before() {
        let slots = [0..9, 3..3, 3..3, 9..9].map(|life| slot(vec![life], MemoryConstraint::Any));
        let mut lives: Vec<(Range<u32>, u32)> = vec![(0..9, 0), (3..3, 1), (3..3, 2), (9..9, 3)];
        lives.sort_by_key(|(life, number)| (life.start, *number));
        assert_eq!(count_overlaps(&lives), 6);
        assert!(!SlotInterference::new(&slots).is_dense());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(200)))]
        /// Lists of pairs and the tree of lifetimes are two forms of the same interference.
        #[test]
        fn lists_and_lifetimes_give_the_same_addresses(
            wanted in prop::collection::vec(
                (0u64..5000, prop::collection::vec((0u32..9, 1u32..9), 0..4), 0usize..3),
                1..60,
            ),
        ) {
            let mut slots = Vec::new();
            let mut held = Vec::new();
            for (bytes, lives, constraint) in wanted {
                let mut end = 0;
                let mut live_ranges = Vec::new();
                for (gap, length) in lives {
                    live_ranges.push(end + gap..end + gap + length);
                    end += gap + length;
                }
                let constraint = [
                    MemoryConstraint::Any,
                    MemoryConstraint::OwnMemoryElement,
                    MemoryConstraint::Interleaved,
                ][constraint];
                slots.push(slot(live_ranges, constraint));
                if bytes > 0 {
                    held.push(HeldSlot { slot: slots.len() - 1, bytes: Bytes(bytes) });
                }
            }
            let mut interference = SlotInterference::new(&slots);
            prop_assert!(!interference.is_dense());
            let found = &mut vec![None; slots.len()];
            let listed = place(&MK2, &slots, &interference, &held, found);
            interference.lists = None;
            prop_assert_eq!(place(&MK2, &slots, &interference, &held, found), listed);
        }
    }
}
