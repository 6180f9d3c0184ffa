//! Stencils: each cell of a field computed from its neighbours, with codelets in C++.
//!
//! The field is cut into a grid of rectangles, one per tile, and each rectangle into stripes, one
//! per worker. Halos are exchanged, every worker's stripe is copied together with its halo so that
//! the codelet sees it as one piece, then the codelets run (simehaa/IPU HeatEquation2D,
//! thorbenlouw/lbm-graphcore GaussianBlurLowLevel).

use crate::cost_constants::{RAGGED_PIECE_COPY_CYCLES, SUBWORD_REARRANGE_CYCLES_PER_BYTE};
use crate::poplar::exchange::{TileMessages, WORD_BYTES};
use crate::poplar::work::{OperationWork, TemporaryVariable, VertexInstances, WorkPhase};
use crate::poplar::{exchange, tile_runs};
use crate::popops::elementwise::vector_width;
use crate::popops::relayout::copy_cycles;
use crate::poputil::split_regions;
use crate::poputil::split_regions::SplitBounds;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::DType;
use crate::targets::{BytesPerCycle, WORKERS};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements, Quantity, TileId, TileRuns};

/// Pointers that a loop advances: the rows above, at and below the result, and the result itself.
const LOOP_STREAMS: u64 = 4;

/// Rows that hold neighbours: above, at and below the cell.
const NEIGHBOUR_ROWS: u64 = 3;

/// Cells that contribute to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StencilNeighbourhood {
    /// The cell and the cells above, below, left and right: 5 points.
    FivePoint,
    /// Also the cells at the corners: 9 points.
    NinePoint,
}

/// Bytes on each tile of the rows that other IPUs sent for the two sides of a field. `None` at an
/// end of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedRows {
    pub above: Option<TileRuns<Bytes>>,
    pub below: Option<TileRuns<Bytes>>,
}

/// A field of `height` x `width` cells with `channels` values each, all on one IPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StencilField {
    pub height: u64,
    pub width: u64,
    /// Values of a cell.
    pub channels: u64,
    pub dtype: DType,
}

impl StencilNeighbourhood {
    /// Number of cells that contribute to a result, including the cell itself.
    pub(crate) fn points(self) -> u64 {
        match self {
            Self::FivePoint => 5,
            Self::NinePoint => 9,
        }
    }

    /// Number of different factors. Cells at the same distance share one.
    fn factors(self) -> u64 {
        match self {
            Self::FivePoint => 2,
            Self::NinePoint => 3,
        }
    }

    /// Number of rows in which cells left and right of the middle are read.
    fn wide_rows(self) -> u64 {
        match self {
            Self::FivePoint => 1,
            Self::NinePoint => NEIGHBOUR_ROWS,
        }
    }

    /// Instructions that make one 64-bit vector of results. popc does not pair arithmetic with
    /// loads in such loops, so each takes an issue slot. Loops have no branch (`rpt`).
    pub(crate) fn vector_instructions(self, dtype: DType, channels: u64) -> u64 {
        let width = vector_width(dtype);
        let work = if channels.is_multiple_of(width) {
            // Every neighbour is a vector: loads, sums, one store.
            self.points() + self.points() - 1 + 1
        } else {
            // Cells beside a vector straddle two vectors: one value from either side, with sums and
            // stores value by value.
            let sides = self.wide_rows();
            NEIGHBOUR_ROWS + 2 * sides + width * sides + (NEIGHBOUR_ROWS + sides - 1) + width
        };
        work + self.factors() + LOOP_STREAMS
    }
}

/// Division of a field: heights of the rows and widths of the columns of rectangles.
struct StencilGrid {
    heights: Vec<u64>,
    widths: Vec<u64>,
    /// True if another IPU holds the row above the field.
    above: bool,
    /// True if another IPU holds the row below the field.
    below: bool,
}

impl StencilField {
    /// Bytes of a cell.
    fn cell_bytes(&self) -> Bytes {
        self.channels * self.dtype.bytes()
    }

    /// Height and width of the stripe of the busiest worker of a rectangle.
    fn stripe(height: u64, width: u64) -> (u64, u64) {
        let rows = (height.div_ceil(WORKERS), width);
        let columns = (height, width.div_ceil(WORKERS));
        if rows.0 * rows.1 <= columns.0 * columns.1 { rows } else { columns }
    }

    /// Number of stripes of a rectangle.
    fn stripe_count(height: u64, width: u64) -> u64 {
        let (rows, columns) = Self::stripe(height, width);
        height.div_ceil(rows) * width.div_ceil(columns)
    }

    /// Number of result vectors that a worker computes in a stripe.
    fn vectors(&self, (height, width): (u64, u64)) -> u64 {
        height * (width * self.channels).div_ceil(vector_width(self.dtype))
    }

    /// Returns the grid with the least work for the busiest worker, and among equals the one with
    /// the shortest halo.
    fn grid(&self, tiles: u64) -> StencilGrid {
        let candidates = 1..=tiles.min(self.height);
        let cheapest = candidates.min_by_key(|&rows| {
            let height = largest_part(self.height, rows);
            let width = largest_part(self.width, (tiles / rows).min(self.width));
            (self.vectors(Self::stripe(height, width)), height + width)
        });
        let rows = cheapest.unwrap_or(1);
        let heights = part_sizes(self.height, rows);
        let widths = part_sizes(self.width, tiles / rows);
        StencilGrid { heights, widths, above: false, below: false }
    }

    /// Layout of the field: one rectangle on each tile.
    pub(crate) fn layout(&self, tiles: u32) -> TensorLayout {
        let grid = self.grid(u64::from(tiles));
        let elements = grid.per_tile(|height, width, _| Elements(height * width * self.channels));
        TensorLayout { elements, order: ElementOrder::Unknown }
    }

    /// Layout of the first or last row of the field.
    pub(crate) fn edge_row_layout(&self, is_first: bool, tiles: u32) -> TensorLayout {
        let grid = self.grid(u64::from(tiles));
        let columns = grid.widths.len();
        let row = if is_first { 0 } else { grid.heights.len() - 1 };
        let held = grid.widths.iter().map(|width| Elements(width * self.channels));
        let tiles = TileId(0).onwards().skip(row * columns);
        let elements = tile_runs::per_tile(tiles.zip(held));
        TensorLayout { elements, order: ElementOrder::Linear }
    }

    /// Work of one sweep over a field in the layout of [`StencilField::layout`].
    pub(crate) fn sweep(
        &self,
        neighbours: StencilNeighbourhood,
        received: &ReceivedRows,
        tiles: u32,
        speed: BytesPerCycle,
    ) -> OperationWork {
        let mut grid = self.grid(u64::from(tiles));
        grid.above = received.above.is_some();
        grid.below = received.below.is_some();
        let cell = self.cell_bytes();
        let halo = grid.halo(neighbours, cell);
        let workers = grid.per_tile(|height, width, _| Self::stripe_count(height, width));
        let stitched = grid.per_tile(|height, width, _| {
            let (rows, columns) = Self::stripe(height, width);
            // With a halo of one cell on all sides, also between neighbouring stripes of the tile.
            Self::stripe_count(height, width) * (rows + 2) * (columns + 2) * cell
        });
        let each = neighbours.vector_instructions(self.dtype, self.channels);
        let busy = grid.per_tile(|height, width, _| {
            Cycles(WORKERS * each * self.vectors(Self::stripe(height, width)))
        });
        // Cells of a column are scattered in memory, so they are gathered before they are sent.
        let gathered = grid.per_tile(|height, _, beside| {
            self.copied(beside.horizontal * height * cell, beside.horizontal * height)
        });
        // A row of a stripe consists of its own part and one piece from either side.
        let copied = grid.per_tile(|height, width, _| {
            let (rows, columns) = Self::stripe(height, width);
            let rows_with_halo = Self::stripe_count(height, width) * (rows + 2);
            self.copied(rows_with_halo * (columns + 2) * cell, rows_with_halo * 3)
        });
        let around = TileMessages::each_way(neighbours.points() - 1);
        let mut work = OperationWork::default();
        if !gathered.total().is_zero() {
            work.push(copies("Halo/PreArrange", gathered));
        }
        let rows = [&received.above, &received.below].into_iter().flatten();
        let sent = rows.fold(self.inner_halo(neighbours, tiles), |sent, row| {
            tile_runs::add_per_tile(&sent, row)
        });
        work.push_some(exchange::phase("Halo", &halo, &sent, around, tiles, speed));
        let arrived = work.phases().len();
        work.push(copies("Halo/OnTileCopy", copied));
        let codelet = format!("Stencil<{},{}>", neighbours.points(), self.dtype.poplar_name());
        work.push(vertices("Sweep", codelet, &workers, busy));
        work.temporaries = vec![TemporaryVariable::anywhere(
            "Sweep/in",
            MemoryCategory::Rearrangement,
            stitched,
            arrived..arrived + 2,
        )];
        if arrived > 0 {
            let message = TemporaryVariable::anywhere(
                "Halo/received",
                MemoryCategory::Message,
                halo,
                0..arrived + 1,
            );
            work.temporaries.push(message);
        }
        work
    }

    /// Bytes that each tile sends to other tiles of the same IPU, which equals the bytes it
    /// receives from them.
    fn inner_halo(&self, neighbours: StencilNeighbourhood, tiles: u32) -> TileRuns<Bytes> {
        let grid = self.grid(u64::from(tiles));
        grid.halo(neighbours, self.cell_bytes())
    }

    /// Cycles to copy `bytes` in `pieces` pieces on a tile. Pieces are whole cells. Cells of whole
    /// words are copied by double words.
    fn copied(&self, bytes: Bytes, pieces: u64) -> Cycles {
        let moved = if (self.cell_bytes() % WORD_BYTES).is_zero() {
            copy_cycles(bytes, WORD_BYTES).as_f64()
        } else {
            bytes.as_f64() * SUBWORD_REARRANGE_CYCLES_PER_BYTE.ratio()
        };
        Cycles::from_f64((moved + pieces as f64 * RAGGED_PIECE_COPY_CYCLES.ratio()).ceil())
    }
}

/// Numbers of neighbours of a rectangle in the grid.
#[derive(Clone, Copy)]
struct GridNeighbourCounts {
    vertical: u64,
    horizontal: u64,
}

impl GridNeighbourCounts {
    fn corners(self) -> u64 {
        self.vertical * self.horizontal
    }
}

impl StencilGrid {
    /// Bytes of the cells next to each tile's rectangle.
    fn halo(&self, neighbours: StencilNeighbourhood, cell: Bytes) -> TileRuns<Bytes> {
        self.per_tile(|height, width, beside| {
            let corners =
                if neighbours == StencilNeighbourhood::NinePoint { beside.corners() } else { 0 };
            (beside.vertical * width + beside.horizontal * height + corners) * cell
        })
    }

    /// Computes a value for each tile from height, width and neighbours of its rectangle.
    fn per_tile<T: Quantity>(
        &self,
        value: impl Fn(u64, u64, GridNeighbourCounts) -> T,
    ) -> TileRuns<T> {
        let mut values = Vec::new();
        for (row, height) in self.heights.iter().enumerate() {
            let last = row + 1 == self.heights.len();
            let outside = u64::from(self.above && row == 0) + u64::from(self.below && last);
            let vertical = neighbours_of(row, self.heights.len()) + outside;
            for (column, width) in self.widths.iter().enumerate() {
                let horizontal = neighbours_of(column, self.widths.len());
                values.push(value(*height, *width, GridNeighbourCounts { vertical, horizontal }));
            }
        }
        tile_runs::per_tile(TileId(0).onwards().zip(values))
    }
}

/// Number of neighbours of element `at` in a row of `count`.
fn neighbours_of(at: usize, count: usize) -> u64 {
    u64::from(at > 0) + u64::from(at + 1 < count)
}

/// Size of the largest of up to `most` parts of `size`.
fn largest_part(size: u64, most: u64) -> u64 {
    size.div_ceil(most.max(1)).max(1)
}

/// Sizes of up to `most` even parts of `size`.
fn part_sizes(size: u64, most: u64) -> Vec<u64> {
    let bounds = SplitBounds { grain: 1, most: most.min(size), least: 1 };
    split_regions::split_evenly(size, bounds).map(|part| part.end - part.start).collect()
}

/// Compute set of copies by all workers of each tile with cycles.
fn copies(name: &str, cycles: TileRuns<Cycles>) -> WorkPhase {
    let kind = "poplar_rt::DstStridedCopy64BitMultiAccess".to_string();
    vertices(name, kind, &cycles.map(|_| WORKERS), cycles)
}

/// Compute set with `count` equal vertices on each tile and the given cycles.
fn vertices(
    name: &str,
    kind: String,
    count: &TileRuns<u64>,
    cycles: TileRuns<Cycles>,
) -> WorkPhase {
    let vertices = VertexInstances::of_edges(kind, count.clone(), 2);
    WorkPhase::of_vertices(name, vertices, cycles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// Counted by hand in the vectorised codelet of simehaa/IPU HeatEquation2D/codelets.cpp: five
    /// loads, two stores, seven sums and products, four pointers; 18.4 measured for two cells.
    #[test]
    fn a_pair_of_floats_takes_eighteen_instructions() {
        assert_eq!(StencilNeighbourhood::FivePoint.vector_instructions(DType::Float, 1), 18);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn every_cell_has_one_tile(height in 1u64..400, width in 1u64..400, tiles in 1u32..1473) {
            let field = StencilField { height, width, channels: 3, dtype: DType::Half };
            let layout = field.layout(tiles);
            prop_assert_eq!(layout.elements.total(), Elements(height * width * 3));
            prop_assert!(layout.elements.tile_count() <= tiles);
        }
    }
}
