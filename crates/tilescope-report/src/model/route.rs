//! Senders and receivers of an exchange: who sends how much to whom.

use crate::units::{Bytes, ProgramId, TileId, TileRange, TileRuns};

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

    /// The same pattern with other groups. Data that keep or change their order have none.
    #[must_use]
    pub fn map_groups(&self, change: impl FnOnce(&TileGroups) -> TileGroups) -> Self {
        match self {
            Self::InOrder | Self::Rearranged(_) => self.clone(),
            Self::Broadcast(groups) => Self::Broadcast(change(groups)),
            Self::Gather(groups) => Self::Gather(change(groups)),
            Self::Unknown(groups) => Self::Unknown(change(groups)),
        }
    }
}

/// Data that change their order on the way. Positions are counted in units, along the memory of all
/// senders, or of all receivers, in tile order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rearrangement {
    /// Bytes of a unit, such as an element.
    pub unit: Bytes,
    /// Blocks that together contain every unit once.
    pub blocks: Vec<RouteBlock>,
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

/// Disjoint groups of tiles. The tiles of a ring have numbers from a first tile on. The digits of a
/// tile's number, in a mixed radix, determine its group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileGroups {
    /// The tile with number 0.
    pub first: TileId,
    /// The tile after the last one of the ring is the first one.
    pub ring: TileRange,
    /// True if numbers increase towards lower tiles.
    pub descending: bool,
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
        Self {
            first: tiles.first,
            ring: tiles,
            descending: false,
            digits: vec![TileDigit::joined(tiles.count())],
        }
    }

    /// Groups of tiles from 0 on with these digits.
    pub fn of_digits(digits: Vec<TileDigit>) -> Self {
        let tiles: u32 = digits.iter().map(|digit| digit.size).product();
        Self { first: TileId(0), ring: TileRange::first_tiles(tiles), descending: false, digits }
    }

    /// The same groups `offset` tiles higher.
    #[must_use]
    pub fn shifted(&self, offset: u32) -> Self {
        let ring = TileRange::new(self.ring.first + offset, self.ring.end + offset);
        Self { first: self.first + offset, ring, ..self.clone() }
    }

    /// Number of groups.
    pub fn count(&self) -> u64 {
        self.digits.iter().map(|digit| u64::from(digit.parts)).product()
    }

    /// The group of a tile, from 0 on; `None` if it is in none.
    pub fn group_of(&self, tile: TileId) -> Option<u64> {
        if !self.ring.contains(tile) {
            return None;
        }
        let ring = u64::from(self.ring.count());
        let from_first =
            |tile: TileId, first: TileId| (u64::from(tile.0) + ring - u64::from(first.0)) % ring;
        let mut number = if self.descending {
            from_first(self.first, tile)
        } else {
            from_first(tile, self.first)
        };
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
    fn numbers_wrap_around_the_ring() {
        let digits = vec![TileDigit::apart(2), TileDigit::joined(2)];
        let ring = TileRange::first_tiles(6);
        let up = TileGroups { first: TileId(4), ring, descending: false, digits };
        assert_eq!(groups(&up, 6), [Some(1), Some(1), None, None, Some(0), Some(0)]);
        let down = TileGroups { first: TileId(1), descending: true, ..up };
        assert_eq!(groups(&down, 6), [Some(0), Some(0), None, None, Some(1), Some(1)]);
        assert_eq!(down.shifted(6).group_of(TileId(6)), Some(0));
    }
}
