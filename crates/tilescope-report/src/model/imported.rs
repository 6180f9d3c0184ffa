//! The file that a model was imported from.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where an imported model came from, and what became of the nodes of its file: `meta.onnx`, as
/// JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedModel {
    /// The file, as an absolute path.
    pub path: String,
    /// Hash of all of the file but its weights: SipHash-1-3 of 128 bits, in hexadecimal.
    pub digest: String,
    /// Version of the standard's own set of operators.
    pub opset: u32,
    /// Name and version of the exporter, `pytorch 2.15.0`.
    pub producer: String,
    /// Nodes of the graph as written.
    pub nodes: u64,
    /// Operator -> nodes that were folded into constants.
    pub folded: BTreeMap<String, u64>,
    /// Operator -> how often it took the place of several nodes.
    pub fused: BTreeMap<String, u64>,
    /// Annotation -> how often it is there, of those that are not followed.
    pub ignored: BTreeMap<String, u64>,
    /// Operators that are not modelled, and priced as one pass over their operands.
    pub unknown: Vec<UnknownOperator>,
}

/// An operator that is not modelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnknownOperator {
    /// Operator and version, as [`ModelOperation::source`](super::ModelOperation::source) has them:
    /// `com.example::Attention@1`.
    pub source: String,
    /// How many nodes are of it.
    pub count: u64,
    /// Names of the first of them.
    pub nodes: Vec<String>,
}
