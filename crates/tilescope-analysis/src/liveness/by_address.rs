//! The memory of one tile by address over all steps of the program: the addresses of variables, the
//! free blocks between them, and the variable at the highest address.

use super::{LivenessScope, curve_of, variables};
use crate::bank_map::{PlacedVariable, placed_on};
use std::collections::HashMap;
use std::ops::Range;
use tilescope_report::units::{Bytes, ProgramId, TileId, VariableId};
use tilescope_report::{Report, ReportError, ReportPart};

/// A tile's memory over all steps. All addresses and lifetimes are recorded, not assumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressTimeline {
    pub tile: TileId,
    /// The program of each step.
    pub programs: Vec<ProgramId>,
    /// Variables on the tile, by first address, then by first step.
    pub placed: Vec<PlacedVariable>,
    /// For each variable with such steps, the longest stretch in which it is live but not used.
    /// Empty if uses were not recorded.
    pub unused: HashMap<VariableId, Range<u32>>,
    /// Bytes live at each step.
    pub live: Vec<Bytes>,
    /// Memory of a tile in bytes.
    pub capacity: Bytes,
    /// First address of interleaved memory.
    pub interleaved: Bytes,
}

/// Addresses without a variable at some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeBlock {
    /// Bytes from the start of tile memory, half-open.
    pub addresses: Range<Bytes>,
    /// The variables directly below and above, as indices in [`AddressTimeline::placed`]; `None` at
    /// the ends of memory.
    pub between: [Option<usize>; 2],
}

impl FreeBlock {
    /// Its size in bytes.
    pub fn bytes(&self) -> Bytes {
        self.addresses.end - self.addresses.start
    }
}

/// The free memory of the tile at some steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeMemory {
    /// The blocks, by address.
    pub blocks: Vec<FreeBlock>,
}

impl FreeMemory {
    /// Bytes of all blocks.
    pub fn bytes(&self) -> Bytes {
        self.blocks.iter().map(FreeBlock::bytes).sum()
    }

    /// The largest block, the lowest if several are equal.
    pub fn largest(&self) -> Option<&FreeBlock> {
        self.blocks.iter().reduce(|a, b| if b.bytes() > a.bytes() { b } else { a })
    }

    /// The share of the free bytes outside the largest block; `None` if no bytes are free.
    pub fn fragmentation(&self) -> Option<f64> {
        let largest = self.largest()?.bytes();
        Some(1.0 - largest.as_f64() / self.bytes().as_f64())
    }
}

/// The variable with the highest end address on a tile, and the free memory below it during its
/// lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighestVariable {
    /// Its index in [`AddressTimeline::placed`].
    pub place: usize,
    /// The largest block below it that is free in all steps of its lifetime; `None` if there is
    /// none.
    pub hole: Option<FreeBlock>,
}

impl AddressTimeline {
    /// Number of steps.
    pub fn steps(&self) -> u32 {
        u32::try_from(self.programs.len()).unwrap_or(u32::MAX)
    }

    /// The step with the most live bytes, the first if several are equal.
    pub fn peak(&self) -> Option<u32> {
        let most = self.live.iter().max()?;
        let peak = self.live.iter().position(|bytes| bytes == most)?;
        u32::try_from(peak).ok()
    }

    /// Steps in which a variable is live.
    pub fn life(&self, variable: &PlacedVariable) -> Range<u32> {
        variable.lifetime.clone().unwrap_or(0..self.steps())
    }

    /// The variable at an address at a step.
    pub fn at(&self, step: u32, address: Bytes) -> Option<&PlacedVariable> {
        self.live_in(step..step + 1)
            .map(|(_, placed)| placed)
            .find(|placed| placed.addresses.contains(&address))
    }

    /// Variables that are live in any of `steps`, by first address, with their indices.
    pub fn live_in(&self, steps: Range<u32>) -> impl Iterator<Item = (usize, &PlacedVariable)> {
        self.placed.iter().enumerate().filter(move |(_, placed)| match &placed.lifetime {
            None => true,
            Some(life) => life.start < steps.end && steps.start < life.end,
        })
    }

    /// The memory of the tile that is free in all of `steps`.
    pub fn free_in(&self, steps: Range<u32>) -> FreeMemory {
        self.free_below(self.capacity, steps, None)
    }

    /// The memory below an address that is free in all of `steps`, ignoring the variable `without`.
    fn free_below(&self, end: Bytes, steps: Range<u32>, without: Option<usize>) -> FreeMemory {
        let mut blocks = Vec::new();
        let mut address = Bytes::ZERO;
        let mut below = None;
        let others = self.live_in(steps).filter(|(place, _)| Some(*place) != without);
        for (place, placed) in others {
            let start = placed.addresses.start.min(end);
            if start > address {
                blocks.push(FreeBlock { addresses: address..start, between: [below, Some(place)] });
            }
            if placed.addresses.end > address {
                (address, below) = (placed.addresses.end, Some(place));
            }
        }
        if address < end {
            blocks.push(FreeBlock { addresses: address..end, between: [below, None] });
        }
        FreeMemory { blocks }
    }

    /// The variable that determines the memory need of the tile: the one with the highest end
    /// address, the first if several are equal.
    pub fn highest(&self) -> Option<HighestVariable> {
        let mut place = 0;
        for (at, placed) in self.placed.iter().enumerate() {
            if placed.addresses.end > self.placed[place].addresses.end {
                place = at;
            }
        }
        let placed = self.placed.get(place)?;
        let free = self.free_below(placed.addresses.start, self.life(placed), Some(place));
        Some(HighestVariable { place, hole: free.largest().cloned() })
    }
}

/// The parts of a report that [`by_address`] needs.
pub const PARTS: [ReportPart; 4] =
    [ReportPart::Variables, ReportPart::Addresses, ReportPart::Lifetimes, ReportPart::Liveness];

/// The memory of a tile by address; `None` if the report lacks any of [`PARTS`].
///
/// O(variables + steps).
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn by_address(report: &Report, tile: TileId) -> Result<Option<AddressTimeline>, ReportError> {
    if !PARTS.iter().all(|part| report.has(*part)) {
        return Ok(None);
    }
    let target = report.target()?;
    let source = LivenessScope::Tile(tile);
    let variables = variables(report, source)?;
    let curve = curve_of(report, source, &variables)?;
    let live = (0..curve.others.len()).map(|step| curve.total(step)).collect();
    let mut placed = placed_on(variables, tile);
    placed.sort_by_key(|of| {
        let first_step = of.lifetime.as_ref().map_or(0, |life| life.start);
        (of.addresses.start, first_step, of.id.0)
    });
    Ok(Some(AddressTimeline {
        tile,
        unused: unused(report, &placed)?,
        programs: curve.programs,
        placed,
        live,
        capacity: target.bytes_per_tile,
        interleaved: target.interleaved_offset,
    }))
}

/// The longest unused stretch of each lifetime.
fn unused(
    report: &Report,
    placed: &[PlacedVariable],
) -> Result<HashMap<VariableId, Range<u32>>, ReportError> {
    let mut uses: HashMap<VariableId, Vec<Range<u32>>> = HashMap::new();
    for of in report.variable_uses()?.unwrap_or_default() {
        uses.entry(of.variable).or_default().push(of.steps);
    }
    let mut gaps = HashMap::new();
    for of in placed {
        if let Some(life) = of.lifetime.clone()
            && let Some(uses) = uses.get_mut(&of.id)
            && let Some(gap) = longest_gap(life, uses)
        {
            gaps.insert(of.id, gap);
        }
    }
    Ok(gaps)
}

/// The longest part of a lifetime without a use, the first if several are equal.
fn longest_gap(life: Range<u32>, uses: &mut [Range<u32>]) -> Option<Range<u32>> {
    uses.sort_by_key(|steps| steps.start);
    let mut longest: Option<Range<u32>> = None;
    let mut from = life.start;
    for steps in uses.iter().cloned().chain([life.end..life.end]) {
        let gap = from..steps.start.min(life.end);
        if gap.start < gap.end && longest.as_ref().is_none_or(|known| gap.len() > known.len()) {
            longest = Some(gap);
        }
        from = from.max(steps.end);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::MemoryCategory;

    fn placed(id: u32, addresses: Range<u64>, lifetime: Option<Range<u32>>) -> PlacedVariable {
        PlacedVariable {
            id: VariableId(id),
            name: format!("v{id}"),
            category: MemoryCategory::Variable,
            addresses: Bytes(addresses.start)..Bytes(addresses.end),
            lifetime,
            row: 0,
        }
    }

    fn timeline() -> AddressTimeline {
        AddressTimeline {
            programs: vec![ProgramId(0); 4],
            placed: vec![
                placed(0, 0..10, None),
                placed(1, 10..30, Some(0..2)),
                placed(2, 20..25, Some(2..3)),
                placed(3, 40..60, Some(1..3)),
            ],
            live: [30, 50, 35, 10].map(Bytes).to_vec(),
            capacity: Bytes(100),
            ..AddressTimeline::default()
        }
    }

    fn blocks(free: &FreeMemory) -> Vec<Range<u64>> {
        let blocks = free.blocks.iter();
        blocks.map(|block| block.addresses.start.0..block.addresses.end.0).collect()
    }

    #[test]
    fn addresses_without_a_variable_are_free() {
        let timeline = timeline();
        assert_eq!(blocks(&timeline.free_in(0..1)), [30..100]);
        assert_eq!(blocks(&timeline.free_in(1..2)), [30..40, 60..100]);
        assert_eq!(blocks(&timeline.free_in(2..3)), [10..20, 25..40, 60..100]);
        assert_eq!(blocks(&timeline.free_in(0..4)), [30..40, 60..100]);
        assert_eq!(timeline.peak(), Some(1));
        // Free and live bytes add up to the memory of the tile.
        for step in 0..4 {
            let free = timeline.free_in(step..step + 1).bytes();
            assert_eq!(free + timeline.live[step as usize], timeline.capacity);
        }
    }

    #[test]
    fn fragmentation_is_the_share_outside_the_largest_block() {
        let timeline = timeline();
        let free = timeline.free_in(2..3);
        assert_eq!(free.largest().map(FreeBlock::bytes), Some(Bytes(40)));
        let fragmentation = free.fragmentation().unwrap();
        assert!((fragmentation - (1.0 - 40.0 / 65.0)).abs() < 1e-12);
        assert_eq!(timeline.free_in(0..1).fragmentation(), Some(0.0));
        assert_eq!(FreeMemory::default().fragmentation(), None);
    }

    #[test]
    fn overfull_tiles_have_no_negative_free_bytes() {
        let mut timeline = timeline();
        timeline.capacity = Bytes(50);
        assert_eq!(blocks(&timeline.free_in(1..2)), [30..40]);
        timeline.capacity = Bytes(15);
        assert_eq!(blocks(&timeline.free_in(1..2)), []);
    }

    #[test]
    fn the_highest_variable_has_the_largest_hole_below() {
        let timeline = timeline();
        let highest = timeline.highest().unwrap();
        assert_eq!(highest.place, 3);
        // It is live in steps 1 and 2; 10 to 30 is in use in step 1.
        let hole = highest.hole.unwrap();
        assert_eq!((hole.addresses, hole.between), (Bytes(30)..Bytes(40), [Some(1), None]));
        assert_eq!(AddressTimeline::default().highest(), None);
    }

    #[test]
    fn the_variable_at_an_address_depends_on_the_step() {
        let timeline = timeline();
        let id = |step, address| timeline.at(step, Bytes(address)).map(|of| of.id.0);
        assert_eq!((id(0, 22), id(2, 22), id(3, 22)), (Some(1), Some(2), None));
        assert_eq!((id(3, 9), id(3, 10)), (Some(0), None));
    }

    #[test]
    fn unused_stretches_lie_between_uses() {
        assert_eq!(longest_gap(2..10, &mut [2..3, 8..10]), Some(3..8));
        assert_eq!(longest_gap(2..10, &mut [6..10, 2..4]), Some(4..6));
        assert_eq!(longest_gap(2..10, &mut [0..12]), None);
        assert_eq!(longest_gap(2..10, &mut [2..4]), Some(4..10));
    }
}
