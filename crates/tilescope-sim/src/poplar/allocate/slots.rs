//! Variables that can share an address on every tile, and interference between them.

use super::AllocationRequest;
use crate::poplar::work::MemoryConstraint;
use std::collections::HashMap;
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

/// Assigns variables to slots, in the order of the first variable of each.
pub(crate) fn assign_slots(variables: &[AllocationRequest]) -> Vec<AllocationSlot> {
    let mut slots: Vec<AllocationSlot> = Vec::new();
    let mut alike: HashMap<(MemoryCategory, MemoryConstraint, (usize, u32)), Vec<usize>> =
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
        let free = candidates.iter().copied().find(|slot| {
            slots[*slot].live_ranges.last().is_some_and(|last| last.end <= life.start)
        });
        match free {
            Some(slot) => {
                slots[slot].live_ranges.push(life.clone());
                slots[slot].members.push(at);
            }
            None => {
                candidates.push(slots.len());
                slots.push(AllocationSlot::from_request(at, variable));
            }
        }
    }
    // Restore the order of the variables, which determines addresses between equal sizes.
    slots.sort_by_key(|slot| slot.members.iter().copied().min());
    slots
}

/// Pairs of slots that may not share addresses.
pub(crate) struct SlotInterferenceMatrix {
    rows: Vec<InterferenceRow>,
    /// Words of a row with one bit for every slot.
    words: usize,
}

/// The slots that one slot interferes with: a list of numbers, or one bit for every slot if that
/// takes less memory.
enum InterferenceRow {
    /// In the order of discovery, with repetitions.
    Few(Vec<u32>),
    Bits(Vec<u64>),
}

impl SlotInterferenceMatrix {
    /// Determines interference between `slots` that are not always live. Always-live slots
    /// interfere with all others and are in no row, and neither is code, which is stacked.
    pub(crate) fn new(slots: &[AllocationSlot]) -> Self {
        let words = slots.len().div_ceil(64);
        let rows = slots.iter().map(|_| InterferenceRow::Few(Vec::new())).collect();
        let mut meetings = Self { rows, words };
        let mut lives: Vec<(&Range<u32>, u32)> = Vec::new();
        for (number, slot) in
            (0u32..).zip(slots).filter(|(_, slot)| slot.class != PlacementClass::Code)
        {
            lives.extend(slot.live_ranges.iter().map(|life| (life, number)));
        }
        lives.sort_by_key(|(life, number)| (life.start, *number));
        let mut current: Vec<(u32, u32)> = Vec::new();
        for (life, number) in lives {
            // Sweep over the lifetimes by their start. Few are live at once, whereas checking all
            // pairs would be quadratic in the temporaries of a program.
            current.retain(|(end, _)| *end > life.start);
            for (_, other) in &current {
                meetings.set(number, *other);
                meetings.set(*other, number);
            }
            current.push((life.end, number));
        }
        for row in &mut meetings.rows {
            if let InterferenceRow::Few(met) = row {
                met.sort_unstable();
                met.dedup();
            }
        }
        meetings
    }

    fn set(&mut self, slot: u32, other: u32) {
        let row = &mut self.rows[slot as usize];
        match row {
            InterferenceRow::Few(met) if met.len() < 2 * self.words => met.push(other),
            InterferenceRow::Few(met) => {
                let mut bits = vec![0; self.words];
                for other in met.iter().chain([&other]) {
                    bits[*other as usize / 64] |= 1 << (other % 64);
                }
                *row = InterferenceRow::Bits(bits);
            }
            InterferenceRow::Bits(bits) => bits[other as usize / 64] |= 1 << (other % 64),
        }
    }

    /// Number of slots that interfere with `slot`.
    pub(crate) fn count(&self, slot: usize) -> u64 {
        match &self.rows[slot] {
            InterferenceRow::Few(met) => met.len() as u64,
            InterferenceRow::Bits(bits) => {
                bits.iter().map(|word| u64::from(word.count_ones())).sum()
            }
        }
    }

    /// The slots that interfere with `slot`, if they are few.
    pub(crate) fn few(&self, slot: usize) -> Option<&[u32]> {
        match &self.rows[slot] {
            InterferenceRow::Few(met) => Some(met),
            InterferenceRow::Bits(_) => None,
        }
    }

    /// Returns true if `slot` interferes with `other`. Neither may be always live.
    pub(crate) fn interferes(&self, slot: usize, other: usize) -> bool {
        match &self.rows[slot] {
            InterferenceRow::Few(met) => {
                u32::try_from(other).is_ok_and(|other| met.binary_search(&other).is_ok())
            }
            InterferenceRow::Bits(bits) => bits[other / 64] >> (other % 64) & 1 == 1,
        }
    }
}
