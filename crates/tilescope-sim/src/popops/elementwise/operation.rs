//! The operations of element-wise vertices and what their inner loops take (poplibs
//! lib/poplibs_support/popopsPerformanceEstimation.hpp).

use super::{LOADS_INTERLEAVED, vector_width};
use crate::shape::DType;

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UnaryOpType {
    /// |x|
    Absolute,
    Cos,
    /// Gauss error function.
    Erf,
    /// e^x
    Exp,
    /// 1 / x
    Inverse,
    Log,
    /// -x
    Negate,
    /// max(x, 0)
    Relu,
    /// 1 / square root of x
    Rsqrt,
    /// 1 / (1 + e^-x)
    Sigmoid,
    Sin,
    /// square root of x
    Sqrt,
    /// x^2
    Square,
    Tanh,
}

/// Operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BinaryOpType {
    /// a + b
    Add,
    /// a - b
    Subtract,
    Multiply,
    /// a / b
    Divide,
    Maximum,
    Minimum,
    /// a^b
    Power,
    /// Whether a = b.
    Equal,
    /// 1 / square root of (a + b)
    VarianceToInvStdDev,
}

/// What one round of an inner loop takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ElementwiseLoopCost {
    /// Elements of a round; 0 stands for one vector of 64 bits.
    elements: u64,
    cycles: u64,
}

const fn round(elements: u64, cycles: u64) -> ElementwiseLoopCost {
    ElementwiseLoopCost { elements, cycles }
}

/// One vector a round.
const fn vector(cycles: u64) -> ElementwiseLoopCost {
    ElementwiseLoopCost { elements: 0, cycles }
}

/// Rounds of one operation for floats and halves, out of place and in place.
struct OpLoopCosts<O> {
    operation: O,
    name: &'static str,
    float: [ElementwiseLoopCost; 2],
    half: [ElementwiseLoopCost; 2],
}

const fn rounds<O>(
    operation: O,
    name: &'static str,
    float: [ElementwiseLoopCost; 2],
    half: [ElementwiseLoopCost; 2],
) -> OpLoopCosts<O> {
    OpLoopCosts { operation, name, float, half }
}

/// Cycles a compiled loop adds to each round: loads, store, branch.
const UNARY_LOOP_CYCLES: u64 = 4;

const UNARY_LOOP_COSTS: &[OpLoopCosts<UnaryOpType>] = &[
    // Rounds that a compiled loop makes have its overhead in them.
    rounds(
        UnaryOpType::Absolute,
        "ABSOLUTE",
        [round(1, 1 + UNARY_LOOP_CYCLES), vector(1 + UNARY_LOOP_CYCLES)],
        [round(1, 1 + UNARY_LOOP_CYCLES), vector(1 + UNARY_LOOP_CYCLES)],
    ),
    rounds(UnaryOpType::Cos, "COS", [round(1, 2304); 2], [round(1, 26); 2]),
    rounds(UnaryOpType::Erf, "ERF", [round(1, 18); 2], [round(1, 16); 2]),
    rounds(UnaryOpType::Exp, "EXPONENT", [round(2, 6); 2], [round(4, 4); 2]),
    rounds(UnaryOpType::Inverse, "INVERSE", [round(2, 6); 2], [round(4, 15); 2]),
    rounds(UnaryOpType::Log, "LOGARITHM", [round(2, 12), round(2, 14)], [round(4, 4), round(4, 6)]),
    rounds(UnaryOpType::Negate, "NEGATE", [round(2, 2), round(2, 3)], [round(4, 2), round(4, 3)]),
    rounds(UnaryOpType::Relu, "RELU", [round(2, 3), round(2, 2)], [round(4, 3), round(4, 2)]),
    rounds(UnaryOpType::Rsqrt, "RSQRT", [round(2, 8); 2], [round(4, 19); 2]),
    rounds(
        UnaryOpType::Sigmoid,
        "SIGMOID",
        [round(2, 12), round(2, 10)],
        [round(4, 6), round(4, 4)],
    ),
    rounds(UnaryOpType::Sin, "SIN", [round(1, 2304); 2], [round(1, 26); 2]),
    rounds(UnaryOpType::Sqrt, "SQRT", [round(2, 10); 2], [round(4, 23); 2]),
    rounds(UnaryOpType::Square, "SQUARE", [round(2, 2); 2], [round(4, 2); 2]),
    rounds(UnaryOpType::Tanh, "TANH", [round(2, 12), round(2, 10)], [round(4, 4), round(4, 2)]),
];

const BINARY_LOOP_COSTS: &[OpLoopCosts<BinaryOpType>] = &[
    rounds(BinaryOpType::Add, "ADD", [vector(1); 2], [vector(1); 2]),
    rounds(BinaryOpType::Subtract, "SUBTRACT", [vector(1); 2], [vector(1); 2]),
    rounds(BinaryOpType::Multiply, "MULTIPLY", [vector(1); 2], [vector(1); 2]),
    rounds(BinaryOpType::Divide, "DIVIDE", [round(2, 10); 2], [round(4, 21); 2]),
    rounds(BinaryOpType::Maximum, "MAXIMUM", [round(2, 4); 2], [round(4, 4); 2]),
    rounds(BinaryOpType::Minimum, "MINIMUM", [round(2, 4); 2], [round(4, 4); 2]),
    rounds(BinaryOpType::Power, "POWER", [round(1, 312); 2], [round(1, 325); 2]),
    rounds(BinaryOpType::Equal, "EQUAL", [round(4, 14); 2], [round(4, 9); 2]),
    rounds(
        BinaryOpType::VarianceToInvStdDev,
        "VARIANCE_TO_INV_STD_DEV",
        [round(2, 12); 2],
        [round(4, 24); 2],
    ),
];

/// Rounds of a binary operation with a scalar or a vector that repeats.
const BROADCAST_LOOP_COSTS: &[OpLoopCosts<BinaryOpType>] = &[
    rounds(BinaryOpType::Add, "ADD", [vector(1); 2], [vector(1); 2]),
    rounds(BinaryOpType::Subtract, "SUBTRACT", [vector(1); 2], [vector(1); 2]),
    rounds(BinaryOpType::Multiply, "MULTIPLY", [vector(1); 2], [vector(1); 2]),
    rounds(BinaryOpType::Divide, "DIVIDE", [round(2, 6); 2], [round(2, 8); 2]),
    rounds(BinaryOpType::Maximum, "MAXIMUM", [round(2, 3); 2], [round(4, 3); 2]),
    rounds(BinaryOpType::Minimum, "MINIMUM", [round(2, 3); 2], [round(4, 3); 2]),
    rounds(BinaryOpType::Power, "POWER", [round(1, 312); 2], [round(1, 325); 2]),
    rounds(BinaryOpType::Equal, "EQUAL", [round(4, 14); 2], [round(4, 9); 2]),
    rounds(
        BinaryOpType::VarianceToInvStdDev,
        "VARIANCE_TO_INV_STD_DEV",
        [round(2, 12); 2],
        [round(4, 24); 2],
    ),
];

impl ElementwiseLoopCost {
    /// Cycles of `count` elements, each round `extra` cycles longer.
    fn cycles(self, dtype: DType, count: u64, extra: u64) -> u64 {
        let elements = if self.elements == 0 { vector_width(dtype) } else { self.elements };
        count.div_ceil(elements) * (self.cycles + extra)
    }
}

impl<O: Copy + PartialEq> OpLoopCosts<O> {
    fn lookup(table: &'static [Self], operation: O) -> &'static Self {
        let found = table.iter().find(|rounds| rounds.operation == operation);
        found.expect("every operation is in its table")
    }

    fn round(&self, dtype: DType, in_place: bool) -> ElementwiseLoopCost {
        let rounds = if dtype == DType::Half { &self.half } else { &self.float };
        rounds[usize::from(in_place)]
    }
}

impl UnaryOpType {
    /// Name of the operator.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Absolute => "abs",
            Self::Cos => "cos",
            Self::Erf => "erf",
            Self::Exp => "exp",
            Self::Inverse => "reciprocal",
            Self::Log => "log",
            Self::Negate => "negate",
            Self::Relu => "relu",
            Self::Rsqrt => "rsqrt",
            Self::Sigmoid => "sigmoid",
            Self::Sin => "sin",
            Self::Sqrt => "sqrt",
            Self::Square => "square",
            Self::Tanh => "tanh",
        }
    }

    /// Poplar's name inside vertex types.
    pub(crate) fn name(self) -> &'static str {
        OpLoopCosts::lookup(UNARY_LOOP_COSTS, self).name
    }

    /// Worker cycles of the inner loop on `count` elements.
    pub(crate) fn inner(self, dtype: DType, count: u64, in_place: bool) -> u64 {
        OpLoopCosts::lookup(UNARY_LOOP_COSTS, self).round(dtype, in_place).cycles(dtype, count, 0)
    }
}

impl BinaryOpType {
    /// Name of the operator.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::Maximum => "maximum",
            Self::Minimum => "minimum",
            Self::Power => "power",
            Self::Equal => "equal",
            Self::VarianceToInvStdDev => "variance_to_inv_std_dev",
        }
    }

    /// Name in debug paths.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Add => "Add",
            Self::Subtract => "Subtract",
            Self::Multiply => "Multiply",
            Self::Divide => "Divide",
            Self::Maximum => "Maximum",
            Self::Minimum => "Minimum",
            Self::Power => "Power",
            Self::Equal => "Equal",
            Self::VarianceToInvStdDev => "VarianceToInvStdDev",
        }
    }

    /// Poplar's name inside vertex types.
    pub(crate) fn name(self) -> &'static str {
        OpLoopCosts::lookup(BINARY_LOOP_COSTS, self).name
    }

    /// Whether the vertex is written in assembly.
    fn is_assembly(self, dtype: DType) -> bool {
        matches!(dtype, DType::Half | DType::Float)
            && matches!(self, Self::Add | Self::Subtract | Self::Multiply)
    }

    /// Worker cycles of the inner loop on `count` elements.
    pub(crate) fn inner(self, dtype: DType, count: u64, in_place: bool) -> u64 {
        let round = OpLoopCosts::lookup(BINARY_LOOP_COSTS, self).round(dtype, in_place);
        // Two loads and a store a vector; in place and interleaved one load brings both operands.
        // Compiled loops have a branch besides.
        let extra = match (round.elements, self.is_assembly(dtype)) {
            (0, true) if in_place && LOADS_INTERLEAVED => 1,
            (0, true) => 2,
            (0, false) => 5,
            _ => 0,
        };
        round.cycles(dtype, count, extra)
    }

    /// Worker cycles of the inner loop on `count` elements and one scalar.
    pub(crate) fn inner_with_scalar(self, dtype: DType, count: u64, in_place: bool) -> u64 {
        let round = OpLoopCosts::lookup(BROADCAST_LOOP_COSTS, self).round(dtype, in_place);
        let extra = match (round.elements, self.is_assembly(dtype)) {
            (0, true) => u64::from(!(in_place && LOADS_INTERLEAVED)),
            (0, false) => 4,
            _ => 0,
        };
        round.cycles(dtype, count, extra)
    }

    /// Worker cycles of the inner loop on `count` elements and one of several scalars, by compiled
    /// code (BroadcastScalar2DInPlace).
    pub(crate) fn inner_with_scalars(self, dtype: DType, count: u64) -> u64 {
        let round = OpLoopCosts::lookup(BROADCAST_LOOP_COSTS, self).round(dtype, true);
        round.cycles(dtype, count, if round.elements == 0 { 4 } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_take_three_cycles_a_vector_and_two_in_place() {
        assert_eq!(BinaryOpType::Add.inner(DType::Half, 40, false), 30);
        assert_eq!(BinaryOpType::Add.inner(DType::Half, 40, true), 20);
        assert_eq!(BinaryOpType::Divide.inner(DType::Float, 40, false), 200);
    }

    #[test]
    fn every_operation_has_cycles() {
        for rounds in UNARY_LOOP_COSTS {
            assert!(rounds.operation.inner(DType::Half, 100, true) >= 50, "{}", rounds.name);
        }
        for rounds in BINARY_LOOP_COSTS {
            assert!(rounds.operation.inner(DType::Float, 100, true) >= 50, "{}", rounds.name);
            assert!(rounds.operation.inner_with_scalar(DType::Float, 100, true) >= 50);
        }
    }
}
