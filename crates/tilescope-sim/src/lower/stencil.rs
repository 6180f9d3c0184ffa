//! Stencils: each cell of a field from its neighbours, in codelets written in C++.
//!
//! The field is cut into a grid of rectangles, one a tile, and each rectangle into stripes, one a
//! worker. Halos are exchanged, every worker's stripe is copied together with its halo so that the
//! codelet sees it in one piece, then the codelets run (simehaa/IPU HeatEquation2D,
//! thorbenlouw/lbm-graphcore GaussianBlurLowLevel).

use super::constants::{PIECE_GATHER_CYCLES, REARRANGE_CYCLES_PER_BYTE};
use super::elementwise::{WORKERS, vector_width};
use super::layout::{Layout, Order};
use super::rearrange::{WORD_BYTES, copy_cycles};
use super::split::{self, Bounds};
use super::work::{Phase, PhaseKind, Place, Temporary, VertexUse, Work};
use super::{exchange, runs};
use crate::graph::DType;
use tilescope_report::Category;
use tilescope_report::units::TileRuns;

/// Streams a loop steps through: the rows above, at and below the result, and the result itself.
const STREAMS: u64 = 4;

/// Rows that hold neighbours.
const ROWS: u64 = 3;

/// Cells whose values go into a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbours {
    /// Those above, below, left and right: 5 points.
    Cross,
    /// Those at corners, too: 9 points.
    Square,
}

/// A field of `height` x `width` cells with `channels` values each, all on one IPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Field {
    pub height: u64,
    pub width: u64,
    /// Values of a cell.
    pub channels: u64,
    pub dtype: DType,
}

impl Neighbours {
    /// Cells of a result, itself one of them.
    pub(crate) fn points(self) -> u64 {
        match self {
            Self::Cross => 5,
            Self::Square => 9,
        }
    }

    /// Different factors: cells as far away share one.
    fn factors(self) -> u64 {
        match self {
            Self::Cross => 2,
            Self::Square => 3,
        }
    }

    /// Rows in which cells beside the middle are read.
    fn wide_rows(self) -> u64 {
        match self {
            Self::Cross => 1,
            Self::Square => ROWS,
        }
    }

    /// Instructions that make one 64-bit vector of results. popc pairs no arithmetic with loads in
    /// such loops, so that each takes an issue slot; loops have no branch (`rpt`).
    pub(crate) fn vector_instructions(self, dtype: DType, channels: u64) -> u64 {
        let width = vector_width(dtype);
        let work = if channels.is_multiple_of(width) {
            // Every neighbour is a vector: loads, sums, one store.
            self.points() + self.points() - 1 + 1
        } else {
            // Cells beside a vector straddle two: one value from either side, sums and stores
            // value by value.
            let sides = self.wide_rows();
            ROWS + 2 * sides + width * sides + (ROWS + sides - 1) + width
        };
        work + self.factors() + STREAMS
    }
}

/// How a field is cut: sizes of rows and columns of rectangles.
struct Grid {
    heights: Vec<u64>,
    widths: Vec<u64>,
}

impl Field {
    /// Bytes of a cell.
    fn cell_bytes(&self) -> u64 {
        self.channels * self.dtype.bytes()
    }

    /// The stripe of the busiest worker of a rectangle: height and width.
    fn stripe(height: u64, width: u64) -> (u64, u64) {
        let rows = (height.div_ceil(WORKERS), width);
        let columns = (height, width.div_ceil(WORKERS));
        if rows.0 * rows.1 <= columns.0 * columns.1 { rows } else { columns }
    }

    /// Vectors of results a worker makes in a stripe.
    fn vectors(&self, (height, width): (u64, u64)) -> u64 {
        height * (width * self.channels).div_ceil(vector_width(self.dtype))
    }

    /// The grid whose busiest worker has least to do; the one with the shortest halo among equals.
    fn grid(&self, tiles: u64) -> Grid {
        let cut = |size: u64, most: u64| size.div_ceil(most.max(1)).max(1);
        let cost = |rows: u64| {
            let (height, width) =
                (cut(self.height, rows), cut(self.width, (tiles / rows).min(self.width)));
            (self.vectors(Self::stripe(height, width)), height + width)
        };
        let rows = (1..=tiles.min(self.height)).min_by_key(|rows| cost(*rows)).unwrap_or(1);
        let sizes = |size: u64, most: u64| {
            let bounds = Bounds { grain: 1, most: most.min(size), least: 1 };
            split::parts(size, bounds).map(|part| part.end - part.start).collect()
        };
        Grid { heights: sizes(self.height, rows), widths: sizes(self.width, tiles / rows) }
    }

    /// How the field lies: a rectangle on each tile.
    pub(crate) fn layout(&self, tiles: u32) -> Layout {
        let grid = self.grid(u64::from(tiles));
        let elements = grid.per_tile(|height, width, _| height * width * self.channels);
        Layout { elements, order: Order::Reshaped }
    }

    /// One sweep over a field that lies as [`Field::layout`] says.
    pub(crate) fn sweep(&self, neighbours: Neighbours, tiles: u32, speed: u64) -> Work {
        let grid = self.grid(u64::from(tiles));
        let cell = self.cell_bytes();
        let halo = grid.per_tile(|height, width, beside| {
            let corners = if neighbours == Neighbours::Square { beside.corners() } else { 0 };
            (beside.vertical * width + beside.horizontal * height + corners) * cell
        });
        let stripes = |height: u64, width: u64| {
            let (rows, columns) = Self::stripe(height, width);
            height.div_ceil(rows) * width.div_ceil(columns)
        };
        let workers = grid.per_tile(|height, width, _| stripes(height, width));
        let stitched = grid.per_tile(|height, width, _| {
            let (rows, columns) = Self::stripe(height, width);
            stripes(height, width) * (rows + 2) * (columns + 2) * cell
        });
        let each = neighbours.vector_instructions(self.dtype, self.channels);
        let busy = grid.per_tile(|height, width, _| {
            WORKERS * each * self.vectors(Self::stripe(height, width))
        });
        // Columns lie a cell here, a cell there, and have to be gathered before they can be sent.
        let gathered = grid.per_tile(|height, _, beside| {
            self.copied(beside.horizontal * height * cell, beside.horizontal * height)
        });
        // A row of a stripe is made of its own part and one from either side.
        let copied = grid.per_tile(|height, width, _| {
            let (rows, columns) = Self::stripe(height, width);
            let pieces = stripes(height, width) * (rows + 2) * 3;
            self.copied(stripes(height, width) * (rows + 2) * (columns + 2) * cell, pieces)
        });
        let around = neighbours.points() - 1;
        let copy = |name: &str, cycles: TileRuns<u64>| {
            let kind = "poplar_rt::DstStridedCopy64BitMultiAccess".to_string();
            vertices(name, kind, &cycles.map(|_| WORKERS), cycles)
        };
        let mut work = Work::default();
        if gathered.total() > 0 {
            work.push(copy("Halo/PreArrange", gathered));
        }
        work.push_some(exchange::phase("Halo", &halo, &halo, (around, around), tiles, speed));
        let arrived = work.phases().len();
        work.push(copy("Halo/OnTileCopy", copied));
        let codelet = format!("Stencil<{},{}>", neighbours.points(), self.dtype.poplar_name());
        work.push(vertices("Sweep", codelet, &workers, busy));
        let temporary = |name: &str, category, bytes, live| Temporary {
            name: name.to_string(),
            category,
            bytes,
            place: Place::Any,
            live,
        };
        work.temporaries =
            vec![temporary("Sweep/in", Category::Rearrangement, stitched, arrived..arrived + 2)];
        if arrived > 0 {
            let message = temporary("Halo/received", Category::Message, halo, 0..arrived + 1);
            work.temporaries.push(message);
        }
        work
    }

    /// Cycles to copy `bytes` in so many pieces on a tile. Pieces are whole cells: those of whole
    /// words are copied by double words.
    fn copied(&self, bytes: u64, pieces: u64) -> u64 {
        let moved = if self.cell_bytes().is_multiple_of(WORD_BYTES) {
            copy_cycles(bytes, WORD_BYTES) as f64
        } else {
            bytes as f64 * REARRANGE_CYCLES_PER_BYTE
        };
        (moved + pieces as f64 * PIECE_GATHER_CYCLES).ceil() as u64
    }
}

/// Neighbours of a rectangle in the grid.
#[derive(Clone, Copy)]
struct Beside {
    vertical: u64,
    horizontal: u64,
}

impl Beside {
    fn corners(self) -> u64 {
        self.vertical * self.horizontal
    }
}

impl Grid {
    /// A value of each tile, from height, width and neighbours of its rectangle.
    fn per_tile(&self, value: impl Fn(u64, u64, Beside) -> u64) -> TileRuns<u64> {
        let beside = |at: usize, count: usize| u64::from(at > 0) + u64::from(at + 1 < count);
        let rows = self.heights.iter().enumerate().flat_map(|(row, height)| {
            let vertical = beside(row, self.heights.len());
            self.widths.iter().enumerate().map(move |(column, width)| {
                let horizontal = beside(column, self.widths.len());
                (*height, *width, Beside { vertical, horizontal })
            })
        });
        let values = rows.map(|(height, width, beside)| value(height, width, beside));
        runs::per_tile((0..).zip(values))
    }
}

/// A compute set with so many equal vertices on each tile, which takes as long as given.
fn vertices(name: &str, kind: String, count: &TileRuns<u64>, cycles: TileRuns<u64>) -> Phase {
    let vertices = VertexUse {
        vertex_type: kind,
        count: count.clone(),
        edges: 2,
        field_bytes: 0,
        constant_bytes: 0,
    };
    Phase { name: name.to_string(), kind: PhaseKind::Compute { cycles, vertices: vec![vertices] } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counted by hand in the vectorised codelet of simehaa/IPU HeatEquation2D/codelets.cpp: five
    /// loads, two stores, seven sums and products, four pointers; measured 18.4 for two cells.
    #[test]
    fn a_pair_of_floats_takes_eighteen_instructions() {
        assert_eq!(Neighbours::Cross.vector_instructions(DType::Float, 1), 18);
    }

    proptest! {
        #[test]
        fn every_cell_has_one_tile(height in 1u64..400, width in 1u64..400, tiles in 1u32..1473) {
            let field = Field { height, width, channels: 3, dtype: DType::Half };
            let layout = field.layout(tiles);
            prop_assert_eq!(layout.elements.total(), height * width * 3);
            prop_assert!(layout.elements.tile_count() <= u64::from(tiles));
        }
    }
}
