//! Tile cycles of gathers and updates (poplibs lib/popops/popopsCycleEstimators.cpp, multiSlicer
//! and MultiUpdateAdd, of the commit used for the op benchmarks). Costs depend on the values of the
//! indices. Like the estimators, these functions count every row as present.

use crate::popops::elementwise::vector_width;
use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::Cycles;

/// Cycles to copy `lookups` rows of `columns` elements. Workers share the lookups (`multiSlicer`).
pub(crate) fn gather(dtype: DType, lookups: u64, columns: u64) -> Cycles {
    if lookups == 0 {
        return Cycles::ZERO;
    }
    let row = 19 + 3 * columns.div_ceil(vector_width(dtype));
    Cycles(WORKERS * (16 + lookups.div_ceil(WORKERS) * row))
}

/// Cycles to write `lookups` rows of `columns` elements. One worker does all of it, because rows
/// may repeat (`MultiUpdate`).
pub(crate) fn overwrite(dtype: DType, lookups: u64, columns: u64) -> Cycles {
    if lookups == 0 {
        return Cycles::ZERO;
    }
    Cycles(WORKERS * (16 + lookups * (19 + 3 * columns.div_ceil(vector_width(dtype)))))
}

/// Cycles to add `lookups` rows of `columns` elements. One worker does all of it, because rows may
/// repeat (`MultiUpdateAdd`).
pub(crate) fn update(dtype: DType, lookups: u64, columns: u64) -> Cycles {
    if lookups == 0 {
        return Cycles::ZERO;
    }
    let (start, row, atom) = if dtype == DType::Float { (17, 11, 1) } else { (18, 12, 2) };
    Cycles(WORKERS * (start + lookups * (row + 3 * columns.div_ceil(atom).saturating_sub(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_gathers_but_not_updates() {
        assert_eq!(gather(DType::Half, 12, 8), Cycles(6 * (16 + 2 * (19 + 6))));
        assert_eq!(update(DType::Float, 12, 8), Cycles(6 * (17 + 12 * (11 + 21))));
        assert_eq!(
            (gather(DType::Half, 0, 8), update(DType::Half, 0, 8)),
            (Cycles::ZERO, Cycles::ZERO)
        );
    }
}
