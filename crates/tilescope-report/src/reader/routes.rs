//! Senders and receivers of exchanges.

use super::Report;
use super::tile_patterns::{ALL_IDS, TileRunSource};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_TILE_BYTES, MAX_TILES};
use crate::model::{
    ExchangeRoute, ExchangeTraffic, Rearrangement, RouteBlock, RouteBytes, RouteDim, RouteMemory,
    RoutePattern, TileDigit, TileGroups, TileOrder, TileRing,
};
use crate::units::{Bytes, ProgramId, Quantity, TileId, TileRange, TileRuns};
use std::collections::BTreeMap;

const EXCHANGE_FLOWS: TileRunSource<2> = TileRunSource {
    owners: "exchange_flows",
    id: "id",
    rows: "exchange_flows",
    rows_id: "id",
    values: [("delivered", MAX_TILE_BYTES.0), ("received", MAX_TILE_BYTES.0)],
};

const EXCHANGE_MEMORY: TileRunSource<2> = TileRunSource {
    owners: "exchange_memory",
    id: "flow",
    rows: "exchange_memory",
    rows_id: "flow",
    values: [("delivered", MAX_TILE_BYTES.0), ("received", MAX_TILE_BYTES.0)],
};

/// Dimensions of a block; a tensor has fewer.
const MAX_BLOCK_DIMS: usize = 32;

/// Digits of the number of a tile; a plan has fewer splits.
const MAX_TILE_DIGITS: usize = 32;

impl Report {
    /// Routes of exchanges, if they were recorded.
    pub fn routes(&self) -> Result<Vec<ExchangeRoute>, ReportError> {
        if !self.has_routes_by_tile() {
            return self.routes_of_ranges();
        }
        let mut tiles = self.tile_runs(&EXCHANGE_FLOWS, ALL_IDS, RouteBytes::from)?;
        let mut memories = self.route_memories()?;
        let replica = TileId(self.target()?.tiles_per_replica());
        let columns = ["id", "program", "kind", "base_tile", "groups", "blocks"];
        let select = SelectQuery::all("exchange_flows", &columns).clauses("ORDER BY id");
        let rows = self.db.list(select, |cells| {
            let id = cells.small(0)?;
            let program = ProgramId(cells.small(1)?);
            let base = TileId(cells.small_up_to(3, MAX_TILES).unwrap_or(0));
            let groups = cells.long_text(4).and_then(|text| groups_of(&text, base, replica));
            let pattern = match cells.text(2)?.as_str() {
                "in_order" => RoutePattern::InOrder,
                "rearranged" => RoutePattern::Rearranged(rearrangement_of(&cells.long_text(5)?)?),
                "broadcast" => RoutePattern::Broadcast(groups?),
                "gather" => RoutePattern::Gather(groups?),
                "unknown" => RoutePattern::Unknown(groups?),
                _ => return None,
            };
            Some((id, program, pattern))
        })?;
        let mut routes = Vec::new();
        for row in rows {
            let Some((id, program, mut pattern)) = row else {
                self.warnings.add("exchange_flows holds invalid values; they are left out");
                continue;
            };
            if let RoutePattern::Rearranged(order) = &mut pattern {
                order.memory = memories.remove(&id);
            }
            let tiles = tiles.remove(&id).unwrap_or_default();
            routes.push(ExchangeRoute { program, tiles, pattern });
        }
        Ok(routes)
    }

    /// Routes of each exchange that has some.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn routes_by_program(
        &self,
    ) -> Result<BTreeMap<ProgramId, Vec<ExchangeRoute>>, ReportError> {
        let mut routes: BTreeMap<ProgramId, Vec<ExchangeRoute>> = BTreeMap::new();
        for route in self.routes()? {
            routes.entry(route.program).or_default().push(route);
        }
        Ok(routes)
    }

    /// The memory along which blocks of routes count, by the id of the route.
    fn route_memories(&self) -> Result<BTreeMap<u32, RouteMemory>, ReportError> {
        if !self.db.has("exchange_memory", "pattern") {
            return Ok(BTreeMap::new());
        }
        let mut bytes = self.tile_runs(&EXCHANGE_MEMORY, ALL_IDS, RouteBytes::from)?;
        let replica = TileId(self.target()?.tiles_per_replica());
        let select = SelectQuery::all("exchange_memory", &["flow", "base_tile", "receivers"]);
        let rows = self.db.list(select, |cells| {
            let id = cells.small(0)?;
            let base = TileId(cells.small_up_to(1, MAX_TILES).unwrap_or(0));
            let receivers = match cells.long_text(2) {
                Some(text) => Some(order_of(&text, base, replica)?),
                None => None,
            };
            Some((id, receivers))
        })?;
        let mut memories = BTreeMap::new();
        for row in rows {
            let Some((id, receivers)) = row else {
                self.warnings.add("exchange_memory holds invalid values; they are left out");
                continue;
            };
            let bytes = bytes.remove(&id).unwrap_or_default();
            memories.insert(id, RouteMemory { bytes, receivers });
        }
        Ok(memories)
    }

    /// True if the bytes of each tile along a route are recorded, as since version 2.11.
    pub(super) fn has_routes_by_tile(&self) -> bool {
        self.db.has("exchange_flows", "pattern")
    }

    /// Routes before version 2.11: ranges of tiles that keep the order of their data, in proportion
    /// to the traffic of each tile.
    fn routes_of_ranges(&self) -> Result<Vec<ExchangeRoute>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        let columns =
            ["program", "first_sender", "end_sender", "first_receiver", "end_receiver", "bytes"];
        let rows = self.db.list(SelectQuery::all("exchange_routes", &columns), |cells| {
            let read_range = |first, end| {
                let first = TileId(cells.small(first)?);
                let end = TileId(cells.small(end)?);
                if first < end && end <= TileId(tiles) {
                    Some(TileRange::new(first, end))
                } else {
                    None
                }
            };
            let bytes = Bytes(cells.count(5, MAX_COUNT)?);
            Some((ProgramId(cells.small(0)?), read_range(1, 2)?, read_range(3, 4)?, bytes))
        })?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut traffic: BTreeMap<ProgramId, ExchangeTraffic> = BTreeMap::new();
        for exchange in self.exchanges()? {
            traffic.insert(exchange.program, exchange);
        }
        let mut routes = Vec::new();
        for row in rows {
            let Some((program, from, to, bytes)) = row else {
                self.warnings.add(
                    "exchange_routes names tiles that do not exist; they are left out".to_owned(),
                );
                continue;
            };
            let Some(exchange) = traffic.get(&program) else { continue };
            let delivered = exchange.tiles.map(|tile| tile.bytes_delivered);
            let received = exchange.tiles.map(|tile| tile.bytes_in);
            routes.push(ExchangeRoute::in_order(
                program,
                &scaled(&delivered, from, bytes),
                &scaled(&received, to, bytes),
            ));
        }
        Ok(routes)
    }
}

/// Divides `bytes` over the tiles of a range in proportion to their values.
fn scaled(values: &TileRuns<Bytes>, tiles: TileRange, bytes: Bytes) -> TileRuns<Bytes> {
    let mut all = Bytes::ZERO;
    for (range, value) in values.iter() {
        let count = u64::from(range.intersection(tiles).count());
        all = all.saturating_add(value.saturating_mul(count));
    }
    let mut before = Bytes::ZERO;
    let mut shares = TileRuns::empty();
    for (range, value) in values.iter().filter(|(_, value)| **value > Bytes::ZERO) {
        for tile in range.intersection(tiles).iter() {
            let start = bytes.share(before.min(all).0, all.0);
            before = before.saturating_add(*value);
            let end = bytes.share(before.min(all).0, all.0);
            shares.push(TileRange::single(tile), end - start);
        }
    }
    shares
}

/// Parses groups of tiles whose numbers count from `base`; none unless their tiles exist.
fn groups_of(text: &str, base: TileId, replica: TileId) -> Option<TileGroups> {
    let TileOrder { ring, digits } = order_of(text, base, replica)?;
    let mut parsed = Vec::new();
    for [size, parts] in digits {
        if parts == 0 || parts > size {
            return None;
        }
        parsed.push(TileDigit { size, parts });
    }
    Some(TileGroups { ring, digits: parsed })
}

/// Parses an order of tiles whose numbers count from `base`; none unless the tiles exist.
fn order_of(text: &str, base: TileId, replica: TileId) -> Option<TileOrder> {
    let numbers: Vec<u32> = serde_json::from_str(text).ok()?;
    let [first, ring_first, ring_count, descending, digits @ ..] = numbers.as_slice() else {
        return None;
    };
    let first = base.checked_add(*first)?;
    let start = base.checked_add(*ring_first)?;
    let end = start.checked_add(*ring_count)?;
    if !(start..end).contains(&first) || end > replica || digits.len() > 2 * MAX_TILE_DIGITS {
        return None;
    }
    let mut all = 1u32;
    let mut parsed = Vec::new();
    for digit in digits.chunks(2) {
        let &[size, second] = digit else { return None };
        all = all.checked_mul(size)?;
        if all > *ring_count {
            return None;
        }
        parsed.push([size, second]);
    }
    let tiles = TileRange::new(start, end);
    let ring = TileRing { first, tiles, descending: *descending == 1 };
    Some(TileOrder { ring, digits: parsed })
}

/// Parses the blocks of rearranged data.
fn rearrangement_of(text: &str) -> Option<Rearrangement> {
    let lists: Vec<Vec<u64>> = serde_json::from_str(text).ok()?;
    let (unit, lists) = lists.split_first()?;
    let &[unit] = unit.as_slice() else { return None };
    let mut blocks = Vec::new();
    for list in lists {
        let [sent_at, received_at, dims @ ..] = list.as_slice() else { return None };
        if dims.len() > 3 * MAX_BLOCK_DIMS {
            return None;
        }
        let mut block =
            RouteBlock { sent_at: *sent_at, received_at: *received_at, dims: Vec::new() };
        for dim in dims.chunks(3) {
            let &[count, sent_step, received_step] = dim else { return None };
            block.dims.push(RouteDim { count, sent_step, received_step });
        }
        let last = block.last()?;
        if last.iter().any(|last| last.checked_mul(unit).is_none_or(|at| at > MAX_COUNT)) {
            return None;
        }
        blocks.push(block);
    }
    if unit == 0 { None } else { Some(Rearrangement { unit: Bytes(unit), blocks, memory: None }) }
}
