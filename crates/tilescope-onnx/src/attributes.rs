//! Attributes of nodes, with access by name and type.

use crate::ConstantTensor;
use crate::element::ElementKind;
use crate::error::OnnxError;
use std::sync::Arc;

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    Int(i64),
    Float(f64),
    Text(String),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
    /// A tensor; its content only if it is small.
    Tensor {
        element: ElementKind,
        dims: Vec<u64>,
        content: Option<Arc<ConstantTensor>>,
    },
    /// A kind of value that no code here reads: a graph, a type, a list of tensors.
    Other,
}

impl AttributeValue {
    /// Size of a copy in bytes; tensors are shared.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::Ints(values) => size_of_val(values.as_slice()),
                Self::Floats(values) => size_of_val(values.as_slice()),
                Self::Texts(texts) => {
                    texts.iter().map(|text| size_of::<String>() + text.len()).sum()
                }
                Self::Tensor { dims, .. } => size_of_val(dims.as_slice()),
                Self::Int(_) | Self::Float(_) | Self::Other => 0,
            }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::Ints(_) => "whole numbers",
            Self::Floats(_) => "numbers",
            Self::Texts(_) => "texts",
            Self::Tensor { .. } => "a tensor",
            Self::Other => "a graph or type",
        }
    }
}

/// A named value of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub name: String,
    pub value: AttributeValue,
}

/// The attributes of a node. Getters return `None` for an absent attribute, and an error with the
/// name of the node for one of another type. Copies share the list.
#[derive(Clone, Debug)]
pub struct Attributes {
    /// Name of the node, for messages.
    node: Arc<str>,
    list: Arc<[Attribute]>,
}

impl Attributes {
    /// Attributes of the node of this name.
    #[must_use]
    pub fn new(node: &str, list: Vec<Attribute>) -> Self {
        Self { node: node.into(), list: list.into() }
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.list.iter().map(|attribute| attribute.name.len() + attribute.value.bytes()).sum()
    }

    /// All attributes, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.list.iter()
    }

    /// The value with this name, of any type.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.list.iter().find(|attribute| attribute.name == name).map(|found| &found.value)
    }

    fn wrong(&self, name: &str, value: &AttributeValue, expected: &'static str) -> OnnxError {
        OnnxError::AttributeType {
            node: self.node.to_string(),
            name: name.to_owned(),
            found: value.kind(),
            expected,
        }
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Result<Option<i64>, OnnxError> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(*value)),
            Some(other) => Err(self.wrong(name, other, "a whole number")),
        }
    }

    /// A float attribute; integers are accepted.
    #[expect(clippy::cast_precision_loss, reason = "a float attribute written as a whole number")]
    pub fn float(&self, name: &str) -> Result<Option<f64>, OnnxError> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Float(value)) => Ok(Some(*value)),
            Some(AttributeValue::Int(value)) => Ok(Some(*value as f64)),
            Some(other) => Err(self.wrong(name, other, "a number")),
        }
    }

    /// A text attribute.
    pub fn text(&self, name: &str) -> Result<Option<&str>, OnnxError> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Text(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong(name, other, "a string")),
        }
    }

    /// An attribute with a list of integers.
    pub fn ints(&self, name: &str) -> Result<Option<&[i64]>, OnnxError> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(values)) => Ok(Some(values)),
            Some(other) => Err(self.wrong(name, other, "whole numbers")),
        }
    }

    /// An attribute with a list of floats.
    pub fn floats(&self, name: &str) -> Result<Option<&[f64]>, OnnxError> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Floats(values)) => Ok(Some(values)),
            Some(other) => Err(self.wrong(name, other, "numbers")),
        }
    }

    /// An attribute with a list of strings.
    pub fn texts(&self, name: &str) -> Result<Option<&[String]>, OnnxError> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Texts(values)) => Ok(Some(values)),
            Some(other) => Err(self.wrong(name, other, "texts")),
        }
    }

    /// Content of a small tensor; also `None` if the tensor is too large to be read.
    pub fn tensor(&self, name: &str) -> Result<Option<&ConstantTensor>, OnnxError> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Tensor { content, .. }) => Ok(content.as_deref()),
            Some(other) => Err(self.wrong(name, other, "a tensor")),
        }
    }
}
