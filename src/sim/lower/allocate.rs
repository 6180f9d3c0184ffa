//! Addresses: where each variable of a tile lies, and what that leaves unused.
//!
//! Tiles that hold the same variables in the same sizes get the same addresses, so the work is
//! done once per class of tiles. On one tile:
//!
//! 1. code is stacked from the bottom of memory, because it can only be fetched from the
//!    non-interleaved part; data begin at the next memory element, so that fetching and loading do
//!    not wait for each other (the adder report of graphcore/tensorflow docs/logging.rst: 16 KiB,
//!    then stack and data);
//! 2. always-live data follow;
//! 3. variables whose vertices need 128-bit access go to the bottom of interleaved memory, those
//!    that need a memory element of their own to the bottom of the next one;
//! 4. all others are placed largest first, each at the lowest address that no variable with a
//!    meeting lifetime uses; they may share addresses over time;
//! 5. always-live data of uneven size fill what is left, so that they do not move all else to
//!    other addresses on every tile.
//!
//! What does not fit is placed beyond the end: overflowing is a result to look at, not an error.
//! The order inside these steps is assumed; Poplar's allocator is closed.

use crate::report::{Category, CategoryBytes, Placement, Region, TileMemory};
use crate::sim::lower::code::is_executable;
use crate::sim::lower::work::Place;
use crate::sim::targets::Chip;
use crate::units::{TileRange, TileRuns};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A variable that wants memory.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What it is for.
    pub category: Category,
    /// Liveness steps it is live in; `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// What its vertices need of its place.
    pub place: Place,
    /// Bytes on each tile.
    pub bytes: TileRuns<u64>,
}

/// The order in which variables of a tile are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    /// Executable.
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

impl Wanted {
    fn rank(&self) -> Rank {
        if is_executable(self.category) {
            Rank::Code
        } else if self.lifetime.is_some() || self.place != Place::Any {
            Rank::Passing
        } else if self.bytes.len() > UNEVEN_RUNS {
            Rank::Uneven
        } else {
            Rank::Steady
        }
    }
}

/// The outcome for all tiles.
#[derive(Clone, Debug, Default)]
pub struct Allocation {
    /// Where each variable lies, in the order they were given.
    pub placements: Vec<TileRuns<Placement>>,
    /// Sums per tile.
    pub memory: TileRuns<TileMemory>,
    /// Owners per tile.
    pub categories: TileRuns<Vec<CategoryBytes>>,
}

/// Bytes at the bottom of an element or region that are taken before the first variable for which
/// it is opened: fullest tiles of Poplar's op benchmarks are its start + 24 + that variable.
const ELEMENT_RESERVED_BYTES: u64 = 24;

/// Alignment of variables: the width of a load.
const ALIGNMENT: u64 = 8;

/// A variable on one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Held {
    variable: usize,
    bytes: u64,
}

/// A variable with its address.
#[derive(Clone, Copy, Debug)]
struct Placed {
    variable: usize,
    offset: u64,
    bytes: u64,
}

impl Placed {
    fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// The tiles of one class and what was decided for them.
struct Class {
    placed: Vec<Placed>,
    memory: TileMemory,
    categories: Vec<CategoryBytes>,
}

/// Places all variables on all tiles `0..tiles`.
pub fn allocate(chip: &Chip, variables: &[Wanted], tiles: u32) -> Allocation {
    let segments = segments(variables, tiles);
    let mut class_of: BTreeMap<&[Held], usize> = BTreeMap::new();
    let mut signatures: Vec<&[Held]> = Vec::new();
    let classes_of_segments: Vec<usize> = segments
        .iter()
        .map(|(_, held)| {
            *class_of.entry(held.as_slice()).or_insert_with(|| {
                signatures.push(held);
                signatures.len() - 1
            })
        })
        .collect();
    let classes: Vec<Class> =
        signatures.par_iter().map(|held| place(chip, variables, held)).collect();
    let mut allocation = Allocation {
        placements: vec![TileRuns::empty(); variables.len()],
        ..Allocation::default()
    };
    for ((range, _), class) in segments.iter().zip(classes_of_segments) {
        let class = &classes[class];
        allocation.memory.push(*range, class.memory);
        if !class.categories.is_empty() {
            allocation.categories.push(*range, class.categories.clone());
        }
        for placed in &class.placed {
            let placement = Placement { bytes: placed.bytes, offset: placed.offset };
            allocation.placements[placed.variable].push(*range, placement);
        }
    }
    allocation
}

/// Ranges of tiles on which nothing changes, each with what a tile of it holds.
fn segments(variables: &[Wanted], tiles: u32) -> Vec<(TileRange, Vec<Held>)> {
    let mut borders = BTreeSet::from([0, tiles]);
    for variable in variables {
        for (range, _) in variable.bytes.iter() {
            borders.extend([range.first, range.end]);
        }
    }
    let borders: Vec<u32> = borders.into_iter().filter(|border| *border <= tiles).collect();
    let mut segments: Vec<(TileRange, Vec<Held>)> =
        borders.windows(2).map(|pair| (TileRange::new(pair[0], pair[1]), Vec::new())).collect();
    for (index, variable) in variables.iter().enumerate() {
        for (range, bytes) in variable.bytes.iter() {
            if *bytes == 0 {
                continue;
            }
            let first = segments.partition_point(|(segment, _)| segment.end <= range.first);
            for (segment, held) in &mut segments[first..] {
                if segment.first >= range.end {
                    break;
                }
                held.push(Held { variable: index, bytes: *bytes });
            }
        }
    }
    segments
}

/// Places the variables of one tile.
fn place(chip: &Chip, variables: &[Wanted], held: &[Held]) -> Class {
    let of_rank =
        |rank: Rank| held.iter().filter(move |item| variables[item.variable].rank() == rank);
    let mut placed = Vec::with_capacity(held.len());
    let code_end = stack_up(&mut placed, of_rank(Rank::Code), 0);
    let data = code_end.next_multiple_of(chip.memory_element_bytes);
    let steady_end = stack_up(&mut placed, of_rank(Rank::Steady), data);
    let mut passing: Vec<Held> = of_rank(Rank::Passing).copied().collect();
    // Those that need most of their place first.
    passing.sort_by_key(|item| {
        let wanted = &variables[item.variable];
        (Reverse(wanted.place), Reverse(item.bytes), item.variable)
    });
    for item in passing {
        let lowest = lowest_address(chip, variables[item.variable].place, steady_end);
        let offset = lowest_gap(variables, &placed, item, lowest);
        placed.push(Placed { variable: item.variable, offset, bytes: item.bytes });
    }
    for item in of_rank(Rank::Uneven) {
        let offset = lowest_gap(variables, &placed, *item, steady_end);
        placed.push(Placed { variable: item.variable, offset, bytes: item.bytes });
    }
    let (memory, categories) = account(chip, variables, &placed);
    Class { placed, memory, categories }
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

/// Stacks variables from `start` upwards; returns the end.
fn stack_up<'a>(
    placed: &mut Vec<Placed>,
    items: impl Iterator<Item = &'a Held>,
    start: u64,
) -> u64 {
    let mut next = start;
    for item in items {
        placed.push(Placed { variable: item.variable, offset: next, bytes: item.bytes });
        next += item.bytes.next_multiple_of(ALIGNMENT);
    }
    next
}

/// The lowest address from `lowest` on where `item` meets no variable that is live with it.
fn lowest_gap(variables: &[Wanted], placed: &[Placed], item: Held, lowest: u64) -> u64 {
    let lifetime = &variables[item.variable].lifetime;
    let mut conflicts: Vec<(u64, u64)> = placed
        .iter()
        .filter(|other| meet(lifetime, &variables[other.variable].lifetime) && other.end() > lowest)
        .map(|other| (other.offset, other.end()))
        .collect();
    conflicts.sort_unstable();
    let mut offset = lowest;
    for (start, end) in conflicts {
        if offset + item.bytes <= start {
            break;
        }
        offset = offset.max(end.next_multiple_of(ALIGNMENT));
    }
    offset
}

/// Whether two lifetimes share a step; `None` lives always.
fn meet(a: &Option<Range<u32>>, b: &Option<Range<u32>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.start < b.end && b.start < a.end,
        _ => true,
    }
}

/// Sums of one tile: by region, by owner, by liveness.
fn account(
    chip: &Chip,
    variables: &[Wanted],
    placed: &[Placed],
) -> (TileMemory, Vec<CategoryBytes>) {
    let mut owners: BTreeMap<(Category, Region, bool), u64> = BTreeMap::new();
    for (start, end, owner, shared) in owned_stretches(placed) {
        for (region, from, to) in regions(chip) {
            let bytes = end.min(to).saturating_sub(start.max(from));
            if bytes > 0 {
                *owners.entry((variables[owner].category, region, shared)).or_default() += bytes;
            }
        }
    }
    let categories: Vec<CategoryBytes> = owners
        .into_iter()
        .map(|((category, region, overlapped), bytes)| CategoryBytes {
            category,
            region,
            overlapped,
            bytes,
        })
        .collect();
    let in_region = |region: Region| {
        categories.iter().filter(|part| part.region == region).map(|part| part.bytes).sum()
    };
    let always = placed.iter().filter(|placed| variables[placed.variable].lifetime.is_none());
    let memory = TileMemory {
        including_gaps: placed.iter().map(Placed::end).max().unwrap_or(0),
        non_interleaved: in_region(Region::NonInterleaved),
        interleaved: in_region(Region::Interleaved),
        overflowed: in_region(Region::Overflowed),
        always_live: always.map(|placed| placed.bytes).sum(),
        peak_not_always_live: peak(variables, placed),
    };
    (memory, categories)
}

/// Regions of tile memory as address ranges; what lies beyond the end overflows.
fn regions(chip: &Chip) -> [(Region, u64, u64); 3] {
    [
        (Region::NonInterleaved, 0, chip.interleaved_offset),
        (Region::Interleaved, chip.interleaved_offset, chip.bytes_per_tile),
        (Region::Overflowed, chip.bytes_per_tile, u64::MAX),
    ]
}

/// Stretches of addresses in use, each with its largest user and whether it has several.
fn owned_stretches(placed: &[Placed]) -> Vec<(u64, u64, usize, bool)> {
    // Events in address order; the users of a stretch are kept sorted by size.
    let mut events: Vec<(u64, bool, u64, usize)> = Vec::with_capacity(placed.len() * 2);
    for item in placed {
        events.push((item.offset, true, item.bytes, item.variable));
        events.push((item.end(), false, item.bytes, item.variable));
    }
    events.sort_unstable();
    let mut users: BTreeSet<(u64, usize)> = BTreeSet::new();
    let mut stretches = Vec::new();
    let mut start = 0;
    for (address, begins, bytes, variable) in events {
        if let Some((_, owner)) = users.last()
            && address > start
        {
            stretches.push((start, address, *owner, users.len() > 1));
        }
        start = address;
        if begins {
            users.insert((bytes, variable))
        } else {
            users.remove(&(bytes, variable))
        };
    }
    stretches
}

/// Most bytes of not-always-live variables live at one step.
fn peak(variables: &[Wanted], placed: &[Placed]) -> u64 {
    let mut changes: BTreeMap<u32, i64> = BTreeMap::new();
    for item in placed {
        if let Some(lifetime) = &variables[item.variable].lifetime {
            *changes.entry(lifetime.start).or_default() += item.bytes as i64;
            *changes.entry(lifetime.end).or_default() -= item.bytes as i64;
        }
    }
    let (mut live, mut peak) = (0i64, 0i64);
    for change in changes.into_values() {
        live += change;
        peak = peak.max(live);
    }
    peak as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::targets::MK2;
    use proptest::prelude::*;

    fn wanted(bytes: u64, lifetime: Option<Range<u32>>, interleaved: bool) -> Wanted {
        let place = if interleaved { Place::Interleaved } else { Place::Any };
        placed(bytes, lifetime, place)
    }

    fn placed(bytes: u64, lifetime: Option<Range<u32>>, place: Place) -> Wanted {
        let tiles = TileRange::new(0, 1);
        Wanted {
            category: Category::Variable,
            lifetime,
            place,
            bytes: TileRuns::uniform(tiles, bytes),
        }
    }

    fn memory(variables: &[Wanted]) -> TileMemory {
        *allocate(&MK2, variables, 1).memory.get(0).expect("tile 0 exists")
    }

    #[test]
    fn variables_that_never_meet_share_addresses() {
        let tile = memory(&[wanted(1000, Some(0..3), false), wanted(800, Some(3..5), false)]);
        assert_eq!((tile.excluding_gaps(), tile.including_gaps), (1000, 1000));
        assert_eq!(tile.peak_not_always_live, 1000);
    }

    #[test]
    fn one_interleaved_variable_makes_the_extent_jump() {
        let tile = memory(&[wanted(100, None, false), wanted(6400, Some(1..2), true)]);
        assert_eq!(tile.including_gaps, 212_992 + 24 + 6400);
        assert_eq!((tile.non_interleaved, tile.interleaved), (100, 6400));
    }

    #[test]
    fn an_element_of_its_own_starts_above_what_was_there() {
        let tile = memory(&[wanted(1320, None, false), placed(32, Some(1..2), Place::OwnElement)]);
        assert_eq!(tile.including_gaps, 16_384 + 24 + 32);
    }

    #[test]
    fn what_does_not_fit_overflows() {
        let tile = memory(&[wanted(700_000, None, false)]);
        assert_eq!(tile.overflowed, 700_000 - 638_976);
    }

    proptest! {
        #[test]
        fn sums_agree(sizes in prop::collection::vec((1u64..40_000, 0u32..20, 0u32..10, any::<bool>(), any::<bool>()), 1..40)) {
            let variables: Vec<Wanted> = sizes
                .iter()
                .map(|(bytes, start, length, always, interleaved)| {
                    let lifetime = (!always).then_some(*start..start + length + 1);
                    wanted(*bytes, lifetime, *interleaved)
                })
                .collect();
            let allocation = allocate(&MK2, &variables, 1);
            let tile = *allocation.memory.get(0).expect("tile 0 exists");
            let owned: u64 = allocation.categories.get(0).expect("tile 0 exists").iter().map(|part| part.bytes).sum();
            prop_assert_eq!(owned, tile.excluding_gaps());
            prop_assert!(tile.including_gaps >= tile.excluding_gaps());
            prop_assert!(tile.excluding_gaps() >= tile.always_live.max(tile.peak_not_always_live));
            prop_assert!(tile.excluding_gaps() <= sizes.iter().map(|size| size.0).sum());
            // Variables that are live together never overlap.
            for (a, first) in allocation.placements.iter().enumerate() {
                for (b, second) in allocation.placements.iter().enumerate().take(a) {
                    if meet(&variables[a].lifetime, &variables[b].lifetime) {
                        let (x, y) = (first.get(0).expect("placed"), second.get(0).expect("placed"));
                        prop_assert!(x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset);
                    }
                }
            }
        }
    }
}
