//! Element-wise vertices: tile cycles by poplibs' own estimators, and compute phases of them.

pub(crate) mod cycles;
mod loop_costs;
mod operation;
mod random;
mod ternary;

pub(crate) use cycles::ElementwiseExtent;
pub(crate) use operation::{BinaryOpType, UnaryOpType};
pub use random::RandomDistribution;
pub(crate) use random::random;
pub(crate) use ternary::{SelectForm, clamp_in_place, select};

use crate::poplar::work::{VertexInstances, WorkPhase};
use crate::shape::DType;
use tilescope_report::units::{Bytes, Cycles, Elements, TileRuns};

/// Whether operands are taken to lie in interleaved memory, where a load brings 128 bits: poplibs'
/// setting that fits the op benchmarks.
pub(super) const LOADS_INTERLEAVED: bool = true;

/// Bytes of one load or store.
pub(crate) const VECTOR_BYTES: Bytes = Bytes(8);

/// Elements of one 64-bit vector.
pub(crate) fn vector_width(dtype: DType) -> u64 {
    VECTOR_BYTES / dtype.bytes()
}

/// A compute phase with one vertex on each tile that has cycles.
pub(crate) fn compute(
    name: &str,
    vertex_type: String,
    edges: u64,
    cycles: TileRuns<Cycles>,
) -> WorkPhase {
    let vertices = VertexInstances::of_edges(vertex_type, cycles.map(|_| 1), edges);
    WorkPhase::of_vertices(name, vertices, cycles)
}

/// A compute phase with one vertex on each tile of `elements`, its cycles a function of them.
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

/// A phase of a unary operation.
pub(crate) fn unary(
    name: &str,
    operation: UnaryOpType,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let (op, ty) = (operation.name(), dtype.poplar_name());
    let vertex = format!("popops::UnaryOp1DSupervisor<popops::expr::UnaryOpType::{op},{ty}>");
    phase(name, vertex, 2, elements, |count| {
        cycles::unary(operation, dtype, ElementwiseExtent::one(*count), false)
    })
}

/// A phase of a unary operation that overwrites its operand.
pub(crate) fn unary_in_place(
    name: &str,
    operation: UnaryOpType,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let (op, ty) = (operation.name(), dtype.poplar_name());
    let vertex =
        format!("popops::UnaryOp1DInPlaceSupervisor<popops::expr::UnaryOpType::{op},{ty}>");
    phase(name, vertex, 1, elements, |count| {
        cycles::unary(operation, dtype, ElementwiseExtent::one(*count), true)
    })
}

/// A phase of a binary operation.
pub(crate) fn binary(
    name: &str,
    operation: BinaryOpType,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let (op, ty) = (operation.name(), dtype.poplar_name());
    let vertex = format!("popops::BinaryOp1DSupervisor<popops::expr::BinaryOpType::{op},{ty}>");
    phase(name, vertex, 3, elements, |count| {
        cycles::binary(operation, dtype, ElementwiseExtent::one(*count), false)
    })
}

/// A phase of a binary operation that overwrites its first operand.
pub(crate) fn binary_in_place(
    name: &str,
    operation: BinaryOpType,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let (op, ty) = (operation.name(), dtype.poplar_name());
    let vertex =
        format!("popops::BinaryOp1DInPlaceSupervisor<popops::expr::BinaryOpType::{op},{ty}>");
    phase(name, vertex, 2, elements, |count| {
        cycles::binary(operation, dtype, ElementwiseExtent::one(*count), true)
    })
}

/// A phase of a binary operation with one value for all elements.
pub(crate) fn scalar(
    name: &str,
    operation: BinaryOpType,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let (op, ty) = (operation.name(), dtype.poplar_name());
    let form = "BroadcastScalar1DSupervisor";
    let vertex = format!("popops::{form}<popops::expr::BinaryOpType::{op},{ty}>");
    phase(name, vertex, 3, elements, |count| {
        cycles::with_scalar(operation, dtype, ElementwiseExtent::one(*count), false)
    })
}

/// A phase of a binary operation with one value for all elements, overwriting them.
pub(crate) fn scalar_in_place(
    name: &str,
    operation: BinaryOpType,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let (op, ty) = (operation.name(), dtype.poplar_name());
    let form = "BroadcastScalar1DInPlaceSupervisor";
    let vertex = format!("popops::{form}<popops::expr::BinaryOpType::{op},{ty}>");
    phase(name, vertex, 2, elements, |count| {
        cycles::with_scalar(operation, dtype, ElementwiseExtent::one(*count), true)
    })
}

/// A phase of `target += scale * source`.
pub(crate) fn scaled_add(name: &str, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let ty = dtype.poplar_name();
    let vertex = format!("popops::ScaledAddSupervisor<{ty},{ty},{ty},true,false>");
    phase(name, vertex, 2, elements, |count| cycles::scaled_add(dtype, dtype, *count))
}

/// A phase of `target = a target + b source`.
pub(crate) fn axpby(name: &str, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let ty = dtype.poplar_name();
    let vertex = format!("popops::aXPlusbYSupervisor<{ty},float,false,false>");
    phase(name, vertex, 4, elements, |count| cycles::axpby(dtype, DType::Float, *count))
}

/// A phase of a change of element type; a copy where there is none.
pub(crate) fn cast(name: &str, from: DType, to: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let vertex = if from == to {
        "poplar_rt::DstStridedCopy64BitMultiAccess".to_string()
    } else {
        format!("popops::CastSupervisor<{},{}>", from.poplar_name(), to.poplar_name())
    };
    phase(name, vertex, 2, elements, |count| cycles::cast(from, to, ElementwiseExtent::one(*count)))
}

/// A phase that sets every element to one value.
pub(crate) fn fill(name: &str, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let vertex = format!("popops::Fill<{}>", dtype.poplar_name());
    phase(name, vertex, 1, elements, |count| cycles::fill(dtype, *count))
}

/// The phase that writes a one where each label says, `labels` on each tile.
pub(crate) fn one_hot(name: &str, dtype: DType, labels: &TileRuns<u64>) -> WorkPhase {
    let vertex = format!("popops::EncodeOneHot<unsigned int,{}>", dtype.poplar_name());
    let labels = labels.map(|count| Elements(*count));
    phase(name, vertex, 3, &labels, |count| cycles::one_hot(dtype, *count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplar::work::WorkPhaseKind;
    use tilescope_report::units::{TileId, TileRange};

    #[test]
    fn phases_have_a_vertex_on_every_tile_with_elements() {
        let mut elements = TileRuns::uniform(TileRange::first_tiles(4), Elements(100));
        elements.push(TileRange::new(TileId(8), TileId(10)), Elements(60));
        let phase = unary("Op/Exp", UnaryOpType::Exp, DType::Half, &elements);
        let WorkPhaseKind::Compute { cycles, vertices } = phase.kind else {
            panic!("a compute set")
        };
        assert_eq!(vertices[0].count.total(), 6);
        assert_eq!(cycles.tile_count(), 6);
    }
}
