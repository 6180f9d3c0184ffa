//! Tile cycles of in-place vertices that broadcast one operand (poplibs
//! lib/popops/popopsCycleEstimators.cpp, of the commit used for the op benchmarks). Inside a
//! formula cycles are plain numbers. A worker gets every sixth cycle.

use crate::popops::elementwise::BinaryOpType;
use crate::popops::elementwise::cycles::SUPERVISOR_CYCLES;
use crate::popops::elementwise::vector_width;
use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::Cycles;

/// Cycles of one vertex on `rows` runs of `columns` elements with one value each
/// (BroadcastVectorOuterCycleEstimate).
pub(super) fn outer_vector(
    operation: BinaryOpType,
    dtype: DType,
    [rows, columns]: [u64; 2],
    by_row: bool,
) -> Cycles {
    // Rows that do not begin at a vector need the vertex for misaligned rows.
    let aligned = columns.is_multiple_of(vector_width(dtype));
    let outer = if aligned { 7 } else { 25 };
    // Either workers share the rows, or all of them process a part of every row.
    let (rows, columns) =
        if by_row { (rows.div_ceil(WORKERS), columns) } else { (rows, columns.div_ceil(WORKERS)) };
    let row = outer + operation.inner_with_scalar(dtype, columns, true);
    Cycles(WORKERS * (15 + rows * row) + SUPERVISOR_CYCLES)
}

/// Cycles of all workers of a tile for a vector of `length` elements that is repeated `blocks`
/// times (BroadcastVectorInnerInPlaceSupervisor). `None` if it would be processed element by
/// element.
pub(super) fn inner_vector(
    operation: BinaryOpType,
    dtype: DType,
    length: u64,
    blocks: u64,
) -> Option<Cycles> {
    let half = dtype == DType::Half;
    // vectorInnerSupervisorDivCycles, vectorInnerSupervisorAddCycles, plus the cycles that the
    // estimators of each operation add for the supervisor and for each worker.
    let (supervisor, worker) = match operation {
        BinaryOpType::Divide => (13 + 1 + 2, if half { 24 } else { 19 }),
        BinaryOpType::Add => (13, 2 + if half { 19 } else { 17 }),
        _ => (13 + 6, 3 + if half { 19 } else { 17 }),
    };
    let core = inner_core(operation, dtype, length, blocks.div_ceil(WORKERS))?;
    Some(Cycles(supervisor + WORKERS * (worker + core)))
}

/// Cycles of one worker for vectors of `length` elements with the given numbers of repetitions
/// (BroadcastVectorInner2DInPlace). `None` if one would be processed element by element.
pub(super) fn inner_vector_worker(
    operation: BinaryOpType,
    dtype: DType,
    length: u64,
    blocks: impl Iterator<Item = u64>,
) -> Option<u64> {
    let half = dtype == DType::Half;
    // vectorInner2DAddCycles, vectorInner2DMulCycles, vectorInner2DDivCycles.
    let (start, each) = match operation {
        BinaryOpType::Divide => (8 + 1 + 2, if half { 17 } else { 11 }),
        BinaryOpType::Multiply => (5 + 1 + 3, if half { 15 } else { 11 }),
        BinaryOpType::Add => (5 + 1 + 2, if half { 17 } else { 11 }),
        _ => (5 + 1 + 4, if half { 17 } else { 11 }),
    };
    let vectors = blocks.map(|blocks| Some(each + inner_core(operation, dtype, length, blocks)?));
    Some(start + vectors.sum::<Option<u64>>()?)
}

/// Longest vector in halves that is added a vector at a time (vectorInnerAddCoreCycles_half).
const LONGEST_VECTOR: u64 = 2048;

/// Cycles of the loops of one worker if it processes whole vectors, or divides. Poplibs intends to
/// avoid the other loops, which process halves one by one at 9 cycles each, but checks only the
/// length. Floats are vectorised only with two operands.
fn inner_core(operation: BinaryOpType, dtype: DType, length: u64, blocks: u64) -> Option<u64> {
    match (operation, dtype) {
        (BinaryOpType::Divide, DType::Half) => Some(divide_half(length, blocks)),
        (BinaryOpType::Divide, DType::Float) => Some(divide_float(length, blocks)),
        (BinaryOpType::Multiply, DType::Half) => multiply_half(length, blocks),
        (BinaryOpType::Add | BinaryOpType::Subtract, DType::Half) => add_half(length, blocks),
        _ => None,
    }
}

/// Cycles of one division of a float (f32div).
const DIVIDE_CYCLES: u64 = 3;

/// Cycles of division of halves, two divisions per pair (vectorInnerDivCoreCycles_half).
fn divide_half(length: u64, blocks: u64) -> u64 {
    let pair = 2 * DIVIDE_CYCLES;
    if length.is_multiple_of(2) {
        return 14 + length / 2 * (3 + pair + (blocks - 1) * (2 + pair) + 4);
    }
    // Every second block of odd length begins inside a word.
    let pairs = (length / 2).saturating_sub(1);
    let aligned = 3 + pair + pairs * (3 + pair) + 3;
    let misaligned = 5 + pair + 1 + pairs * (4 + pair) + 3 + pair + 3;
    let last = if blocks.is_multiple_of(2) { 0 } else { aligned + 2 + DIVIDE_CYCLES + 3 };
    10 + blocks / 2 * (aligned + misaligned) + last
}

/// Cycles of division of floats (vectorInnerDivCoreCycles_float).
fn divide_float(length: u64, blocks: u64) -> u64 {
    if length.is_multiple_of(2) {
        let loops = 2 + DIVIDE_CYCLES + (blocks - 1) * 2 * DIVIDE_CYCLES + DIVIDE_CYCLES + 3;
        10 + length / 2 * loops
    } else {
        9 + length * (3 + (blocks - 1) * (DIVIDE_CYCLES + 1) + DIVIDE_CYCLES + 3)
    }
}

/// Cycles of multiplication of halves (vectorInnerMulCoreCycles_half).
fn multiply_half(length: u64, blocks: u64) -> Option<u64> {
    if !length.is_multiple_of(4) {
        return None;
    }
    // In place, a cycle either loads or stores a block, not both.
    Some(5 + 4 + length / 4 * (7 + 2 * blocks))
}

/// Cycles of addition of halves (vectorInnerAddCoreCycles_half).
fn add_half(length: u64, blocks: u64) -> Option<u64> {
    if length > LONGEST_VECTOR {
        None
    } else if length.is_multiple_of(8) {
        let loops = length / 8;
        Some(5 + if blocks == 1 { 6 + 7 * loops } else { 7 + loops * (15 + 2 * (blocks - 1)) })
    } else if length.is_multiple_of(4) && blocks >= 2 {
        Some(9 + 6 + length / 4 * (13 + 2 * (blocks / 2 - 1) + blocks % 2))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_cost_what_the_estimators_say() {
        use BinaryOpType::{Add, Divide, Multiply, Subtract};
        // 13 + 6 x (19 + 2 + 5 + 7 + 2 x (15 + 2 x 9)): 60 blocks of 16, 10 for each worker.
        assert_eq!(inner_vector(Add, DType::Half, 16, 60), Some(Cycles(13 + 6 * 99)));
        assert_eq!(inner_vector(Subtract, DType::Half, 16, 60), Some(Cycles(19 + 6 * 100)));
        assert_eq!(
            inner_vector(Multiply, DType::Half, 16, 60),
            Some(Cycles(19 + 6 * (22 + 9 + 4 * 27)))
        );
        assert_eq!(
            inner_vector(Divide, DType::Float, 2, 60),
            Some(Cycles(16 + 6 * (19 + 10 + 65)))
        );
        // 6 rows of 100 elements by row, 25 vectors each.
        assert_eq!(outer_vector(Add, DType::Half, [6, 100], true), Cycles(6 * (15 + 32) + 11));
        assert_eq!(outer_vector(Add, DType::Half, [6, 96], false), Cycles(6 * (15 + 6 * 11) + 11));
        assert_eq!(
            inner_vector_worker(Add, DType::Half, 16, [10, 10].into_iter()),
            Some(8 + 2 * 95)
        );
    }
}
