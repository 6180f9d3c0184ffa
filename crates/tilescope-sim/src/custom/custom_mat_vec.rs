//! Matrix-vector product with custom codelets, as in Graphcore's tutorial (graphcore/examples
//! tutorials/poplar/tut6_matrix_vector_opt/tut6.cpp). Rows are cut into segments, one vertex
//! computes the dot product of each, and a second compute set sums the segments of each row.

use crate::poplar::exchange::{self, OrderChange, TileMessages};
use crate::poplar::tile_runs;
use crate::poplar::work::{OperationWork, TemporaryVariable, VertexInstances, WorkPhase};
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::targets::{BytesPerCycle, WORKERS};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements, Quantity, TileId, TileRange, TileRuns};

/// Bytes of a value. The codelets support only floats.
const FLOAT_BYTES: Bytes = Bytes(4);

/// Cycles of a vertex on `count` values: the tutorial's estimate of its start, and two floats per
/// cycle.
fn vertex_cycles(count: u64) -> Cycles {
    Cycles(5 + count.div_ceil(2))
}

/// Sizes of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MatVecDotProducts {
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix and values of the vector.
    pub columns: u64,
    pub tiles: u32,
}

impl MatVecDotProducts {
    /// The tutorial's estimate of the cycles of both compute sets and their exchanges, with each
    /// row cut into `segments`.
    fn estimate(&self, segments: u64, speed: BytesPerCycle) -> Cycles {
        let tiles = u64::from(self.tiles);
        let longest = self.columns.div_ceil(segments);
        let products = (self.rows * segments).div_ceil(tiles);
        let sums = self.rows.div_ceil(tiles);
        let busy =
            |vertices: u64, values: u64| vertices.next_multiple_of(WORKERS) * vertex_cycles(values);
        busy(products, longest)
            // Vertices of one segment are consecutive, so a tile needs a part of the vector only
            // once for all its rows of that segment.
            + Cycles((products.div_ceil(self.rows) * longest * FLOAT_BYTES).0 / speed.0)
            + busy(sums, segments)
            + Cycles((sums * segments * FLOAT_BYTES).0 / speed.0)
    }

    /// Number of segments per row with the lowest estimate, the smallest if several are equal.
    pub(crate) fn segments(&self, speed: BytesPerCycle) -> u64 {
        // More than one segment for each worker of each tile only adds work.
        let most = self.columns.min(WORKERS * u64::from(self.tiles)).max(1);
        (1..=most).min_by_key(|count| self.estimate(*count, speed)).unwrap_or(1)
    }

    /// Range of vertices on each tile, distributed evenly.
    fn dealt(&self, vertices: u64) -> impl Iterator<Item = (TileId, std::ops::Range<u64>)> {
        let tiles = u64::from(self.tiles);
        TileRange::first_tiles(self.tiles).iter().map(move |tile| {
            let start = vertices.share_rounded_up(tile.0.into(), tiles);
            let end = vertices.share_rounded_up((tile + 1).0.into(), tiles);
            (tile, start..end)
        })
    }

    /// Computes a value for each tile from its range of vertices.
    fn per_tile<T: Quantity>(
        &self,
        vertices: u64,
        value: impl Fn(std::ops::Range<u64>) -> T,
    ) -> TileRuns<T> {
        tile_runs::per_tile(self.dealt(vertices).map(|(tile, range)| (tile, value(range))))
    }

    /// Number of vertices on each tile.
    fn vertex_counts(&self, vertices: u64) -> TileRuns<u64> {
        self.per_tile(vertices, |range| range.end - range.start)
    }

    /// Segments of a range of vertices. Vertices of one segment of all rows precede those of the
    /// next.
    fn segments_of(&self, range: &std::ops::Range<u64>) -> std::ops::RangeInclusive<u64> {
        range.start / self.rows..=range.end.saturating_sub(1) / self.rows
    }

    /// Number of columns of a segment.
    fn segment_length(&self, segment: u64, segments: u64) -> u64 {
        (segment + 1) * self.columns / segments - segment * self.columns / segments
    }

    /// Number of matrix values that a range of vertices multiplies.
    fn matrix_values(&self, range: &std::ops::Range<u64>, segments: u64) -> u64 {
        let mut values = 0;
        for segment in self.segments_of(range) {
            let first = (segment * self.rows).max(range.start);
            let end = ((segment + 1) * self.rows).min(range.end);
            values += end.saturating_sub(first) * self.segment_length(segment, segments);
        }
        values
    }

    /// Number of vector values that a range of vertices multiplies.
    fn vector_values(&self, range: &std::ops::Range<u64>, segments: u64) -> u64 {
        if range.is_empty() {
            return 0;
        }
        self.segments_of(range).map(|segment| self.segment_length(segment, segments)).sum()
    }

    /// Layout of the result.
    pub(crate) fn result(&self) -> TensorLayout {
        let elements = self.per_tile(self.rows, |rows| Elements(rows.end - rows.start));
        TensorLayout { elements, order: ElementOrder::Linear }
    }

    /// Work of the product of a matrix and a vector with the given distributions. Streams deliver
    /// the matrix in memory order, so its rows are first exchanged to their vertices.
    pub(crate) fn product(
        &self,
        matrix: &TileRuns<Bytes>,
        vector: &TileRuns<Bytes>,
        speed: BytesPerCycle,
    ) -> OperationWork {
        let segments = self.segments(speed);
        let products = self.rows * segments;
        let placed =
            self.per_tile(products, |range| self.matrix_values(&range, segments) * FLOAT_BYTES);
        let parts =
            self.per_tile(products, |range| self.vector_values(&range, segments) * FLOAT_BYTES);
        let partials = self.per_tile(products, |range| (range.end - range.start) * FLOAT_BYTES);
        let gathered =
            self.per_tile(self.rows, |rows| (rows.end - rows.start) * segments * FLOAT_BYTES);
        let tiles = self.tiles;
        let mut work = OperationWork::default();
        work.push_some(exchange::relayout(
            "matrix",
            matrix,
            &placed,
            OrderChange::Unknown,
            tiles,
            speed,
        ));
        let ready = work.phases().len();
        work.push_some(exchange::phase(
            "mulCS",
            &parts,
            vector,
            TileMessages::each_way(1),
            tiles,
            speed,
        ));
        let longest = self.columns.div_ceil(segments);
        let counts = self.vertex_counts(products);
        work.push(vertices("mulCS", "DotProductVertex", counts, longest));
        let multiplied = work.phases().len();
        let messages = TileMessages { received: segments, sent: 1 };
        work.push_some(exchange::phase("reduceCS", &gathered, &partials, messages, tiles, speed));
        let counts = self.vertex_counts(self.rows);
        work.push(vertices("reduceCS", "ReduceVertex", counts, segments));
        let end = work.phases().len();
        let temporary = TemporaryVariable::anywhere;
        work.temporaries = vec![
            temporary("matrix/placed", MemoryCategory::Rearrangement, placed, 0..multiplied),
            temporary("mulCS/vector", MemoryCategory::Message, parts, ready..multiplied),
            temporary("partials", MemoryCategory::Variable, partials, multiplied - 1..end),
            temporary("reduceCS/partials", MemoryCategory::Message, gathered, multiplied..end),
        ];
        work
    }
}

/// Compute set of vertices on `values` values each, six at a time.
fn vertices(name: &str, kind: &str, count: TileRuns<u64>, values: u64) -> WorkPhase {
    let cycles = count.map(|count| count.next_multiple_of(WORKERS) * vertex_cycles(values));
    let vertices = VertexInstances::of_edges(kind.to_string(), count, 3);
    WorkPhase::of_vertices(name, vertices, cycles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_report::units::TileRange;
    use tilescope_test_tiers::cases;

    const SPEED: BytesPerCycle = BytesPerCycle(4);

    /// The tutorial prints its choice for 10000 x 1000 on 1,472 tiles.
    #[test]
    fn rows_are_cut_as_in_the_tutorial() {
        let sizes = MatVecDotProducts { rows: 10_000, columns: 1_000, tiles: 1472 };
        assert_eq!((sizes.segments(SPEED), sizes.estimate(7, SPEED)), (7, Cycles(3_996)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn every_value_of_the_matrix_has_its_vertex(
            rows in 1u64..3_000, columns in 1u64..300, tiles in 1u32..200,
        ) {
            let sizes = MatVecDotProducts { rows, columns, tiles };
            let even = TileRuns::uniform(TileRange::first_tiles(1), rows * columns * FLOAT_BYTES);
            let vector = TileRuns::uniform(TileRange::first_tiles(1), columns * FLOAT_BYTES);
            let work = sizes.product(&even, &vector, SPEED);
            let placed = &work.temporaries[0].bytes;
            prop_assert_eq!(placed.total(), rows * columns * FLOAT_BYTES);
            let [partials, gathered] = [&work.temporaries[2], &work.temporaries[3]];
            prop_assert_eq!(partials.bytes.total(), gathered.bytes.total());
        }
    }
}
