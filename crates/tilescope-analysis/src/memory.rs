//! Memory tile by tile: curves over tiles, the contents of a tile, and its vertices, exchanges and
//! variables.

use super::tile_curves::{
    ChipFloorPlan, TileAxisOrder, TileCurve, TileCurveLayer, TileCurveStack, TileCurveUnit,
    region_title, spread,
};
use crate::report_variables::first_variables;
use serde::{Deserialize, Serialize};
use tilescope_report::units::{
    Bytes, NumberFormat, Quantity, TileId, TileRange, TileRuns, VariableId, grouped,
};
use tilescope_report::{
    CategoryBytes, MemoryCategory, MemoryRegion, Report, ReportError, ReportPart, Target,
    TileMemory, VariablePlacement, code_owners,
};

/// The largest number of variables in a list.
pub const MAX_VARIABLES: usize = 50_000;

/// The breakdown of a tile's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryBreakdown {
    #[default]
    None,
    /// By region of memory.
    Region,
    /// By memory category.
    Category,
    /// By lifetime: always live, or not.
    Liveness,
}

/// The query key of memory curves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryCurveKey {
    pub breakdown: MemoryBreakdown,
    pub include_gaps: bool,
    /// The order of tiles.
    pub order: TileAxisOrder,
    /// One value per IPU instead of one per tile: the sum of its tiles.
    pub per_ipu: bool,
}

/// The curves of a report.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn curves(report: &Report, key: &MemoryCurveKey) -> Result<TileCurveStack, ReportError> {
    let target = report.target()?;
    let memory = report.tile_memory()?;
    let tiles = tile_count(&target, &memory);
    let mut layers = layers(report, key.breakdown, &memory, tiles)?;
    if key.include_gaps {
        add_gaps(&mut layers, &memory, key.breakdown, tiles);
    }
    layers.retain(|curve| {
        curve.layer == TileCurveLayer::Total || curve.values.iter().any(|bytes| *bytes > 0)
    });
    let curves = TileCurveStack {
        capacity: target.bytes_per_tile.0,
        ..TileCurveStack::stacked(layers, TileCurveUnit::Bytes)
    };
    Ok(curves.arranged(&target, key.order, key.per_ipu))
}

/// The memory need of a tile: the bytes below its highest used address, including gaps. These bytes
/// must fit, so *fullest* always refers to them.
pub fn needed(tile: &TileMemory) -> Bytes {
    tile.including_gaps
}

/// The fullest tile of a report; the first tile if memory was not recorded.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn fullest_tile(report: &Report) -> Result<TileId, ReportError> {
    let fullest = fullest_tiles(&*report.tile_memory()?, 1);
    Ok(fullest.first().map_or(TileId(0), |(tile, _)| *tile))
}

/// The tiles with the largest need, the fullest first; ties keep the order of tiles.
pub fn fullest_tiles(memory: &TileRuns<TileMemory>, count: usize) -> Vec<(TileId, Bytes)> {
    let mut tiles: Vec<(TileId, Bytes)> = Vec::new();
    for (range, tile) in memory.iter() {
        let bytes = needed(tile);
        // One run of equal tiles contributes at most `count` tiles.
        tiles.extend(range.iter().take(count).map(|tile| (tile, bytes)));
    }
    let fullest_first = |(tile, bytes): &(TileId, Bytes)| (Bytes::MAX - *bytes, *tile);
    if count < tiles.len() {
        tiles.select_nth_unstable_by_key(count, fullest_first);
        tiles.truncate(count);
    }
    tiles.sort_by_key(fullest_first);
    tiles
}

fn tile_count(target: &Target, memory: &TileRuns<TileMemory>) -> usize {
    let recorded = memory.iter().map(|(range, _)| range.end).max().unwrap_or_default();
    recorded.index().max(target.tiles_per_replica() as usize)
}

fn layers(
    report: &Report,
    breakdown: MemoryBreakdown,
    memory: &TileRuns<TileMemory>,
    tiles: usize,
) -> Result<Vec<TileCurve>, ReportError> {
    let mut layers = Vec::new();
    match breakdown {
        MemoryBreakdown::None => {
            let values = spread(memory, tiles, TileMemory::excluding_gaps);
            layers.push(TileCurve { layer: TileCurveLayer::Total, values });
        }
        MemoryBreakdown::Region => {
            for region in MemoryRegion::ALL {
                let values = spread(memory, tiles, |tile| of_region(tile, region));
                layers.push(TileCurve { layer: TileCurveLayer::Region(region), values });
            }
        }
        MemoryBreakdown::Liveness => {
            let values = spread(memory, tiles, |tile| tile.always_live);
            layers.push(TileCurve { layer: TileCurveLayer::AlwaysLive, values });
            let values = spread(memory, tiles, |tile| tile.peak_not_always_live);
            layers.push(TileCurve { layer: TileCurveLayer::NotAlwaysLive, values });
        }
        MemoryBreakdown::Category => {
            let parts = report.tile_categories()?;
            for category in MemoryCategory::ALL {
                let values = spread(&parts, tiles, |parts| {
                    bytes_of_parts(parts, |part| part.category == category)
                });
                layers.push(TileCurve { layer: TileCurveLayer::Category(category), values });
            }
        }
    }
    Ok(layers)
}

fn bytes_of_parts(parts: &[CategoryBytes], holds: impl Fn(&CategoryBytes) -> bool) -> Bytes {
    parts.iter().filter(|part| holds(part)).map(|part| part.bytes).sum()
}

fn of_region(tile: &TileMemory, region: MemoryRegion) -> Bytes {
    match region {
        MemoryRegion::NonInterleaved => tile.non_interleaved,
        MemoryRegion::Interleaved => tile.interleaved,
        MemoryRegion::Overflowed => tile.overflowed,
    }
}

fn add_gaps(
    layers: &mut Vec<TileCurve>,
    memory: &TileRuns<TileMemory>,
    breakdown: MemoryBreakdown,
    tiles: usize,
) {
    let gaps = spread(memory, tiles, |tile| needed(tile).saturating_sub(tile.excluding_gaps()).0);
    match (breakdown, layers.first_mut()) {
        (MemoryBreakdown::None, Some(total)) => {
            total.values.iter_mut().zip(gaps).for_each(|(bytes, gap)| *bytes += gap);
        }
        // Gaps have no lifetime.
        (MemoryBreakdown::Liveness, _) => {}
        _ => layers.push(TileCurve { layer: TileCurveLayer::Gaps, values: gaps }),
    }
}

/// A line of the tree of details: its name and depth, and one value per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTreeRow {
    /// Number of parents.
    pub depth: u32,
    pub name: String,
    /// Bytes, one per column; in the row of positions on the chip, these positions.
    pub bytes: Vec<u64>,
    /// The unit of the values: bytes, except in the row of positions on the chip.
    pub unit: TileCurveUnit,
    /// Their formula; empty if it is obvious.
    pub formula: &'static str,
}

const PHYSICAL: &str =
    "position of the tile on its chip, column by column of the floor plan, from 0";
const INCLUDING: &str = "bytes below the highest used address of each tile";
const EXCLUDING: &str = "bytes at addresses used at any time";
const NOT_OVERLAPPED: &str = "bytes at addresses used by one variable or kind of code only";
const OVERLAPPED: &str =
    "bytes at addresses that several variables share over time, counted once for each";

/// The contents of tiles: one column for each of `tiles`, with its position on the chip, or one for
/// all tiles.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn details(report: &Report, tiles: &[TileId]) -> Result<Vec<MemoryTreeRow>, ReportError> {
    let memory = report.tile_memory()?;
    let categories = report.tile_categories()?;
    let sum_memory = |value: &dyn Fn(&TileMemory) -> Bytes| columns(&memory, tiles, value);
    let sum_parts = |holds: &dyn Fn(&CategoryBytes) -> bool| {
        columns(&categories, tiles, |parts| bytes_of_parts(parts, holds))
    };
    let mut rows = Vec::new();
    let plan = ChipFloorPlan::from_target(&*report.target()?);
    if !tiles.is_empty() && plan.known {
        let bytes = tiles.iter().map(|tile| plan.physical(*tile).into()).collect();
        let name = "Physical tile id".to_owned();
        rows.push(MemoryTreeRow {
            depth: 0,
            name,
            bytes,
            unit: TileCurveUnit::Count,
            formula: PHYSICAL,
        });
    }
    let mut add = |depth, name: &str, bytes: Vec<Bytes>, formula| {
        rows.push(MemoryTreeRow {
            depth,
            name: name.to_owned(),
            bytes: bytes.into_iter().map(|bytes| bytes.0).collect(),
            unit: TileCurveUnit::Bytes,
            formula,
        });
    };
    // Without regions the location of bytes within a tile is not known.
    let regions = report.has(ReportPart::Regions);
    if regions {
        add(0, "Memory including gaps", sum_memory(&needed), INCLUDING);
    }
    add(0, "Memory excluding gaps", sum_memory(&TileMemory::excluding_gaps), EXCLUDING);
    if regions {
        add(1, "By memory region", sum_memory(&TileMemory::excluding_gaps), "sum of the regions");
        for region in MemoryRegion::ALL {
            add(2, region_title(region), sum_memory(&|tile| of_region(tile, region)), "");
        }
    }
    if categories.is_empty() {
        return Ok(rows);
    }
    add(1, "By data type", sum_parts(&|_| true), "not overlapped + overlapped");
    let halves = [(false, "Not overlapped", NOT_OVERLAPPED), (true, "Overlapped", OVERLAPPED)];
    for (overlapped, title, formula) in halves {
        add(2, title, sum_parts(&|part| part.overlapped == overlapped), formula);
        for category in MemoryCategory::ALL {
            let bytes =
                sum_parts(&|part| part.overlapped == overlapped && part.category == category);
            if bytes.iter().any(|bytes| !bytes.is_zero()) {
                add(3, category.title(), bytes, "");
            }
        }
    }
    Ok(rows)
}

/// A name with one value per column, and a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryListRow {
    pub name: String,
    pub about: String,
    /// The count, over all columns.
    pub count: u64,
    /// Bytes, one per column.
    pub bytes: Vec<Bytes>,
}

/// A list, and whether it is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryList {
    pub rows: Vec<MemoryListRow>,
    /// The variable of each entry, if entries are variables.
    pub variables: Vec<VariableId>,
    /// True if there are more entries than were read.
    pub truncated: bool,
}

/// One value for each of `tiles`, or one for all tiles.
fn columns<T: Clone + PartialEq, Q: Quantity>(
    runs: &TileRuns<T>,
    tiles: &[TileId],
    value: impl Fn(&T) -> Q,
) -> Vec<Q> {
    match tiles {
        [] => vec![runs.map(value).total()],
        tiles => tiles.iter().map(|tile| runs.get(*tile).map_or(Q::ZERO, &value)).collect(),
    }
}

/// Variables with their bytes, the parts on each tile.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn variables(report: &Report, tiles: &[TileId]) -> Result<MemoryList, ReportError> {
    let mut listing = MemoryList::default();
    let mut seen: std::collections::BTreeSet<VariableId> = std::collections::BTreeSet::new();
    let ranges: Vec<Option<TileRange>> = match tiles {
        [] => vec![None],
        tiles => tiles.iter().map(|tile| Some(TileRange::single(*tile))).collect(),
    };
    for range in ranges {
        let most = MAX_VARIABLES.saturating_sub(listing.rows.len());
        let first = first_variables(report, range, most)?;
        listing.truncated |= first.more;
        for (id, variable) in first.found {
            if !seen.insert(id) {
                continue;
            }
            let live = match &variable.lifetime {
                None => "always live".to_owned(),
                Some(steps) => format!("live in steps {} - {}", steps.start, steps.end),
            };
            let shape = match variable.shape.as_str() {
                "" => variable.category.title().to_owned(),
                shape => format!("{}, {shape}", variable.category.title()),
            };
            listing.variables.push(id);
            listing.rows.push(MemoryListRow {
                name: variable.name,
                about: format!("{shape}, {live}"),
                count: variable.tiles.tile_count().into(),
                bytes: columns(&variable.tiles, tiles, |part: &VariablePlacement| part.bytes),
            });
        }
    }
    Ok(listing)
}

/// Vertex types with their counts and the bytes of their state and code.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn vertices(report: &Report, tiles: &[TileId]) -> Result<MemoryList, ReportError> {
    let types = report.vertex_types()?;
    let owners = code_owners(&types);
    let width = tiles.len().max(1);
    let mut found: Vec<(u64, Vec<Bytes>)> = vec![(0, vec![Bytes::ZERO; width]); types.len()];
    let mut present: Vec<std::collections::BTreeMap<TileId, TileId>> =
        vec![Default::default(); types.len()];
    for (_, set) in report.compute_sets()? {
        for group in &set.vertices {
            let Some(kind) = types.get(group.vertex_type.index()) else { continue };
            let (count, bytes) = &mut found[group.vertex_type.index()];
            let counts = columns(&group.count, tiles, |count| *count);
            *count += counts.iter().sum::<u64>();
            for (sum, count) in bytes.iter_mut().zip(&counts) {
                *sum += *count * kind.state_bytes;
            }
            let owner = owners[group.vertex_type.index()];
            for (range, _) in group.count.iter() {
                let end = present[owner.index()].entry(range.first).or_insert(range.end);
                *end = (*end).max(range.end);
            }
        }
    }
    let mut listing = MemoryList::default();
    for ((kind, (count, mut bytes)), present) in types.iter().zip(found).zip(present) {
        add_code(&mut bytes, kind.code_bytes, &present, tiles);
        // Shared code is listed with the first type that has it, even if the tiles use another.
        if count > 0 || bytes.iter().any(|bytes| !bytes.is_zero()) {
            let about = format!(
                "state {} B each, code {} B per tile",
                kind.state_bytes.0, kind.code_bytes.0
            );
            listing.rows.push(MemoryListRow { name: kind.name.clone(), about, count, bytes });
        }
    }
    Ok(listing)
}

/// Adds a codelet's code once for every tile that has a vertex of the type.
fn add_code(
    bytes: &mut [Bytes],
    code: Bytes,
    present: &std::collections::BTreeMap<TileId, TileId>,
    tiles: &[TileId],
) {
    if tiles.is_empty() {
        let mut covered = TileId(0);
        let mut count = 0u64;
        for (first, end) in present {
            let first = covered.max(*first);
            let end = covered.max(*end);
            count += u64::from(end - first);
            covered = end;
        }
        bytes[0] += count * code;
        return;
    }
    for (sum, tile) in bytes.iter_mut().zip(tiles) {
        if present.iter().any(|(first, end)| (*first..*end).contains(tile)) {
            *sum += code;
        }
    }
}

/// Compute sets with their vertices and the bytes of their state; those without vertices on `tiles`
/// are left out.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn compute_sets(report: &Report, tiles: &[TileId]) -> Result<MemoryList, ReportError> {
    let types = report.vertex_types()?;
    let mut listing = MemoryList::default();
    for (_, set) in report.compute_sets()? {
        let mut row = MemoryListRow {
            about: format!("at most {} cycles", grouped(set.cycles.max().0)),
            name: set.name,
            count: 0,
            bytes: vec![Bytes::ZERO; tiles.len().max(1)],
        };
        for group in &set.vertices {
            let state =
                types.get(group.vertex_type.index()).map_or(Bytes::ZERO, |kind| kind.state_bytes);
            let counts = columns(&group.count, tiles, |count| *count);
            row.count += counts.iter().sum::<u64>();
            for (sum, count) in row.bytes.iter_mut().zip(&counts) {
                *sum += *count * state;
            }
        }
        if row.count > 0 {
            listing.rows.push(row);
        }
    }
    Ok(listing)
}

/// Compute sets with vertices of a type, with their counts and the bytes of their state; those
/// without such vertices on `tiles` are left out.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn users_of(
    report: &Report,
    vertex_type: &str,
    tiles: &[TileId],
) -> Result<MemoryList, ReportError> {
    let types = report.vertex_types()?;
    let mut listing = MemoryList::default();
    for (_, set) in report.compute_sets()? {
        let about = format!("at most {} cycles", grouped(set.cycles.max().0));
        let mut row = MemoryListRow { about, name: set.name, count: 0, bytes: vec![Bytes::ZERO] };
        for group in &set.vertices {
            let kind = types.get(group.vertex_type.index());
            let Some(kind) = kind.filter(|kind| kind.name == vertex_type) else { continue };
            let count: u64 = columns(&group.count, tiles, |count| *count).iter().sum();
            row.count += count;
            row.bytes[0] += count * kind.state_bytes;
        }
        if row.count > 0 {
            listing.rows.push(row);
        }
    }
    Ok(listing)
}

/// Exchanges and copies with the bytes of their code; `numbers` formats their received bytes.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn exchanges(
    report: &Report,
    tiles: &[TileId],
    numbers: NumberFormat,
) -> Result<MemoryList, ReportError> {
    let programs = report.programs()?;
    let mut listing = MemoryList::default();
    for exchange in report.exchanges()? {
        let bytes = columns(&exchange.tiles, tiles, |traffic| traffic.code_bytes);
        let moved: Bytes = columns(&exchange.tiles, tiles, |traffic| traffic.bytes_in).iter().sum();
        let touched: u64 =
            columns(&exchange.tiles, tiles, |traffic| traffic.messages_in).iter().sum();
        if bytes.iter().all(|bytes| bytes.is_zero()) && moved.is_zero() {
            continue;
        }
        let program = programs.get(exchange.program);
        let name = program.map_or_else(|| "unknown".to_owned(), |program| program.name.clone());
        let kind = program.map_or("", |program| program.kind.name());
        let about = format!("{kind}, receives {}", numbers.bytes(moved.0));
        listing.rows.push(MemoryListRow { name, about, count: touched, bytes });
    }
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_sets_have_all_the_state_of_their_vertices() {
        use tilescope_fixtures::ReportBuilder;
        use tilescope_report::units::VertexTypeId;
        use tilescope_report::{VertexGroup, VertexTypeInfo};
        let mut builder = ReportBuilder::new(1, 8);
        builder.compute("a", 10);
        builder.compute("nothing", 10);
        let kind = VertexTypeInfo {
            name: "v".to_owned(),
            code_bytes: Bytes(40),
            shares_code: false,
            state_bytes: Bytes(12),
        };
        builder.parts.vertex_types.push(kind);
        let count = TileRuns::uniform(TileRange::new(TileId(2), TileId(6)), 3);
        let group = VertexGroup { vertex_type: VertexTypeId(0), count, edges: 1, flops: None };
        builder.parts.compute_sets[0].vertices.push(group);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let all = compute_sets(&report, &[]).unwrap();
        assert_eq!(
            (all.rows.len(), all.rows[0].count, &all.rows[0].bytes[..]),
            (1, 12, &[Bytes(144)][..])
        );
        let some = compute_sets(&report, &[TileId(0), TileId(3)]).unwrap();
        assert_eq!(some.rows[0].bytes, [Bytes::ZERO, Bytes(36)]);
        // With only one type of vertices, all of them use it.
        let users = users_of(&report, "v", &[]).unwrap();
        assert_eq!((users.rows.len(), &users.rows[0]), (1, &all.rows[0]));
        assert_eq!(
            users_of(&report, "v", &[TileId(0), TileId(3)]).unwrap().rows[0].bytes,
            [Bytes(36)]
        );
        assert!(users_of(&report, "w", &[]).unwrap().rows.is_empty());
    }

    #[test]
    fn code_counts_once_for_every_tile_that_needs_it() {
        let present = [(0, 4), (2, 6), (9, 10)].into_iter();
        let present = present.map(|(first, end)| (TileId(first), TileId(end))).collect();
        let mut bytes = [Bytes::ZERO];
        add_code(&mut bytes, Bytes(10), &present, &[]);
        assert_eq!(bytes, [Bytes(70)]);
        let mut bytes = [Bytes(1), Bytes(1)];
        add_code(&mut bytes, Bytes(10), &present, &[TileId(5), TileId(7)]);
        assert_eq!(bytes, [Bytes(11), Bytes(1)]);
    }
}
