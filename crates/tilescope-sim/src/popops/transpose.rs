//! Transposes of small matrices on one tile (poplibs lib/popops/popopsCycleEstimators.cpp and
//! Rearrange.cpp).

use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::{Bytes, Cycles};

/// Matrices of one shape on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransposeMatrices {
    pub count: u64,
    /// Rows of a matrix before it is transposed.
    pub rows: u64,
    /// Columns of a matrix before it is transposed.
    pub columns: u64,
}

/// Largest stride of a load or store in vectors: the limit of an instruction.
pub(crate) const LARGEST_STRIDE: u64 = 512;

/// Maximum number of blocks of four by four for one worker (poplibs lib/popops/Rearrange.cpp).
const BLOCKS_OF_ONE_WORKER: u64 = 4;

impl TransposeMatrices {
    /// Returns true for halves in blocks of four, for which there are fast vertices.
    pub(crate) fn is_fast(self, dtype: DType) -> bool {
        let Self { rows, columns, .. } = self;
        let blocks = rows.is_multiple_of(4) && columns.is_multiple_of(4);
        dtype.bytes() == Bytes(2) && blocks && 1 + 3 * (rows.max(columns) / 4) < LARGEST_STRIDE
    }

    /// Returns true if one vertex of the whole tile transposes all of them.
    pub(crate) fn share_a_vertex(self, dtype: DType) -> bool {
        self.count > 1 && self.is_fast(dtype)
    }
}

/// Tile cycles. Halves in blocks of four use the fast vertices, with one supervisor vertex for
/// several matrices. All others are transposed worker by worker.
pub(crate) fn transpose(dtype: DType, matrices: TransposeMatrices) -> Cycles {
    let TransposeMatrices { count, rows, columns } = matrices;
    if count == 0 || rows == 0 || columns == 0 {
        return Cycles::ZERO;
    }
    if !matrices.is_fast(dtype) {
        return Cycles(WORKERS * general_worker(dtype, count.div_ceil(WORKERS), rows, columns));
    }
    let alone = count == 1 || (rows == 4 && columns == 4 && count <= BLOCKS_OF_ONE_WORKER);
    Cycles(if alone {
        WORKERS * half_worker(count, rows / 4, columns / 4)
    } else {
        // The supervisor vertex takes 7 cycles itself and skips the first 7 of the worker's
        // codelet.
        7 + WORKERS * (half_worker(count.div_ceil(WORKERS), rows / 4, columns / 4) - 7)
    })
}

/// Cycles of a worker's transposes of halves, with sizes in units of four (TransposeWorkerCycles).
fn half_worker(count: u64, rows: u64, columns: u64) -> u64 {
    match (rows, columns) {
        (1, 1) if count == 1 => 29,
        (1, 1) => 37 + (count - 2) * 4,
        (_, 1) => 27 + count * (35 + 4 * (rows - 2)),
        _ => 29 + count * (18 + rows * (12 + 4 * columns - 8)),
    }
}

/// Cycles of a worker's transposes of arbitrary matrices (Transpose2d).
fn general_worker(dtype: DType, count: u64, rows: u64, columns: u64) -> u64 {
    if dtype.bytes() == Bytes(4) {
        let even = rows.is_multiple_of(2) && columns.is_multiple_of(2);
        let near = rows < LARGEST_STRIDE && rows * (columns.max(2) - 2) / 2 < LARGEST_STRIDE;
        if even && near {
            27 + count * (11 + rows / 2 * (6 + 3 * (columns / 2 - 1)))
        } else {
            13 + count * (8 + columns * (5 + 2 * rows))
        }
    } else {
        15 + count * (8 + columns * (5 + rows * 5 / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(dtype: DType, count: u64, rows: u64, columns: u64) -> Cycles {
        transpose(dtype, TransposeMatrices { count, rows, columns })
    }

    #[test]
    fn blocks_of_halves_cost_what_the_estimator_says() {
        assert_eq!(cycles(DType::Half, 1, 4, 4), Cycles(6 * 29));
        assert_eq!(cycles(DType::Half, 12, 4, 4), Cycles(7 + 6 * (37 - 7)));
        assert_eq!(cycles(DType::Half, 6, 16, 16), Cycles(7 + 6 * (29 + 18 + 4 * 20 - 7)));
        assert_eq!(cycles(DType::Float, 6, 40, 40), Cycles(6 * (13 + 8 + 40 * 85)));
    }

    #[test]
    fn odd_sizes_are_slow() {
        assert!(cycles(DType::Half, 6, 15, 15) > 4 * cycles(DType::Half, 6, 16, 16));
        assert_eq!(cycles(DType::Half, 0, 4, 4), Cycles(0));
    }
}
