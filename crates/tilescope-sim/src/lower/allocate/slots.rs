//! Variables that can share an address everywhere, and which of them are ever live together.

use super::Wanted;
use crate::lower::code::is_executable;
use crate::lower::work::Place;
use std::collections::HashMap;
use std::ops::Range;
use tilescope_report::Category;
use tilescope_report::units::TileRuns;

/// The order in which variables of a tile are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Code,
    /// Always live, about the same size everywhere.
    Steady,
    /// Not always live, or bound to some place.
    Passing,
    /// Always live, of another size on nearly every tile.
    Uneven,
}

/// A variable with more runs than this is uneven.
const UNEVEN_RUNS: usize = 256;

/// Variables with one address on each tile: one variable, or several of the same bytes that are
/// never live together, as the temporaries of equal operations are. Poplar has those once, in the
/// function that equal operations share.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// What it is for.
    pub category: Category,
    /// What its vertices need of its place.
    pub place: Place,
    /// When it is placed.
    pub rank: Rank,
    /// Liveness steps it is live in, in order; empty means always.
    pub lives: Vec<Range<u32>>,
    /// Bytes on each tile.
    pub bytes: TileRuns<u64>,
    /// Positions of its variables.
    pub members: Vec<usize>,
}

fn rank(variable: &Wanted) -> Rank {
    if is_executable(variable.category) {
        Rank::Code
    } else if variable.lifetime.is_some() || variable.place != Place::Any {
        Rank::Passing
    } else if variable.bytes.len() > UNEVEN_RUNS {
        Rank::Uneven
    } else {
        Rank::Steady
    }
}

impl Slot {
    fn of(position: usize, variable: &Wanted) -> Self {
        Self {
            category: variable.category,
            place: variable.place,
            rank: rank(variable),
            lives: variable.lifetime.iter().cloned().collect(),
            bytes: variable.bytes.clone(),
            members: vec![position],
        }
    }

    /// Whether it is live at all times.
    pub(crate) fn is_always_live(&self) -> bool {
        self.lives.is_empty()
    }
}

/// Puts variables into slots, in the order of the first variable of each.
pub(crate) fn slots(variables: &[Wanted]) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    let mut alike: HashMap<(Category, Place, (usize, u32)), Vec<usize>> = HashMap::new();
    // Variables that begin earlier come first, so that a slot's lives are in order.
    let mut order: Vec<usize> = (0..variables.len()).collect();
    order.sort_by_key(|at| variables[*at].lifetime.as_ref().map(|life| life.start));
    for at in order {
        let variable = &variables[at];
        let Some(life) = &variable.lifetime else {
            slots.push(Slot::of(at, variable));
            continue;
        };
        let key = (variable.category, variable.place, variable.bytes.shared_key());
        let candidates = alike.entry(key).or_default();
        let free =
            |slot: &&usize| slots[**slot].lives.last().is_some_and(|last| last.end <= life.start);
        match candidates.iter().find(free).copied() {
            Some(slot) => {
                slots[slot].lives.push(life.clone());
                slots[slot].members.push(at);
            }
            None => {
                candidates.push(slots.len());
                slots.push(Slot::of(at, variable));
            }
        }
    }
    slots.sort_by_key(|slot| slot.members.iter().copied().min());
    slots
}

/// Which slots may not share addresses.
pub(crate) struct Meetings {
    /// Row by row, a bit for every slot that meets the slot of the row.
    bits: Vec<u64>,
    /// Words of a row.
    words: usize,
}

impl Meetings {
    /// Works out which of `slots` meet while they pass. What is always live meets all others and
    /// has no bits; neither has code, which is stacked.
    pub(crate) fn new(slots: &[Slot]) -> Self {
        let words = slots.len().div_ceil(64);
        let mut meetings = Self { bits: vec![0; words * slots.len()], words };
        let mut lives: Vec<(&Range<u32>, u32)> = Vec::new();
        for (number, slot) in (0u32..).zip(slots).filter(|(_, slot)| slot.rank != Rank::Code) {
            lives.extend(slot.lives.iter().map(|life| (life, number)));
        }
        lives.sort_by_key(|(life, number)| (life.start, *number));
        let mut current: Vec<(u32, u32)> = Vec::new();
        for (life, number) in lives {
            current.retain(|(end, _)| *end > life.start);
            for (_, other) in &current {
                meetings.set(number, *other);
                meetings.set(*other, number);
            }
            current.push((life.end, number));
        }
        meetings
    }

    fn set(&mut self, slot: u32, other: u32) {
        self.bits[slot as usize * self.words + other as usize / 64] |= 1 << (other % 64);
    }

    fn row(&self, slot: usize) -> &[u64] {
        &self.bits[slot * self.words..][..self.words]
    }

    /// Number of slots that `slot` meets.
    pub(crate) fn count(&self, slot: usize) -> u64 {
        self.row(slot).iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether `slot` meets `other`, where neither is always live.
    pub(crate) fn meet(&self, slot: usize, other: usize) -> bool {
        self.row(slot)[other / 64] >> (other % 64) & 1 == 1
    }
}
