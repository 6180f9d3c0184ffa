//! Operations of elementwise vertices: names, result types, cycles of a worker's loop.

use super::LOADS_INTERLEAVED;
use super::loop_costs::{BINARY_LOOP_COSTS, BROADCAST_LOOP_COSTS, OpLoopCosts, UNARY_LOOP_COSTS};
use crate::shape::DType;

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UnaryOpType {
    /// |x|
    Absolute,
    /// Arc sine.
    Asin,
    /// Rounds up to a whole number.
    Ceil,
    Cos,
    /// Gauss error function.
    Erf,
    /// e^x
    Exp,
    /// e^x - 1
    ExpMinusOne,
    /// Rounds down to a whole number.
    Floor,
    /// x times the normal distribution function of x.
    GeluErf,
    /// 1 / x
    Inverse,
    IsFinite,
    IsInf,
    IsNan,
    Log,
    /// ln(1 + x)
    LogOnePlus,
    LogicalNot,
    /// -x
    Negate,
    /// max(x, 0)
    Relu,
    /// Rounds to the nearest whole number.
    Round,
    /// 1 / square root of x
    Rsqrt,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// -1, 0 or 1
    Signum,
    Sin,
    /// square root of x
    Sqrt,
    /// x^2
    Square,
    Tan,
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
    /// Remainder of a divided by b.
    Remainder,
    /// Angle of the point (b, a).
    Atan2,
    /// True if a = b.
    Equal,
    NotEqual,
    /// True if a > b.
    GreaterThan,
    /// True if a >= b.
    GreaterThanEqual,
    /// True if a < b.
    LessThan,
    /// True if a <= b.
    LessThanEqual,
    LogicalAnd,
    LogicalOr,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    /// 1 / square root of (a + b)
    VarianceToInvStdDev,
}

impl UnaryOpType {
    /// Name of the operator.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Absolute => "abs",
            Self::Asin => "asin",
            Self::Ceil => "ceil",
            Self::Cos => "cos",
            Self::Erf => "erf",
            Self::Exp => "exp",
            Self::ExpMinusOne => "expm1",
            Self::Floor => "floor",
            Self::GeluErf => "gelu_erf",
            Self::Inverse => "reciprocal",
            Self::IsFinite => "is_finite",
            Self::IsInf => "is_inf",
            Self::IsNan => "is_nan",
            Self::Log => "log",
            Self::LogOnePlus => "log1p",
            Self::LogicalNot => "not",
            Self::Negate => "negate",
            Self::Relu => "relu",
            Self::Round => "round",
            Self::Rsqrt => "rsqrt",
            Self::Sigmoid => "sigmoid",
            Self::Signum => "sign",
            Self::Sin => "sin",
            Self::Sqrt => "sqrt",
            Self::Square => "square",
            Self::Tan => "tan",
            Self::Tanh => "tanh",
        }
    }

    /// Returns true if the result is a boolean.
    pub(crate) fn is_predicate(self) -> bool {
        matches!(self, Self::IsFinite | Self::IsInf | Self::IsNan)
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
            Self::Remainder => "remainder",
            Self::Atan2 => "atan2",
            Self::Equal => "equal",
            Self::NotEqual => "not_equal",
            Self::GreaterThan => "greater",
            Self::GreaterThanEqual => "greater_equal",
            Self::LessThan => "less",
            Self::LessThanEqual => "less_equal",
            Self::LogicalAnd => "and",
            Self::LogicalOr => "or",
            Self::BitwiseAnd => "bitwise_and",
            Self::BitwiseOr => "bitwise_or",
            Self::BitwiseXor => "bitwise_xor",
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
            Self::Remainder => "Remainder",
            Self::Atan2 => "Atan2",
            Self::Equal => "Equal",
            Self::NotEqual => "NotEqual",
            Self::GreaterThan => "GreaterThan",
            Self::GreaterThanEqual => "GreaterThanEqual",
            Self::LessThan => "LessThan",
            Self::LessThanEqual => "LessThanEqual",
            Self::LogicalAnd => "LogicalAnd",
            Self::LogicalOr => "LogicalOr",
            Self::BitwiseAnd => "BitwiseAnd",
            Self::BitwiseOr => "BitwiseOr",
            Self::BitwiseXor => "BitwiseXor",
            Self::VarianceToInvStdDev => "VarianceToInvStdDev",
        }
    }

    /// Poplar's name inside vertex types.
    pub(crate) fn name(self) -> &'static str {
        OpLoopCosts::lookup(BINARY_LOOP_COSTS, self).name
    }

    /// Returns true if the result is a boolean.
    pub(crate) fn is_predicate(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::GreaterThan
                | Self::GreaterThanEqual
                | Self::LessThan
                | Self::LessThanEqual
                | Self::LogicalAnd
                | Self::LogicalOr
        )
    }

    /// Returns true if the operands can be swapped (poplibs lib/popops/ElementWise.cpp,
    /// isBinaryOpCommutative).
    pub(crate) fn is_commutative(self) -> bool {
        matches!(
            self,
            Self::Add
                | Self::Multiply
                | Self::Maximum
                | Self::Minimum
                | Self::Equal
                | Self::NotEqual
                | Self::LogicalAnd
                | Self::LogicalOr
                | Self::BitwiseAnd
                | Self::BitwiseOr
                | Self::BitwiseXor
        )
    }

    /// Returns true if the vertex is written in assembly.
    fn is_assembly(self, dtype: DType) -> bool {
        matches!(dtype, DType::Half | DType::Float)
            && matches!(self, Self::Add | Self::Subtract | Self::Multiply)
    }

    /// Worker cycles of the inner loop on `count` elements.
    pub(crate) fn inner(self, dtype: DType, count: u64, in_place: bool) -> u64 {
        let round = OpLoopCosts::lookup(BINARY_LOOP_COSTS, self).round(dtype, in_place);
        // Two loads and one store per vector. In place and interleaved, one load reads both
        // operands. Compiled loops have a branch in addition.
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

    /// Worker cycles of the inner loop on `count` elements and one of several scalars, in compiled
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
        for dtype in [DType::Half, DType::Float, DType::Int, DType::Bool] {
            for rounds in UNARY_LOOP_COSTS {
                assert!(rounds.operation.inner(dtype, 100, true) >= 50, "{}", rounds.name);
            }
            for rounds in BINARY_LOOP_COSTS {
                assert!(rounds.operation.inner(dtype, 100, true) >= 50, "{}", rounds.name);
                assert!(rounds.operation.inner_with_scalar(dtype, 100, true) >= 25);
            }
        }
        // Integers one at a time, booleans four at a time.
        assert_eq!(BinaryOpType::Add.inner(DType::Int, 100, true), 700);
        assert_eq!(BinaryOpType::LogicalAnd.inner(DType::Bool, 100, true), 125);
        assert_eq!(BinaryOpType::LessThan.inner(DType::Int, 100, false), 550);
    }
}
