//! Small tensors whose values are known.

use crate::element::ElementKind;

/// Values of a tensor, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstantData {
    /// All whole-number types; an unsigned 64-bit value above `i64::MAX` wraps, as a cast does.
    Ints(Vec<i64>),
    Bools(Vec<bool>),
    /// All floating-point types.
    Floats(Vec<f64>),
}

/// A tensor whose values are known: a small initialiser, a constant, or what was folded of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantTensor {
    pub dims: Vec<u64>,
    /// As many values as the product of `dims`.
    pub data: ConstantData,
}

impl ConstantTensor {
    /// A tensor without elements; none if the type is one whose values are never read.
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

    /// Whether a dimension is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as whole numbers; none if they are floats. `true` is 1.
    #[must_use]
    pub fn ints(&self) -> Option<Vec<i64>> {
        match &self.data {
            ConstantData::Ints(values) => Some(values.clone()),
            ConstantData::Bools(values) => Some(values.iter().map(|&v| i64::from(v)).collect()),
            ConstantData::Floats(_) => None,
        }
    }

    /// The values as floats, whatever their type.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sizes and indices are far below 2^53")]
    pub fn floats(&self) -> Vec<f64> {
        match &self.data {
            ConstantData::Ints(values) => values.iter().map(|&v| v as f64).collect(),
            ConstantData::Bools(values) => values.iter().map(|&v| f64::from(u8::from(v))).collect(),
            ConstantData::Floats(values) => values.clone(),
        }
    }

    /// The value of a tensor of one element, whatever its rank, as a float.
    #[must_use]
    pub fn scalar(&self) -> Option<f64> {
        if self.len() == 1 { self.floats().first().copied() } else { None }
    }
}
