//! Tensors of a file: their types, and the values of small ones.

use super::{Name, ProtoReader};
use crate::attributes::AttributeValue;
use crate::constant::{ConstantData, ConstantTensor};
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::wire::FieldValue;
use std::io::{Read, Seek};
use std::sync::Arc;

/// The maximum number of integers or booleans of a tensor that are read: shapes, indices and their
/// masks. Larger ones are data.
const MAX_WHOLE_NUMBERS: u64 = 1 << 16;

/// The maximum number of dimensions of a tensor.
pub(crate) const MAX_RANK: usize = 32;

/// The maximum number of floats of a tensor that are read: scale factors, bounds, exponents. Larger
/// ones are weights.
const MAX_FLOATS: u64 = 64;

#[derive(Debug)]
pub(crate) struct TensorProto {
    pub name: Name,
    pub element: ElementKind,
    pub dims: Vec<i64>,
    /// True if its values are in another file, which is never opened.
    pub is_external: bool,
    pub content: Option<Arc<ConstantTensor>>,
}

impl TensorProto {
    /// The tensor as the value of an attribute. A tensor of negative size has none.
    pub(super) fn into_attribute(self) -> AttributeValue {
        match self.sizes() {
            Some(dims) => {
                AttributeValue::Tensor { element: self.element, dims, content: self.content }
            }
            None => AttributeValue::Other,
        }
    }

    /// Its dimensions; `None` if one is negative.
    pub(crate) fn sizes(&self) -> Option<Vec<u64>> {
        self.dims.iter().map(|dim| u64::try_from(*dim).ok()).collect()
    }
}

/// The fields that decide if the values are read.
#[derive(Default)]
struct TensorHead {
    kind: u64,
    dims: Vec<i64>,
    is_external: bool,
    /// True if any field may contain values.
    has_data: bool,
}

impl TensorHead {
    /// Number of values, if they are in the file and few.
    fn few(&self, element: ElementKind) -> Option<(Vec<u64>, usize)> {
        let dims: Vec<u64> =
            self.dims.iter().map(|dim| u64::try_from(*dim).ok()).collect::<Option<_>>()?;
        let elements = dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim))?;
        let most = match element {
            _ if self.is_external => return None,
            ElementKind::Uint4 | ElementKind::Int4 | ElementKind::Uint2 | ElementKind::Int2 => {
                return None;
            }
            ElementKind::Float8 | ElementKind::Float4 => return None,
            ElementKind::Bool => MAX_WHOLE_NUMBERS,
            _ if element.is_integer() => MAX_WHOLE_NUMBERS,
            _ if element.is_float() => MAX_FLOATS,
            _ => return None,
        };
        let count = usize::try_from(elements).ok()?;
        // A tensor without any values had its weights stripped.
        if elements <= most && (self.has_data || elements == 0) {
            Some((dims, count))
        } else {
            None
        }
    }
}

/// Values under collection: the fields store them as integers or as floats.
#[derive(Default)]
struct TensorValues {
    ints: Vec<i64>,
    floats: Vec<f64>,
    raw: Option<Vec<u8>>,
}

impl<R: Read + Seek> ProtoReader<R> {
    /// Reads a tensor. If its values are few, reads them in a second pass over its bytes.
    pub(super) fn tensor(&mut self, end: u64) -> Result<TensorProto, OnnxError> {
        let start = self.wire.position();
        let mut head = TensorHead::default();
        let mut name = Arc::clone(&self.empty);
        self.message(end, |reader, number, value| {
            match (number, value) {
                (1, value) => reader.tensor_dims(value, &mut head.dims)?,
                (2, FieldValue::Varint(kind)) => head.kind = kind,
                (8, FieldValue::Until(end)) => name = reader.name(end)?,
                // The path in field 13 is not even read: no other file is ever opened.
                (14, FieldValue::Varint(location)) => head.is_external = location == 1,
                (4 | 5 | 7 | 9 | 10 | 11, _) => {
                    head.has_data = true;
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let element = ElementKind::from_number(head.kind).ok_or_else(|| OnnxError::Syntax {
            byte: start,
            problem: format!("tensor {name:?} has the unknown element type {}", head.kind),
        })?;
        let content = match head.few(element) {
            Some((dims, count)) => {
                self.wire.go_to(start)?;
                let data = self.tensor_values(end, &name, element, count)?;
                Some(Arc::new(ConstantTensor { dims, data }))
            }
            None => None,
        };
        Ok(TensorProto { name, element, dims: head.dims, is_external: head.is_external, content })
    }

    fn tensor_dims(&mut self, value: FieldValue, dims: &mut Vec<i64>) -> Result<(), OnnxError> {
        // No number has more than ten bytes.
        let bytes = if let FieldValue::Until(end) = value { end - self.wire.position() } else { 0 };
        if bytes <= 10 * MAX_RANK as u64 {
            self.numbers(value, dims, |wire| Ok(wire.varint()?.cast_signed()))?;
            if dims.len() <= MAX_RANK {
                return Ok(());
            }
        }
        Err(self.wire.error(format!("a tensor has more than {MAX_RANK} dimensions")))
    }

    fn tensor_values(
        &mut self,
        end: u64,
        name: &str,
        element: ElementKind,
        count: usize,
    ) -> Result<ConstantData, OnnxError> {
        let start = self.wire.position();
        let mut values = TensorValues::default();
        self.message(end, |reader, number, value| match (number, value) {
            (4, value) => reader.numbers(value, &mut values.floats, |wire| {
                Ok(f32::from_bits(wire.fixed32()?).into())
            }),
            (5 | 7 | 11, value) => {
                reader.numbers(value, &mut values.ints, |wire| Ok(wire.varint()?.cast_signed()))
            }
            (9, FieldValue::Until(end))
                if end - reader.wire.position() <= 16 * MAX_WHOLE_NUMBERS =>
            {
                values.raw = Some(reader.wire.small_bytes(end)?);
                Ok(true)
            }
            (10, value) => reader
                .numbers(value, &mut values.floats, |wire| Ok(f64::from_bits(wire.fixed64()?))),
            _ => Ok(false),
        })?;
        let data = values.into_data(element);
        let found = match &data {
            ConstantData::Ints(values) => values.len(),
            ConstantData::Bools(values) => values.len(),
            ConstantData::Floats(values) => values.len(),
        };
        if found != count {
            let problem =
                format!("tensor {name:?} has {found} values, but its shape requires {count}");
            return Err(OnnxError::Syntax { byte: start, problem });
        }
        Ok(data)
    }
}

impl TensorValues {
    fn into_data(self, element: ElementKind) -> ConstantData {
        if element.is_float() {
            return ConstantData::Floats(match self.raw {
                Some(raw) => raw_floats(&raw, element),
                // 16-bit floats are stored as their bits.
                None if self.floats.is_empty() => {
                    self.ints.iter().map(|bits| half_from_bits(low_bits(*bits), element)).collect()
                }
                None => self.floats,
            });
        }
        let ints = match self.raw {
            Some(raw) => raw_ints(&raw, element),
            None => self.ints,
        };
        if element == ElementKind::Bool {
            return ConstantData::Bools(ints.iter().map(|value| *value != 0).collect());
        }
        ConstantData::Ints(ints)
    }
}

fn low_bits(value: i64) -> u16 {
    let [low, high, ..] = value.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// Integers of a type, from `raw_data`: little-endian, without gaps.
fn raw_ints(raw: &[u8], element: ElementKind) -> Vec<i64> {
    fn each<const N: usize>(raw: &[u8], value: impl Fn([u8; N]) -> i64) -> Vec<i64> {
        let (whole, rest) = raw.as_chunks::<N>();
        let rest = if rest.is_empty() { None } else { Some(0) };
        whole.iter().map(|bytes| value(*bytes)).chain(rest).collect()
    }
    match element {
        ElementKind::Int8 => each(raw, |bytes| i8::from_le_bytes(bytes).into()),
        ElementKind::Uint8 | ElementKind::Bool => {
            each(raw, |bytes| u8::from_le_bytes(bytes).into())
        }
        ElementKind::Int16 => each(raw, |bytes| i16::from_le_bytes(bytes).into()),
        ElementKind::Uint16 => each(raw, |bytes| u16::from_le_bytes(bytes).into()),
        ElementKind::Int32 => each(raw, |bytes| i32::from_le_bytes(bytes).into()),
        ElementKind::Uint32 => each(raw, |bytes| u32::from_le_bytes(bytes).into()),
        _ => each(raw, i64::from_le_bytes),
    }
}

fn raw_floats(raw: &[u8], element: ElementKind) -> Vec<f64> {
    fn each<const N: usize>(raw: &[u8], value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        let (whole, rest) = raw.as_chunks::<N>();
        let rest = if rest.is_empty() { None } else { Some(0.0) };
        whole.iter().map(|bytes| value(*bytes)).chain(rest).collect()
    }
    match element {
        ElementKind::Float64 => each(raw, f64::from_le_bytes),
        ElementKind::Float32 => each(raw, |bytes| f32::from_le_bytes(bytes).into()),
        _ => each(raw, |bytes| half_from_bits(u16::from_le_bytes(bytes), element)),
    }
}

/// A 16-bit float of either kind: IEEE binary16, or the upper half of a binary32.
fn half_from_bits(bits: u16, element: ElementKind) -> f64 {
    if element == ElementKind::BFloat16 {
        return f32::from_bits(u32::from(bits) << 16).into();
    }
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_floats() {
        for (bits, value) in [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 2_f64.powi(-24))] {
            assert_eq!(half_from_bits(bits, ElementKind::Float16), value);
        }
        assert_eq!(half_from_bits(0x7c00, ElementKind::Float16), f64::INFINITY);
        assert_eq!(half_from_bits(0xff80, ElementKind::BFloat16), f64::NEG_INFINITY);
    }
}
