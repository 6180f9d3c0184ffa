//! Small tensors with known values.

use crate::element::ElementKind;

/// Values of a tensor, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstantData {
    /// All integer types; an unsigned 64-bit value above `i64::MAX` wraps, as in a cast.
    Ints(Vec<i64>),
    Bools(Vec<bool>),
    /// All floating-point types.
    Floats(Vec<f64>),
}

/// A tensor with known values: a small initialiser, a constant, or a folded one.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantTensor {
    pub dims: Vec<u64>,
    /// As many values as the product of `dims`.
    pub data: ConstantData,
}

impl ConstantTensor {
    /// A tensor without elements; `None` for a type whose values are never read.
    pub(crate) fn empty(element: ElementKind, dims: Vec<u64>) -> Option<Self> {
        let data = match element {
            ElementKind::Bool => ConstantData::Bools(Vec::new()),
            kind if kind.is_integer() => ConstantData::Ints(Vec::new()),
            kind if kind.is_float() => ConstantData::Floats(Vec::new()),
            _ => return None,
        };
        Some(Self { dims, data })
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.data {
            ConstantData::Ints(values) => values.len(),
            ConstantData::Bools(values) => values.len(),
            ConstantData::Floats(values) => values.len(),
        }
    }

    /// True if a dimension is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as integers; `None` for floats. `true` is 1.
    #[must_use]
    pub fn ints(&self) -> Option<Vec<i64>> {
        match &self.data {
            ConstantData::Ints(values) => Some(values.clone()),
            ConstantData::Bools(values) => Some(values.iter().map(|&v| i64::from(v)).collect()),
            ConstantData::Floats(_) => None,
        }
    }

    /// The values as floats, from any type.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sizes and indices are far below 2^53")]
    pub fn floats(&self) -> Vec<f64> {
        match &self.data {
            ConstantData::Ints(values) => values.iter().map(|&v| v as f64).collect(),
            ConstantData::Bools(values) => values.iter().map(|&v| f64::from(u8::from(v))).collect(),
            ConstantData::Floats(values) => values.clone(),
        }
    }

    /// The value of a tensor of one element, of any rank, as a float.
    #[must_use]
    pub fn scalar(&self) -> Option<f64> {
        if self.len() == 1 { self.floats().first().copied() } else { None }
    }
}
