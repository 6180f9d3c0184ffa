//! The largest elements of rows by bitonic sorting (poplibs lib/popops/BitonicTopK.cpp, topKImpl).
//! Every step compares elements at one distance and swaps them. Once sequences of `k` are sorted,
//! half of the remaining elements are dropped after each merge.

use super::elementwise;
use crate::cost_constants::TRANSPOSING_MESSAGES;
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::tile_runs;
use crate::poplar::work::{OperationWork, VertexInstances, WorkPhase};
use crate::poputil::split_regions::{SplitBounds, split_evenly};
use crate::shape::DType;
use crate::targets::{IpuTarget, WORKERS};
use tilescope_report::units::{Bytes, Cycles, Elements, TileId, TileRuns};

/// Bytes of a key and its index.
const PAIR_BYTES: Bytes = Bytes(8);

/// Rows whose first `k` elements in sorted order are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopKRows {
    pub rows: u64,
    /// Number of elements of a row.
    pub length: u64,
    /// Number of elements kept of each row.
    pub k: u64,
    pub dtype: DType,
}

/// One step of comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CompareStep {
    /// Number of elements of all rows.
    elements: u64,
    /// Distance of an element to its partner.
    distance: u64,
    /// Number of comparisons after which the order is reversed.
    turn: u64,
}

impl CompareStep {
    /// Number of comparisons of the step (numComparisonsAtDistance).
    fn comparisons(self) -> u64 {
        let block = 2 * self.distance;
        let rest = self.elements % block;
        self.elements / block * self.distance + rest.saturating_sub(self.distance)
    }

    /// Comparisons of each tile, on the smallest number of tiles that keeps the largest share
    /// minimal.
    fn shares(self, tiles: u32) -> Vec<u64> {
        let each = self.comparisons().div_ceil(tiles.into()).max(1);
        let starts = (0..self.comparisons()).step_by(usize::try_from(each).unwrap_or(usize::MAX));
        starts.map(|start| each.min(self.comparisons() - start)).collect()
    }

    /// Cycles of a tile with `comparisons` comparisons that all swap
    /// (`CompareAndSwapAtDistanceKeyVal` in lib/popops/popopsCycleEstimators.cpp), with those of
    /// each worker in one stretch.
    fn cycles(self, comparisons: u64) -> Cycles {
        let count = comparisons.div_ceil(WORKERS);
        let first = self.distance.min(count);
        let outer = 1 + (count - first).div_ceil(self.distance);
        let turns = count / self.turn.max(1);
        let worker = 23 + 4 + 8 + 11 * count.saturating_sub(1) + 11 * outer + 2 * turns;
        Cycles(19 + WORKERS * worker)
    }
}

impl TopKRows {
    /// Returns the steps in order.
    fn steps(self) -> Vec<CompareStep> {
        let log_k = u64::from(self.k.next_power_of_two().ilog2());
        let log_n = u64::from(self.length.next_power_of_two().ilog2());
        let padded_k = 1 << log_k;
        let mut left = self.length;
        let mut steps = Vec::new();
        let mut push = |left: u64, distance: u64, turn: u64| {
            let rows = self.rows;
            steps.push(CompareStep {
                elements: left * rows,
                distance: distance * rows,
                turn: turn * rows,
            });
        };
        for merge in 0..log_n {
            let log_distance = merge.min(log_k);
            let distance = 1 << log_distance;
            push(left, distance, if merge < log_k { distance } else { 1 << (log_n - 1) });
            if log_distance >= log_k && left > padded_k {
                let pairs = left / (2 * padded_k);
                let rest = left - pairs * 2 * padded_k;
                left = pairs * padded_k + rest.min(padded_k);
            }
            for sort in (0..log_distance).rev() {
                push(left, 1 << sort, distance.min(padded_k / 2));
            }
        }
        steps
    }

    /// Work of the tiles for a tensor with the given distribution, and the distribution of the
    /// results.
    pub(crate) fn lower(
        self,
        machine: &IpuTarget,
        held: &TileRuns<Elements>,
    ) -> (OperationWork, TileRuns<Elements>) {
        let mut work = OperationWork::default();
        if self.dtype == DType::Half {
            work.push(elementwise::cast("TopK/castKeys", DType::Half, DType::Float, held));
        }
        let tiles = machine.tiles;
        // Indices are initially a constant, which is sent with the keys.
        let mut from = held.clone();
        let vertex = "popops::CompareAndSwapAtDistanceKeyVal<float,unsigned int,false,false>";
        let steps = self.steps().into_iter().filter(|step| step.comparisons() > 0);
        for (number, step) in steps.enumerate() {
            let name = format!("TopK/Step{number}");
            let start = work.phases().len();
            let to = spread(step.elements, tiles);
            work.push_some(exchange_pairs(&name, machine, &to, &from));
            let shares = step.shares(tiles);
            let cycles = shares.iter().map(|count| Some(step.cycles(*count)));
            let cycles = TileRuns::from_tiles(TileId(0), cycles);
            let count = cycles.map(|_| 1);
            let instances = VertexInstances::of_edges(vertex.to_string(), count, 3);
            let compare = format!("{name}/CompareAndSwap");
            work.push(WorkPhase::of_vertices(&compare, instances, cycles));
            let pairs = to.map(|count| *count * PAIR_BYTES);
            work.push_temporary(&format!("{name}/keysAndValues"), pairs, start);
            from = to;
        }
        let results = spread(self.rows * self.k, tiles);
        work.push_some(exchange_pairs("TopK/results", machine, &results, &from));
        if self.dtype == DType::Half {
            work.push(elementwise::cast("TopK/castBack", DType::Float, DType::Half, &results));
        }
        (work, results)
    }
}

/// Exchange that moves keys and indices to the tiles of the next step. Elements that the previous
/// step dropped stay.
fn exchange_pairs(
    name: &str,
    machine: &IpuTarget,
    to: &TileRuns<Elements>,
    from: &TileRuns<Elements>,
) -> Option<WorkPhase> {
    let received = to.map(|count| *count * PAIR_BYTES);
    let sent = tile_runs::trimmed(from, to.total()).map(|count| *count * PAIR_BYTES);
    let messages = TileMessages::each_way(TRANSPOSING_MESSAGES.count());
    let speed = machine.exchange_speed();
    exchange::phase(name, &received, &sent, messages, machine.tiles, speed)
}

/// Distributes elements evenly over the tiles in pairs.
fn spread(elements: u64, tiles: u32) -> TileRuns<Elements> {
    let bounds = SplitBounds { grain: 2, most: tiles.into(), least: 2 };
    let parts = split_evenly(elements, bounds).map(|part| Some(Elements(part.end - part.start)));
    TileRuns::from_tiles(TileId(0), parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_a_bitonic_sort() {
        let steps = |length, k| TopKRows { rows: 1, length, k, dtype: DType::Float }.steps();
        // All of 8 elements: 1 + 2 + 3 steps.
        assert_eq!(steps(8, 8).len(), 6);
        // The largest of 8: three merges, each of which drops half.
        let largest: Vec<u64> = steps(8, 1).iter().map(|step| step.elements).collect();
        assert_eq!(largest, [8, 4, 2]);
        assert!(steps(1, 1).is_empty());
        let step = CompareStep { elements: 15, distance: 4, turn: 4 };
        assert_eq!(step.comparisons(), 7);
        assert_eq!(step.shares(3), [3, 3, 1]);
    }
}
