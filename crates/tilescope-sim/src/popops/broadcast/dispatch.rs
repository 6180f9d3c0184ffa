//! Choice of the vertices of a tile for an operation with a broadcast operand. Of scalar, inner
//! vector, outer vector and general, the first whose conditions hold is used (poplibs
//! lib/popops/ElementWise.cpp, constructBroadcastBinaryOp, of the commit used for the op
//! benchmarks).

use super::BroadcastForm;
use super::cycles;
use super::patterns::BroadcastPattern;
use crate::popops::elementwise::cycles::{binary, with_scalar};
use crate::popops::elementwise::{BinaryOpType, ElementwiseExtent, vector_width};
use crate::poputil::split_regions::{SplitBounds, split_regions};
use crate::shape::DType;
use crate::targets::WORKERS;
use std::ops::Range;
use tilescope_report::units::{Cycles, Elements};

/// Maximum number of runs of one value that are split off (splitIntoScalarBroadcastPatterns).
const MOST_SCALARS: u64 = 256;

/// Maximum number of blocks that an inner-vector vertex counts: even repeats of all workers
/// (binaryOpBroadcastInnerVector, getRptCountMax of the IPU).
const MOST_BLOCKS: u64 = 4094 * WORKERS;

/// Elements that workers never share (binaryOpBroadcastScalar, grainSize).
const GRAIN: u64 = 4;

/// Vertices of popops for two operands with one of them broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BroadcastVertex {
    /// One value for a run of elements, by all workers.
    Scalar1D,
    /// One value for several runs, by one worker.
    Scalar2DData,
    /// Several runs with one value each, by one worker.
    Scalar2D,
    InnerVector1D,
    InnerVector2D,
    OuterVectorByRow,
    OuterVectorByColumn,
    /// Operands of equal shape, after the other one was expanded by a copy.
    General,
}

impl BroadcastVertex {
    pub(super) const ALL: [Self; 8] = [
        Self::Scalar1D,
        Self::Scalar2DData,
        Self::Scalar2D,
        Self::InnerVector1D,
        Self::InnerVector2D,
        Self::OuterVectorByRow,
        Self::OuterVectorByColumn,
        Self::General,
    ];

    /// Name of the vertex that overwrites its operand.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scalar1D => "BroadcastScalar1DInPlaceSupervisor",
            Self::Scalar2DData => "BroadcastScalar2DDataInPlace",
            Self::Scalar2D => "BroadcastScalar2DInPlace",
            Self::InnerVector1D => "BroadcastVectorInnerInPlaceSupervisor",
            Self::InnerVector2D => "BroadcastVectorInner2DInPlace",
            Self::OuterVectorByRow => "BroadcastVectorOuterByRowInPlaceSupervisor",
            Self::OuterVectorByColumn => "BroadcastVectorOuterByColumnInPlaceSupervisor",
            Self::General => "BinaryOp1DInPlaceSupervisor",
        }
    }

    /// Name of the vertex with separate results. Its loops over vectors take the same cycles as in
    /// place.
    pub(super) fn name_apart(self) -> &'static str {
        match self {
            Self::Scalar1D => "BroadcastScalar1DSupervisor",
            Self::Scalar2DData => "BroadcastScalar2DData",
            Self::Scalar2D => "BroadcastScalar2D",
            Self::InnerVector1D => "BroadcastVectorInnerSupervisor",
            Self::InnerVector2D => "BroadcastVectorInner2D",
            Self::OuterVectorByRow => "BroadcastVectorOuterByRowSupervisor",
            Self::OuterVectorByColumn => "BroadcastVectorOuterByColumnSupervisor",
            Self::General => "BinaryOp1DSupervisor",
        }
    }
}

/// Work of one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileBroadcast {
    pub vertex: BroadcastVertex,
    /// Number of vertices of this type.
    pub vertices: u64,
    pub cycles: Cycles,
    /// Elements per piece, one value or several in order, when the broadcast operand is copied so
    /// that it is present once for each use. `None` if it is not copied.
    pub copied_piece: Option<Elements>,
}

impl TileBroadcast {
    fn new(vertex: BroadcastVertex, vertices: u64, cycles: Cycles) -> Self {
        Self { vertex, vertices, cycles, copied_piece: None }
    }
}

/// Returns the work of a tile with these patterns.
pub(super) fn dispatch(
    BroadcastForm { operation, dtype, in_place }: BroadcastForm,
    patterns: &[BroadcastPattern],
) -> TileBroadcast {
    let tile = TilePatterns { operation, dtype, in_place, patterns };
    tile.scalar()
        .or_else(|| tile.inner_vector())
        .or_else(|| tile.outer_vector())
        .unwrap_or_else(|| tile.general())
}

/// Patterns of the elements of a tile, which are contiguous in its memory.
struct TilePatterns<'a> {
    operation: BinaryOpType,
    dtype: DType,
    in_place: bool,
    patterns: &'a [BroadcastPattern],
}

impl TilePatterns<'_> {
    fn elements(&self) -> u64 {
        self.patterns.iter().map(BroadcastPattern::elements).sum()
    }

    fn is_float(&self) -> bool {
        matches!(self.dtype, DType::Half | DType::Float)
    }

    /// One value for each run of elements (binaryOpBroadcastScalar).
    fn scalar(&self) -> Option<TileBroadcast> {
        let all_runs = self.patterns.iter().all(|p| p.inner > 1 && p.values == 1 && p.outer == 1);
        if !all_runs && self.patterns.len() == 1 {
            return None;
        }
        let runs = self.patterns.iter().map(|pattern| pattern.runs().0).sum::<u64>();
        if runs > MOST_SCALARS {
            return None;
        }
        let runs = self.runs();
        // Workers share a run if runs are few and long.
        let shared = runs.len() == 1
            || (runs.len() as u64) < WORKERS
                && runs.iter().all(|run| run.end - run.start >= WORKERS.div_ceil(2) * GRAIN);
        if shared {
            let mut cycles = Cycles::ZERO;
            for run in &runs {
                let extent = ElementwiseExtent::one(Elements(run.end - run.start));
                cycles += with_scalar(self.operation, self.dtype, extent, self.in_place);
            }
            return Some(TileBroadcast::new(BroadcastVertex::Scalar1D, runs.len() as u64, cycles));
        }
        self.scalar_by_worker(&runs)
    }

    /// Runs distributed over the workers, or `None` if most of the time would be spent on starting
    /// runs.
    fn scalar_by_worker(&self, runs: &[Range<u64>]) -> Option<TileBroadcast> {
        let bounds = SplitBounds { grain: GRAIN, most: WORKERS, least: 2 * GRAIN };
        let workers = split_regions(runs, bounds);
        let pieces = workers.iter().map(|pieces| pieces.len() as u64).sum::<u64>();
        if pieces > WORKERS && self.elements() / pieces < 2 * GRAIN {
            return None;
        }
        let first = &self.patterns[0];
        let one_value = first.values == 1 && self.patterns.iter().all(|p| p.has_values_of(first));
        let mut slowest = 0;
        for runs in &workers {
            // broadcastArithmeticCycleEstimate: 20 cycles to start, 28 for each run.
            let mut cycles = 20;
            for run in runs {
                let count = run.end - run.start;
                cycles += 28;
                cycles += if one_value {
                    self.operation.inner_with_scalar(self.dtype, count, self.in_place)
                } else {
                    self.operation.inner_with_scalars(self.dtype, count)
                };
            }
            slowest = slowest.max(cycles);
        }
        let vertex =
            if one_value { BroadcastVertex::Scalar2DData } else { BroadcastVertex::Scalar2D };
        Some(TileBroadcast::new(vertex, workers.len() as u64, Cycles(WORKERS * slowest)))
    }

    /// Returns the elements as runs of one value.
    fn runs(&self) -> Vec<Range<u64>> {
        end_to_end(self.patterns.iter().flat_map(|pattern| {
            let (count, length) = pattern.runs();
            (0..count).map(move |_| length)
        }))
    }

    /// Vector that is repeated several times (binaryOpBroadcastInnerVector). Vectors that would be
    /// processed element by element are excluded, because no profile shows them.
    fn inner_vector(&self) -> Option<TileBroadcast> {
        let length = self.patterns.first()?.values;
        if !self.patterns.iter().all(|p| p.inner == 1 && p.outer > 1 && p.values == length) {
            return None;
        }
        if let [BroadcastPattern { outer: blocks @ ..=MOST_BLOCKS, .. }] = self.patterns {
            let cycles = cycles::inner_vector(self.operation, self.dtype, length, *blocks)?;
            return Some(TileBroadcast::new(BroadcastVertex::InnerVector1D, 1, cycles));
        }
        self.inner_vector_by_worker(length)
    }

    /// Vectors of several patterns distributed over the workers.
    fn inner_vector_by_worker(&self, length: u64) -> Option<TileBroadcast> {
        let stretches = end_to_end(self.patterns.iter().map(BroadcastPattern::elements));
        let bounds = SplitBounds { grain: length, most: WORKERS, least: length };
        let workers = split_regions(&stretches, bounds);
        let mut slowest = 0;
        for pieces in &workers {
            let blocks = pieces.iter().map(|piece| (piece.end - piece.start) / length);
            let cycles = cycles::inner_vector_worker(self.operation, self.dtype, length, blocks)?;
            slowest = slowest.max(cycles);
        }
        let cycles = Cycles(WORKERS * slowest);
        Some(TileBroadcast::new(BroadcastVertex::InnerVector2D, workers.len() as u64, cycles))
    }

    /// Vector whose values are each repeated in a row (binaryOpBroadcastOuterVector). Workers share
    /// the rows if these are short, and each row if they are long.
    fn outer_vector(&self) -> Option<TileBroadcast> {
        use BinaryOpType::{Add, Multiply, Subtract};
        let has_vertex = matches!(self.operation, Add | Subtract | Multiply) && self.is_float();
        if !has_vertex || !self.patterns.iter().all(|p| p.values > 1 && p.inner > 1) {
            return None;
        }
        let width = WORKERS * vector_width(self.dtype);
        let count = self.patterns.len() as u64;
        let short_ones = self.patterns.iter().filter(|p| p.inner < width).count() as u64;
        if count > WORKERS || short_ones != 0 && short_ones != count {
            return None;
        }
        let by_row = short_ones > 0;
        let mut cycles = Cycles::ZERO;
        for pattern in self.patterns {
            let (rows, columns) = pattern.runs();
            cycles += cycles::outer_vector(self.operation, self.dtype, [rows, columns], by_row);
        }
        let vertex = if by_row {
            BroadcastVertex::OuterVectorByRow
        } else {
            BroadcastVertex::OuterVectorByColumn
        };
        Some(TileBroadcast::new(vertex, count, cycles))
    }

    /// Two operands of equal shape (binaryOpGeneral). The broadcast operand is copied, because an
    /// edge of a vertex is one stretch of memory.
    fn general(&self) -> TileBroadcast {
        let extent = ElementwiseExtent::one(Elements(self.elements()));
        let cycles = binary(self.operation, self.dtype, extent, self.in_place);
        let repeated = self.patterns.iter().filter(|p| p.inner > 1 || p.outer > 1);
        let copied_piece = repeated.map(|p| Elements(if p.inner > 1 { 1 } else { p.values })).min();
        TileBroadcast { vertex: BroadcastVertex::General, vertices: 1, cycles, copied_piece }
    }
}

/// Returns consecutive stretches of these lengths.
fn end_to_end(lengths: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut stretches = Vec::new();
    let mut start = 0;
    for length in lengths {
        stretches.push(start..start + length);
        start += length;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use BinaryOpType::{Add, Divide, Maximum};
    use DType::{Float, Half};

    fn vertex(
        operation: BinaryOpType,
        dtype: DType,
        patterns: &[(u64, u64, u64)],
    ) -> (BroadcastVertex, u64) {
        let of = |(inner, values, outer): &(u64, u64, u64)| {
            BroadcastPattern::of(*inner, *values, *outer)
        };
        let patterns: Vec<_> = patterns.iter().map(of).collect();
        let found = dispatch(BroadcastForm { operation, dtype, in_place: true }, &patterns);
        (found.vertex, found.vertices)
    }

    #[test]
    fn conditions_are_those_of_popops() {
        use BroadcastVertex::{
            General, InnerVector1D, InnerVector2D, OuterVectorByColumn, OuterVectorByRow, Scalar1D,
            Scalar2D, Scalar2DData,
        };
        assert_eq!(vertex(Add, Half, &[(800, 1, 1)]), (Scalar1D, 1));
        assert_eq!(vertex(Add, Half, &[(800, 1, 1), (40, 1, 1)]), (Scalar1D, 2));
        assert_eq!(vertex(Add, Half, &[(800, 1, 1), (8, 1, 1)]), (Scalar2DData, 6));
        assert_eq!(vertex(Maximum, Half, &[(5, 1, 1), (60, 20, 1), (7, 1, 1)]), (Scalar2D, 6));
        assert_eq!(vertex(Add, Half, &[(1, 16, 60)]), (InnerVector1D, 1));
        assert_eq!(vertex(Add, Half, &[(1, 16, 60), (1, 16, 3)]), (InnerVector2D, 6));
        // Only floats, lengths that are not whole vectors, and remainders of rows are left.
        for patterns in
            [&[(1, 18, 60)][..], &[(1, 16, 60), (1, 15, 1)], &[(1, 320, 1)], &[(1, 60, 2)]]
        {
            assert_eq!(vertex(Add, Half, patterns), (General, 1));
        }
        assert_eq!(vertex(Add, Float, &[(1, 16, 60)]), (General, 1));
        assert_eq!(vertex(Divide, Float, &[(1, 15, 60)]), (InnerVector1D, 1));
        assert_eq!(vertex(Add, Half, &[(23, 60, 1)]), (OuterVectorByRow, 1));
        assert_eq!(vertex(Add, Half, &[(24, 60, 1)]), (OuterVectorByColumn, 1));
        assert_eq!(vertex(Divide, Half, &[(24, 60, 1)]), (General, 1));
    }

    #[test]
    fn only_broadcast_operands_are_copied() {
        let copied = |inner, values, outer| {
            let form = BroadcastForm { operation: Add, dtype: Float, in_place: true };
            dispatch(form, &[BroadcastPattern::of(inner, values, outer)]).copied_piece
        };
        assert_eq!(copied(1, 320, 1), None);
        assert_eq!(copied(1, 16, 20), Some(Elements(16)));
    }
}
