//! Writes senders and receivers of exchanges as rows.

use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_TILE_BYTES};
use crate::model::*;
use crate::row_writer::{RowWriter, checked_i64, resolve};
use crate::units::TileId;
use crate::writer::tile_patterns::TilePatternWriter;
use rusqlite::params;
use std::collections::BTreeSet;

/// Writes senders and receivers of all exchanges.
pub(super) fn write(
    rows: &RowWriter,
    compilation: &CompilationReport,
    patterns: &mut TilePatternWriter,
) -> Result<(), ReportError> {
    let mut rearranged = BTreeSet::new();
    for route in &compilation.routes {
        if route.pattern != RoutePattern::InOrder {
            rearranged.insert(route.program);
        }
    }
    let mut ordered = 0i64;
    for (id, route) in compilation.routes.iter().enumerate() {
        let program = resolve(route.program.0, compilation.programs.len(), || {
            format!("program of route {id}")
        })?;
        let describe = || format!("bytes of route {id}");
        let check_bytes = |tile: &RouteBytes| {
            Ok([
                checked_i64(tile.delivered, MAX_TILE_BYTES, describe)?,
                checked_i64(tile.received, MAX_TILE_BYTES, describe)?,
            ])
        };
        let place = patterns.place(&route.tiles, check_bytes, describe)?;
        let (groups, blocks) = route_columns(&route.pattern, place.base_tile.unwrap_or_default());
        let kind = route.pattern.name();
        rows.insert(
            "exchange_flows",
            params![id as i64, program, kind, place.base_tile, place.pattern, groups, blocks],
        )?;
        if let RoutePattern::Rearranged(Rearrangement { memory: Some(memory), .. }) = &route.pattern
        {
            let place = patterns.place(&memory.bytes, check_bytes, describe)?;
            let base = place.base_tile.unwrap_or_default();
            let order = memory.receivers.as_ref();
            let receivers =
                order.map(|order| ring_column(order.ring, order.digits.iter().copied(), base));
            rows.insert(
                "exchange_memory",
                params![id as i64, place.base_tile, place.pattern, receivers],
            )?;
        }
        // Versions before 2.11 know only exchanges that keep the order of all data.
        let ends = if rearranged.contains(&route.program) { None } else { route.ends() };
        if let Some([from, to]) = ends {
            let bytes = checked_i64(route.bytes().0, MAX_COUNT, describe)?;
            rows.insert(
                "exchange_routes",
                params![ordered, program, from.first, from.end, to.first, to.end, bytes],
            )?;
            ordered += 1;
        }
    }
    Ok(())
}

/// The columns `groups` and `blocks` of a route whose tiles count from `base`.
fn route_columns(pattern: &RoutePattern, base: TileId) -> (Option<String>, Option<String>) {
    match pattern {
        RoutePattern::InOrder => (None, None),
        RoutePattern::Rearranged(order) => {
            let mut blocks = vec![vec![order.unit.0]];
            for block in &order.blocks {
                let mut numbers = vec![block.sent_at, block.received_at];
                for dim in &block.dims {
                    numbers.extend([dim.count, dim.sent_step, dim.received_step]);
                }
                blocks.push(numbers);
            }
            (None, Some(json_of(&blocks)))
        }
        RoutePattern::Broadcast(groups)
        | RoutePattern::Gather(groups)
        | RoutePattern::Unknown(groups) => {
            let digits = groups.digits.iter().map(|digit| [digit.size, digit.parts]);
            (Some(ring_column(groups.ring, digits, base)), None)
        }
    }
}

/// A column with digits of the numbers in a ring of tiles that count from `base`.
fn ring_column(
    TileRing { first, tiles, descending }: TileRing,
    digits: impl Iterator<Item = [u32; 2]>,
    base: TileId,
) -> String {
    let mut numbers = vec![first - base, tiles.first - base, tiles.count(), u32::from(descending)];
    numbers.extend(digits.flatten());
    json_of(&numbers)
}

/// Numbers as JSON without spaces.
fn json_of(numbers: &impl serde::Serialize) -> String {
    // Lists of numbers are always valid JSON.
    serde_json::to_string(numbers).unwrap_or_default()
}
