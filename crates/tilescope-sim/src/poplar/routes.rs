//! Senders and receivers of the exchange of a work.

use std::hash::{Hash, Hasher};
use tilescope_report::units::{Bytes, TileId, TileRange, TileRuns};
use tilescope_report::{Rearrangement, RouteBytes, RoutePattern, TileGroups, TileTraffic};

/// Bytes of an exchange that follow one pattern, on the tiles of one IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkRoute {
    pub tiles: TileRuns<RouteBytes>,
    pub pattern: RoutePattern,
}

impl WorkRoute {
    /// The route of data in blocks that count along the memory of `order`. `None` if they extend
    /// beyond it.
    pub(crate) fn of_memory(order: Rearrangement) -> Option<Self> {
        let tiles = order.bytes_by_tile(&order.memory_of(&TileRuns::empty()))?;
        Some(Self { tiles, pattern: RoutePattern::Rearranged(order) })
    }

    /// The route of data whose senders and receivers are known only as ends, on tiles before `end`.
    pub(crate) fn of_unknown_order(tiles: TileRuns<RouteBytes>, end: TileId) -> Self {
        let groups = TileGroups::one(TileRange::new(TileId(0), end));
        Self { tiles, pattern: RoutePattern::Unknown(groups) }
    }
}

/// Bytes that arrive besides those of some routes.
pub(crate) fn unrouted(received: &TileRuns<Bytes>, routes: &[WorkRoute]) -> TileRuns<Bytes> {
    let routed = total_of(routes).map(|tile| tile.received);
    let rest = received.merged(&routed, Bytes::saturating_sub);
    rest.filtered(|bytes| !bytes.is_zero())
}

/// Routes of an exchange. Empty if only the traffic of each tile is known, otherwise they carry all
/// bytes that tiles receive. Costs follow from the traffic, in which senders deliver in proportion
/// to the bytes that they hold. Routes have the actual deliveries.
///
/// They describe an exchange but cost nothing, so works that differ only in them are equal and
/// share code: all values compare as equal and have the same hash.
#[derive(Clone, Debug, Default)]
pub struct WorkRoutes(Vec<WorkRoute>);

impl PartialEq for WorkRoutes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for WorkRoutes {}

impl Hash for WorkRoutes {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl WorkRoutes {
    /// Routes that carry all bytes that the tiles of `traffic` receive.
    pub(crate) fn new(traffic: &TileRuns<TileTraffic>, mut routes: Vec<WorkRoute>) -> Self {
        routes.retain(|route| !route.tiles.is_empty());
        debug_assert_eq!(
            total_of(&routes).map(|tile| tile.received).total(),
            traffic.map(|tile| tile.bytes_delivered).total(),
            "senders deliver all data"
        );
        debug_assert_eq!(
            total_of(&routes).map(|tile| tile.received).filtered(|bytes| !bytes.is_zero()),
            traffic.map(|tile| tile.bytes_in).filtered(|bytes| !bytes.is_zero()),
            "routes carry what every tile receives"
        );
        Self(routes)
    }

    /// The traffic with the deliveries of the routes.
    pub(crate) fn actual_traffic(&self, traffic: &TileRuns<TileTraffic>) -> TileRuns<TileTraffic> {
        if self.0.is_empty() {
            return traffic.clone();
        }
        traffic.merged(&total_of(&self.0), |costs, routed| TileTraffic {
            bytes_delivered: routed.delivered,
            ..costs
        })
    }

    /// Data that keep their order.
    pub(crate) fn in_order(traffic: &TileRuns<TileTraffic>) -> Self {
        Self::of_pattern(traffic, RoutePattern::InOrder)
    }

    /// One pattern for all of `traffic`.
    pub(crate) fn of_pattern(traffic: &TileRuns<TileTraffic>, pattern: RoutePattern) -> Self {
        Self(vec![WorkRoute { tiles: bytes_of(traffic), pattern }])
    }

    /// The routes, if they are known.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &WorkRoute> {
        self.0.iter()
    }

    /// Routes of two exchanges at once, with their traffic.
    pub(crate) fn joined(parts: [(Self, &TileRuns<TileTraffic>); 2]) -> Self {
        if parts.iter().all(|(routes, _)| routes.0.is_empty()) {
            return Self::default();
        }
        let mut joined = Vec::new();
        for (routes, traffic) in parts {
            match (routes.0.is_empty(), traffic.end()) {
                (true, Some(end)) => {
                    joined.push(WorkRoute::of_unknown_order(bytes_of(traffic), end));
                }
                _ => joined.extend(routes.0),
            }
        }
        Self(joined)
    }

    /// Changes the tiles and pattern of each route.
    pub(crate) fn change(&mut self, mut change: impl FnMut(&mut WorkRoute)) {
        self.0.iter_mut().for_each(&mut change);
    }
}

/// Bytes that each tile delivers and receives.
fn bytes_of(traffic: &TileRuns<TileTraffic>) -> TileRuns<RouteBytes> {
    let bytes =
        traffic.map(|tile| RouteBytes { delivered: tile.bytes_delivered, received: tile.bytes_in });
    bytes.filtered(|tile| *tile != RouteBytes::default())
}

fn total_of(routes: &[WorkRoute]) -> TileRuns<RouteBytes> {
    let none = TileRuns::empty();
    routes.iter().fold(none, |sum, route| {
        sum.merged(&route.tiles, |one: RouteBytes, other: RouteBytes| RouteBytes {
            delivered: one.delivered + other.delivered,
            received: one.received + other.received,
        })
    })
}
