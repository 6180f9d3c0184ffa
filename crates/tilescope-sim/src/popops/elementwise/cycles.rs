//! Tile cycles of elementwise vertices (poplibs lib/popops/popopsCycleEstimators.cpp, of the commit
//! used for the op benchmarks).
//!
//! A supervisor vertex distributes one stretch of elements over all six workers. A two-dimensional
//! vertex belongs to one worker, with several stretches. A worker gets every sixth cycle. Inside a
//! formula cycles are plain numbers.

use super::operation::{BinaryOpType, UnaryOpType};
use super::{LOADS_INTERLEAVED, vector_width};
use crate::poputil::split_regions::{SplitBounds, split_evenly};
use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::{Cycles, Elements};

/// Cycles that a supervisor spends on starting and joining its workers (basicOpSupervisorOverhead).
pub(crate) const SUPERVISOR_CYCLES: u64 = 11;

/// Number of elements of one tile, and number of stretches of memory they occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementwiseExtent {
    pub elements: Elements,
    /// Number of stretches. A single one is processed by a supervisor vertex.
    pub stretches: u64,
}

impl ElementwiseExtent {
    pub(crate) fn one(elements: Elements) -> Self {
        Self { elements, stretches: 1 }
    }

    /// Share of the busiest worker.
    fn worker_share(self) -> ElementwiseWorkerShare {
        // A two-dimensional vertex belongs to one worker, so stretches are distributed whole.
        let stretches = self.stretches.max(1).div_ceil(WORKERS);
        ElementwiseWorkerShare { elements: self.elements.0.div_ceil(WORKERS), stretches }
    }
}

/// Share of one worker in an elementwise operation.
struct ElementwiseWorkerShare {
    elements: u64,
    /// Number of stretches that its elements occupy.
    stretches: u64,
}

impl ElementwiseWorkerShare {
    /// Number of elements of one stretch.
    fn stretch(&self) -> u64 {
        self.elements.div_ceil(self.stretches)
    }
}

/// Cycles of an elementwise vertex besides its loops.
struct ElementwiseOverhead {
    /// Cycles of the supervisor of a vertex with one stretch.
    supervisor: u64,
    /// Cycles to start each of its workers.
    worker: u64,
    /// Cycles to start a worker's vertex with several stretches.
    several: u64,
    /// Cycles for each of these stretches.
    stretch: u64,
}

impl ElementwiseOverhead {
    /// Cycles of one tile, where `inner` returns the cycles of a stretch with the given number of
    /// elements.
    fn tile(&self, extent: ElementwiseExtent, inner: impl Fn(u64) -> u64) -> Cycles {
        let share = extent.worker_share();
        Cycles(if extent.stretches <= 1 {
            WORKERS * (self.worker + inner(share.elements)) + self.supervisor
        } else {
            let each = inner(share.stretch());
            WORKERS * (self.several + share.stretches * (self.stretch + each))
        })
    }
}

/// Several elementwise functions in one vertex, which poplibs generates for the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FusedExpression {
    /// Number of operands with the shape of the elements.
    pub operands: u64,
    /// Number of functions of one or two values, including those of constants and scalars.
    pub functions: u64,
}

/// Number of elements of each worker that has a vertex of a fused expression (poplibs
/// lib/popops/ExpressionGenerator.cpp, executeCodelet).
pub(crate) fn fused_parts(dtype: DType, Elements(count): Elements) -> impl Iterator<Item = u64> {
    /// Bytes that a tile stores atomically (Target::getAtomicStoreGranularity).
    const ATOMIC_STORE: u64 = 4;
    let grain = vector_width(dtype).max(ATOMIC_STORE);
    split_evenly(count, SplitBounds { grain, most: WORKERS, least: 2 * grain })
        .map(|part| part.end - part.start)
}

/// Cycles of a fused expression, by the estimate that poplibs attaches to the vertex (in the same
/// file).
pub(crate) fn fused(expression: FusedExpression, dtype: DType, elements: Elements) -> Cycles {
    let vector = vector_width(dtype);
    let loads = fused_parts(dtype, elements).map(|count| count / vector + count % vector).max();
    let FusedExpression { operands, functions } = expression;
    Cycles(WORKERS * (13 + operands * functions * loads.unwrap_or(0)))
}

/// Cycles of `UnaryOp1DSupervisor`, `UnaryOp1DInPlaceSupervisor` and `UnaryOp2D`.
pub(crate) fn unary(
    operation: UnaryOpType,
    dtype: DType,
    extent: ElementwiseExtent,
    in_place: bool,
) -> Cycles {
    let overhead = ElementwiseOverhead {
        supervisor: 9 + SUPERVISOR_CYCLES,
        worker: if in_place { 55 } else { 28 },
        several: 20,
        stretch: 0,
    };
    overhead.tile(extent, |count| operation.inner(dtype, count, in_place))
}

/// Cycles of a binary operation on operands of equal shape (`BinaryOp1DSupervisor`,
/// `BinaryOp1DInPlaceSupervisor`, `BinaryOp2D`).
pub(crate) fn binary(
    operation: BinaryOpType,
    dtype: DType,
    extent: ElementwiseExtent,
    in_place: bool,
) -> Cycles {
    let overhead = ElementwiseOverhead {
        supervisor: SUPERVISOR_CYCLES,
        worker: match (in_place, dtype) {
            (true, _) => 58,
            (false, DType::Float) => 41,
            (false, _) => 32,
        },
        several: if in_place { 20 } else { 5 },
        stretch: 0,
    };
    overhead.tile(extent, |count| operation.inner(dtype, count, in_place))
}

/// Cycles of a binary operation with a scalar (`broadcastArithmeticSupervisorCycleEstimate`).
pub(crate) fn with_scalar(
    operation: BinaryOpType,
    dtype: DType,
    extent: ElementwiseExtent,
    in_place: bool,
) -> Cycles {
    let overhead =
        ElementwiseOverhead { supervisor: SUPERVISOR_CYCLES, worker: 20, several: 20, stretch: 28 };
    overhead.tile(extent, |count| operation.inner_with_scalar(dtype, count, in_place))
}

/// Cycles of `target += scale * source` with a constant scale
/// (`scaledArithmeticSupervisorCycleEstimate`).
pub(crate) fn scaled_add(target: DType, source: DType, Elements(elements): Elements) -> Cycles {
    let width = vector_width(target);
    let vectors = elements / width / WORKERS;
    let rest = elements % width;
    let mixed = target == DType::Half && source == DType::Float;
    // poplibs can subtract a cycle per vector for operands in interleaved memory. The estimates of
    // the published rows did so.
    let faster = u64::from(LOADS_INTERLEAVED && target == source);
    let main = match (vectors, mixed) {
        (0, _) => 0,
        (1..3, true) => 8 + 4 * (vectors - 1),
        (_, true) => 16 + 3 * (vectors - 3),
        (_, false) if target == source => 6 + (3 - faster) * (vectors - 1),
        (_, false) => 6 + 4 * (vectors - 1),
    };
    let tail = match (rest, target) {
        (0, _) => 0,
        (_, DType::Float) => 8,
        (1, _) => 5,
        (2, _) => 12,
        _ => 18,
    };
    // 6 to unpack pointers to double words.
    let supervisor = 21 + 6 + SUPERVISOR_CYCLES + if rest == 0 { 7 } else { 13 } + 12;
    Cycles(supervisor + WORKERS * (15 + main + 2 + 1 + tail + 1))
}

/// Cycles of `target = a target + b source` with scales that are tensors (`aXPlusbYSupervisor`,
/// `aXPlusbYMixedSupervisorCycleEstimate`).
pub(crate) fn axpby(target: DType, scale: DType, Elements(elements): Elements) -> Cycles {
    if target == DType::Half && scale == DType::Float {
        // A worker that stored a single half would write into the word of its neighbour.
        let count = elements.div_ceil(WORKERS).next_multiple_of(2);
        let supervisor = 1 + 6 + 10 + 15 * 6 + 9 + 5 + 28;
        return Cycles(supervisor + WORKERS * (19 + axpby_mixed(count)));
    }
    scaled_add(target, target, Elements(elements)) + Cycles(12)
}

/// Cycles of a worker that scales halves in single precision, two at a time
/// (`aXPlusbYMixedCoreCycleEstimate`).
fn axpby_mixed(count: u64) -> u64 {
    let more = count.saturating_sub(4);
    let main = match (count, more) {
        (_, 1..) => 11 + (more / 2).saturating_sub(1) * 5 + 4 + 9 * (more % 2),
        (1, _) => 15,
        (2, _) => 14,
        (3, _) => 23,
        _ => 1,
    };
    4 + main + 1
}

/// Cycles of a conversion to another element type (`CastSupervisor`, `Cast2d`).
pub(crate) fn cast(from: DType, to: DType, extent: ElementwiseExtent) -> Cycles {
    let share = extent.worker_share();
    Cycles(if extent.stretches <= 1 {
        // Workers take multiples of four elements.
        let elements = share.elements.next_multiple_of(4).min(extent.elements.0);
        19 + WORKERS * (23 + cast_core(from, to, elements))
    } else {
        WORKERS * (5 + share.stretches * (11 + cast_core(from, to, share.stretch())))
    })
}

/// Cycles of a worker's cast of a stretch (castWorkerCycles).
fn cast_core(from: DType, to: DType, elements: u64) -> u64 {
    let load = vector_width(from);
    let store = vector_width(to);
    let both_floating = [from, to].iter().all(|dtype| matches!(dtype, DType::Half | DType::Float));
    match (from, to) {
        (DType::UInt8 | DType::Int8, DType::Half) => 4 + cast_rounds(elements, 14, 9),
        (DType::UInt8 | DType::Int8, DType::Float) => 4 + cast_rounds(elements, 14, 10),
        (DType::Half | DType::Float, DType::UInt8 | DType::Int8) => {
            7 + cast_rounds(elements, 15, 12)
        }
        _ if both_floating => {
            // The number of elements that two loads read and one store writes: a tile has two read
            // ports and one write port.
            let width = (2 * load).min(store);
            let loads = width / width.min(load * if LOADS_INTERLEAVED { 2 } else { 1 });
            let cycles = loads.max(width / width.min(store));
            let checks = u64::from(width.ilog2());
            let rest = u64::from((elements % width).count_ones());
            19 + cycles * (elements / width) + checks + 2 * rest
        }
        // Compiled code, one element at a time.
        _ => 19 + 2 * elements,
    }
}

/// Cycles of rounds of four elements. The first fills the pipeline (the 8-bit cases of
/// `castWorkerCycles`).
fn cast_rounds(elements: u64, first: u64, cycles: u64) -> u64 {
    let main = match elements / 4 {
        0 => 0,
        rounds => first + (rounds - 1) * cycles,
    };
    main + if elements.is_multiple_of(4) { 2 } else { 12 }
}

/// Cycles to set every element to one value. Workers share a tile's elements, at least two vectors
/// each (poplibs lib/popops/Fill.cpp).
pub(crate) fn fill(dtype: DType, Elements(elements): Elements) -> Cycles {
    let start = if dtype == DType::Half { 26 } else { 23 };
    let width = vector_width(dtype);
    let busiest = elements.div_ceil(WORKERS).max(2 * width).min(elements);
    Cycles(WORKERS * (start + busiest.div_ceil(width)))
}

/// Cycles to draw random bits and mask elements with them (`DropoutSupervisor` in poplibs
/// lib/poprand/poprandCycleEstimators.cpp).
pub(crate) fn dropout(dtype: DType, Elements(elements): Elements) -> Cycles {
    Cycles(6 + 2 * elements.div_ceil(vector_width(dtype)) + WORKERS * 24)
}

/// Cycles of the supervisor to write rows of a table with a one at each index (`EncodeOneHot`).
pub(crate) fn one_hot(dtype: DType, Elements(indices): Elements) -> Cycles {
    Cycles(SUPERVISOR_CYCLES + indices * if dtype == DType::Half { 74 } else { 100 })
}

/// Cycles of a slice with a start given by a tensor: `parts` stretches of `region` elements
/// (`getDynamicSlice1dEstimate`).
pub(crate) fn dynamic_slice(dtype: DType, Elements(region): Elements, parts: u64) -> Cycles {
    let copies = region.div_ceil(WORKERS) / vector_width(dtype);
    Cycles(SUPERVISOR_CYCLES + 14 + WORKERS * (41 + (27 + copies) * parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    #[test]
    fn vertices_cost_what_the_estimators_say() {
        let one = ElementwiseExtent::one(Elements(600));
        // 100 elements per worker: 6 x (28 + 25 x 3) + 20, 6 x (32 + 25 x 3) + 11.
        assert_eq!(unary(UnaryOpType::Relu, DType::Half, one, false), Cycles(638));
        assert_eq!(binary(BinaryOpType::Add, DType::Half, one, false), Cycles(653));
        // 25 vectors per worker in one cycle each: 6 x (20 + 25) + 11.
        assert_eq!(with_scalar(BinaryOpType::Multiply, DType::Half, one, true), Cycles(281));
        // 21 + 6 + 11 + 7 + 12 + 6 x (15 + 6 + 2 x 24 + 4).
        assert_eq!(scaled_add(DType::Half, DType::Half, Elements(600)), Cycles(495));
        // 6 x (23 + 19 + 25 + 2) + 19.
        assert_eq!(cast(DType::Float, DType::Half, one), Cycles(433));
    }

    #[test]
    fn several_stretches_cost_more_than_one() {
        for stretches in [6, 12, 60] {
            let several = ElementwiseExtent { elements: Elements(600), stretches };
            let cost = with_scalar(BinaryOpType::Add, DType::Float, several, true);
            assert!(
                cost > with_scalar(
                    BinaryOpType::Add,
                    DType::Float,
                    ElementwiseExtent::one(Elements(600)),
                    true
                )
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn more_elements_never_cost_less(elements in 0u64..100_000, more in 0u64..1000, half: bool) {
            let dtype = if half { DType::Half } else { DType::Float };
            let few = ElementwiseExtent::one(Elements(elements));
            let many = ElementwiseExtent::one(Elements(elements + more * 48));
            prop_assert!(unary(UnaryOpType::Exp, dtype, few, true) <= unary(UnaryOpType::Exp, dtype, many, true));
            prop_assert!(binary(BinaryOpType::Divide, dtype, few, false) <= binary(BinaryOpType::Divide, dtype, many, false));
            prop_assert!(cast(dtype, DType::Float, few) <= cast(dtype, DType::Float, many));
            prop_assert!(scaled_add(dtype, dtype, Elements(elements)) <= scaled_add(dtype, dtype, Elements(elements + more * 48)));
            prop_assert!(axpby(dtype, DType::Float, Elements(elements)) <= axpby(dtype, DType::Float, Elements(elements + more * 48)));
            prop_assert!(fill(dtype, Elements(elements)) <= fill(dtype, Elements(elements + more)));
        }
    }
}
