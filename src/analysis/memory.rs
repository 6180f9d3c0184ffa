//! Memory tile by tile: curves over tiles, what fills a tile, which vertices, exchanges and
//! variables lie on it.

use crate::report::{
    Category, CategoryBytes, Placement, Region, Report, ReportError, Target, TileMemory,
    VariableFilter,
};
use crate::units::{TileRange, TileRuns, VariableId};

/// Most variables that are listed.
pub const MAX_VARIABLES: usize = 50_000;

/// How a tile's memory is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Breakdown {
    /// Not at all.
    #[default]
    None,
    /// By region of memory.
    Region,
    /// By what it is for.
    Category,
    /// By how long it is live.
    Liveness,
}

/// In which order tiles stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// As programs number them.
    #[default]
    Software,
    /// As they lie on the chip: column by column, every second one from the other end.
    Hardware,
}

/// What a curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// All of it.
    Total,
    /// One region.
    Region(Region),
    /// One category.
    Category(Category),
    /// Always-live bytes.
    AlwaysLive,
    /// Most other bytes live at once.
    NotAlwaysLive,
    /// Unused bytes below the last used address.
    Gaps,
}

impl Layer {
    /// Words for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Total => "Tile memory",
            Self::Region(region) => region_title(region),
            Self::Category(category) => category.title(),
            Self::AlwaysLive => "Always live",
            Self::NotAlwaysLive => "Not always live (peak)",
            Self::Gaps => "Gaps",
        }
    }
}

/// Words for a region.
pub fn region_title(region: Region) -> &'static str {
    match region {
        Region::NonInterleaved => "Non-interleaved",
        Region::Interleaved => "Interleaved",
        Region::Overflowed => "Overflowed",
    }
}

/// What the user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurveKey {
    /// How it is split.
    pub breakdown: Breakdown,
    /// Whether gaps count.
    pub include_gaps: bool,
    /// In which order tiles stand.
    pub order: Order,
    /// One value per IPU instead of one per tile: the sum of its tiles.
    pub per_ipu: bool,
}

/// One value per place on the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it shows.
    pub layer: Layer,
    /// Bytes, by place.
    pub bytes: Vec<u64>,
}

/// Curves that stand on each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// The curves, from the bottom to the top.
    pub layers: Vec<Curve>,
    /// Number of places: tiles or IPUs.
    pub places: usize,
    /// The tile at each place, where it is not the place itself.
    pub tiles: Option<Vec<u32>>,
    /// Bytes of the fullest place.
    pub max: u64,
    /// What a place has.
    pub capacity: u64,
}

impl Curves {
    /// The tile (or IPU) at a place.
    pub fn tile_at(&self, place: usize) -> u32 {
        let tile = self.tiles.as_ref().and_then(|tiles| tiles.get(place));
        tile.copied().unwrap_or(place as u32)
    }

    /// The place of a tile (or IPU).
    pub fn place_of(&self, tile: u32) -> Option<usize> {
        match &self.tiles {
            Some(tiles) => tiles.iter().position(|known| *known == tile),
            None => Some(tile as usize).filter(|place| *place < self.places),
        }
    }

    /// Bytes of all layers at a place.
    pub fn total(&self, place: usize) -> u64 {
        self.layers.iter().filter_map(|curve| curve.bytes.get(place)).sum()
    }
}

/// The curves of a report.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn curves(report: &Report, key: &CurveKey) -> Result<Curves, ReportError> {
    let target = report.target()?;
    let memory = report.tile_memory()?;
    let tiles = tile_count(&target, &memory);
    let mut layers = layers(report, key.breakdown, &memory, tiles)?;
    if key.include_gaps {
        add_gaps(&mut layers, &memory, key.breakdown, tiles);
    }
    layers
        .retain(|curve| curve.layer == Layer::Total || curve.bytes.iter().any(|bytes| *bytes > 0));
    let mut curves =
        Curves { layers, places: tiles, capacity: target.bytes_per_tile.0, ..Curves::default() };
    if key.per_ipu {
        sum_per_ipu(&mut curves, &target);
    } else if key.order == Order::Hardware {
        reorder(&mut curves, hardware_order(&target, tiles));
    }
    curves.max = (0..curves.places).map(|place| curves.total(place)).max().unwrap_or(0);
    Ok(curves)
}

fn tile_count(target: &Target, memory: &TileRuns<TileMemory>) -> usize {
    let recorded = memory.iter().map(|(range, _)| range.end).max().unwrap_or(0);
    target.tiles_per_replica().max(recorded) as usize
}

fn spread<T: Clone + PartialEq>(
    runs: &TileRuns<T>,
    tiles: usize,
    value: impl Fn(&T) -> u64,
) -> Vec<u64> {
    let mut bytes = vec![0; tiles];
    for (range, of) in runs.iter() {
        let (first, end) = (range.first as usize, (range.end as usize).min(tiles));
        if first < end {
            bytes[first..end].fill(value(of));
        }
    }
    bytes
}

fn layers(
    report: &Report,
    breakdown: Breakdown,
    memory: &TileRuns<TileMemory>,
    tiles: usize,
) -> Result<Vec<Curve>, ReportError> {
    let curve = |layer, value: &dyn Fn(&TileMemory) -> u64| Curve {
        layer,
        bytes: spread(memory, tiles, value),
    };
    Ok(match breakdown {
        Breakdown::None => vec![curve(Layer::Total, &TileMemory::excluding_gaps)],
        Breakdown::Region => Region::ALL
            .into_iter()
            .map(|region| curve(Layer::Region(region), &|tile| of_region(tile, region)))
            .collect(),
        Breakdown::Liveness => vec![
            curve(Layer::AlwaysLive, &|tile| tile.always_live),
            curve(Layer::NotAlwaysLive, &|tile| tile.peak_not_always_live),
        ],
        Breakdown::Category => {
            let parts = report.tile_categories()?;
            let of = |category: Category| {
                let sum = |parts: &Vec<CategoryBytes>| {
                    let own = parts.iter().filter(|part| part.category == category);
                    own.map(|part| part.bytes).sum()
                };
                Curve { layer: Layer::Category(category), bytes: spread(&parts, tiles, sum) }
            };
            Category::ALL.into_iter().map(of).collect()
        }
    })
}

fn of_region(tile: &TileMemory, region: Region) -> u64 {
    match region {
        Region::NonInterleaved => tile.non_interleaved,
        Region::Interleaved => tile.interleaved,
        Region::Overflowed => tile.overflowed,
    }
}

fn add_gaps(
    layers: &mut Vec<Curve>,
    memory: &TileRuns<TileMemory>,
    breakdown: Breakdown,
    tiles: usize,
) {
    let gaps =
        spread(memory, tiles, |tile| tile.including_gaps.saturating_sub(tile.excluding_gaps()));
    match (breakdown, layers.first_mut()) {
        (Breakdown::None, Some(total)) => {
            total.bytes.iter_mut().zip(gaps).for_each(|(bytes, gap)| *bytes += gap);
        }
        // Gaps have no lifetime.
        (Breakdown::Liveness, _) => {}
        _ => layers.push(Curve { layer: Layer::Gaps, bytes: gaps }),
    }
}

fn sum_per_ipu(curves: &mut Curves, target: &Target) {
    let tiles = (target.tiles_per_ipu as usize).max(1);
    for curve in &mut curves.layers {
        curve.bytes = curve.bytes.chunks(tiles).map(|ipu| ipu.iter().sum()).collect();
    }
    curves.places = curves.places.div_ceil(tiles);
    curves.capacity *= tiles as u64;
}

/// Tiles column by column; every second column runs the other way, as tiles are numbered along a
/// winding line through the chip.
fn hardware_order(target: &Target, tiles: usize) -> Vec<u32> {
    let column = target.tiles_per_column.max(1);
    let per_ipu = target.tiles_per_ipu.max(1);
    let place = |tile: u32| {
        let (ipu, tile) = (tile / per_ipu, tile % per_ipu);
        let (column_index, row) = (tile / column, tile % column);
        let row = if column_index % 2 == 0 { row } else { column - 1 - row };
        (ipu, column_index, row)
    };
    let mut order: Vec<u32> = (0..tiles as u32).collect();
    order.sort_by_key(|tile| place(*tile));
    order
}

fn reorder(curves: &mut Curves, order: Vec<u32>) {
    for curve in &mut curves.layers {
        let bytes = order.iter().map(|tile| curve.bytes.get(*tile as usize).copied());
        curve.bytes = bytes.map(Option::unwrap_or_default).collect();
    }
    curves.tiles = Some(order);
}

/// A run of places: for drawing, at most one per pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First place.
    pub first: usize,
    /// Place behind the last.
    pub end: usize,
    /// Least bytes.
    pub min: u64,
    /// Most bytes.
    pub max: u64,
}

/// The sums of the first `layers` layers over the places `from..to`, in at most `pieces` pieces.
pub fn pieces(curves: &Curves, layers: usize, from: usize, to: usize, pieces: usize) -> Vec<Piece> {
    let to = to.min(curves.places);
    let from = from.min(to);
    let step = (to - from).div_ceil(pieces.max(1)).max(1);
    let value = |place: usize| -> u64 {
        curves.layers[..layers.min(curves.layers.len())]
            .iter()
            .filter_map(|curve| curve.bytes.get(place))
            .sum()
    };
    let mut found = Vec::with_capacity((to - from).div_ceil(step));
    let mut first = from;
    while first < to {
        let end = (first + step).min(to);
        let (mut min, mut max) = (u64::MAX, 0);
        for place in first..end {
            let bytes = value(place);
            (min, max) = (min.min(bytes), max.max(bytes));
        }
        found.push(Piece { first, end, min, max });
        first = end;
    }
    found
}

/// A line of the tree of details: what it is, how deep it stands, and one value per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// Number of parents.
    pub depth: u32,
    /// What it is.
    pub name: String,
    /// Bytes, one per column.
    pub bytes: Vec<u64>,
}

/// What fills the tiles: one column for each of `tiles`, or one for all tiles.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn details(report: &Report, tiles: &[u32]) -> Result<Vec<TreeRow>, ReportError> {
    let memory = report.tile_memory()?;
    let categories = report.tile_categories()?;
    let columns: Vec<Option<u32>> = match tiles {
        [] => vec![None],
        tiles => tiles.iter().map(|tile| Some(*tile)).collect(),
    };
    let of_memory = |value: &dyn Fn(&TileMemory) -> u64| -> Vec<u64> {
        let total = |tile: &Option<u32>| match tile {
            Some(tile) => memory.get(*tile).map_or(0, value),
            None => memory.map(value).total(),
        };
        columns.iter().map(total).collect()
    };
    let of_parts = |holds: &dyn Fn(&CategoryBytes) -> bool| -> Vec<u64> {
        let sum = |parts: &Vec<CategoryBytes>| -> u64 {
            parts.iter().filter(|part| holds(part)).map(|part| part.bytes).sum()
        };
        let total = |tile: &Option<u32>| match tile {
            Some(tile) => categories.get(*tile).map_or(0, sum),
            None => categories.map(sum).total(),
        };
        columns.iter().map(total).collect()
    };
    let mut rows = Vec::new();
    let mut add = |depth, name: &str, bytes| {
        rows.push(TreeRow { depth, name: name.to_owned(), bytes });
    };
    add(0, "Memory including gaps", of_memory(&|tile| tile.including_gaps));
    add(0, "Memory excluding gaps", of_memory(&TileMemory::excluding_gaps));
    add(1, "By memory region", of_memory(&TileMemory::excluding_gaps));
    for region in Region::ALL {
        add(2, region_title(region), of_memory(&|tile| of_region(tile, region)));
    }
    if categories.is_empty() {
        return Ok(rows);
    }
    add(1, "By data type", of_parts(&|_| true));
    for (overlapped, title) in [(false, "Not overlapped"), (true, "Overlapped")] {
        add(2, title, of_parts(&|part| part.overlapped == overlapped));
        for category in Category::ALL {
            let own =
                |part: &CategoryBytes| part.overlapped == overlapped && part.category == category;
            let bytes = of_parts(&own);
            if bytes.iter().any(|bytes| *bytes > 0) {
                add(3, category.title(), bytes);
            }
        }
    }
    Ok(rows)
}

/// A name with one value per column, and a number beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is.
    pub name: String,
    /// More about it.
    pub about: String,
    /// How many, over all columns.
    pub count: u64,
    /// Bytes, one per column.
    pub bytes: Vec<u64>,
}

/// A list, and whether it is all there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The entries.
    pub rows: Vec<Listed>,
    /// Whether there are more than were read.
    pub cut: bool,
}

/// One value for each of `tiles`, or one for all tiles.
fn columns<T: Clone + PartialEq>(
    runs: &TileRuns<T>,
    tiles: &[u32],
    value: impl Fn(&T) -> u64,
) -> Vec<u64> {
    match tiles {
        [] => vec![runs.map(value).total()],
        tiles => tiles.iter().map(|tile| runs.get(*tile).map_or(0, &value)).collect(),
    }
}

/// Variables with their bytes, the parts on each tile.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn variables(report: &Report, tiles: &[u32]) -> Result<Listing, ReportError> {
    let mut listing = Listing::default();
    let mut seen: std::collections::BTreeSet<VariableId> = std::collections::BTreeSet::new();
    let ranges: Vec<Option<TileRange>> = match tiles {
        [] => vec![None],
        tiles => tiles.iter().map(|tile| Some(TileRange::new(*tile, tile + 1))).collect(),
    };
    for range in ranges {
        let limit = MAX_VARIABLES.saturating_sub(listing.rows.len());
        let filter = VariableFilter { tiles: range, category: None, after: None, limit };
        let found = report.variables(&filter)?;
        listing.cut |= found.len() >= limit;
        for (id, variable) in found {
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
            listing.rows.push(Listed {
                name: variable.name,
                about: format!("{shape}, {live}"),
                count: variable.tiles.tile_count(),
                bytes: columns(&variable.tiles, tiles, |part: &Placement| part.bytes),
            });
        }
    }
    Ok(listing)
}

/// Vertex types with their number and the bytes of their state and code.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn vertices(report: &Report, tiles: &[u32]) -> Result<Listing, ReportError> {
    let types = report.vertex_types()?;
    let width = tiles.len().max(1);
    let mut found: Vec<(u64, Vec<u64>)> = vec![(0, vec![0; width]); types.len()];
    let mut present: Vec<std::collections::BTreeMap<u32, u32>> =
        vec![Default::default(); types.len()];
    for (_, set) in report.compute_sets()? {
        for group in &set.vertices {
            let Some(kind) = types.get(group.vertex_type.index()) else { continue };
            let (count, bytes) = &mut found[group.vertex_type.index()];
            let counts = columns(&group.count, tiles, |count| *count);
            *count += counts.iter().sum::<u64>();
            for (sum, count) in bytes.iter_mut().zip(&counts) {
                *sum += count * kind.state_bytes;
            }
            for (range, _) in group.count.iter() {
                let end = present[group.vertex_type.index()].entry(range.first).or_insert(0);
                *end = (*end).max(range.end);
            }
        }
    }
    let mut listing = Listing::default();
    for ((kind, (count, mut bytes)), present) in types.iter().zip(found).zip(present) {
        add_code(&mut bytes, kind.code_bytes, &present, tiles);
        if count > 0 {
            let about =
                format!("state {} B each, code {} B per tile", kind.state_bytes, kind.code_bytes);
            listing.rows.push(Listed { name: kind.name.clone(), about, count, bytes });
        }
    }
    Ok(listing)
}

/// Adds a codelet's code once for every tile that has a vertex of the type.
fn add_code(
    bytes: &mut [u64],
    code: u64,
    present: &std::collections::BTreeMap<u32, u32>,
    tiles: &[u32],
) {
    let (mut covered, mut count) = (0u32, 0u64);
    for (first, end) in present {
        let start = (*first).max(covered);
        count += u64::from(end.saturating_sub(start));
        covered = covered.max(*end);
    }
    let holds = |tile: u32| present.iter().any(|(first, end)| (*first..*end).contains(&tile));
    match tiles {
        [] => bytes[0] += count * code,
        tiles => {
            for (sum, tile) in bytes.iter_mut().zip(tiles) {
                *sum += if holds(*tile) { code } else { 0 };
            }
        }
    }
}

/// Exchanges and copies with the bytes of their code.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn exchanges(report: &Report, tiles: &[u32]) -> Result<Listing, ReportError> {
    let programs = report.programs()?;
    let mut listing = Listing::default();
    for exchange in report.exchanges()? {
        let bytes = columns(&exchange.tiles, tiles, |traffic| traffic.code_bytes);
        let moved: u64 = columns(&exchange.tiles, tiles, |traffic| traffic.bytes_in).iter().sum();
        let touched: u64 =
            columns(&exchange.tiles, tiles, |traffic| traffic.messages_in).iter().sum();
        if bytes.iter().all(|bytes| *bytes == 0) && moved == 0 {
            continue;
        }
        let program = programs.get(exchange.program);
        let name = program.map_or_else(|| "unknown".to_owned(), |program| program.name.clone());
        let kind = program.map_or("", |program| program.kind.name());
        let about = format!("{kind}, receives {}", crate::units::Bytes(moved));
        listing.rows.push(Listed { name, about, count: touched, bytes });
    }
    Ok(listing)
}

/// Reads `1, 3-5`: tile numbers and ranges, below `tiles`.
///
/// # Errors
/// What cannot be meant, in words.
pub fn parse_tiles(text: &str, tiles: u32) -> Result<Vec<u32>, String> {
    const MOST: usize = 64;
    let mut found: Vec<u32> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let number = |text: &str| {
            let tile: u32 = text
                .trim()
                .parse()
                .map_err(|_| format!("{:?} is not a tile number", text.trim()))?;
            if tile < tiles { Ok(tile) } else { Err(format!("there is no tile {tile}")) }
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("{part:?} runs backwards"));
        }
        for tile in first..=last {
            if found.len() >= MOST {
                return Err(format!("at most {MOST} tiles can be shown beside each other"));
            }
            if !found.contains(&tile) {
                found.push(tile);
            }
        }
    }
    Ok(found)
}

/// Writes tiles as [`parse_tiles`] reads them.
pub fn tiles_text(tiles: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for tile in tiles {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *tile => *last = *tile,
            _ => parts.push((*tile, *tile)),
        }
    }
    let words: Vec<String> = parts
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        })
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_numbers_and_ranges() {
        assert_eq!(parse_tiles("1 or", 9), Err("\"1 or\" is not a tile number".to_owned()));
        assert_eq!(parse_tiles("0,3-5, 4", 9), Ok(vec![0, 3, 4, 5]));
        assert_eq!(parse_tiles("", 9), Ok(vec![]));
        assert_eq!(parse_tiles(" , ", 9), Ok(vec![]));
        for wrong in ["9", "5-3", "-1", "a", "0-99999999", "1-"] {
            assert!(parse_tiles(wrong, 9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tiles_are_written_as_they_are_read() {
        for tiles in [vec![], vec![7], vec![0, 3, 4, 5], vec![5, 4, 3]] {
            assert_eq!(parse_tiles(&tiles_text(&tiles), 9), Ok(tiles));
        }
    }

    #[test]
    fn a_curve_keeps_its_extremes_in_few_pieces() {
        let bytes: Vec<u64> = (0..1000).map(|tile| if tile == 437 { 99 } else { 5 }).collect();
        let layers = vec![Curve { layer: Layer::Total, bytes }];
        let curves = Curves { layers, places: 1000, ..Curves::default() };
        let found = pieces(&curves, 1, 0, 1000, 64);
        assert!(found.len() <= 64);
        assert_eq!(found.iter().map(|piece| piece.max).max(), Some(99));
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].first));
        assert_eq!((found[0].first, found[found.len() - 1].end), (0, 1000));
    }

    #[test]
    fn every_tile_has_one_place_on_the_chip() {
        let mut order = hardware_order(&test_target(), 128);
        assert_eq!(&order[..3], [0, 1, 2]);
        assert_eq!(&order[16..18], [31, 30]);
        order.sort_unstable();
        assert_eq!(order, (0..128).collect::<Vec<u32>>());
    }

    fn test_target() -> Target {
        use crate::report::TargetKind;
        use crate::units::{Bytes, Hertz};
        Target {
            kind: TargetKind::Ipu,
            name: "test".to_owned(),
            architecture: "Test".to_owned(),
            num_ipus: 2,
            tiles_per_ipu: 64,
            io_tiles_per_ipu: 0,
            bytes_per_tile: Bytes(1024),
            clock: Hertz(1),
            replicas: 1,
            ipus_per_replica: 2,
            memory_element_bytes: Bytes(16),
            interleaved_offset: Bytes(512),
            tiles_per_column: 16,
        }
    }

    #[test]
    fn code_counts_once_for_every_tile_that_needs_it() {
        let present = [(0, 4), (2, 6), (9, 10)].into_iter().collect();
        let mut bytes = [0];
        add_code(&mut bytes, 10, &present, &[]);
        assert_eq!(bytes, [70]);
        let mut bytes = [1, 1];
        add_code(&mut bytes, 10, &present, &[5, 7]);
        assert_eq!(bytes, [11, 1]);
    }
}
