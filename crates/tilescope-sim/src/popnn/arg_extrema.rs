//! Index of the largest or smallest element of each row (poplibs lib/popnn/Loss.cpp,
//! maxMinArgMaxMin). Workers reduce stretches of rows, then 32 results at a time, until one is left
//! for each row.

use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::tile_runs::{self, per_tile};
use crate::poplar::work::{OperationWork, TemporaryVariable, VertexInstances, WorkPhase};
use crate::shape::DType;
use crate::targets::{IpuTarget, WORKERS};
use std::collections::BTreeMap;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements, Quantity, TileId, TileRuns};

/// Minimum number of elements for a worker (argMinMaxSplitFirstReduction, workerMin).
const WORKER_ELEMENTS: u64 = 32;

/// Maximum number of elements for a worker, the limit of a repeat instruction (getRptCountMax).
const MOST_WORKER_ELEMENTS: u64 = 4095;

/// Number of results that a vertex of a later stage reduces (partialsSize).
const RESULTS_PER_VERTEX: u64 = 32;

/// Bytes of a result: a value and an index.
const RESULT_BYTES: Bytes = Bytes(8);

/// Rows in which to find the extreme element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtremaRows {
    pub rows: u64,
    pub columns: u64,
    pub dtype: DType,
    /// True to find the largest element, false for the smallest.
    pub largest: bool,
}

/// Work of a tile in the first stage.
#[derive(Clone, Copy, Debug, Default)]
struct GatherTile {
    vertices: u64,
    results: u64,
    cycles: Cycles,
}

impl ExtremaRows {
    fn elements(self) -> u64 {
        self.rows * self.columns
    }

    fn vertex(self, form: &str, dtype: DType) -> String {
        let which = if self.largest { "Max" } else { "Min" };
        format!("popnn::Reduce{which}Class{form}<{},unsigned int>", dtype.poplar_name())
    }

    /// Type of the values that later stages compare.
    fn result_type(self) -> DType {
        if self.is_float() { DType::Float } else { self.dtype }
    }

    fn is_float(self) -> bool {
        matches!(self.dtype, DType::Half | DType::Float)
    }

    /// Number of elements of each tile in the first stage, in order from the last tile down.
    fn shares(self, tiles: u32) -> Vec<u64> {
        let least = WORKERS * WORKER_ELEMENTS;
        let each = self.elements().div_ceil(tiles.into()).max(least);
        let used = self.elements().div_ceil(each).max(1);
        (0..used)
            .map(|tile| self.elements().share(tile + 1, used) - self.elements().share(tile, used))
            .collect()
    }

    /// Required layout of the operand, with contiguous rows.
    pub(crate) fn operand(self, tiles: u32) -> TileRuns<Elements> {
        from_last(tiles, self.shares(tiles).into_iter().map(Elements))
    }

    /// Number of workers, and cycles of the tile, for a vertex of the first stage on `size`
    /// elements (ReduceMaxClassGather).
    fn gather(self, size: u64) -> (u64, Cycles) {
        let shared = size / WORKERS >= WORKER_ELEMENTS;
        let worker = if shared { size.div_ceil(WORKERS) } else { WORKER_ELEMENTS };
        let workers = if shared { WORKERS } else { size.div_ceil(WORKER_ELEMENTS) };
        let cycles = if self.is_float() {
            30 + 3 * (worker.min(size) - 1)
        } else {
            22 + workers * (6 * worker + 25)
        };
        (workers, Cycles(9 + WORKERS * cycles))
    }

    /// Cycles of a vertex of a later stage on `results` results (ReduceMaxClassSparse).
    fn choose(self, results: u64) -> Cycles {
        let cycles = if self.is_float() {
            5 + 9 + 3 * results.saturating_sub(1) + 13
        } else {
            5 + 18 + 6 * results
        };
        Cycles(WORKERS * cycles)
    }

    /// First stage on each tile, and the number of rows for each number of results per row.
    fn first_stage(self, tiles: u32) -> (Vec<GatherTile>, BTreeMap<u64, u64>) {
        let mut results_of_rows: BTreeMap<u64, u64> = BTreeMap::new();
        let mut column = 0;
        let mut results = 0;
        let mut stage = Vec::new();
        for mut left in self.shares(tiles) {
            let mut tile = GatherTile::default();
            while left > 0 {
                if column == self.columns {
                    *results_of_rows.entry(results).or_default() += 1;
                    column = 0;
                    results = 0;
                }
                let size = left.min(self.columns - column).min(WORKERS * MOST_WORKER_ELEMENTS);
                let (workers, cycles) = self.gather(size);
                tile.vertices += 1;
                tile.results += workers;
                tile.cycles += cycles;
                results += workers;
                column += size;
                left -= size;
            }
            stage.push(tile);
        }
        *results_of_rows.entry(results).or_default() += 1;
        (stage, results_of_rows)
    }

    /// Adds the stages. Returns the distribution of the result, one index for each row.
    pub(crate) fn lower(self, machine: &IpuTarget, work: &mut OperationWork) -> TileRuns<Elements> {
        let tiles = machine.tiles;
        let (stage, mut rows) = self.first_stage(tiles);
        let vertex = self.vertex("Gather", self.dtype);
        let counts = from_last(tiles, stage.iter().map(|tile| tile.vertices));
        let vertices = VertexInstances::of_edges(vertex, counts, 3);
        let cycles = from_last(tiles, stage.iter().map(|tile| tile.cycles));
        work.push(WorkPhase::of_vertices(&stage_name(0), vertices, cycles));
        let results = from_last(tiles, stage.iter().map(|tile| tile.results));
        let first = results.map(|count| Elements(*count));
        let mut held = results.map(|count| *count * RESULT_BYTES);
        let mut stage = 1;
        while rows.keys().any(|results| *results > 1) {
            let start = work.phases().len() - 1;
            // Rows with one result are finished. The others take a vertex for every 32 results.
            let mut sizes = Vec::new();
            let mut next: BTreeMap<u64, u64> = BTreeMap::new();
            for (results, count) in &rows {
                let vertices = results.div_ceil(RESULTS_PER_VERTEX);
                *next.entry(vertices).or_default() += count;
                if *results > 1 {
                    let one = (0..vertices)
                        .map(|at| (results - at * RESULTS_PER_VERTEX).min(RESULTS_PER_VERTEX));
                    sizes.extend(
                        std::iter::repeat_n(one, usize::try_from(*count).unwrap_or(0)).flatten(),
                    );
                }
            }
            let made = self.later_stage(machine, work, &stage_name(stage), (&sizes, &held));
            work.temporaries.push(TemporaryVariable::anywhere(
                format!("maxMinArgMaxMin/Partials[{}]", stage - 1),
                MemoryCategory::Variable,
                held,
                start..work.phases().len(),
            ));
            held = made;
            rows = next;
            stage += 1;
        }
        // One result is left for each row, on the tile that computed it.
        let made = held.map(|bytes| Elements(*bytes / RESULT_BYTES));
        let missing = self.rows - made.total().0.min(self.rows);
        let early = tile_runs::trimmed(&first, Elements(missing));
        let indices = tile_runs::add_per_tile(&made, &early);
        debug_assert_eq!(indices.total().0, self.rows, "an index for each row");
        indices
    }

    /// Adds a later stage. Vertices are distributed over the tiles one by one, from the last tile
    /// down.
    fn later_stage(
        self,
        machine: &IpuTarget,
        work: &mut OperationWork,
        name: &str,
        (sizes, held): (&[u64], &TileRuns<Bytes>),
    ) -> TileRuns<Bytes> {
        let tiles = machine.tiles;
        let mut on_tiles = vec![(0, Bytes::ZERO, Cycles::ZERO); tiles as usize];
        for (tile, size) in (0..on_tiles.len()).rev().cycle().zip(sizes) {
            let (vertices, bytes, cycles) = &mut on_tiles[tile];
            // Six vertices of a tile run in parallel, then the next six.
            if *vertices % WORKERS == 0 {
                *cycles += self.choose(*size);
            }
            *vertices += 1;
            *bytes += *size * RESULT_BYTES;
        }
        let received = per_tile(TileId(0).onwards().zip(on_tiles.iter().map(|of| of.1)));
        let messages = TileMessages { received: WORKERS, sent: 1 };
        let speed = machine.exchange_speed();
        let start = work.phases().len();
        work.push_some(exchange::phase(name, &received, held, messages, tiles, speed));
        let vertices = per_tile(TileId(0).onwards().zip(on_tiles.iter().map(|of| of.0)));
        let cycles = per_tile(TileId(0).onwards().zip(on_tiles.iter().map(|of| of.2)));
        let vertex = self.vertex("Sparse", self.result_type());
        let made = vertices.map(|count| *count * RESULT_BYTES);
        let instances = VertexInstances::of_edges(vertex, vertices, 4);
        work.push(WorkPhase::of_vertices(name, instances, cycles));
        work.push_temporary(&format!("{name}/gathered"), received, start);
        made
    }
}

/// Debug name of a stage.
fn stage_name(stage: u64) -> String {
    format!("maxMinArgMaxMin/ReduceClass[{stage}]")
}

/// Assigns values to tiles from the last one down.
fn from_last<T: Quantity>(tiles: u32, values: impl Iterator<Item = T>) -> TileRuns<T> {
    let values: Vec<T> = values.collect();
    let unused = (tiles as usize).saturating_sub(values.len());
    per_tile(TileId(0).onwards().skip(unused).zip(values.into_iter().rev()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::MK2;

    #[test]
    fn every_row_has_an_index() {
        let machine = IpuTarget::all_tiles_of(MK2);
        for (rows, columns) in [(1, 5), (1, 100_000), (7, 33), (5000, 10), (3, 50_257)] {
            for dtype in [DType::Half, DType::Int] {
                let of = ExtremaRows { rows, columns, dtype, largest: true };
                assert_eq!(of.operand(machine.tiles).total().0, rows * columns);
                let mut work = OperationWork::default();
                assert_eq!(of.lower(&machine, &mut work).total().0, rows);
            }
        }
    }

    #[test]
    fn workers_share_long_rows() {
        let rows = ExtremaRows { rows: 1, columns: 600, dtype: DType::Half, largest: true };
        // Six workers with 100 elements each.
        assert_eq!(rows.gather(600), (6, Cycles(9 + 6 * (30 + 3 * 99))));
        assert_eq!(rows.gather(40), (2, Cycles(9 + 6 * (30 + 3 * 31))));
    }
}
