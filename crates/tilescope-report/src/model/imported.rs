//! The file that a model was imported from.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file that a model was imported from, and what happened to its nodes: `meta.onnx`, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedModel {
    /// The file, as an absolute path.
    pub path: String,
    /// Hash of the file without its weights: SipHash-1-3 of 128 bits, in hexadecimal.
    pub digest: String,
    /// Version of the standard's own set of operators.
    pub opset: u32,
    /// Name and version of the exporter, `pytorch 2.15.0`.
    pub producer: String,
    /// Number of nodes of the graph in the file.
    pub nodes: u64,
    /// Operator -> nodes that were folded into constants.
    pub folded: BTreeMap<String, u64>,
    /// Operator -> number of groups of nodes that it replaced.
    pub fused: BTreeMap<String, u64>,
    /// Annotation -> number of occurrences, for annotations without effect.
    pub ignored: BTreeMap<String, u64>,
    /// Operators that are not modelled, and priced as one pass over their operands.
    pub unknown: Vec<UnknownOperator>,
}

/// An operator that is not modelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnknownOperator {
    /// Operator and version, as in [`ModelOperation::source`](super::ModelOperation::source):
    /// `com.example::Attention@1`.
    pub source: String,
    /// Number of its nodes.
    pub count: u64,
    /// Names of the first of them.
    pub nodes: Vec<String>,
}
