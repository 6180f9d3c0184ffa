//! Pooling vertex: the work of its workers for a box of results (poplibs
//! lib/popnn/PoolVertices.cpp), and their cycles (lib/popnn/PerformanceEstimation.hpp).

use super::pool_axis::PoolAxis;
use super::{PoolingPass, PoolingType};
use crate::cost_constants::POOL_WORKER_CYCLES;
use crate::targets::WORKERS;
use std::ops::Range;
use tilescope_report::units::Cycles;

/// Box of results that one tile computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolOutputBox {
    pub batch: u64,
    pub groups: u64,
    /// Vectors of 64 bits in a group.
    pub vectors: u64,
    /// Planes, rows and columns.
    pub field: [Range<u64>; 3],
}

impl PoolOutputBox {
    /// Number of results of one channel of one sample.
    pub(crate) fn results(&self) -> u64 {
        self.field.iter().map(|range| range.end - range.start).product()
    }
}

/// Work of one worker: rows, and runs of results for one position of a window each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolWorkList {
    /// Number of rows, whole or in part.
    pub rows: u64,
    pub runs: u64,
    /// Results of all runs minus one per run: repeats of the inner loop.
    pub repeats: u64,
}

impl PoolWorkList {
    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.runs += other.runs;
        self.repeats += other.repeats;
    }
}

/// Cycles to unpack a compressed pointer.
const UNPACK_CYCLES: u64 = 2;

/// Tile cycles of a vertex whose workers have these lists and initialise `results` results
/// (`getPoolingCycles`; rows and vectors are counted as in `poolVertexCyclesPerRow` and
/// `poolVertexCyclesPerVector`).
pub(super) fn cycles(
    pass: PoolingPass,
    groups: u64,
    vectors: u64,
    results: u64,
    lists: impl Iterator<Item = PoolWorkList>,
) -> Cycles {
    let slowest =
        lists.map(|list| worker_cycles(pass, groups, vectors, results, list)).max().unwrap_or(0);
    Cycles(7) + WORKERS * (POOL_WORKER_CYCLES.cycles() + Cycles(slowest)) + Cycles(6)
}

fn worker_cycles(
    pass: PoolingPass,
    groups: u64,
    vectors: u64,
    results: u64,
    list: PoolWorkList,
) -> u64 {
    let maxima_backward = pass.kind == PoolingType::Max && pass.backward;
    // All workers initialise the results in equal shares, regardless of their worklists.
    let initialised = results * vectors / WORKERS;
    let start = 4 + 2 + 2 + 7 + 2 + UNPACK_CYCLES + (4 + initialised) * groups + 6 + UNPACK_CYCLES;
    if list.rows == 0 {
        return start + 1;
    }
    let scale = if pass.kind == PoolingType::Max { 1 } else { 2 };
    let pointers = if maxima_backward { 6 + 2 * UNPACK_CYCLES } else { 0 };
    let prologue = 2 + scale + pointers + 3 + 2 + 2 * UNPACK_CYCLES + 1;
    // Cycles of the first repeat and of every further one.
    let (first, further) = match (pass.kind, maxima_backward) {
        (_, true) => (7, 5),
        (PoolingType::Max, false) => (4, 3),
        (_, false) => (5, 3),
    };
    let next_group = if maxima_backward { 6 } else { 4 };
    let run = 20 + 3 + groups * 2 + (groups - 1) * next_group + groups * vectors * (3 + first);
    start
        + prologue
        + list.rows * (13 + 2)
        + list.runs * run
        + list.repeats * groups * vectors * further
        + 1
}

/// Results of each worker of a box, in memory order.
fn shares(results: u64) -> impl Iterator<Item = Range<u64>> {
    // The split is by results, never by positions of the window: a result that two workers update
    // would be lost.
    (0..WORKERS).map(move |worker| worker * results / WORKERS..(worker + 1) * results / WORKERS)
}

/// Share of a worker in rows: parts of a row at its ends, and whole rows between.
struct PoolWorkerRows {
    parts: [Option<(u64, Range<u64>)>; 2],
    whole: Range<u64>,
}

fn rows(share: Range<u64>, columns: u64) -> PoolWorkerRows {
    let first = share.start / columns;
    let last = share.end / columns;
    let from = share.start % columns;
    let to = share.end % columns;
    if first == last {
        let part = if from < to { Some((first, from..to)) } else { None };
        return PoolWorkerRows { parts: [part, None], whole: 0..0 };
    }
    let head = if from > 0 { Some((first, from..columns)) } else { None };
    let tail = if to > 0 { Some((last, 0..to)) } else { None };
    PoolWorkerRows { parts: [head, tail], whole: first + u64::from(from > 0)..last }
}

/// Worklists from sizes alone, as the planner estimates them. Every position of a window counts.
pub(crate) fn planned_lists(
    batch: u64,
    field: [u64; 3],
    positions: u64,
    stride: u64,
) -> impl Iterator<Item = PoolWorkList> {
    let [depth, height, width] = field;
    shares(batch * depth * height * width).map(move |share| {
        let rows = rows(share, width);
        let mut list = PoolWorkList::default();
        for (_, columns) in rows.parts.into_iter().flatten() {
            let repeats = positions * ((columns.end - columns.start).div_ceil(stride) - 1);
            list.add(PoolWorkList { rows: 1, runs: positions, repeats });
        }
        let count = rows.whole.end - rows.whole.start;
        list.add(PoolWorkList {
            rows: count,
            runs: count * positions,
            repeats: count * positions * (width.div_ceil(stride) - 1),
        });
        list
    })
}

/// Number of window positions along an axis that have an operand for result `at`.
fn reached_positions(pass: PoolingPass, axis: PoolAxis, at: u64) -> u64 {
    let positions = 0..axis.kernel;
    positions
        .filter(|position| axis.results_with_operand(pass.backward, *position, at..at + 1) > 0)
        .count() as u64
}

/// Worklists of a box, with only the window positions that have an operand.
pub(crate) fn lists(
    pass: PoolingPass,
    axes: [PoolAxis; 3],
    piece: &PoolOutputBox,
) -> Vec<PoolWorkList> {
    let [planes, lines, columns] = &piece.field;
    let [depth, height, width] = [planes, lines, columns].map(|range| range.end - range.start);
    let [across, vertical, horizontal] = axes;
    let runs = |part: &Range<u64>| {
        let range = columns.start + part.start..columns.start + part.end;
        let counts = (0..horizontal.kernel)
            .map(|position| horizontal.results_with_operand(pass.backward, position, range.clone()))
            .filter(|count| *count > 0);
        counts.fold((0, 0), |(runs, repeats), count| (runs + 1, repeats + count - 1))
    };
    let whole_row = runs(&(0..width));
    let row = |row: u64, (runs, repeats): (u64, u64)| {
        // A position of the window has a run in this row only if its row and plane have an operand.
        // Padding takes no cycles.
        let reached = reached_positions(pass, vertical, lines.start + row % height)
            * reached_positions(pass, across, planes.start + row / height % depth);
        let rows = u64::from(reached * runs > 0);
        PoolWorkList { rows, runs: reached * runs, repeats: reached * repeats }
    };
    shares(piece.batch * piece.results())
        .map(|share| {
            let rows = rows(share, width);
            let mut list = PoolWorkList::default();
            for (at, columns) in rows.parts.into_iter().flatten() {
                list.add(row(at, runs(&columns)));
            }
            for at in rows.whole {
                list.add(row(at, whole_row));
            }
            list
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn axis(elements: u64, kernel: u64, stride: u64, before: u64) -> PoolAxis {
        PoolAxis { elements, kernel, stride, before, behind: before }
    }

    fn piece(axes: [PoolAxis; 3], backward: bool, batch: u64) -> PoolOutputBox {
        let field = axes.map(|axis| 0..axis.results(backward));
        PoolOutputBox { batch, groups: 1, vectors: 1, field }
    }

    #[test]
    fn padding_takes_no_runs() {
        let axes = [PoolAxis::NONE, axis(6, 3, 1, 1), axis(6, 3, 1, 1)];
        let pass = PoolingPass { kind: PoolingType::Max, backward: false };
        let lists = lists(pass, axes, &piece(axes, false, 1));
        // One row of six results per worker. The first and last rows cover two rows of the window.
        assert_eq!(lists.iter().map(|list| list.runs).collect::<Vec<_>>(), [6, 9, 9, 9, 9, 6]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn every_pair_of_window_and_element_is_in_a_list(
            elements in 1u64..12, kernel in 1u64..5, stride in 1u64..4, before in 0u64..3,
            batch in 1u64..4, backward: bool,
        ) {
            let axis = axis(elements, kernel, stride, before);
            prop_assume!(axis.windows().is_some());
            let pass = PoolingPass { kind: PoolingType::Max, backward };
            let lists = lists(pass, [axis; 3], &piece([axis; 3], backward, batch));
            let pairs: u64 = (0..kernel).map(|position| axis.results_with_operand(true, position, 0..elements)).sum();
            let handled: u64 = lists.iter().map(|list| list.runs + list.repeats).sum();
            prop_assert_eq!(handled, batch * pairs * pairs * pairs);
        }
    }
}
