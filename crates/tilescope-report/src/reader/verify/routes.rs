//! Routes of exchanges compared with the traffic of their tiles.

use super::{InvariantCheck, InvariantViolation, Report};
use crate::error::ReportError;
use crate::model::{ExchangeRoute, ExchangeTraffic, RouteBytes, RoutePattern, TileGroups};
use crate::units::{Bytes, TileId, TileRuns};
use std::collections::BTreeMap;

impl Report {
    /// Checks that the routes of an exchange carry all bytes of each of its tiles, and that all
    /// data that are sent along a route arrive.
    pub(super) fn verify_routes(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        // Earlier routes share the traffic of tiles in proportion.
        if !self.has_routes_by_tile() {
            return Ok(());
        }
        let mut law = InvariantCheck::new("routes_add_up", found);
        let routes = self.routes_by_program()?;
        for exchange in self.exchanges()? {
            let Some(routes) = routes.get(&exchange.program) else { continue };
            let id = exchange.program.0;
            let different = tile_with_other_bytes(&exchange, routes);
            law.check(different.is_none(), || {
                let tile = different.map_or(0, |tile| tile.0);
                format!("program {id}: routes of tile {tile} do not carry its traffic")
            });
            for route in routes {
                law.check(balances(route), || {
                    format!("program {id}: a route delivers other data than it receives")
                });
            }
        }
        Ok(())
    }
}

/// The first tile whose routes carry more or fewer bytes than it delivers and receives.
fn tile_with_other_bytes(exchange: &ExchangeTraffic, routes: &[ExchangeRoute]) -> Option<TileId> {
    let ends = routes.iter().filter_map(|route| route.tiles.end());
    let end = ends.chain(exchange.tiles.end()).max()?;
    let mut left = vec![RouteBytes::default(); end.index()];
    for (tiles, traffic) in exchange.tiles.iter() {
        let tile = RouteBytes { delivered: traffic.bytes_delivered, received: traffic.bytes_in };
        left.get_mut(tiles.indices())?.fill(tile);
    }
    for route in routes {
        for (tiles, bytes) in route.tiles.iter() {
            for (tile, left) in tiles.iter().zip(left.get_mut(tiles.indices())?) {
                let (Some(delivered), Some(received)) = (
                    left.delivered.checked_sub(bytes.delivered),
                    left.received.checked_sub(bytes.received),
                ) else {
                    return Some(tile);
                };
                *left = RouteBytes { delivered, received };
            }
        }
    }
    let unrouted = left.iter().position(|left| *left != RouteBytes::default())?;
    TileId(0).checked_add(u32::try_from(unrouted).ok()?)
}

/// Returns true if all data that senders deliver arrive, group by group.
fn balances(route: &ExchangeRoute) -> bool {
    match &route.pattern {
        RoutePattern::InOrder => route.delivered().total() == route.received().total(),
        RoutePattern::Rearranged(order) if order.memory.is_some() => {
            let sent = order.bytes_by_tile(&order.memory_of(&route.tiles));
            sent.is_some_and(|sent| sent == route.tiles)
        }
        RoutePattern::Rearranged(order) => {
            let all = route.received().total();
            let mut units = 0u64;
            for block in &order.blocks {
                units = units.saturating_add(block.units());
                let Some(last) = block.last() else { return false };
                let inside = |at: u64| order.unit.saturating_mul(at.saturating_add(1)) <= all;
                if !last.into_iter().all(inside) {
                    return false;
                }
            }
            order.unit.saturating_mul(units) == all && route.delivered().total() == all
        }
        RoutePattern::Broadcast(groups)
        | RoutePattern::Gather(groups)
        | RoutePattern::Unknown(groups) => groups_balance(&route.tiles, groups),
    }
}

fn groups_balance(tiles: &TileRuns<RouteBytes>, groups: &TileGroups) -> bool {
    let mut sums: BTreeMap<u64, [Bytes; 2]> = BTreeMap::new();
    for (range, bytes) in tiles.iter() {
        for tile in range.iter() {
            let Some(group) = groups.group_of(tile) else { return false };
            let [delivered, received] = sums.entry(group).or_default();
            *delivered = delivered.saturating_add(bytes.delivered);
            *received = received.saturating_add(bytes.received);
        }
    }
    sums.values().all(|[delivered, received]| delivered == received)
}
