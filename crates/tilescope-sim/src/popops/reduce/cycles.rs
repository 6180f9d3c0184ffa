//! Cycles of reduction vertices, for one worker (poplibs
//! lib/popops/reduction/CycleEstimationFunctions.cpp, `getCyclesEstimateForReduce` unless stated
//! otherwise).

use super::ReduceResultUse;
use super::operation::ReduceOperation;
use crate::popops::elementwise::{LOADS_INTERLEAVED, vector_width};
use crate::shape::DType;
use crate::shape::gcd;
use tilescope_report::units::Cycles;

/// Specialisation of the vertex that reduces some regions. Cheaper ones need more regular operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReductionSpecialisation {
    Default,
    /// Any regions, one result each.
    ScalarOutputRegions,
    /// One result from one contiguous stretch.
    ScalarOutputSingleInput,
    /// Adjacent results from rows at a regular distance.
    StridedReduce,
    /// Adjacent results, each from one contiguous stretch.
    AllRegionsContinuous,
}

/// Types and operation of a reduction vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReduceVertexType {
    pub operation: ReduceOperation,
    /// Type of its operands.
    pub input: DType,
    /// Type of its results.
    pub output: DType,
    /// Use of its results. Factors cost nothing, as in the estimators.
    pub result: ReduceResultUse,
}

/// Cycles of entry and exit of every vertex except the continuous one.
const CALL_CYCLES: u64 = 5 + 1 + 1;

impl ReduceVertexType {
    /// Elements of the accumulator's width. Sums have twice the width of other operations.
    fn accumulator_width(self) -> u64 {
        match self.input {
            DType::Half => 8,
            DType::Float => 4,
            _ => 1,
        }
    }

    /// Elements that one load reads.
    fn load_width(self) -> u64 {
        vector_width(self.input) * if LOADS_INTERLEAVED { 2 } else { 1 }
    }

    /// Inner loop of a vertex with this specialisation.
    fn inner(self, form: ReductionSpecialisation) -> ReduceInnerLoop {
        if self.operation == ReduceOperation::LogAdd {
            // Assembly exists only for the strided vertex. The others process one element at a
            // time.
            return match (form, self.input) {
                (ReductionSpecialisation::StridedReduce, DType::Half) => {
                    ReduceInnerLoop { width: 4, cycles: 12 }
                }
                (ReductionSpecialisation::StridedReduce, _) => {
                    ReduceInnerLoop { width: 2, cycles: 23 }
                }
                _ => ReduceInnerLoop { width: 1, cycles: 20 },
            };
        }
        let width = if self.operation.is_sum() {
            self.accumulator_width()
        } else {
            vector_width(self.input)
        };
        ReduceInnerLoop { width, cycles: 1 }
    }
}

/// One round of the innermost loop of a reduction.
struct ReduceInnerLoop {
    /// Elements of a round, before alignment.
    width: u64,
    cycles: u64,
}

/// Cycles of `outputs` results from `rows` rows that are `stride` elements apart.
pub(crate) fn strided(kind: ReduceVertexType, outputs: u64, rows: u64, stride: u64) -> Cycles {
    // Rows may begin at any multiple of the greatest common divisor of stride and accumulator, so a
    // loop cannot process more.
    let ReduceInnerLoop { width, cycles: per_loop } =
        kind.inner(ReductionSpecialisation::StridedReduce);
    let step = gcd(width.min(kind.load_width()), stride).max(1);
    Cycles(CALL_CYCLES + 17 + 6 * outputs.div_ceil(step) + per_loop * rows * outputs / step)
}

/// Cycles of `outputs` results, each from its own stretch of `length` elements
/// (`getCycleEstimateReduceAllRegionsContinuous`).
pub(crate) fn continuous(kind: ReduceVertexType, outputs: u64, length: u64) -> Cycles {
    let ReduceInnerLoop { width, cycles: per_loop } =
        kind.inner(ReductionSpecialisation::AllRegionsContinuous);
    let width =
        if kind.operation == ReduceOperation::LogAdd { width } else { kind.accumulator_width() };
    let loops = length / width.min(kind.load_width());
    // The estimator counts one result less in its main loop.
    let odd = if length % 2 == 1 { 2 } else { 0 };
    let rest = odd + 12 * outputs.saturating_sub(1) + 10 + 7;
    Cycles(per_loop * outputs.saturating_sub(1) * loops + rest + u64::from(kind.result.update))
}

/// Cycles of one result from one stretch of `length` elements.
pub(crate) fn single_input(kind: ReduceVertexType, length: u64) -> Cycles {
    let ReduceInnerLoop { width, cycles: per_loop } =
        kind.inner(ReductionSpecialisation::ScalarOutputSingleInput);
    let step = width.min(kind.load_width());
    let body = if length < 6 { 6 } else { per_loop * length / step + length % step };
    let narrow = if kind.output == DType::Float { 0 } else { 5 };
    Cycles(CALL_CYCLES + 8 + 11 + body + narrow)
}

/// Cycles of the general vertex for regions, each with its number of results and the sizes of the
/// pieces they come from.
pub(crate) fn general<'a>(
    kind: ReduceVertexType,
    regions: impl Iterator<Item = (u64, &'a [u64])>,
) -> Cycles {
    // All other operations and types are compiled from C++, without assembly.
    if kind.operation.is_vectorised() {
        let each = regions.map(|(outputs, pieces)| vectorised(kind, outputs, pieces));
        Cycles(CALL_CYCLES + 3 + 23 + each.sum::<u64>())
    } else {
        let per_operation = kind.inner(ReductionSpecialisation::Default).cycles;
        let each = regions.map(|(_, pieces)| scalar(kind, per_operation, pieces));
        Cycles(CALL_CYCLES + 2 + 14 + each.sum::<u64>())
    }
}

/// Cycles to store `elements` results of the general vertex in assembly.
fn store_cycles(kind: ReduceVertexType, elements: u64) -> u64 {
    let each = 2 + u64::from(kind.result.update);
    each * elements.min(vector_width(kind.output)) + u64::from(kind.operation.is_sum())
}

/// Cycles of one region of the general vertex in assembly.
fn vectorised(kind: ReduceVertexType, outputs: u64, pieces: &[u64]) -> u64 {
    let width = kind.inner(ReductionSpecialisation::Default).width;
    let sums = u64::from(kind.operation.is_sum());
    let load = width.min(kind.load_width());
    let vectors = outputs / width;
    let checks = u64::from(width.ilog2());
    let parts = pieces.len() as u64;
    let rows: u64 = pieces.iter().map(|piece| piece / outputs).sum();
    let mut cycles = 16 + 6 + 2 * checks + 2;
    cycles += vectors * (3 + 2 * sums + store_cycles(kind, width) + 1) + vectors * parts * 10;
    cycles += vectors * rows * (2 * sums + 2 + width / load + 3);
    // The remainder that does not fill the accumulator is processed in successive halves of it,
    // with a pass over all rows for each.
    for remainder in (0..checks).map(|bit| 1 << bit).filter(|part| (outputs % width) & part != 0) {
        cycles += 2 + 2 * sums + store_cycles(kind, remainder) + parts * 10;
        cycles += rows * (2 + remainder / remainder.min(load) + 3);
    }
    cycles
}

/// Cycles of one region of the general vertex in compiled code.
fn scalar(kind: ReduceVertexType, per_operation: u64, pieces: &[u64]) -> u64 {
    let conversion = u64::from(kind.input != kind.output);
    let width = vector_width(kind.input);
    let vectors: u64 = pieces.iter().map(|piece| piece.div_ceil(width)).sum();
    let update = u64::from(kind.result.update);
    5 + 5 + vectors * (2 + per_operation + 3 + 1 + update + conversion)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(operation: ReduceOperation, input: DType, output: DType) -> ReduceVertexType {
        ReduceVertexType { operation, input, output, result: ReduceResultUse::PLAIN }
    }

    #[test]
    fn strided_rows_cost_what_the_estimator_says() {
        // 4 maxima of 32 rows of halves: 24 + 6 + 32; 4 float sums of 64 rows: 24 + 6 + 64.
        assert_eq!(
            strided(kind(ReduceOperation::Max, DType::Half, DType::Half), 4, 32, 8),
            Cycles(62)
        );
        assert_eq!(
            strided(kind(ReduceOperation::Add, DType::Float, DType::Half), 4, 64, 8),
            Cycles(94)
        );
    }

    #[test]
    fn irregular_operands_cost_more() {
        let kind = kind(ReduceOperation::Add, DType::Half, DType::Float);
        let rows = [16; 8];
        let default = general(kind, std::iter::once((16, &rows[..])));
        assert!(default > strided(kind, 16, 8, 16));
    }
}
