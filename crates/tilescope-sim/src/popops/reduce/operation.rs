//! Operations that a reduction can compute.

use crate::shape::DType;

/// Operation that combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOperation {
    Add,
    SquareAdd,
    Multiply,
    Max,
    Min,
    /// Logarithm of the sum of exponentials.
    LogAdd,
    And,
    Or,
}

impl ReduceOperation {
    /// Name in a test bench or a report, such as `SQUARE_ADD`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::SquareAdd => "SQUARE_ADD",
            Self::Multiply => "MUL",
            Self::Max => "MAX",
            Self::Min => "MIN",
            Self::LogAdd => "LOG_ADD",
            Self::And => "LOGICAL_AND",
            Self::Or => "LOGICAL_OR",
        }
    }

    /// Returns the operation with the given name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        [
            Self::Add,
            Self::SquareAdd,
            Self::Multiply,
            Self::Max,
            Self::Min,
            Self::LogAdd,
            Self::And,
            Self::Or,
        ]
        .into_iter()
        .find(|operation| operation.name() == name)
    }

    /// Name of the operation inside vertex types.
    pub(crate) fn vertex_name(self) -> &'static str {
        match self {
            Self::Add => "ReduceAdd",
            Self::SquareAdd => "ReduceSquareAdd",
            Self::Multiply => "ReduceMul",
            Self::Max => "ReduceMax",
            Self::Min => "ReduceMin",
            Self::LogAdd => "ReduceLogAdd",
            Self::And => "ReduceAnd",
            Self::Or => "ReduceOr",
        }
    }

    /// Returns true if the accumulators of the matrix engine compute it.
    pub(crate) fn is_sum(self) -> bool {
        matches!(self, Self::Add | Self::SquareAdd)
    }

    /// Returns true if the general vertex has assembly for it.
    pub(crate) fn is_vectorised(self) -> bool {
        matches!(self, Self::Add | Self::SquareAdd | Self::Multiply | Self::Max | Self::Min)
    }

    /// Returns true if the regular specialisations have assembly for it.
    pub(crate) fn has_regular_forms(self) -> bool {
        matches!(self, Self::Add | Self::SquareAdd | Self::Max | Self::Min)
    }

    /// Operation that combines partial results.
    pub(crate) fn combining(self) -> Self {
        // Partial results have already been squared.
        if self == Self::SquareAdd { Self::Add } else { self }
    }

    /// Type of partial results for results of type `output`. Operations that lose bits in half
    /// precision are accumulated in single precision (poplibs lib/popops/reduction/Reduction.cpp).
    pub(crate) fn accumulator(self, output: DType) -> DType {
        match self {
            Self::Add | Self::SquareAdd | Self::Multiply | Self::LogAdd
                if output == DType::Half =>
            {
                DType::Float
            }
            _ => output,
        }
    }
}
