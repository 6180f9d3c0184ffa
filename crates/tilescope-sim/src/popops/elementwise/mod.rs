//! Elementwise vertices: tile cycles by the estimators of poplibs, and compute phases.

pub(crate) mod cycles;
mod loop_costs;
mod operation;
mod random;
mod ternary;

pub(crate) use cycles::{ElementwiseExtent, FusedExpression};
pub(crate) use operation::{BinaryOpType, UnaryOpType};
pub use random::RandomDistribution;
pub(crate) use random::random;
pub(crate) use ternary::{SelectForm, clamp_in_place, select};

use crate::poplar::work::{VertexInstances, WorkPhase};
use crate::shape::DType;
use tilescope_report::units::{Bytes, Cycles, Elements, TileRuns};

/// True if loads of operands read 128 bits, as from interleaved memory. The op benchmarks agree with
/// this setting of poplibs.
pub(super) const LOADS_INTERLEAVED: bool = true;

/// Bytes of one load or store.
pub(crate) const VECTOR_BYTES: Bytes = Bytes(8);

/// Number of elements in one 64-bit vector.
pub(crate) fn vector_width(dtype: DType) -> u64 {
    VECTOR_BYTES / dtype.bytes()
}

/// Compute phase with one vertex on each tile that has cycles.
pub(crate) fn compute(
    name: &str,
    vertex_type: String,
    edges: u64,
    cycles: TileRuns<Cycles>,
) -> WorkPhase {
    let vertices = VertexInstances::of_edges(vertex_type, cycles.map(|_| 1), edges);
    WorkPhase::of_vertices(name, vertices, cycles)
}

/// Compute phase with one vertex on each tile of `elements`, whose cycles are a function of them.
pub(crate) fn phase<T>(
    name: &str,
    vertex_type: String,
    edges: u64,
    elements: &TileRuns<T>,
    cycles: impl FnMut(&T) -> Cycles,
) -> WorkPhase
where
    T: Clone + PartialEq,
{
    compute(name, vertex_type, edges, elements.map(cycles))
}

/// Elementwise function for which popops has vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementwiseOp {
    /// Function of one operand.
    Unary(UnaryOpType),
    /// Function of two operands.
    Binary(BinaryOpType),
    /// Function of an operand and one value for all its elements.
    Scalar(BinaryOpType),
}

/// Phase of a function with a separate result.
pub(crate) fn apart(
    name: &str,
    operation: ElementwiseOp,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    phase_of(name, operation, (dtype, elements), false)
}

/// Phase of a function that overwrites its first operand.
pub(crate) fn in_place(
    name: &str,
    operation: ElementwiseOp,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    phase_of(name, operation, (dtype, elements), true)
}

fn phase_of(
    name: &str,
    operation: ElementwiseOp,
    (dtype, elements): (DType, &TileRuns<Elements>),
    in_place: bool,
) -> WorkPhase {
    use ElementwiseOp::{Binary, Scalar, Unary};
    let (form, family, op, operands) = match operation {
        Unary(op) => ("UnaryOp1D", "UnaryOpType", op.name(), 1),
        Binary(op) => ("BinaryOp1D", "BinaryOpType", op.name(), 2),
        Scalar(op) => ("BroadcastScalar1D", "BinaryOpType", op.name(), 2),
    };
    let place = if in_place { "InPlace" } else { "" };
    let ty = dtype.poplar_name();
    let vertex = format!("popops::{form}{place}Supervisor<popops::expr::{family}::{op},{ty}>");
    phase(name, vertex, operands + u64::from(!in_place), elements, |count| {
        let extent = ElementwiseExtent::one(*count);
        match operation {
            Unary(op) => cycles::unary(op, dtype, extent, in_place),
            Binary(op) => cycles::binary(op, dtype, extent, in_place),
            Scalar(op) => cycles::with_scalar(op, dtype, extent, in_place),
        }
    })
}

/// Phase of a fused expression. `in_place` is true if it overwrites an operand.
pub(crate) fn fused(
    name: &str,
    expression: FusedExpression,
    (dtype, elements): (DType, &TileRuns<Elements>),
    in_place: bool,
) -> WorkPhase {
    let vertex = format!("popops::MapExpression<{}>", dtype.poplar_name());
    let count = elements.map(|count| cycles::fused_parts(dtype, *count).count() as u64);
    let edges = expression.operands + u64::from(!in_place);
    let vertices = VertexInstances::of_edges(vertex, count, edges);
    let cycles = elements.map(|count| cycles::fused(expression, dtype, *count));
    WorkPhase::of_vertices(name, vertices, cycles)
}

/// Phase of `target += scale * source`.
pub(crate) fn scaled_add(name: &str, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let ty = dtype.poplar_name();
    let vertex = format!("popops::ScaledAddSupervisor<{ty},{ty},{ty},true,false>");
    phase(name, vertex, 2, elements, |count| cycles::scaled_add(dtype, dtype, *count))
}

/// Phase of `target = a target + b source`.
pub(crate) fn axpby(name: &str, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let ty = dtype.poplar_name();
    let vertex = format!("popops::aXPlusbYSupervisor<{ty},float,false,false>");
    phase(name, vertex, 4, elements, |count| cycles::axpby(dtype, DType::Float, *count))
}

/// Phase of a conversion to another element type, or of a copy if the types are equal.
pub(crate) fn cast(name: &str, from: DType, to: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let vertex = if from == to {
        "poplar_rt::DstStridedCopy64BitMultiAccess".to_string()
    } else {
        format!("popops::CastSupervisor<{},{}>", from.poplar_name(), to.poplar_name())
    };
    phase(name, vertex, 2, elements, |count| cycles::cast(from, to, ElementwiseExtent::one(*count)))
}

/// Phase that sets every element to one value.
pub(crate) fn fill(name: &str, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let vertex = format!("popops::Fill<{}>", dtype.poplar_name());
    phase(name, vertex, 1, elements, |count| cycles::fill(dtype, *count))
}

/// Phase that writes a one at the position of each label, with `labels` on each tile.
pub(crate) fn one_hot(name: &str, dtype: DType, labels: &TileRuns<u64>) -> WorkPhase {
    let vertex = format!("popops::EncodeOneHot<unsigned int,{}>", dtype.poplar_name());
    let labels = labels.map(|count| Elements(*count));
    phase(name, vertex, 3, &labels, |count| cycles::one_hot(dtype, *count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplar::work::WorkPhaseKind;
    use proptest::prelude::*;
    use tilescope_report::units::{TileId, TileRange};
    use tilescope_test_tiers::cases;

    #[test]
    fn phases_have_a_vertex_on_every_tile_with_elements() {
        let mut elements = TileRuns::uniform(TileRange::first_tiles(4), Elements(100));
        elements.push(TileRange::new(TileId(8), TileId(10)), Elements(60));
        let phase = apart("Op/Exp", ElementwiseOp::Unary(UnaryOpType::Exp), DType::Half, &elements);
        let WorkPhaseKind::Compute { cycles, vertices } = phase.kind else {
            panic!("a compute set")
        };
        assert_eq!(vertices[0].count.total(), 6);
        assert_eq!(cycles.tile_count(), 6);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn workers_share_all_elements_of_a_fused_expression(
            count in 1u64..5_000, operands in 1u64..5, functions in 1u64..12, half in any::<bool>()
        ) {
            let dtype = if half { DType::Half } else { DType::Float };
            let parts: Vec<u64> = cycles::fused_parts(dtype, Elements(count)).collect();
            prop_assert!((1..=6).contains(&parts.len()), "{:?}", parts);
            prop_assert_eq!(parts.iter().sum::<u64>(), count);
            let fused = |functions| {
                cycles::fused(FusedExpression { operands, functions }, dtype, Elements(count))
            };
            // One vertex starts its workers once, so two separate expressions of the same operands
            // take longer.
            let two = fused(functions) + fused(1);
            prop_assert!(fused(functions + 1) < two);
            prop_assert!(fused(functions + 1) > fused(functions));
        }
    }
}
