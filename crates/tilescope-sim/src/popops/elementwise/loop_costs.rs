//! Costs of the inner loops of elementwise vertices (poplibs
//! lib/poplibs_support/popopsPerformanceEstimation.hpp; operations it does not list are from the
//! later lib/popops/popopsCycleEstimators.hpp).

use super::operation::{BinaryOpType, UnaryOpType};
use super::vector_width;
use crate::shape::DType;

/// Cost of one round of an inner loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElementwiseLoopCost {
    /// Elements of a round. 0 stands for one vector of 64 bits.
    pub elements: u64,
    cycles: u64,
}

const fn round(elements: u64, cycles: u64) -> ElementwiseLoopCost {
    ElementwiseLoopCost { elements, cycles }
}

/// One vector per round.
const fn vector(cycles: u64) -> ElementwiseLoopCost {
    ElementwiseLoopCost { elements: 0, cycles }
}

/// Rounds out of place and in place.
type BothForms = [ElementwiseLoopCost; 2];

/// Rounds of one operation by element type.
pub(super) struct OpLoopCosts<O> {
    pub operation: O,
    pub name: &'static str,
    float: BothForms,
    half: BothForms,
    /// Rounds for integers, if they differ from floats.
    int: Option<BothForms>,
    /// Rounds for booleans, if they differ from integers.
    truth: Option<BothForms>,
}

const fn rounds<O>(
    operation: O,
    name: &'static str,
    float: BothForms,
    half: BothForms,
) -> OpLoopCosts<O> {
    OpLoopCosts { operation, name, float, half, int: None, truth: None }
}

/// Operation that takes the same rounds for integers and booleans.
const fn whole<O: Copy>(costs: OpLoopCosts<O>, int: BothForms) -> OpLoopCosts<O> {
    OpLoopCosts { int: Some(int), ..costs }
}

const fn truth<O: Copy>(costs: OpLoopCosts<O>, truth: BothForms) -> OpLoopCosts<O> {
    OpLoopCosts { truth: Some(truth), ..costs }
}

/// Operation on booleans alone.
const fn logical<O: Copy>(operation: O, name: &'static str, costs: BothForms) -> OpLoopCosts<O> {
    rounds(operation, name, costs, costs)
}

/// Comparison in rounds of four, for floats, halves, integers and booleans.
const fn comparison<O: Copy>(
    operation: O,
    name: &'static str,
    [float, half, int, of_truth]: [u64; 4],
) -> OpLoopCosts<O> {
    let costs = rounds(operation, name, [round(4, float); 2], [round(4, half); 2]);
    truth(whole(costs, [round(4, int); 2]), [round(4, of_truth); 2])
}

/// Cycles that a compiled loop adds to each round: loads, store, branch.
const UNARY_LOOP_CYCLES: u64 = 4;

pub(super) const UNARY_LOOP_COSTS: &[OpLoopCosts<UnaryOpType>] = &[
    // Rounds of a compiled loop include its overhead.
    whole(
        rounds(
            UnaryOpType::Absolute,
            "ABSOLUTE",
            [round(1, 1 + UNARY_LOOP_CYCLES), vector(1 + UNARY_LOOP_CYCLES)],
            [round(1, 1 + UNARY_LOOP_CYCLES), vector(1 + UNARY_LOOP_CYCLES)],
        ),
        [round(1, 2 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(
        UnaryOpType::Asin,
        "ASIN",
        [round(1, 102 + UNARY_LOOP_CYCLES); 2],
        [round(1, 102 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(
        UnaryOpType::Ceil,
        "CEIL",
        [vector(2 + UNARY_LOOP_CYCLES); 2],
        [vector(2 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(UnaryOpType::Cos, "COS", [round(1, 2304); 2], [round(1, 26); 2]),
    rounds(UnaryOpType::Erf, "ERF", [round(1, 18); 2], [round(1, 16); 2]),
    rounds(UnaryOpType::Exp, "EXPONENT", [round(2, 6); 2], [round(4, 4); 2]),
    rounds(
        UnaryOpType::ExpMinusOne,
        "EXPONENT_MINUS_ONE",
        [round(1, 4 + UNARY_LOOP_CYCLES); 2],
        [vector(5 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(
        UnaryOpType::Floor,
        "FLOOR",
        [vector(2 + UNARY_LOOP_CYCLES); 2],
        [vector(2 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(UnaryOpType::GeluErf, "GELU_ERF", [round(1, 22); 2], [round(1, 16); 2]),
    rounds(UnaryOpType::Inverse, "INVERSE", [round(2, 6); 2], [round(4, 15); 2]),
    rounds(
        UnaryOpType::IsFinite,
        "IS_FINITE",
        [vector(5 + UNARY_LOOP_CYCLES); 2],
        [vector(5 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(
        UnaryOpType::IsInf,
        "IS_INF",
        [vector(3 + UNARY_LOOP_CYCLES); 2],
        [vector(5 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(
        UnaryOpType::IsNan,
        "IS_NAN",
        [vector(3 + UNARY_LOOP_CYCLES); 2],
        [vector(3 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(UnaryOpType::Log, "LOGARITHM", [round(2, 12), round(2, 14)], [round(4, 4), round(4, 6)]),
    rounds(
        UnaryOpType::LogOnePlus,
        "LOGARITHM_ONE_PLUS",
        [vector(18 + UNARY_LOOP_CYCLES); 2],
        [vector(18 + UNARY_LOOP_CYCLES), vector(17 + UNARY_LOOP_CYCLES)],
    ),
    logical(
        UnaryOpType::LogicalNot,
        "LOGICAL_NOT",
        [round(1, 17 + UNARY_LOOP_CYCLES), vector(17 + UNARY_LOOP_CYCLES)],
    ),
    // Integers take the same cycles as floats: only indices of gathers are negated.
    rounds(UnaryOpType::Negate, "NEGATE", [round(2, 2), round(2, 3)], [round(4, 2), round(4, 3)]),
    rounds(UnaryOpType::Relu, "RELU", [round(2, 3), round(2, 2)], [round(4, 3), round(4, 2)]),
    rounds(
        UnaryOpType::Round,
        "ROUND",
        [vector(2 + UNARY_LOOP_CYCLES); 2],
        [vector(2 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(UnaryOpType::Rsqrt, "RSQRT", [round(2, 8); 2], [round(4, 19); 2]),
    rounds(
        UnaryOpType::Sigmoid,
        "SIGMOID",
        [round(2, 12), round(2, 10)],
        [round(4, 6), round(4, 4)],
    ),
    whole(
        rounds(
            UnaryOpType::Signum,
            "SIGNUM",
            [vector(5 + UNARY_LOOP_CYCLES); 2],
            [vector(5 + UNARY_LOOP_CYCLES); 2],
        ),
        [round(1, 5 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(UnaryOpType::Sin, "SIN", [round(1, 2304); 2], [round(1, 26); 2]),
    rounds(UnaryOpType::Sqrt, "SQRT", [round(2, 10); 2], [round(4, 23); 2]),
    whole(
        rounds(UnaryOpType::Square, "SQUARE", [round(2, 2); 2], [round(4, 2); 2]),
        [vector(1 + UNARY_LOOP_CYCLES); 2],
    ),
    rounds(UnaryOpType::Tan, "TAN", [round(1, 5100); 2], [round(1, 5700); 2]),
    rounds(UnaryOpType::Tanh, "TANH", [round(2, 12), round(2, 10)], [round(4, 4), round(4, 2)]),
];

pub(super) const BINARY_LOOP_COSTS: &[OpLoopCosts<BinaryOpType>] = &[
    whole(rounds(BinaryOpType::Add, "ADD", [vector(1); 2], [vector(1); 2]), [round(1, 7); 2]),
    whole(
        rounds(BinaryOpType::Subtract, "SUBTRACT", [vector(1); 2], [vector(1); 2]),
        [round(1, 7); 2],
    ),
    whole(
        rounds(BinaryOpType::Multiply, "MULTIPLY", [vector(1); 2], [vector(1); 2]),
        [round(1, 7); 2],
    ),
    whole(
        rounds(BinaryOpType::Divide, "DIVIDE", [round(2, 10); 2], [round(4, 21); 2]),
        [round(1, 277); 2],
    ),
    whole(
        rounds(BinaryOpType::Maximum, "MAXIMUM", [round(2, 4); 2], [round(4, 4); 2]),
        [round(1, 7); 2],
    ),
    whole(
        rounds(BinaryOpType::Minimum, "MINIMUM", [round(2, 4); 2], [round(4, 4); 2]),
        [round(1, 7); 2],
    ),
    // Loops over the exponent of integers, which the estimator assumes to be 9.
    whole(
        rounds(BinaryOpType::Power, "POWER", [round(1, 312); 2], [round(1, 325); 2]),
        [round(1, 32); 2],
    ),
    whole(
        rounds(BinaryOpType::Remainder, "REMAINDER", [round(2, 133); 2], [round(4, 300); 2]),
        [round(1, 292); 2],
    ),
    rounds(BinaryOpType::Atan2, "ATAN2", [round(2, 272); 2], [round(4, 578); 2]),
    comparison(BinaryOpType::Equal, "EQUAL", [14, 9, 22, 6]),
    comparison(BinaryOpType::NotEqual, "NOT_EQUAL", [20, 11, 22, 5]),
    comparison(BinaryOpType::GreaterThan, "GREATER_THAN", [14, 9, 22, 31]),
    comparison(BinaryOpType::GreaterThanEqual, "GREATER_THAN_EQUAL", [14, 9, 26, 28]),
    comparison(BinaryOpType::LessThan, "LESS_THAN", [14, 9, 22, 28]),
    comparison(BinaryOpType::LessThanEqual, "LESS_THAN_EQUAL", [14, 9, 26, 28]),
    logical(BinaryOpType::LogicalAnd, "LOGICAL_AND", [round(4, 5); 2]),
    logical(BinaryOpType::LogicalOr, "LOGICAL_OR", [round(4, 5); 2]),
    logical(BinaryOpType::BitwiseAnd, "BITWISE_AND", [round(1, 7); 2]),
    logical(BinaryOpType::BitwiseOr, "BITWISE_OR", [round(1, 7); 2]),
    logical(BinaryOpType::BitwiseXor, "BITWISE_XOR", [round(1, 7); 2]),
    rounds(
        BinaryOpType::VarianceToInvStdDev,
        "VARIANCE_TO_INV_STD_DEV",
        [round(2, 12); 2],
        [round(4, 24); 2],
    ),
];

/// Rounds of a binary operation with a scalar or a broadcast vector.
pub(super) const BROADCAST_LOOP_COSTS: &[OpLoopCosts<BinaryOpType>] = &[
    whole(rounds(BinaryOpType::Add, "ADD", [vector(1); 2], [vector(1); 2]), [round(1, 6); 2]),
    whole(
        rounds(BinaryOpType::Subtract, "SUBTRACT", [vector(1); 2], [vector(1); 2]),
        [round(1, 6); 2],
    ),
    whole(
        rounds(BinaryOpType::Multiply, "MULTIPLY", [vector(1); 2], [vector(1); 2]),
        [round(1, 6); 2],
    ),
    whole(
        rounds(BinaryOpType::Divide, "DIVIDE", [round(2, 6); 2], [round(2, 8); 2]),
        [round(1, 277); 2],
    ),
    whole(
        rounds(BinaryOpType::Maximum, "MAXIMUM", [round(2, 3); 2], [round(4, 3); 2]),
        [round(1, 6); 2],
    ),
    whole(
        rounds(BinaryOpType::Minimum, "MINIMUM", [round(2, 3); 2], [round(4, 3); 2]),
        [round(1, 6); 2],
    ),
    // Loops over the exponent of integers, which the estimator assumes to be 9.
    whole(
        rounds(BinaryOpType::Power, "POWER", [round(1, 312); 2], [round(1, 325); 2]),
        [round(1, 25); 2],
    ),
    whole(
        rounds(BinaryOpType::Remainder, "REMAINDER", [round(2, 93); 2], [round(4, 225); 2]),
        [round(1, 280); 2],
    ),
    rounds(BinaryOpType::Atan2, "ATAN2", [round(2, 272); 2], [round(4, 578); 2]),
    comparison(BinaryOpType::Equal, "EQUAL", [12, 8, 16, 14]),
    comparison(BinaryOpType::NotEqual, "NOT_EQUAL", [18, 10, 16, 4]),
    comparison(BinaryOpType::GreaterThan, "GREATER_THAN", [12, 8, 16, 12]),
    comparison(BinaryOpType::GreaterThanEqual, "GREATER_THAN_EQUAL", [12, 8, 20, 12]),
    comparison(BinaryOpType::LessThan, "LESS_THAN", [12, 8, 16, 16]),
    comparison(BinaryOpType::LessThanEqual, "LESS_THAN_EQUAL", [12, 8, 20, 16]),
    logical(BinaryOpType::LogicalAnd, "LOGICAL_AND", [round(4, 4); 2]),
    logical(BinaryOpType::LogicalOr, "LOGICAL_OR", [round(4, 4); 2]),
    logical(BinaryOpType::BitwiseAnd, "BITWISE_AND", [round(1, 6); 2]),
    logical(BinaryOpType::BitwiseOr, "BITWISE_OR", [round(1, 6); 2]),
    logical(BinaryOpType::BitwiseXor, "BITWISE_XOR", [round(1, 6); 2]),
    rounds(
        BinaryOpType::VarianceToInvStdDev,
        "VARIANCE_TO_INV_STD_DEV",
        [round(2, 12); 2],
        [round(4, 24); 2],
    ),
];

impl ElementwiseLoopCost {
    /// Cycles of `count` elements, with each round `extra` cycles longer.
    pub(super) fn cycles(self, dtype: DType, count: u64, extra: u64) -> u64 {
        let elements = if self.elements == 0 { vector_width(dtype) } else { self.elements };
        count.div_ceil(elements) * (self.cycles + extra)
    }
}

impl<O: Copy + PartialEq> OpLoopCosts<O> {
    pub(super) fn lookup(table: &'static [Self], operation: O) -> &'static Self {
        let found = table.iter().find(|rounds| rounds.operation == operation);
        found.expect("every operation is in its table")
    }

    pub(super) fn round(&self, dtype: DType, in_place: bool) -> ElementwiseLoopCost {
        let rounds = match dtype {
            DType::Half => self.half,
            DType::Float | DType::Quarter => self.float,
            DType::Int => self.int.unwrap_or(self.float),
            DType::Bool | DType::UInt8 | DType::Int8 => {
                self.truth.or(self.int).unwrap_or(self.float)
            }
        };
        rounds[usize::from(in_place)]
    }
}
