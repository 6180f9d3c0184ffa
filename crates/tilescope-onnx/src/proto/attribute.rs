//! Attributes of nodes and functions.

use super::{
    AttributeProto, AttributeValueProto, GraphProto, Name, ProtoReader, TensorProto, signed,
};
use crate::attributes::AttributeValue;
use crate::error::OnnxError;
use crate::wire::FieldValue;
use std::io::{Read, Seek};
use std::sync::Arc;

impl<R: Read + Seek> ProtoReader<R> {
    pub(super) fn attribute(&mut self, end: u64) -> Result<AttributeProto, OnnxError> {
        let mut parts = AttributeParts::default();
        let mut name = Arc::clone(&self.empty);
        self.message(end, |reader, number, value| {
            match (number, value) {
                (1, FieldValue::Until(end)) => name = reader.name(end)?,
                (2, FieldValue::Fixed32(bits)) => parts.float = Some(f32::from_bits(bits).into()),
                (3, FieldValue::Varint(value)) => parts.int = Some(signed(value)),
                (4, FieldValue::Until(end)) => parts.text = Some(reader.attribute_text(end)?),
                (5, FieldValue::Until(end)) => parts.tensor = Some(reader.tensor(end)?),
                (6, FieldValue::Until(end)) => parts.graph = Some(Box::new(reader.graph(end)?)),
                (7, value) => {
                    return reader.numbers(value, &mut parts.floats, |wire| {
                        Ok(f32::from_bits(wire.fixed32()?).into())
                    });
                }
                (8, value) => {
                    return reader
                        .numbers(value, &mut parts.ints, |wire| Ok(signed(wire.varint()?)));
                }
                (9, FieldValue::Until(end)) => {
                    let text = reader.attribute_text(end)?;
                    reader.wire.keep(size_of::<String>())?;
                    parts.texts.push(text);
                }
                (20, FieldValue::Varint(kind)) => parts.kind = kind,
                (21, FieldValue::Until(end)) => parts.reference = Some(reader.name(end)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(AttributeProto { name, value: parts.value() })
    }

    /// Reads a string of an attribute, which may be any bytes; `None` if it is not readable.
    fn attribute_text(&mut self, end: u64) -> Result<Option<String>, OnnxError> {
        let bytes = self.wire.text_bytes(end)?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        self.wire.keep(text.as_ref().map_or(0, String::len))?;
        Ok(text)
    }
}

/// The possible contents of an `AttributeProto`; its type selects one.
#[derive(Default)]
struct AttributeParts {
    kind: u64,
    float: Option<f64>,
    int: Option<i64>,
    text: Option<Option<String>>,
    tensor: Option<TensorProto>,
    graph: Option<Box<GraphProto>>,
    floats: Vec<f64>,
    ints: Vec<i64>,
    texts: Vec<Option<String>>,
    reference: Option<Name>,
}

impl AttributeParts {
    /// The type in the file; the first versions leave it out.
    fn kind(&self) -> u64 {
        match self.kind {
            0 if self.float.is_some() => 1,
            0 if self.int.is_some() => 2,
            0 if self.text.is_some() => 3,
            0 if self.tensor.is_some() => 4,
            0 if self.graph.is_some() => 5,
            0 if !self.floats.is_empty() => 6,
            0 if !self.ints.is_empty() => 7,
            0 if !self.texts.is_empty() => 8,
            kind => kind,
        }
    }

    fn value(self) -> AttributeValueProto {
        let kind = self.kind();
        if let Some(reference) = self.reference {
            return AttributeValueProto::Reference(reference);
        }
        // Writers omit zeros and empty texts.
        AttributeValueProto::Plain(match kind {
            1 => AttributeValue::Float(self.float.unwrap_or(0.0)),
            2 => AttributeValue::Int(self.int.unwrap_or(0)),
            3 => match self.text {
                Some(Some(text)) => AttributeValue::Text(text),
                None => AttributeValue::Text(String::new()),
                Some(None) => AttributeValue::Other,
            },
            4 => self.tensor.map_or(AttributeValue::Other, TensorProto::into_attribute),
            5 => match self.graph {
                Some(graph) => return AttributeValueProto::Graph(graph),
                None => AttributeValue::Other,
            },
            6 => AttributeValue::Floats(self.floats),
            7 => AttributeValue::Ints(self.ints),
            8 => match self.texts.into_iter().collect() {
                Some(texts) => AttributeValue::Texts(texts),
                None => AttributeValue::Other,
            },
            _ => AttributeValue::Other,
        })
    }
}
