//! Element-wise vertices: cycles of one tile by the published estimators, and compute phases of
//! them. Formulas: poplibs lib/popops/popopsCycleEstimators.cpp and lib/popnn/
//! PerformanceEstimation.hpp; a worker issues every sixth cycle.

use super::work::{Phase, PhaseKind, VertexUse};
use crate::sim::graph::DType;
use crate::units::TileRuns;

/// Worker threads of a tile.
const WORKERS: u64 = 6;

/// Elements of one 64-bit vector.
pub fn vector_width(dtype: DType) -> u64 {
    8 / dtype.bytes()
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// max(x, 0)
    Relu,
    /// e^x
    Exp,
    /// ln x
    Log,
    /// 1 / x
    Inverse,
    /// square root of x
    Sqrt,
    /// x^2
    Square,
    /// Change of type or place.
    Copy,
}

/// Operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a b
    Multiply,
    /// a / b
    Divide,
}

impl Unary {
    /// Elements of one inner loop and its cycles, out of place.
    fn inner(self, dtype: DType) -> (u64, u64) {
        let half = dtype == DType::Half;
        let by_type = |half_cost: (u64, u64), float_cost: (u64, u64)| {
            if half { half_cost } else { float_cost }
        };
        match self {
            Self::Relu => by_type((4, 3), (2, 3)),
            Self::Exp => by_type((4, 4), (2, 6)),
            Self::Log => by_type((4, 4), (2, 12)),
            Self::Inverse => by_type((4, 15), (2, 6)),
            Self::Sqrt => by_type((4, 23), (2, 10)),
            Self::Square | Self::Copy => by_type((4, 2), (2, 2)),
        }
    }

    /// Poplar's name inside vertex types.
    fn name(self) -> &'static str {
        match self {
            Self::Relu => "RELU",
            Self::Exp => "EXPONENT",
            Self::Log => "LOGARITHM",
            Self::Inverse => "INVERSE",
            Self::Sqrt => "SQRT",
            Self::Square => "SQUARE",
            Self::Copy => "ABSOLUTE",
        }
    }

    /// Tile cycles of a supervisor vertex on `elements` elements.
    pub fn cycles(self, dtype: DType, elements: u64) -> u64 {
        let (per_loop, loop_cycles) = self.inner(dtype);
        let overhead = if self == Self::Exp { 33 } else { 17 };
        let inner = elements.div_ceil(WORKERS).div_ceil(per_loop) * loop_cycles;
        WORKERS * (overhead + inner) + 9 + 11
    }
}

impl Binary {
    fn inner(self, dtype: DType) -> (u64, u64) {
        let half = dtype == DType::Half;
        match self {
            Self::Add | Self::Subtract | Self::Multiply => (vector_width(dtype), 3),
            Self::Divide => {
                if half {
                    (4, 21)
                } else {
                    (2, 10)
                }
            }
        }
    }

    /// Poplar's name inside vertex types.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Subtract => "SUBTRACT",
            Self::Multiply => "MULTIPLY",
            Self::Divide => "DIVIDE",
        }
    }

    /// Tile cycles of a supervisor vertex on `elements` elements, in place.
    pub fn in_place_cycles(self, dtype: DType, elements: u64) -> u64 {
        let (per_loop, loop_cycles) = self.inner(dtype);
        let inner = elements.div_ceil(WORKERS).div_ceil(per_loop) * loop_cycles;
        WORKERS * (58 + inner) + 11
    }
}

/// Tile cycles of `target += scale * source` on `elements` elements, same type.
pub fn scaled_add_cycles(dtype: DType, elements: u64) -> u64 {
    let vectors = elements.div_ceil(vector_width(dtype)).div_ceil(WORKERS);
    // Two cycles a vector: the benchmarks need the interleaved form (research on poplibs rows).
    21 + 11 + 7 + 12 + 6 + WORKERS * (15 + 6 + 2 * vectors.saturating_sub(1) + 3)
}

/// Tile cycles of an element-wise operation with an operand that repeats along rows:
/// `rows` outer loops over `elements / rows` elements.
pub fn broadcast_vector_cycles(dtype: DType, elements: u64, rows: u64) -> u64 {
    let rows = rows.clamp(1, elements.max(1));
    let row_vectors = elements.div_ceil(rows).div_ceil(vector_width(dtype));
    WORKERS * (15 + rows.div_ceil(WORKERS) * (7 + 3 * row_vectors)) + 11
}

/// Tile cycles of the gradient of a non-linearity whose inner loop takes 3 cycles a vector: ReLU.
pub fn nonlinearity_gradient_cycles(dtype: DType, elements: u64) -> u64 {
    let vectors = elements.div_ceil(WORKERS).div_ceil(vector_width(dtype));
    WORKERS * (20 + 4 + 3 * vectors.saturating_sub(1) + 1 + 2) + 9
}

/// Tile cycles of filling `elements` elements with a value, one worker.
pub fn fill_cycles(dtype: DType, elements: u64) -> u64 {
    WORKERS * (24 + elements.div_ceil(WORKERS).div_ceil(vector_width(dtype)))
}

/// A compute phase with one vertex on each tile that has cycles.
pub fn compute(name: &str, vertex_type: String, edges: u64, cycles: TileRuns<u64>) -> Phase {
    let vertices = VertexUse {
        vertex_type,
        count: cycles.map(|_| 1),
        edges,
        field_bytes: 0,
        constant_bytes: 0,
    };
    Phase { name: name.to_string(), kind: PhaseKind::Compute { cycles, vertices: vec![vertices] } }
}

/// A compute phase with one vertex on each tile of `elements`, its cycles a function of them.
pub fn phase(
    name: &str,
    vertex_type: String,
    edges: u64,
    elements: &TileRuns<u64>,
    cycles: impl FnMut(&u64) -> u64,
) -> Phase {
    compute(name, vertex_type, edges, elements.map(cycles))
}

/// A phase of a unary operation.
pub fn unary(name: &str, operation: Unary, dtype: DType, elements: &TileRuns<u64>) -> Phase {
    let vertex_type = format!(
        "popops::UnaryOp1DSupervisor<popops::expr::UnaryOpType::{},{}>",
        operation.name(),
        dtype.poplar_name()
    );
    phase(name, vertex_type, 2, elements, |count| operation.cycles(dtype, *count))
}

/// A phase of a binary operation that overwrites its first operand.
pub fn binary_in_place(
    name: &str,
    operation: Binary,
    dtype: DType,
    elements: &TileRuns<u64>,
) -> Phase {
    let vertex_type = format!(
        "popops::BinaryOp1DInPlaceSupervisor<popops::expr::BinaryOpType::{},{}>",
        operation.name(),
        dtype.poplar_name()
    );
    phase(name, vertex_type, 2, elements, |count| operation.in_place_cycles(dtype, *count))
}

/// A phase of `target += scale * source`.
pub fn scaled_add(name: &str, dtype: DType, elements: &TileRuns<u64>) -> Phase {
    let ty = dtype.poplar_name();
    let vertex_type = format!("popops::ScaledAddSupervisor<{ty},{ty},true>");
    phase(name, vertex_type, 3, elements, |count| scaled_add_cycles(dtype, *count))
}

/// A phase that sets every element to one value.
pub fn fill(name: &str, dtype: DType, elements: &TileRuns<u64>) -> Phase {
    let vertex_type = format!("popops::Fill<{}>", dtype.poplar_name());
    phase(name, vertex_type, 1, elements, |count| fill_cycles(dtype, *count))
}
