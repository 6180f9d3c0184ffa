//! Senders and receivers of an exchange: who sends how much to whom.

use crate::units::{Bytes, ProgramId, TileId, TileRange, TileRuns};
use std::collections::BTreeMap;

/// Bytes of one exchange that follow one pattern. The routes of an exchange together carry all of
/// its bytes. In an exchange without routes only the totals of both ends are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRoute {
    /// The exchange or copy program.
    pub program: ProgramId,
    /// Bytes of each tile that takes part.
    pub tiles: TileRuns<RouteBytes>,
    /// The receivers of each sender.
    pub pattern: RoutePattern,
}

/// Bytes of one tile along a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteBytes {
    /// Sent bytes, a multicast once per receiver.
    pub delivered: Bytes,
    pub received: Bytes,
}

/// The correspondence of senders and receivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RoutePattern {
    /// Data keep their order: the first bytes of the first sender go to the first receiver.
    InOrder,
    /// Data change their order in a known way.
    Rearranged(Rearrangement),
    /// Every sender sends its data to all other receivers of its group, to each the same number of
    /// bytes.
    Broadcast(TileGroups),
    /// Every receiver gets the same number of bytes from all other senders of its group.
    Gather(TileGroups),
    /// Tiles exchange data only within groups; who sends to whom in a group is not known.
    Unknown(TileGroups),
}

impl RoutePattern {
    /// Its name in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::InOrder => "in_order",
            Self::Rearranged(_) => "rearranged",
            Self::Broadcast(_) => "broadcast",
            Self::Gather(_) => "gather",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The same pattern `offset` tiles higher.
    #[must_use]
    pub fn shifted(&self, offset: u32) -> Self {
        self.moved(
            |groups| groups.shifted(offset),
            |memory| RouteMemory {
                bytes: memory.bytes.shifted(offset),
                receivers: memory.receivers.as_ref().map(|order| order.shifted(offset)),
            },
        )
    }

    /// The same pattern with other groups, and with other memory of rearranged data.
    #[must_use]
    pub fn moved(
        &self,
        change: impl FnOnce(&TileGroups) -> TileGroups,
        change_memory: impl FnOnce(&RouteMemory) -> RouteMemory,
    ) -> Self {
        match self {
            Self::InOrder => Self::InOrder,
            Self::Rearranged(order) => {
                let memory = order.memory.as_ref().map(change_memory);
                Self::Rearranged(Rearrangement { memory, ..order.clone() })
            }
            Self::Broadcast(groups) => Self::Broadcast(change(groups)),
            Self::Gather(groups) => Self::Gather(change(groups)),
            Self::Unknown(groups) => Self::Unknown(change(groups)),
        }
    }
}

/// Data that change their order on the way. Positions are counted in units, along the memory of all
/// senders, or of all receivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rearrangement {
    /// Bytes of a unit, such as an element.
    pub unit: Bytes,
    /// Blocks that together contain every unit that arrives once.
    pub blocks: Vec<RouteBlock>,
    /// The memory along which positions count. `None`: the delivered and the received bytes
    /// themselves, in tile order.
    pub memory: Option<RouteMemory>,
}

/// Memory of tiles that send or receive parts of it. A tile may send a unit repeatedly, and not
/// every unit is sent or arrives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteMemory {
    /// Bytes of each tile: `delivered` for senders, `received` for receivers.
    pub bytes: TileRuns<RouteBytes>,
    /// Order of the receivers; `None`: tile order.
    pub receivers: Option<TileOrder>,
}

/// Numbers of tiles from a first tile on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileRing {
    /// The tile with number 0.
    pub first: TileId,
    /// The tile after the last one is the first one.
    pub tiles: TileRange,
    /// True if numbers increase towards lower tiles.
    pub descending: bool,
}

impl TileRing {
    /// The numbers of a range of tiles, upwards from the first one.
    pub fn ascending(tiles: TileRange) -> Self {
        Self { first: tiles.first, tiles, descending: false }
    }

    /// The same ring `offset` tiles higher.
    #[must_use]
    pub fn shifted(self, offset: u32) -> Self {
        let tiles = TileRange::new(self.tiles.first + offset, self.tiles.end + offset);
        Self { first: self.first + offset, tiles, ..self }
    }
}

/// An order of tiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileOrder {
    pub ring: TileRing,
    /// Digits of the position of a tile, the most significant first: number of values, and distance
    /// of their numbers. The number of a tile is the sum of its digits times their distances.
    pub digits: Vec<[u32; 2]>,
}

/// Units at regular distances on both ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteBlock {
    /// Position of the first unit on the side of the senders.
    pub sent_at: u64,
    /// Position of the first unit on the side of the receivers.
    pub received_at: u64,
    pub dims: Vec<RouteDim>,
}

/// A dimension of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteDim {
    pub count: u64,
    /// Distance of adjacent units on the side of the senders.
    pub sent_step: u64,
    /// Distance of adjacent units on the side of the receivers.
    pub received_step: u64,
}

impl RouteBlock {
    /// Number of units.
    pub fn units(&self) -> u64 {
        self.dims.iter().fold(1, |all, dim| all.saturating_mul(dim.count))
    }

    /// Positions of the last unit on both sides, or `None` if a dimension is empty or they are too
    /// large.
    pub fn last(&self) -> Option<[u64; 2]> {
        let mut last = [self.sent_at, self.received_at];
        for dim in &self.dims {
            let steps = dim.count.checked_sub(1)?;
            for (last, step) in last.iter_mut().zip([dim.sent_step, dim.received_step]) {
                *last = last.checked_add(steps.checked_mul(step)?)?;
            }
        }
        Some(last)
    }
}

/// Pieces into which blocks are cut at most to count their units: several times those of any real
/// exchange.
const MAX_PIECES: u32 = 1 << 22;

/// The memory of one side: each tile with the end of its memory, in bytes.
pub type TileEnds = Vec<(TileId, u64)>;

impl Rearrangement {
    /// The memory of senders and receivers, in the order of positions, of a route whose tiles
    /// deliver and receive `bytes`.
    pub fn memory_of(&self, bytes: &TileRuns<RouteBytes>) -> [TileEnds; 2] {
        let (bytes, order) = match &self.memory {
            Some(memory) => (&memory.bytes, memory.receivers.as_ref()),
            None => (bytes, None),
        };
        let senders = ends_of(bytes, None, |tile| tile.delivered);
        [senders, ends_of(bytes, order, |tile| tile.received)]
    }

    /// Bytes that each tile delivers and receives, if memory is as [`Self::memory_of`] returns it.
    /// `None` if blocks extend beyond the memory, or are more than those of any real exchange.
    pub fn bytes_by_tile(&self, memory: &[TileEnds; 2]) -> Option<TileRuns<RouteBytes>> {
        let mut pieces = 0;
        let mut sums: BTreeMap<TileId, RouteBytes> = BTreeMap::new();
        for side in 0..2 {
            for block in &self.blocks {
                let first = [block.sent_at, block.received_at][side];
                let last = block.last()?[side].checked_add(1)?.checked_mul(self.unit.0)?;
                if last > memory[side].last().map_or(0, |(_, end)| *end) {
                    return None;
                }
                let mut dims = Vec::new();
                for dim in &block.dims {
                    dims.push((dim.count, [dim.sent_step, dim.received_step][side]));
                }
                let mut counter = UnitCounter {
                    ends: &memory[side],
                    unit: self.unit.0,
                    pieces: &mut pieces,
                    found: |tile, units| {
                        let sum = sums.entry(tile).or_default();
                        let sum = if side == 0 { &mut sum.delivered } else { &mut sum.received };
                        *sum = sum.saturating_add(self.unit.saturating_mul(units));
                    },
                };
                counter.count(first, &mut dims)?;
            }
        }
        let mut runs = TileRuns::empty();
        for (tile, bytes) in sums {
            runs.push(TileRange::single(tile), bytes);
        }
        Some(runs)
    }
}

/// The ends of the memory of tiles, in the given order.
fn ends_of(
    bytes: &TileRuns<RouteBytes>,
    order: Option<&TileOrder>,
    side: fn(&RouteBytes) -> Bytes,
) -> TileEnds {
    let mut ends = Vec::new();
    let mut end = 0u64;
    let mut push = |tile: TileId, bytes: &RouteBytes| {
        let bytes = side(bytes).0;
        if bytes > 0 {
            end = end.saturating_add(bytes);
            ends.push((tile, end));
        }
    };
    match order {
        None => {
            for (tiles, bytes) in bytes.iter() {
                tiles.iter().for_each(|tile| push(tile, bytes));
            }
        }
        Some(order) => {
            for tile in order.tiles() {
                if let Some(bytes) = bytes.get(tile) {
                    push(tile, bytes);
                }
            }
        }
    }
    ends
}

/// Counts the units of a block on the tiles of one side.
struct UnitCounter<'a, F> {
    ends: &'a [(TileId, u64)],
    unit: u64,
    pieces: &'a mut u32,
    found: F,
}

impl<F: FnMut(TileId, u64)> UnitCounter<'_, F> {
    /// Cuts the units from `first` on until each piece is on one tile. `None` if there are too many
    /// pieces.
    fn count(&mut self, first: u64, dims: &mut [(u64, u64)]) -> Option<()> {
        let last = first + dims.iter().copied().map(extent_of).sum::<u64>();
        let find_tile = |at: u64| self.ends.partition_point(|(_, end)| *end <= at * self.unit);
        let at = find_tile(first);
        if at == find_tile(last) {
            *self.pieces += 1;
            if *self.pieces > MAX_PIECES {
                return None;
            }
            let units = dims.iter().fold(1u64, |all, (count, _)| all.saturating_mul(*count));
            (self.found)(self.ends.get(at)?.0, units);
            return Some(());
        }
        let (longest, _) = dims.iter().enumerate().max_by_key(|(_, dim)| extent_of(**dim))?;
        let (whole, step) = dims[longest];
        let half = whole / 2;
        dims[longest].0 = half;
        self.count(first, dims)?;
        dims[longest].0 = whole - half;
        self.count(first + half * step, dims)?;
        dims[longest].0 = whole;
        Some(())
    }
}

/// Distance of the last unit of a dimension from the first one.
fn extent_of((count, step): (u64, u64)) -> u64 {
    count.saturating_sub(1) * step
}

impl TileOrder {
    /// Tiles from 0 on, of a ring of `tiles`, in the order of these digits.
    pub fn of_digits(tiles: u32, digits: Vec<[u32; 2]>) -> Self {
        Self { ring: TileRing::ascending(TileRange::first_tiles(tiles)), digits }
    }

    /// The same order `offset` tiles higher.
    #[must_use]
    pub fn shifted(&self, offset: u32) -> Self {
        Self { ring: self.ring.shifted(offset), digits: self.digits.clone() }
    }

    /// The tiles in order.
    pub fn tiles(&self) -> impl Iterator<Item = TileId> {
        let TileRing { first, tiles, descending } = self.ring;
        let ring = u64::from(tiles.count()).max(1);
        let start = u64::from(first - tiles.first);
        let count: u64 = self.digits.iter().map(|[size, _]| u64::from(*size)).product();
        (0..count).map(move |at| {
            let mut left = at;
            let mut number = 0;
            for [size, distance] in self.digits.iter().rev() {
                let size = u64::from(*size).max(1);
                number += left % size * u64::from(*distance);
                left /= size;
            }
            let number = number % ring;
            let place = if descending { start + ring - number } else { start + number };
            tiles.first + u32::try_from(place % ring).unwrap_or(0)
        })
    }
}

/// Disjoint groups of tiles. The digits of a tile's number, in a mixed radix, determine its group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileGroups {
    pub ring: TileRing,
    /// Digits of a number, the most significant first.
    pub digits: Vec<TileDigit>,
}

/// A digit of the number of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileDigit {
    /// Number of values.
    pub size: u32,
    /// Number of even parts that the values are cut into. Tiles of a group have values in the same
    /// part.
    pub parts: u32,
}

impl TileDigit {
    /// A digit whose values are all in one group.
    pub fn joined(size: u32) -> Self {
        Self { size, parts: 1 }
    }

    /// A digit whose values are all in different groups.
    pub fn apart(size: u32) -> Self {
        Self { size, parts: size }
    }

    /// The part of a value: part `i` of `n` begins at value `i * size / n`.
    fn part(self, value: u32) -> u32 {
        let last = (u64::from(value) + 1) * u64::from(self.parts) - 1;
        u32::try_from(last / u64::from(self.size.max(1))).unwrap_or(u32::MAX)
    }
}

impl TileGroups {
    /// All tiles of a range as one group.
    pub fn one(tiles: TileRange) -> Self {
        let digits = vec![TileDigit::joined(tiles.count())];
        Self { ring: TileRing::ascending(tiles), digits }
    }

    /// Groups of tiles from 0 on with these digits.
    pub fn of_digits(digits: Vec<TileDigit>) -> Self {
        let tiles: u32 = digits.iter().map(|digit| digit.size).product();
        Self { ring: TileRing::ascending(TileRange::first_tiles(tiles)), digits }
    }

    /// The same groups `offset` tiles higher.
    #[must_use]
    pub fn shifted(&self, offset: u32) -> Self {
        Self { ring: self.ring.shifted(offset), digits: self.digits.clone() }
    }

    /// Number of groups.
    pub fn count(&self) -> u64 {
        self.digits.iter().map(|digit| u64::from(digit.parts)).product()
    }

    /// The group of a tile, from 0 on; `None` if it is in none.
    pub fn group_of(&self, tile: TileId) -> Option<u64> {
        let TileRing { first, tiles, descending } = self.ring;
        if !tiles.contains(tile) {
            return None;
        }
        let ring = u64::from(tiles.count());
        let from_first =
            |tile: TileId, first: TileId| (u64::from(tile.0) + ring - u64::from(first.0)) % ring;
        let mut number = if descending { from_first(first, tile) } else { from_first(tile, first) };
        let mut group = 0;
        let mut below = 1;
        for digit in self.digits.iter().rev() {
            let size = u64::from(digit.size).max(1);
            let value = u32::try_from(number % size).unwrap_or(u32::MAX);
            number /= size;
            group += below * u64::from(digit.part(value));
            below *= u64::from(digit.parts);
        }
        if number == 0 { Some(group) } else { None }
    }
}

impl ExchangeRoute {
    /// A route whose data keep their order.
    pub fn in_order(
        program: ProgramId,
        delivered: &TileRuns<Bytes>,
        received: &TileRuns<Bytes>,
    ) -> Self {
        Self { program, tiles: RouteBytes::of(delivered, received), pattern: RoutePattern::InOrder }
    }

    /// Bytes that arrive.
    pub fn bytes(&self) -> Bytes {
        self.received().total()
    }

    /// The smallest ranges that contain all senders and all receivers, or `None` if no bytes move.
    pub fn ends(&self) -> Option<[TileRange; 2]> {
        let extent = |tiles: TileRuns<Bytes>| {
            let first = tiles.iter().next()?.0.first;
            Some(TileRange::new(first, tiles.end()?))
        };
        Some([extent(self.delivered())?, extent(self.received())?])
    }

    /// Bytes that each sender delivers.
    pub fn delivered(&self) -> TileRuns<Bytes> {
        self.tiles.map(|tile| tile.delivered).filtered(|bytes| !bytes.is_zero())
    }

    /// Bytes that each receiver gets.
    pub fn received(&self) -> TileRuns<Bytes> {
        self.tiles.map(|tile| tile.received).filtered(|bytes| !bytes.is_zero())
    }
}

impl From<[u64; 2]> for RouteBytes {
    /// Delivered and received bytes.
    fn from([delivered, received]: [u64; 2]) -> Self {
        Self { delivered: Bytes(delivered), received: Bytes(received) }
    }
}

impl RouteBytes {
    /// Joins the bytes of both ends.
    pub fn of(delivered: &TileRuns<Bytes>, received: &TileRuns<Bytes>) -> TileRuns<Self> {
        let joined = delivered.merged(received, |delivered, received| Self { delivered, received });
        joined.filtered(|tile| *tile != Self::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(of: &TileGroups, tiles: u32) -> Vec<Option<u64>> {
        (0..tiles).map(|tile| of.group_of(TileId(tile))).collect()
    }

    #[test]
    fn digits_determine_the_group() {
        let rows = TileGroups::of_digits(vec![TileDigit::apart(2), TileDigit::joined(3)]);
        assert_eq!(
            groups(&rows, 7),
            [0, 0, 0, 1, 1, 1].map(Some).into_iter().chain([None]).collect::<Vec<_>>()
        );
        let columns = TileGroups::of_digits(vec![TileDigit::joined(2), TileDigit::apart(3)]);
        assert_eq!(groups(&columns, 6), [0, 1, 2, 0, 1, 2].map(Some));
        // Five values in two parts.
        let parts = TileGroups::of_digits(vec![TileDigit { size: 5, parts: 2 }]);
        assert_eq!(groups(&parts, 5), [0, 0, 1, 1, 1].map(Some));
        assert_eq!((rows.count(), columns.count(), parts.count()), (2, 3, 2));
    }

    #[test]
    fn digits_order_tiles() {
        let order = TileOrder::of_digits(6, vec![[2, 1], [2, 2]]);
        let number_tiles = |order: &TileOrder| order.tiles().map(|tile| tile.0).collect::<Vec<_>>();
        assert_eq!(number_tiles(&order), [0, 2, 1, 3]);
        let mut turned = order;
        turned.ring.first = TileId(4);
        assert_eq!(number_tiles(&turned), [4, 0, 5, 1]);
        turned = turned.shifted(6);
        turned.ring.descending = true;
        assert_eq!(number_tiles(&turned), [10, 8, 9, 7]);
    }

    /// Two units that two tiles hold go to three tiles each, which have gaps between them.
    #[test]
    fn memory_of_both_sides_counts_units() {
        let bytes = TileRuns::from_tiles(
            TileId(0),
            [[4, 12], [4, 12], [0, 12]].map(|bytes| Some(RouteBytes::from(bytes))),
        );
        let dims = vec![
            RouteDim { count: 3, sent_step: 0, received_step: 3 },
            RouteDim { count: 2, sent_step: 1, received_step: 2 },
        ];
        let order = Rearrangement {
            unit: Bytes(4),
            blocks: vec![RouteBlock { sent_at: 0, received_at: 0, dims }],
            memory: Some(RouteMemory { bytes, receivers: None }),
        };
        let memory = order.memory_of(&TileRuns::empty());
        let found = order.bytes_by_tile(&memory).expect("inside");
        let find = |tile| found.get(TileId(tile)).map(|b| [b.delivered.0, b.received.0]);
        assert_eq!([find(0), find(1), find(2)], [Some([12, 8]), Some([12, 8]), Some([0, 8])]);
        let block = RouteBlock { received_at: 1, ..order.blocks[0].clone() };
        let beyond = Rearrangement { blocks: vec![block], ..order };
        assert_eq!(beyond.bytes_by_tile(&memory), None);
    }

    #[test]
    fn numbers_wrap_around_the_ring() {
        let digits = vec![TileDigit::apart(2), TileDigit::joined(2)];
        let tiles = TileRange::first_tiles(6);
        let ring = TileRing { first: TileId(4), tiles, descending: false };
        let up = TileGroups { ring, digits };
        assert_eq!(groups(&up, 6), [Some(1), Some(1), None, None, Some(0), Some(0)]);
        let ring = TileRing { first: TileId(1), tiles, descending: true };
        let down = TileGroups { ring, ..up };
        assert_eq!(groups(&down, 6), [Some(0), Some(0), None, None, Some(1), Some(1)]);
        assert_eq!(down.shifted(6).group_of(TileId(6)), Some(0));
    }
}
