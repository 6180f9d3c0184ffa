//! Element types.

use tilescope_report::ArithmeticType;
use tilescope_report::units::Bytes;

/// The type of one element of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// 8-bit float.
    Quarter,
    /// 16-bit float.
    Half,
    /// 32-bit float.
    Float,
    /// 32-bit signed integer.
    Int,
    /// 8-bit unsigned integer.
    UInt8,
    /// 8-bit signed integer.
    Int8,
    /// Truth value, one byte.
    Bool,
}

impl DType {
    /// Size of one element in bytes.
    pub fn bytes(self) -> Bytes {
        Bytes(match self {
            Self::Quarter | Self::UInt8 | Self::Int8 | Self::Bool => 1,
            Self::Half => 2,
            Self::Float | Self::Int => 4,
        })
    }

    /// Returns true for floating-point types.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Quarter | Self::Half | Self::Float)
    }

    /// Name of the type in specs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quarter => "float8",
            Self::Half => "float16",
            Self::Float => "float32",
            Self::Int => "int32",
            Self::UInt8 => "uint8",
            Self::Int8 => "int8",
            Self::Bool => "bool",
        }
    }

    /// Returns true if the type holds floating-point numbers.
    pub(crate) fn is_floating_point(self) -> bool {
        matches!(self, Self::Quarter | Self::Half | Self::Float)
    }

    /// The arithmetic type whose rates apply to this type. Integers and booleans use the vector
    /// units at the rate of floats of the same size.
    pub(crate) fn arithmetic_type(self) -> ArithmeticType {
        match self {
            Self::Quarter => ArithmeticType::Quarter,
            Self::Half | Self::UInt8 | Self::Int8 | Self::Bool => ArithmeticType::Half,
            Self::Float | Self::Int => ArithmeticType::Float,
        }
    }

    /// Name of the type inside Poplar's vertex types: `float`, `half`.
    pub(crate) fn poplar_name(self) -> &'static str {
        match self {
            Self::Quarter => "quarter",
            Self::Half => "half",
            Self::Float => "float",
            Self::Int => "int",
            Self::UInt8 => "unsigned char",
            Self::Int8 => "signed char",
            Self::Bool => "bool",
        }
    }
}
