//! Values by tile: stacked curves, orders of tiles, and text forms of tile numbers.

use serde::{Deserialize, Serialize};
use tilescope_report::units::{
    NumberFormat, Quantity, TileId, TileRange, TileRuns, exact_bytes, grouped,
};
use tilescope_report::{MemoryCategory, MemoryRegion, Target};

/// The order of tiles on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TileAxisOrder {
    /// The numbering of programs.
    #[default]
    Software,
    /// Position on the chip: column by column, with every second column reversed.
    Hardware,
}

/// The subject of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TileCurveLayer {
    Total,
    Region(MemoryRegion),
    Category(MemoryCategory),
    /// Always-live bytes.
    AlwaysLive,
    /// The largest number of other bytes that are live at once.
    NotAlwaysLive,
    /// Unused bytes below the last used address.
    Gaps,
    /// Bytes received in exchanges and copies.
    Received,
    /// Bytes sent in exchanges and copies.
    Sent,
    MessagesIn,
    MessagesOut,
    Vertices,
    Cycles,
    /// One of several layers side by side, by index.
    Nth(u8),
}

impl TileCurveLayer {
    /// The name in the user interface.
    pub fn title(self) -> &'static str {
        match self {
            Self::Total => "Tile memory",
            Self::Region(region) => region_title(region),
            Self::Category(category) => category.title(),
            Self::AlwaysLive => "Always live",
            Self::NotAlwaysLive => "Not always live (peak)",
            Self::Gaps => "Gaps",
            Self::Received => "Received",
            Self::Sent => "Sent",
            Self::MessagesIn => "Messages received",
            Self::MessagesOut => "Messages sent",
            Self::Vertices => "Vertices",
            Self::Cycles => "Cycles",
            Self::Nth(_) => "One of several",
        }
    }
}

/// Title of a region.
pub(crate) fn region_title(region: MemoryRegion) -> &'static str {
    match region {
        MemoryRegion::NonInterleaved => "Non-interleaved",
        MemoryRegion::Interleaved => "Interleaved",
        MemoryRegion::Overflowed => "Overflowed",
    }
}

/// The unit of a curve's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TileCurveUnit {
    #[default]
    Bytes,
    Count,
    Cycles,
}

impl TileCurveUnit {
    /// A value with three significant figures, or in full if that is no longer.
    pub fn short(self, value: u64, numbers: NumberFormat) -> String {
        match self {
            Self::Bytes => numbers.bytes(value),
            Self::Count | Self::Cycles => grouped(value),
        }
    }

    /// A value in full.
    pub fn exact(self, value: u64) -> String {
        match self {
            Self::Bytes => exact_bytes(value),
            Self::Count => grouped(value),
            Self::Cycles => format!("{} cycles", grouped(value)),
        }
    }
}

/// One value per position on the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct TileCurve {
    pub layer: TileCurveLayer,
    pub values: Vec<u64>,
}

/// Stacked curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileCurveStack {
    /// The curves, from the bottom to the top.
    pub layers: Vec<TileCurve>,
    /// Number of positions: tiles or IPUs.
    pub places: usize,
    /// The tile at each position, if they differ.
    pub tiles: Option<Vec<TileId>>,
    /// The largest sum over layers at a position.
    pub max: u64,
    /// Capacity of a position; 0 if it has no meaning.
    pub capacity: u64,
    pub unit: TileCurveUnit,
}

impl TileCurveStack {
    /// Stacks curves without changing their order.
    pub fn stacked(layers: Vec<TileCurve>, unit: TileCurveUnit) -> Self {
        let places = layers.iter().map(|curve| curve.values.len()).max().unwrap_or(0);
        let mut curves = Self { layers, places, unit, ..Self::default() };
        curves.find_max();
        curves
    }

    /// Computes the largest sum.
    pub(crate) fn find_max(&mut self) {
        self.max = (0..self.places).map(|place| self.total(place)).max().unwrap_or(0);
    }

    /// Reorders tiles, or sums up those of each IPU.
    pub fn arranged(mut self, target: &Target, order: TileAxisOrder, per_ipu: bool) -> Self {
        if per_ipu {
            self.sum_per_ipu(target);
        } else if order == TileAxisOrder::Hardware {
            self.reorder(hardware_order(target, self.places));
        }
        self.find_max();
        self
    }

    fn sum_per_ipu(&mut self, target: &Target) {
        let tiles = (target.tiles_per_ipu as usize).max(1);
        for curve in &mut self.layers {
            curve.values = curve.values.chunks(tiles).map(|ipu| ipu.iter().sum()).collect();
        }
        self.places = self.places.div_ceil(tiles);
        self.capacity *= tiles as u64;
        debug_assert!(
            self.layers.iter().all(|curve| curve.values.len() <= self.places),
            "no layer is longer than the axis"
        );
    }

    fn reorder(&mut self, order: Vec<TileId>) {
        for curve in &mut self.layers {
            let values = order.iter().map(|tile| curve.values.get(tile.index()).copied());
            curve.values = values.map(Option::unwrap_or_default).collect();
        }
        self.tiles = Some(order);
    }

    /// The tile at a position of curves over tiles.
    pub fn tile_at(&self, place: usize) -> TileId {
        let tile = self.tiles.as_ref().and_then(|tiles| tiles.get(place));
        tile.copied().unwrap_or_else(|| TileId::from_index(place))
    }

    /// The position of a tile in curves over tiles.
    pub fn place_of(&self, tile: TileId) -> Option<usize> {
        match &self.tiles {
            Some(tiles) => tiles.iter().position(|known| *known == tile),
            None => Some(tile.index()).filter(|place| *place < self.places),
        }
    }

    /// Sum of all layers at a position.
    pub fn total(&self, place: usize) -> u64 {
        self.layers.iter().filter_map(|curve| curve.values.get(place)).sum()
    }
}

/// The `value` of each run of tiles, tile by tile, as plain numbers: curves have a separate unit.
pub fn spread<T: Clone + PartialEq, Q: Quantity>(
    runs: &TileRuns<T>,
    tiles: usize,
    value: impl Fn(&T) -> Q,
) -> Vec<u64> {
    let mut values = vec![0; tiles];
    for (range, of) in runs.iter() {
        let first = range.first.index();
        let end = range.end.index().min(tiles);
        if first < end {
            values[first..end].fill(value(of).number());
        }
    }
    values
}

/// Positions of tiles: columns of tiles, with the chips of a replica side by side and a gap of one
/// column between them. Poplar numbers tiles along a line that winds through the chip, so every
/// second column is reversed; tools close to the hardware number them column by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipFloorPlan {
    tiles_per_ipu: u32,
    /// True if the positions of tiles are known; otherwise tiles are arranged by number in a square
    /// of columns.
    pub known: bool,
    /// True if every second column is reversed.
    winds: bool,
    /// Number of tiles in a column.
    pub rows: u32,
    pub ipus: u32,
}

impl ChipFloorPlan {
    /// The floor plan of the chips of a replica.
    pub fn from_target(target: &Target) -> Self {
        let tiles_per_ipu = target.tiles_per_ipu.max(1);
        // A file may state more tiles per column than the chip has: images have a cell for each.
        let rows = target.tiles_per_column.min(tiles_per_ipu);
        Self {
            tiles_per_ipu,
            known: rows > 0,
            winds: rows > 0 && !target.physical_numbers,
            rows: if rows > 0 { rows } else { tiles_per_ipu.isqrt().max(1) },
            ipus: target.ipus_per_replica.max(1),
        }
    }

    /// Columns of one chip.
    pub fn columns_per_ipu(&self) -> usize {
        self.tiles_per_ipu.div_ceil(self.rows) as usize
    }

    /// The row within a column, reversed for every second column.
    fn winding(&self, column: u32, row: u32) -> u32 {
        if column.is_multiple_of(2) || !self.winds { row } else { self.rows - 1 - row }
    }

    /// Column and row of a tile.
    pub fn cell(&self, tile: TileId) -> (usize, usize) {
        let ipu = tile.0 / self.tiles_per_ipu;
        let tile = tile.0 % self.tiles_per_ipu;
        let column = tile / self.rows;
        let row = tile % self.rows;
        let row = self.winding(column, row);
        (ipu as usize * (self.columns_per_ipu() + 1) + column as usize, row as usize)
    }

    /// Number of a tile on its own chip, counted column by column from the top.
    pub(crate) fn physical(&self, tile: TileId) -> u32 {
        let (column, row) = self.cell(tile % self.tiles_per_ipu);
        column as u32 * self.rows + row as u32
    }

    /// The tile at a column and row.
    pub fn tile_at(&self, column: usize, row: usize) -> Option<TileId> {
        let width = self.columns_per_ipu() + 1;
        let ipu = (column / width) as u32;
        let column = (column % width) as u32;
        let row = u32::try_from(row).ok().filter(|row| *row < self.rows)?;
        let row = self.winding(column, row);
        let tile = column.checked_mul(self.rows)?.checked_add(row)?;
        let known = tile < self.tiles_per_ipu && ipu < self.ipus;
        if known { Some(TileId(ipu * self.tiles_per_ipu + tile)) } else { None }
    }
}

/// Tiles in the order of their positions on the chips, column by column.
pub(crate) fn hardware_order(target: &Target, tiles: usize) -> Vec<TileId> {
    let plan = ChipFloorPlan::from_target(target);
    let mut order: Vec<TileId> = TileId(0).onwards().take(tiles).collect();
    order.sort_by_key(|tile| plan.cell(*tile));
    order
}

/// The largest number of tiles that can be shown side by side.
const MOST_LISTED_TILES: usize = 64;

/// An error in a list of tiles.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TileListError {
    /// A part is not a number.
    #[error("{0:?} is not a tile number")]
    NotANumber(String),
    /// The machine has fewer tiles.
    #[error("tile {0} does not exist")]
    NoSuchTile(TileId),
    /// A range that ends before its start.
    #[error("{0:?} ends before it starts")]
    Backwards(String),
    /// More tiles than can be shown.
    #[error("at most {MOST_LISTED_TILES} tiles can be shown side by side")]
    TooMany,
}

/// Parses tile numbers and ranges below `tiles`, such as `1, 3-5`.
///
/// # Errors
/// An invalid list.
pub fn parse_tiles(text: &str, tiles: u32) -> Result<Vec<TileId>, TileListError> {
    let mut found: Vec<TileId> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let number = |text: &str| {
            let tile = text
                .trim()
                .parse()
                .map(TileId)
                .map_err(|_| TileListError::NotANumber(text.trim().to_owned()))?;
            if tile < TileId(tiles) { Ok(tile) } else { Err(TileListError::NoSuchTile(tile)) }
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(TileListError::Backwards(part.to_owned()));
        }
        for tile in TileRange::new(first, last + 1).iter() {
            if found.len() >= MOST_LISTED_TILES {
                return Err(TileListError::TooMany);
            }
            if !found.contains(&tile) {
                found.push(tile);
            }
        }
    }
    Ok(found)
}

/// Formats tiles so that [`parse_tiles`] can read them.
pub fn tiles_text(tiles: &[TileId]) -> String {
    let mut parts: Vec<(TileId, TileId)> = Vec::new();
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

    fn ids(numbers: &[u32]) -> Vec<TileId> {
        numbers.iter().copied().map(TileId).collect()
    }

    /// The tiles of two IPUs of 64.
    fn all() -> Vec<TileId> {
        TileRange::first_tiles(128).iter().collect()
    }

    #[test]
    fn tiles_are_numbers_and_ranges() {
        let error = parse_tiles("1 or", 9).unwrap_err();
        assert_eq!(error.to_string(), "\"1 or\" is not a tile number");
        assert_eq!(parse_tiles("0,3-5, 4", 9), Ok(ids(&[0, 3, 4, 5])));
        assert_eq!(parse_tiles("", 9), Ok(vec![]));
        assert_eq!(parse_tiles(" , ", 9), Ok(vec![]));
        for wrong in ["9", "5-3", "-1", "a", "0-99999999", "1-"] {
            assert!(parse_tiles(wrong, 9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_tiles_round_trip_through_text() {
        for tiles in [vec![], vec![7], vec![0, 3, 4, 5], vec![5, 4, 3]] {
            let tiles = ids(&tiles);
            assert_eq!(parse_tiles(&tiles_text(&tiles), 9), Ok(tiles));
        }
    }

    #[test]
    fn every_tile_has_one_place_on_the_chip() {
        let mut order = hardware_order(&test_target(), 128);
        assert_eq!(order[..3], ids(&[0, 1, 2]));
        assert_eq!(order[16..18], ids(&[31, 30]));
        order.sort_unstable();
        assert_eq!(order, all());
    }

    #[test]
    fn physical_ids_count_through_the_hardware_order() {
        let (target, plan) = (test_target(), ChipFloorPlan::from_target(&test_target()));
        for (ipu, chip) in (0..).zip(hardware_order(&target, 128).chunks(64)) {
            let ids: Vec<u32> = chip.iter().map(|tile| plan.physical(*tile)).collect();
            assert_eq!(ids, (0..64).collect::<Vec<u32>>(), "IPU {ipu}");
        }
    }

    #[test]
    fn tiles_whose_place_is_not_known_stand_in_their_order() {
        let target = Target { tiles_per_column: 0, ..test_target() };
        let plan = ChipFloorPlan::from_target(&target);
        assert!(!plan.known && (plan.rows, plan.columns_per_ipu()) == (8, 8));
        assert_eq!(hardware_order(&target, 128), all());
        for tile in all() {
            let (column, row) = plan.cell(tile);
            assert_eq!(plan.tile_at(column, row), Some(tile));
        }
    }

    fn test_target() -> Target {
        use tilescope_report::TargetKind;
        use tilescope_report::units::{Bytes, Hertz};
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
            physical_numbers: false,
            changes: Vec::new(),
        }
    }

    #[test]
    fn the_floor_plan_has_one_cell_for_every_tile() {
        let plan = ChipFloorPlan::from_target(&test_target());
        let mut cells: Vec<(usize, usize)> =
            all().into_iter().map(|tile| plan.cell(tile)).collect();
        assert!(all().into_iter().all(|tile| {
            let (column, row) = plan.cell(tile);
            plan.tile_at(column, row) == Some(tile)
        }));
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), 128);
        assert_eq!(plan.tile_at(4, 0), None, "the gap between two chips");
    }
}
