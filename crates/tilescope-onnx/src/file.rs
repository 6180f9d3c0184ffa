//! A file that was read and checked.

use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::OnnxGraph;
use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::path::Path;

/// A dimension of a graph's input, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dimension {
    Known(u64),
    /// Named by the exporter: `batch`. A dimension that the file leaves open without a name is one
    /// too, named after its input and axis: `input_ids.1`.
    Symbol(String),
}

/// A tensor that the user feeds.
#[derive(Clone, Debug)]
pub struct GraphInput {
    pub name: String,
    pub element: ElementKind,
    pub dims: Vec<Dimension>,
}

/// A dimension without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// Input and axis of each place.
    pub places: Vec<(String, usize)>,
    /// Whether it is dimension 0 of all inputs that have dimensions.
    pub is_batch: bool,
}

/// Values of symbolic dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DimValues {
    /// By name.
    pub by_name: BTreeMap<String, u64>,
    /// Value of the symbol that is the batch, unless `by_name` has one.
    pub batch: Option<u64>,
}

/// A file that was read and checked; weights were skipped.
#[derive(Debug)]
pub struct OnnxFile {
    pub ir_version: i64,
    /// Name and version of the exporter, `pytorch 2.15.0`.
    pub producer: String,
    /// Version of the standard's own set of operators.
    pub opset: u32,
    /// `metadata_props` of the file.
    pub metadata: Vec<(String, String)>,
    /// Hash of all that was read, weights left out, in hexadecimal: tells whether a file has changed.
    pub content_hash: String,
    /// Nodes of the graph as written, nested graphs and functions left out.
    pub node_count: usize,
    inputs: Vec<GraphInput>,
}

impl OnnxFile {
    /// Reads and checks a file. Tensor data are skipped; no other file is opened.
    ///
    /// # Errors
    /// If it cannot be read, is no ONNX file, or is none that can be understood.
    pub fn open(path: &Path) -> Result<Self, OnnxError> {
        let file = std::fs::File::open(path)?;
        Self::read(file)
    }

    /// The same from anything that can be read and sought in.
    ///
    /// # Errors
    /// As [`OnnxFile::open`].
    pub fn read(_source: impl Read + Seek) -> Result<Self, OnnxError> {
        Err(OnnxError::Syntax { byte: 0, problem: "cannot be read yet".to_owned() })
    }

    /// What the user feeds: inputs of the graph that are no initialisers.
    #[must_use]
    pub fn inputs(&self) -> &[GraphInput] {
        &self.inputs
    }

    /// Dimensions of inputs that have no value, in the order of the file.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        Vec::new()
    }

    /// Folds, and infers all shapes with these values of symbols, in one walk.
    ///
    /// # Errors
    /// If a symbol has no value, a shape cannot be known, or nodes and shapes do not go together.
    pub fn resolve(&self, _dims: &DimValues) -> Result<OnnxGraph, OnnxError> {
        Err(OnnxError::Syntax { byte: 0, problem: "cannot be read yet".to_owned() })
    }
}
