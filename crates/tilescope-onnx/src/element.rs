//! Element types of tensors.

use std::fmt;

/// Element type of a tensor, as `TensorProto.DataType` numbers it in onnx.proto3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementKind {
    Float32,
    Uint8,
    Int8,
    Uint16,
    Int16,
    Int32,
    Int64,
    Text,
    Bool,
    Float16,
    Float64,
    Uint32,
    Uint64,
    Complex64,
    Complex128,
    BFloat16,
    /// The four 8-bit formats of opset 19: E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ.
    Float8,
    /// The 4-bit integers of opset 21.
    Uint4,
    Int4,
    /// The E2M1 format of opset 23.
    Float4,
    /// The 2-bit integers of opset 25.
    Uint2,
    Int2,
}

/// Number in the file, type, name in the standard, bits of an element.
const KINDS: &[(u64, ElementKind, &str, u32)] = &[
    (1, ElementKind::Float32, "float", 32),
    (2, ElementKind::Uint8, "uint8", 8),
    (3, ElementKind::Int8, "int8", 8),
    (4, ElementKind::Uint16, "uint16", 16),
    (5, ElementKind::Int16, "int16", 16),
    (6, ElementKind::Int32, "int32", 32),
    (7, ElementKind::Int64, "int64", 64),
    // A text has no fixed size; no device memory contains one.
    (8, ElementKind::Text, "string", 0),
    (9, ElementKind::Bool, "bool", 8),
    (10, ElementKind::Float16, "float16", 16),
    (11, ElementKind::Float64, "double", 64),
    (12, ElementKind::Uint32, "uint32", 32),
    (13, ElementKind::Uint64, "uint64", 64),
    (14, ElementKind::Complex64, "complex64", 64),
    (15, ElementKind::Complex128, "complex128", 128),
    (16, ElementKind::BFloat16, "bfloat16", 16),
    (17, ElementKind::Float8, "float8", 8),
    (18, ElementKind::Float8, "float8", 8),
    (19, ElementKind::Float8, "float8", 8),
    (20, ElementKind::Float8, "float8", 8),
    (21, ElementKind::Uint4, "uint4", 4),
    (22, ElementKind::Int4, "int4", 4),
    (23, ElementKind::Float4, "float4e2m1", 4),
    // E8M0 of opset 24: scales of other formats.
    (24, ElementKind::Float8, "float8", 8),
    (25, ElementKind::Uint2, "uint2", 2),
    (26, ElementKind::Int2, "int2", 2),
];

impl ElementKind {
    /// The type with this number; `None` for a number that the standard does not define.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        KINDS.iter().find(|(of, ..)| *of == number).map(|(_, kind, ..)| *kind)
    }

    /// Its number in files.
    pub(crate) fn number(self) -> u64 {
        KINDS.iter().find(|(_, kind, ..)| *kind == self).map_or(0, |(number, ..)| *number)
    }

    /// Its name in the standard.
    #[must_use]
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind, ..)| *kind == self).map_or("", |(_, _, name, _)| name)
    }

    /// Bits of an element; 0 for texts.
    #[must_use]
    pub fn bits(self) -> u32 {
        KINDS.iter().find(|(_, kind, ..)| *kind == self).map_or(0, |(_, _, _, bits)| *bits)
    }

    /// True for a floating-point type.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(
            self,
            Self::Float32
                | Self::Float16
                | Self::Float64
                | Self::BFloat16
                | Self::Float8
                | Self::Float4
        )
    }

    /// True for a signed or unsigned integer type; `bool` is none.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Uint8
                | Self::Int8
                | Self::Uint16
                | Self::Int16
                | Self::Int32
                | Self::Int64
                | Self::Uint32
                | Self::Uint64
                | Self::Uint4
                | Self::Int4
                | Self::Uint2
                | Self::Int2
        )
    }
}

impl fmt::Display for ElementKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
