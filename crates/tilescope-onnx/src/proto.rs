//! The messages of onnx.proto3 that a graph needs, and their decoder.
//!
//! Field numbers: <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3>.

mod attribute;
mod tensor;

use crate::attributes::AttributeValue;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::wire::{FieldValue, WireReader};
use std::collections::HashSet;
use std::io::{Read, Seek};
use std::sync::Arc;
pub(crate) use tensor::{MAX_RANK, TensorProto};

/// A name; equal names of a file share their bytes.
pub(crate) type Name = Arc<str>;

/// `metadata_props`.
pub(crate) type Properties = Arc<[(String, String)]>;

#[derive(Debug, Default)]
pub(crate) struct ModelProto {
    pub ir_version: i64,
    pub producer_name: String,
    pub producer_version: String,
    pub opset_imports: Vec<(Name, i64)>,
    pub metadata: Vec<(String, String)>,
    pub graph: Option<GraphProto>,
    pub functions: Vec<FunctionProto>,
}

#[derive(Debug, Default)]
pub(crate) struct GraphProto {
    pub nodes: Vec<NodeProto>,
    pub initializers: Vec<TensorProto>,
    pub inputs: Vec<ValueInfoProto>,
    pub outputs: Vec<ValueInfoProto>,
    pub value_infos: Vec<ValueInfoProto>,
    pub has_sparse_initializers: bool,
}

#[derive(Debug)]
pub(crate) struct NodeProto {
    pub inputs: Vec<Name>,
    pub outputs: Vec<Name>,
    pub name: Name,
    pub op: Name,
    pub domain: Name,
    pub overload: Name,
    pub attributes: Vec<AttributeProto>,
    pub metadata: Properties,
}

#[derive(Debug)]
pub(crate) struct AttributeProto {
    pub name: Name,
    pub value: AttributeValueProto,
}

#[derive(Debug)]
pub(crate) enum AttributeValueProto {
    Plain(AttributeValue),
    Graph(Box<GraphProto>),
    /// In functions: the call's attribute with this name.
    Reference(Name),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DimensionProto {
    Value(i64),
    Symbol(Name),
    Open,
}

#[derive(Debug)]
pub(crate) struct ValueInfoProto {
    pub name: Name,
    /// Element type and, if present, shape; `None` for sequences, maps and absent types.
    pub tensor: Option<(ElementKind, Option<Vec<DimensionProto>>)>,
}

#[derive(Debug)]
pub(crate) struct FunctionProto {
    pub name: Name,
    pub domain: Name,
    pub overload: Name,
    pub inputs: Vec<Name>,
    pub outputs: Vec<Name>,
    /// Attributes with defaults.
    pub defaults: Vec<AttributeProto>,
    pub nodes: Vec<NodeProto>,
    pub opset_imports: Vec<(Name, i64)>,
}

/// Integers in the file are in two's complement.
fn signed(value: u64) -> i64 {
    value.cast_signed()
}

/// The maximum number of operator sets of a file; above any real number.
const MAX_IMPORTS: usize = 1000;

/// Decodes messages.
pub(crate) struct ProtoReader<R> {
    wire: WireReader<R>,
    names: HashSet<Name>,
    empty: Name,
    no_properties: Properties,
}

impl<R: Read + Seek> ProtoReader<R> {
    pub(crate) fn new(source: R) -> Result<Self, OnnxError> {
        Ok(Self {
            wire: WireReader::new(source)?,
            names: HashSet::new(),
            empty: "".into(),
            no_properties: Vec::new().into(),
        })
    }

    /// Hash of everything that was read, without weights.
    pub(crate) fn content_hash(&mut self) -> String {
        self.wire.content_hash()
    }

    fn name(&mut self, end: u64) -> Result<Name, OnnxError> {
        let text = self.wire.text(end)?;
        if let Some(known) = self.names.get(text.as_str()) {
            return Ok(Arc::clone(known));
        }
        self.wire.keep(text.len() + 4 * size_of::<Name>())?;
        let name: Name = text.into();
        self.names.insert(Arc::clone(&name));
        Ok(name)
    }

    /// Reads the fields of a message up to `end`; fields that `take` does not consume are skipped.
    fn message(
        &mut self,
        end: u64,
        mut take: impl FnMut(&mut Self, u64, FieldValue) -> Result<bool, OnnxError>,
    ) -> Result<(), OnnxError> {
        self.wire.enter()?;
        while let Some((number, value)) = self.wire.field(end)? {
            if !take(self, number, value)? {
                self.wire.skip(value)?;
            }
        }
        self.wire.leave();
        Ok(())
    }

    /// Adds to a list and counts its memory.
    fn push<T>(&mut self, list: &mut Vec<T>, item: T) -> Result<bool, OnnxError> {
        self.wire.keep(size_of::<T>())?;
        list.push(item);
        Ok(true)
    }

    /// Reads the whole file.
    pub(crate) fn model(&mut self) -> Result<ModelProto, OnnxError> {
        let mut model = ModelProto::default();
        let end = self.wire.length();
        self.message(end, |reader, number, value| {
            match (number, value) {
                (1, FieldValue::Varint(version)) => model.ir_version = signed(version),
                (2, FieldValue::Until(end)) => model.producer_name = reader.wire.text(end)?,
                (3, FieldValue::Until(end)) => model.producer_version = reader.wire.text(end)?,
                (7, FieldValue::Until(end)) => model.graph = Some(reader.graph(end)?),
                (8, FieldValue::Until(end)) => {
                    reader.opset_import(end, &mut model.opset_imports)?
                }
                (14, FieldValue::Until(end)) => reader.property(end, &mut model.metadata)?,
                (25, FieldValue::Until(end)) => {
                    let function = reader.function(end)?;
                    return reader.push(&mut model.functions, function);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(model)
    }

    fn opset_import(&mut self, end: u64, imports: &mut Vec<(Name, i64)>) -> Result<(), OnnxError> {
        let mut domain = Arc::clone(&self.empty);
        let mut version = 0;
        self.message(end, |reader, number, value| {
            match (number, value) {
                (1, FieldValue::Until(end)) => domain = reader.name(end)?,
                (2, FieldValue::Varint(value)) => version = signed(value),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if imports.len() >= MAX_IMPORTS {
            return Err(self.wire.error("more sets of operators than there are"));
        }
        imports.push((domain, version));
        Ok(())
    }

    /// Reads an entry of `metadata_props`; one with a string that is too long is left out.
    fn property(
        &mut self,
        end: u64,
        properties: &mut Vec<(String, String)>,
    ) -> Result<(), OnnxError> {
        let mut key = None;
        let mut text = None;
        self.message(end, |reader, number, value| {
            let FieldValue::Until(end) = value else { return Ok(false) };
            let found = match number {
                1 => &mut key,
                2 => &mut text,
                _ => return Ok(false),
            };
            *found = reader.wire.text_bytes(end)?;
            Ok(true)
        })?;
        if let (Some(key), Some(text)) = (key, text) {
            let key = String::from_utf8_lossy(&key).into_owned();
            let text = String::from_utf8_lossy(&text).into_owned();
            let property = (key, text);
            self.wire.keep(property.0.len() + property.1.len())?;
            self.push(properties, property)?;
        }
        Ok(())
    }

    fn graph(&mut self, end: u64) -> Result<GraphProto, OnnxError> {
        let mut graph = GraphProto::default();
        self.message(end, |reader, number, value| {
            let FieldValue::Until(end) = value else { return Ok(false) };
            match number {
                1 => {
                    let node = reader.node(end)?;
                    reader.push(&mut graph.nodes, node)
                }
                5 => {
                    let tensor = reader.tensor(end)?;
                    reader.push(&mut graph.initializers, tensor)
                }
                11 => {
                    let input = reader.value_info(end)?;
                    reader.push(&mut graph.inputs, input)
                }
                12 => {
                    let output = reader.value_info(end)?;
                    reader.push(&mut graph.outputs, output)
                }
                13 => {
                    let info = reader.value_info(end)?;
                    reader.push(&mut graph.value_infos, info)
                }
                15 => {
                    graph.has_sparse_initializers = true;
                    Ok(false)
                }
                _ => Ok(false),
            }
        })?;
        Ok(graph)
    }

    fn node(&mut self, end: u64) -> Result<NodeProto, OnnxError> {
        let mut node = NodeProto {
            inputs: Vec::new(),
            outputs: Vec::new(),
            name: Arc::clone(&self.empty),
            op: Arc::clone(&self.empty),
            domain: Arc::clone(&self.empty),
            overload: Arc::clone(&self.empty),
            attributes: Vec::new(),
            metadata: Arc::clone(&self.no_properties),
        };
        let mut metadata = Vec::new();
        self.message(end, |reader, number, value| {
            let FieldValue::Until(end) = value else { return Ok(false) };
            match number {
                1 => {
                    let input = reader.name(end)?;
                    return reader.push(&mut node.inputs, input);
                }
                2 => {
                    let output = reader.name(end)?;
                    return reader.push(&mut node.outputs, output);
                }
                3 => node.name = reader.name(end)?,
                4 => node.op = reader.name(end)?,
                5 => {
                    let attribute = reader.attribute(end)?;
                    return reader.push(&mut node.attributes, attribute);
                }
                7 => node.domain = reader.name(end)?,
                8 => node.overload = reader.name(end)?,
                9 => reader.property(end, &mut metadata)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if !metadata.is_empty() {
            node.metadata = metadata.into();
        }
        Ok(node)
    }

    /// Reads repeated numbers: packed into one field, or in one field each.
    fn numbers<T: Number>(
        &mut self,
        value: FieldValue,
        list: &mut Vec<T>,
        read: impl Fn(&mut WireReader<R>) -> Result<T, OnnxError>,
    ) -> Result<bool, OnnxError> {
        if let FieldValue::Until(end) = value {
            while self.wire.position() < end {
                let number = read(&mut self.wire)?;
                self.push(list, number)?;
            }
            return if self.wire.position() == end {
                Ok(true)
            } else {
                Err(self.wire.error("a packed number extends beyond the end of its list"))
            };
        }
        match T::from_field(value) {
            Some(number) => self.push(list, number),
            None => Ok(false),
        }
    }

    fn value_info(&mut self, end: u64) -> Result<ValueInfoProto, OnnxError> {
        let mut info = ValueInfoProto { name: Arc::clone(&self.empty), tensor: None };
        self.message(end, |reader, number, value| {
            match (number, value) {
                (1, FieldValue::Until(end)) => info.name = reader.name(end)?,
                (2, FieldValue::Until(end)) => {
                    reader.message(end, |reader, number, value| match (number, value) {
                        (1, FieldValue::Until(end)) => {
                            info.tensor = reader.tensor_type(end)?;
                            Ok(true)
                        }
                        _ => Ok(false),
                    })?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(info)
    }

    #[expect(clippy::type_complexity, reason = "the field of ValueInfoProto that explains it")]
    fn tensor_type(
        &mut self,
        end: u64,
    ) -> Result<Option<(ElementKind, Option<Vec<DimensionProto>>)>, OnnxError> {
        let mut element = 0;
        let mut dims = None;
        self.message(end, |reader, number, value| {
            match (number, value) {
                (1, FieldValue::Varint(kind)) => element = kind,
                (2, FieldValue::Until(end)) => {
                    let list = dims.insert(Vec::new());
                    reader.message(end, |reader, number, value| match (number, value) {
                        (1, FieldValue::Until(end)) => {
                            let dimension = reader.dimension(end)?;
                            reader.push(list, dimension)
                        }
                        _ => Ok(false),
                    })?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(ElementKind::from_number(element).map(|element| (element, dims)))
    }

    fn dimension(&mut self, end: u64) -> Result<DimensionProto, OnnxError> {
        let mut dimension = DimensionProto::Open;
        self.message(end, |reader, number, value| {
            match (number, value) {
                (1, FieldValue::Varint(size)) => dimension = DimensionProto::Value(signed(size)),
                (2, FieldValue::Until(end)) => {
                    let name = reader.name(end)?;
                    if !name.is_empty() {
                        dimension = DimensionProto::Symbol(name);
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(dimension)
    }

    fn function(&mut self, end: u64) -> Result<FunctionProto, OnnxError> {
        let mut function = FunctionProto {
            name: Arc::clone(&self.empty),
            domain: Arc::clone(&self.empty),
            overload: Arc::clone(&self.empty),
            inputs: Vec::new(),
            outputs: Vec::new(),
            defaults: Vec::new(),
            nodes: Vec::new(),
            opset_imports: Vec::new(),
        };
        self.message(end, |reader, number, value| {
            let FieldValue::Until(end) = value else { return Ok(false) };
            match number {
                1 => function.name = reader.name(end)?,
                4 => {
                    let input = reader.name(end)?;
                    return reader.push(&mut function.inputs, input);
                }
                5 => {
                    let output = reader.name(end)?;
                    return reader.push(&mut function.outputs, output);
                }
                7 => {
                    let node = reader.node(end)?;
                    return reader.push(&mut function.nodes, node);
                }
                9 => reader.opset_import(end, &mut function.opset_imports)?,
                10 => function.domain = reader.name(end)?,
                11 => {
                    let attribute = reader.attribute(end)?;
                    return reader.push(&mut function.defaults, attribute);
                }
                13 => function.overload = reader.name(end)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(function)
    }
}

/// A number that may be a field of its own.
trait Number: Sized {
    fn from_field(value: FieldValue) -> Option<Self>;
}

impl Number for i64 {
    fn from_field(value: FieldValue) -> Option<Self> {
        if let FieldValue::Varint(value) = value { Some(signed(value)) } else { None }
    }
}

impl Number for f64 {
    fn from_field(value: FieldValue) -> Option<Self> {
        match value {
            FieldValue::Fixed32(bits) => Some(f32::from_bits(bits).into()),
            FieldValue::Fixed64(bits) => Some(Self::from_bits(bits)),
            _ => None,
        }
    }
}
