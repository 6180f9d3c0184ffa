//! Assignment of the region reductions of one tile to its workers, in one or two compute sets
//! (poplibs lib/popops/reduction/ReductionConnection.cpp, connectReductions).

use super::ReduceResultUse;
use super::cycles::ReduceVertexType;
use super::operation::ReduceOperation;
use super::region_reduction::{ReduceVertex, RegionOperands, RegionReduction, vertices};
use super::region_splits::{
    fits_wider_rows, outputs_per_worker, rows_per_worker, split_columns, split_rows,
    split_wide_rows,
};
use crate::popops::elementwise::vector_width;
use crate::poputil::list_length;
use crate::shape::DType;
use crate::targets::{WORKER_COUNT, WORKERS};
use tilescope_report::units::Cycles;

/// Work of one tile in one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReduceTileWork {
    /// Vertices of the first compute set, then of the second.
    pub sets: [Vec<ReduceVertex>; 2],
    /// Cycles of the busiest worker of each compute set, as tile cycles: a worker gets every sixth
    /// cycle.
    pub cycles: [Cycles; 2],
    /// Number of elements that the first set leaves for the second.
    pub scratch_elements: u64,
}

/// Operation and types of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReduceStageTypes {
    pub operation: ReduceOperation,
    /// Type of its operands.
    pub input: DType,
    /// Type of the operands of a second compute set on the tile.
    pub partials: DType,
    /// Type of its results.
    pub output: DType,
    /// True if it reads the tensor itself, in place.
    pub first: bool,
    /// Use of its results.
    pub result: ReduceResultUse,
}

impl ReduceStageTypes {
    fn whole(&self) -> ReduceVertexType {
        let Self { operation, input, output, result, .. } = *self;
        ReduceVertexType { operation, input, output, result }
    }

    fn first_half(&self) -> ReduceVertexType {
        let Self { operation, input, partials: output, .. } = *self;
        ReduceVertexType { operation, input, output, result: ReduceResultUse::PLAIN }
    }

    fn second_half(&self) -> ReduceVertexType {
        let operation = self.operation.combining();
        ReduceVertexType {
            operation,
            input: self.partials,
            output: self.output,
            result: self.result,
        }
    }
}

/// Assigns regions to the workers of a tile.
struct RegionWorkerAssigner {
    stage: ReduceStageTypes,
    work: ReduceTileWork,
    free_workers: u64,
}

/// Returns the work of one tile for these regions.
pub(crate) fn assign_regions(
    stage: ReduceStageTypes,
    regions: Vec<RegionReduction>,
) -> ReduceTileWork {
    let mut dealer =
        RegionWorkerAssigner { stage, work: ReduceTileWork::default(), free_workers: WORKERS };
    let total = regions.len() as u64;
    // The order matters: each method takes the regions it suits best, and the workers it occupies
    // are not available to the next one.
    let rest = dealer.runs(regions, total);
    let total = rest.len() as u64;
    let rest = dealer.repeated_runs(rest, total);
    let total = rest.len() as u64;
    let rest = dealer.few_columns(rest, total);
    if !rest.is_empty() {
        dealer.share(rest);
    }
    let mut work = dealer.work;
    work.cycles = work.sets.each_ref().map(|vertices| tile_cycles(vertices));
    work
}

fn tile_cycles(vertices: &[ReduceVertex]) -> Cycles {
    let mut workers = [Cycles::ZERO; WORKER_COUNT];
    for vertex in vertices {
        if let Some(least) = workers.iter_mut().min() {
            *least += vertex.cycles;
        }
    }
    WORKERS * workers.into_iter().max().unwrap_or_default()
}

impl RegionWorkerAssigner {
    fn add(&mut self, set: usize, regions: &[RegionReduction], kind: ReduceVertexType) {
        let first_stage = self.stage.first && set == 0;
        self.work.sets[set].extend(vertices(regions, kind, first_stage));
    }

    fn take_workers(&mut self, count: u64) {
        self.free_workers = self.free_workers.saturating_sub(count);
    }

    /// Number of parts into which each of `chosen` regions can be split until `total` regions
    /// occupy all workers.
    fn most_splits(&self, total: u64, chosen: u64) -> u64 {
        // Every region needs a worker. Splits can use only the remaining ones.
        let others = total - chosen;
        ((self.free_workers.saturating_sub(others)) / chosen.max(1)).max(1)
    }

    /// Columns with one run each: one stretch per result.
    fn runs(&mut self, regions: Vec<RegionReduction>, total: u64) -> Vec<RegionReduction> {
        let (chosen, rest): (Vec<_>, Vec<_>) = regions
            .into_iter()
            .partition(|region| region.inner != 1 && region.outer == 1 && region.outputs != 1);
        let splits = self.most_splits(total, chosen.len() as u64);
        for region in chosen {
            let mut columns = region.columns.iter().cloned().flatten();
            let mut at = 0;
            for count in outputs_per_worker(splits, region.outputs) {
                let mut part = Vec::new();
                for (offset, column) in (at..at + count).zip(columns.by_ref()) {
                    let operands = match &region.operands {
                        RegionOperands::Pieces(pieces) => RegionOperands::Pieces(
                            pieces.iter().map(|piece| piece / region.outputs).collect(),
                        ),
                        RegionOperands::Regular { .. } => region.operands_at(offset * region.inner),
                    };
                    part.push(RegionReduction {
                        columns: std::iter::once(column..column + 1).collect(),
                        outputs: 1,
                        inner: region.inner,
                        outer: 1,
                        operands,
                    });
                }
                at += count;
                self.add(0, &part, self.stage.whole());
                self.take_workers(1);
            }
        }
        rest
    }

    /// Columns with several runs each: first row by row, then each run.
    fn repeated_runs(&mut self, regions: Vec<RegionReduction>, total: u64) -> Vec<RegionReduction> {
        let (chosen, rest): (Vec<_>, Vec<_>) =
            regions.into_iter().partition(|region| region.inner != 1 && region.outputs != 1);
        if chosen.is_empty() {
            return rest;
        }
        let splits = self.most_splits(total, chosen.len() as u64);
        let parts: Vec<RegionReduction> = chosen
            .iter()
            .flat_map(|region| split_columns(region, splits, self.stage.input))
            .collect();
        self.take_workers(parts.len() as u64);
        // `A0 A1 B0 B1 A2 A3 B2 B3`: adding rows to each other leaves
        // `A even, A odd, B even, B odd`, whose runs a second set reduces. Reducing each column at
        // once would require a general vertex.
        for part in &parts {
            let elements = part.outputs * part.inner;
            let rows = RegionReduction {
                columns: std::iter::once(0..elements).collect(),
                outputs: elements,
                inner: 1,
                ..part.clone()
            };
            self.work.scratch_elements += elements;
            self.add(0, &[rows], self.stage.first_half());
            for columns in &part.columns {
                let runs: Vec<RegionReduction> = columns
                    .clone()
                    .map(|column| RegionReduction::of_stretch(column, part.inner))
                    .collect();
                self.add(1, &runs, self.stage.second_half());
            }
        }
        rest
    }

    /// Two or three columns: several rows are combined into one of a suitable width.
    fn few_columns(&mut self, regions: Vec<RegionReduction>, total: u64) -> Vec<RegionReduction> {
        let width = vector_width(self.stage.input);
        let (candidates, mut rest): (Vec<_>, Vec<_>) = regions.into_iter().partition(|region| {
            (2..4).contains(&region.outputs) && !region.outputs.is_multiple_of(width)
        });
        if candidates.is_empty() {
            return rest;
        }
        let splits = self.most_splits(total, candidates.len() as u64);
        for region in candidates {
            // Columns `A B` as rows `A0 B0 A1 B1` fill vectors, and a second set adds the elements
            // of each column. Wider rows would leave too much to the second set, so poplibs stops
            // at three columns.
            let row = if width == 4 && region.outputs == 2 { 4 } else { region.outputs * width };
            if !fits_wider_rows(&region, row) {
                rest.push(region);
                continue;
            }
            let factor = row / region.outputs;
            let parts = split_wide_rows(&region, row, splits);
            let count = parts.len() as u64;
            for part in parts {
                let wide = RegionReduction {
                    columns: std::iter::once(0..row).collect(),
                    outputs: row,
                    inner: 1,
                    outer: part.outer / factor,
                    operands: match part.operands {
                        RegionOperands::Regular { offset, stride } => {
                            RegionOperands::Regular { offset, stride: stride * factor }
                        }
                        pieces => pieces,
                    },
                };
                self.work.scratch_elements += row;
                self.add(0, &[wide], self.stage.first_half());
                self.take_workers(1);
            }
            for column in region.columns.iter().cloned().flatten() {
                let last = RegionReduction::of_stretch(column, factor * count);
                self.add(1, &[last], self.stage.second_half());
            }
        }
        rest
    }

    /// All other regions: split by rows if workers are idle, otherwise distributed whole.
    fn share(&mut self, regions: Vec<RegionReduction>) {
        if regions.len() as u64 >= self.free_workers {
            for worker in assign(&regions, self.stage, self.free_workers) {
                self.add(0, &worker, self.stage.whole());
            }
            return;
        }
        for (region, splits) in regions.iter().zip(row_splits(&regions, self)) {
            if splits <= 1 {
                self.add(0, std::slice::from_ref(region), self.stage.whole());
            } else {
                self.split_by_rows(region, splits);
            }
        }
    }

    fn split_by_rows(&mut self, region: &RegionReduction, splits: u64) {
        // A single column is cut inside its run, so parts are whole vectors. Rows of several
        // columns are whole anyway.
        let grain = if region.outputs == 1 { vector_width(self.stage.input) } else { 1 };
        let rows = rows_per_worker(region.depth(), splits, grain);
        let parts = split_rows(region, &rows);
        for part in &parts {
            self.work.scratch_elements += region.outputs;
            self.add(0, std::slice::from_ref(part), self.stage.first_half());
        }
        let last = RegionReduction {
            columns: region.columns.clone(),
            outputs: region.outputs,
            inner: 1,
            outer: 1,
            operands: RegionOperands::Pieces(vec![region.outputs * parts.len() as u64]),
        };
        self.add(1, &[last], self.stage.second_half());
    }
}

/// Approximate number of elements per cycle of a worker, for regions of `outputs` results of this
/// type.
fn elements_per_cycle(outputs: u64, dtype: DType, operation: ReduceOperation) -> u64 {
    // Accumulators take eight halves or four floats per cycle, twice the number of other
    // operations.
    let sums = operation.is_sum() && matches!(dtype, DType::Half | DType::Float);
    let width = vector_width(dtype) * if sums { 2 } else { 1 };
    // Narrow rows are processed like full vectors, and the remaining parts are combined at the end.
    if outputs.is_power_of_two() && outputs <= width {
        return width;
    }
    // The largest power of two that divides the row, up to the width.
    (1 << outputs.trailing_zeros()).min(width)
}

/// Approximate worker cycles of a region, by which poplibs compares splits.
fn rough_cycles(region: &RegionReduction, stage: ReduceStageTypes) -> Cycles {
    let speed = elements_per_cycle(region.outputs, stage.output, stage.operation);
    Cycles(region.elements().div_ceil(speed))
}

/// Approximate cycles of one vertex besides its elements.
const VERTEX_CYCLES: Cycles = Cycles(30);

/// Approximate cycles below which a part is not worth a vertex.
const LEAST_CYCLES: Cycles = Cycles(4);

/// Number of groups of rows into which each region is split to keep all workers busy.
fn row_splits(regions: &[RegionReduction], dealer: &RegionWorkerAssigner) -> Vec<u64> {
    let stage = dealer.stage;
    let rough: Vec<Cycles> = regions.iter().map(|region| rough_cycles(region, stage)).collect();
    let mut cycles: Vec<Cycles> = rough.iter().map(|cycles| *cycles + VERTEX_CYCLES).collect();
    let most: Vec<u64> = regions
        .iter()
        .zip(&cycles)
        // Parts of one row reduce nothing.
        .map(|(region, cycles)| (region.depth() / 2).min(*cycles / LEAST_CYCLES))
        .collect();
    let mut splits = vec![1; regions.len()];
    let longest_unsplit = cycles.iter().max().copied().unwrap_or_default();
    for _ in regions.len() as u64..dealer.free_workers {
        let longest = cycles.iter().max().copied().unwrap_or_default();
        let Some(slowest) = cycles.iter().position(|cycles| *cycles == longest) else { break };
        let parts = splits[slowest] + 1;
        // A split reduction also pays for a second stage.
        let after = 2 * VERTEX_CYCLES + rough[slowest] / parts;
        if parts >= most[slowest] || after >= longest {
            break;
        }
        splits[slowest] = parts;
        cycles[slowest] = after;
    }
    // Splits that do not speed up the slowest worker would only cost vertex state and another
    // compute set.
    let gained = cycles.iter().max().is_some_and(|longest| *longest < longest_unsplit);
    if gained { splits } else { vec![1; regions.len()] }
}

/// Assigns whole regions to workers. If all cost about the same, adjacent regions stay together.
/// Otherwise each goes to the least busy worker.
fn assign(
    regions: &[RegionReduction],
    stage: ReduceStageTypes,
    workers: u64,
) -> Vec<Vec<RegionReduction>> {
    let cycles: Vec<Cycles> = regions.iter().map(|region| rough_cycles(region, stage)).collect();
    let mean = cycles.iter().sum::<Cycles>().as_f64() / cycles.len() as f64;
    // If there is nothing to balance, adjacent regions stay together: assigned in turn, no two of
    // them could share an efficient vertex.
    let tolerance = (0.1 * mean).max(8.0);
    let low = Cycles::from_f64(mean - tolerance);
    let high = Cycles::from_f64(mean + tolerance);
    let workers = list_length(workers.max(1));
    if cycles.iter().all(|cycles| (low..=high).contains(cycles)) {
        let mut rest = regions;
        let each = regions.len() / workers;
        let odd = regions.len() % workers;
        return (0..workers)
            .map(|worker| {
                let (mine, others) = rest.split_at(each + usize::from(worker < odd));
                rest = others;
                mine.to_vec()
            })
            .filter(|mine| !mine.is_empty())
            .collect();
    }
    let mut order: Vec<usize> = (0..regions.len()).collect();
    // The cheapest first: the comment in poplibs states the opposite of its code. The sort is
    // stable, so that equal regions stay adjacent.
    order.sort_by_key(|at| cycles[*at]);
    let mut dealt: Vec<(Cycles, Vec<usize>)> =
        vec![(Cycles::ZERO, Vec::new()); workers.min(regions.len())];
    for at in order {
        if let Some(least) = dealt.iter_mut().min_by_key(|(busy, _)| *busy) {
            least.0 += cycles[at];
            least.1.push(at);
        }
    }
    dealt
        .into_iter()
        .map(|(_, mut mine)| {
            mine.sort_unstable();
            mine.into_iter().map(|at| regions[at].clone()).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_save_nothing_are_left_out() {
        assert_eq!(outputs_per_worker(6, 8), [2, 2, 2, 2]);
        assert_eq!(outputs_per_worker(6, 14), [3, 3, 2, 2, 2, 2]);
        assert_eq!(outputs_per_worker(1, 5), [5]);
    }

    #[test]
    fn rows_are_split_evenly_but_never_singly() {
        assert_eq!(rows_per_worker(9, 4, 1), [3, 3, 3]);
        assert_eq!(rows_per_worker(3, 6, 1), [3]);
        assert_eq!(rows_per_worker(10, 4, 1), [3, 3, 2, 2]);
    }

    #[test]
    fn one_long_region_is_split_between_all_workers() {
        let stage = ReduceStageTypes {
            operation: ReduceOperation::Add,
            input: DType::Half,
            partials: DType::Float,
            output: DType::Float,
            first: true,
            result: ReduceResultUse::PLAIN,
        };
        let region = RegionReduction {
            columns: vec![0..8],
            outputs: 8,
            inner: 1,
            outer: 83,
            operands: RegionOperands::Regular { offset: 0, stride: 8 },
        };
        let work = assign_regions(stage, vec![region]);
        assert_eq!(work.sets.map(|set| set.len()), [6, 1]);
        assert_eq!(work.scratch_elements, 48);
    }
}
