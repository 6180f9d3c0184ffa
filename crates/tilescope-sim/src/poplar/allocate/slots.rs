//! Variables that can share an address on every tile.

use super::AllocationRequest;
use crate::poplar::work::MemoryConstraint;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, TileRuns};

/// Order in which the variables of a tile are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacementClass {
    Code,
    /// Always live, about the same size everywhere.
    AlwaysLiveEven,
    /// Not always live, or with a placement constraint.
    FirstFit,
    /// Always live, with a different size on nearly every tile.
    AlwaysLiveUneven,
}

/// Number of runs above which a variable is uneven.
const UNEVEN_RUNS: usize = 256;

/// Variables with one address on each tile: a single variable, or several of the same bytes that
/// are never live together, such as the temporaries of equal operations. Poplar stores those once,
/// in the function that equal operations share.
#[derive(Clone, Debug)]
pub(crate) struct AllocationSlot {
    /// Category of its content.
    pub category: MemoryCategory,
    /// Constraint of its vertices on its placement.
    pub memory_constraint: MemoryConstraint,
    /// Class that determines the order of placement.
    pub class: PlacementClass,
    /// Liveness steps in which it is live, in order. Empty means always.
    pub live_ranges: Vec<Range<u32>>,
    /// Bytes on each tile.
    pub bytes: TileRuns<Bytes>,
    /// Indices of its variables.
    pub members: Vec<usize>,
}

fn rank(variable: &AllocationRequest) -> PlacementClass {
    if variable.category.is_executable() {
        PlacementClass::Code
    } else if variable.lifetime.is_some() || variable.memory_constraint != MemoryConstraint::Any {
        PlacementClass::FirstFit
    } else if variable.bytes.len() > UNEVEN_RUNS {
        PlacementClass::AlwaysLiveUneven
    } else {
        PlacementClass::AlwaysLiveEven
    }
}

impl AllocationSlot {
    fn from_request(position: usize, variable: &AllocationRequest) -> Self {
        Self {
            category: variable.category,
            memory_constraint: variable.memory_constraint,
            class: rank(variable),
            live_ranges: variable.lifetime.iter().cloned().collect(),
            bytes: variable.bytes.clone(),
            members: vec![position],
        }
    }

    /// Returns true if the slot is live at all times.
    pub(crate) fn is_always_live(&self) -> bool {
        self.live_ranges.is_empty()
    }
}

/// Slots of variables with the same bytes on the same tiles.
#[derive(Default)]
struct AlikeSlots {
    /// Those whose last lifetime may go on, by its end.
    live: BinaryHeap<Reverse<(u32, usize)>>,
    /// Those whose last lifetime has ended.
    free: BinaryHeap<Reverse<usize>>,
}

impl AlikeSlots {
    /// Takes the first slot that is free from `step` on. Steps may not decrease between calls.
    fn take_free(&mut self, step: u32) -> Option<usize> {
        while let Some(Reverse((end, slot))) = self.live.peek().copied()
            && end <= step
        {
            self.live.pop();
            self.free.push(Reverse(slot));
        }
        self.free.pop().map(|Reverse(slot)| slot)
    }
}

/// Assigns variables to slots, in the order of the first variable of each.
pub(crate) fn assign_slots(variables: &[AllocationRequest]) -> Vec<AllocationSlot> {
    let mut slots: Vec<AllocationSlot> = Vec::new();
    let mut alike: HashMap<(MemoryCategory, MemoryConstraint, (usize, u32)), AlikeSlots> =
        HashMap::new();
    // Variables with earlier starts come first, so that the lifetimes of a slot are in order.
    let mut order: Vec<usize> = (0..variables.len()).collect();
    order.sort_by_key(|at| variables[*at].lifetime.as_ref().map(|life| life.start));
    for at in order {
        let variable = &variables[at];
        let Some(life) = &variable.lifetime else {
            slots.push(AllocationSlot::from_request(at, variable));
            continue;
        };
        // Join only variables that share one set of runs. Comparing the bytes of all variables tile
        // by tile would take longer than it saves.
        let key = (variable.category, variable.memory_constraint, variable.bytes.shared_key());
        let candidates = alike.entry(key).or_default();
        let slot = match candidates.take_free(life.start) {
            Some(slot) => {
                slots[slot].live_ranges.push(life.clone());
                slots[slot].members.push(at);
                slot
            }
            None => {
                slots.push(AllocationSlot::from_request(at, variable));
                slots.len() - 1
            }
        };
        candidates.live.push(Reverse((life.end, slot)));
    }
    // Restore the order of the variables, which determines addresses between equal sizes.
    slots.sort_by_cached_key(|slot| slot.members.iter().copied().min());
    slots
}
