//! Senders and receivers of the operands and partial sums of a pass.

use super::work_builder::OperandExchangeFlow;
use crate::poplar::routes::WorkRoute;
use crate::poputil::list_length;
use std::iter::zip;
use tilescope_report::units::{Bytes, Quantity, TileId, TileRange, TileRuns};
use tilescope_report::{RouteBytes, RoutePattern, TileGroups};

/// Bytes of one operand, or of partial sums, that the tiles exchange.
pub(crate) struct OperandExchange {
    /// Bytes of each tile, from tile 0 on.
    pub flows: Vec<OperandExchangeFlow>,
    pub pattern: OperandPattern,
}

/// The receivers of each tile's data.
pub(crate) enum OperandPattern {
    /// Only the bytes of each tile are known.
    Unknown,
    /// The tiles of a group share a slice, and each sends its share to all others. Data that they
    /// do not hold, such as halos, come from tiles of the same group of `around`.
    Shares { users: TileGroups, around: TileGroups },
    /// Each tile of a group gets a part of the partial sums of all others, and all get different
    /// parts.
    Partials(TileGroups),
    /// Data stay within groups.
    Within(TileGroups),
    /// Tensors move from one layout to another.
    Moves(Vec<WorkRoute>),
}

impl OperandExchange {
    /// An exchange of which only the bytes of each tile are known.
    pub(crate) fn unknown(flows: Vec<OperandExchangeFlow>) -> Self {
        Self { flows, pattern: OperandPattern::Unknown }
    }

    /// The routes of all bytes, or `None` if only those of each tile are known.
    pub(super) fn routes(&self) -> Option<Vec<WorkRoute>> {
        match &self.pattern {
            OperandPattern::Unknown => None,
            OperandPattern::Shares { users, around } => {
                self.shares(users, around).or_else(|| self.within(around))
            }
            OperandPattern::Partials(groups) => {
                self.partials(groups).or_else(|| self.within(groups))
            }
            OperandPattern::Within(groups) => self.within(groups),
            OperandPattern::Moves(routes) => {
                let mut received = vec![Bytes::ZERO; self.flows.len()];
                for (tiles, bytes) in routes.iter().flat_map(|route| route.tiles.iter()) {
                    for tile in tiles.iter().filter(|_| !bytes.received.is_zero()) {
                        *received.get_mut(tile.index())? += bytes.received;
                    }
                }
                let is_all = zip(&self.flows, received).all(|(flow, sum)| flow.received == sum);
                let is_known =
                    routes.iter().any(|route| !matches!(route.pattern, RoutePattern::Unknown(_)));
                if is_all && is_known { Some(routes.clone()) } else { None }
            }
        }
    }

    /// The routes of shares within groups, and of all other data around them.
    fn shares(&self, users: &TileGroups, around: &TileGroups) -> Option<Vec<WorkRoute>> {
        let group_of = self.groups(users)?;
        let mut groups = vec![SharingGroup::default(); list_length(users.count())];
        for (flow, group) in zip(&self.flows, &group_of) {
            groups[*group].tiles += 1;
            groups[*group].held += flow.sent;
            groups[*group].received += flow.received;
        }
        for (flow, group) in zip(&self.flows, &group_of) {
            let group = &mut groups[*group];
            let lacking = flow.received.checked_sub(group.held - flow.sent)?;
            group.lacking = group.lacking.max(lacking);
        }
        let mut shared = Vec::new();
        let mut lacking = Vec::new();
        for (flow, group) in zip(&self.flows, &group_of) {
            let group = &mut groups[*group];
            let others = group.held - flow.sent;
            if group.is_complete() {
                let delivered = group.next_delivery(flow.sent);
                shared.push(RouteBytes { delivered, received: flow.received });
                lacking.push(OperandExchangeFlow { received: Bytes::ZERO, ..*flow });
            } else {
                let delivered = (group.tiles - 1) * flow.sent;
                shared.push(RouteBytes { delivered, received: others });
                lacking.push(OperandExchangeFlow { received: flow.received - others, ..*flow });
            }
        }
        let mut routes = vec![route(shared, RoutePattern::Broadcast(users.clone()))];
        routes.extend(Self::unknown(lacking).within(around)?);
        Some(routes)
    }

    /// The route of partial sums within groups.
    fn partials(&self, groups: &TileGroups) -> Option<Vec<WorkRoute>> {
        let group_of = self.groups(groups)?;
        let mut tiles = vec![0u64; list_length(groups.count())];
        group_of.iter().for_each(|group| tiles[*group] += 1);
        // The part of each tile's partial sums that a tile adds.
        let mut parts = Vec::new();
        let mut all = vec![Bytes::ZERO; tiles.len()];
        for (flow, group) in zip(&self.flows, &group_of) {
            let others = (tiles[*group] - 1).max(1);
            if !flow.received.0.is_multiple_of(others) {
                return None;
            }
            let part = flow.received / others;
            parts.push(part);
            all[*group] += part;
        }
        let bytes = zip(&self.flows, zip(&parts, &group_of)).map(|(flow, (part, group))| {
            let delivered = if tiles[*group] > 1 { all[*group] - *part } else { Bytes::ZERO };
            RouteBytes { delivered, received: flow.received }
        });
        Some(vec![route(bytes.collect(), RoutePattern::Gather(groups.clone()))])
    }

    /// The route of data that stay within groups, sent in proportion to the bytes that tiles hold.
    fn within(&self, groups: &TileGroups) -> Option<Vec<WorkRoute>> {
        let group_of = self.groups(groups)?;
        let mut sums = vec![SharingGroup::default(); list_length(groups.count())];
        for (flow, group) in zip(&self.flows, &group_of) {
            sums[*group].held += flow.sent;
            sums[*group].received += flow.received;
        }
        if sums.iter().any(|sum| sum.held.is_zero() && !sum.received.is_zero()) {
            return None;
        }
        let bytes = zip(&self.flows, &group_of).map(|(flow, group)| RouteBytes {
            delivered: sums[*group].next_delivery(flow.sent),
            received: flow.received,
        });
        Some(vec![route(bytes.collect(), RoutePattern::Unknown(groups.clone()))])
    }

    /// The group of each tile, or `None` if a tile is in none.
    fn groups(&self, groups: &TileGroups) -> Option<Vec<usize>> {
        let tiles = TileId(0).onwards().zip(&self.flows);
        tiles.map(|(tile, _)| groups.group_of(tile).map(list_length)).collect()
    }
}

/// Tiles that share data.
#[derive(Clone, Copy, Default)]
struct SharingGroup {
    tiles: u64,
    /// Bytes that they hold for others.
    held: Bytes,
    /// Bytes that they receive.
    received: Bytes,
    /// The largest number of bytes that a tile needs and no other tile holds.
    lacking: Bytes,
    /// Bytes of the tiles so far.
    held_before: Bytes,
    delivered_before: Bytes,
}

impl SharingGroup {
    /// Returns true if the tiles hold all data that they need. Shares are rounded down.
    fn is_complete(&self) -> bool {
        self.received.is_zero() || (!self.held.is_zero() && self.lacking.0 < self.tiles)
    }

    /// Bytes that the next tile delivers, in proportion to the bytes that it holds. Those of all
    /// tiles add up to the bytes that they receive.
    fn next_delivery(&mut self, held: Bytes) -> Bytes {
        self.held_before += held;
        let until = self.received.share(self.held_before.0, self.held.0.max(1));
        let delivered = until - self.delivered_before;
        self.delivered_before = until;
        delivered
    }
}

/// The route of data that arrive on tiles from 0 on, if only these bytes are known. The model lets
/// tiles send as much as they receive.
pub(super) fn unknown_route(received: &[Bytes]) -> WorkRoute {
    let bytes = received.iter().map(|bytes| RouteBytes { delivered: *bytes, received: *bytes });
    let end = TileId(0) + u32::try_from(received.len()).unwrap_or(u32::MAX);
    let groups = TileGroups::one(TileRange::new(TileId(0), end));
    route(bytes.collect(), RoutePattern::Unknown(groups))
}

/// A route of all data with one pattern, with the bytes of tiles from 0 on.
pub(super) fn route(bytes: Vec<RouteBytes>, pattern: RoutePattern) -> WorkRoute {
    let mut tiles = TileRuns::empty();
    for (tile, bytes) in TileId(0).onwards().zip(bytes) {
        if bytes != RouteBytes::default() {
            tiles.push(TileRange::single(tile), bytes);
        }
    }
    WorkRoute { tiles, pattern }
}
