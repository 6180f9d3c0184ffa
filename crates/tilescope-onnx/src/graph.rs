//! The graph that is left when every dimension has a value.

use crate::attributes::Attributes;
use crate::constant::ConstantTensor;
use crate::element::ElementKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a value in [`OnnxGraph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// Fed by the user.
    Input,
    /// A tensor that the file holds: a weight, a table, a statistic, a constant.
    Initializer,
    /// A `Constant` node, or what was folded of constants and shapes. Without content if it is
    /// larger than what is folded.
    Constant,
    /// Output of this node of [`OnnxGraph::nodes`].
    Node(usize),
}

/// A tensor of the graph.
#[derive(Clone, Debug)]
pub struct OnnxValue {
    /// Its name in the file. Values of inlined functions have the name of the calling node before
    /// theirs.
    pub name: String,
    pub element: ElementKind,
    pub dims: Vec<u64>,
    pub source: ValueSource,
    /// Whether the file says that its values are in another file, which is never opened.
    pub is_external: bool,
    /// Its values, if they are known and few. Weights never have any.
    pub content: Option<Arc<ConstantTensor>>,
}

impl OnnxValue {
    /// Number of elements; 1 for scalars.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }
}

/// An operation of the graph.
#[derive(Clone, Debug)]
pub struct OnnxNode {
    /// The node's name, else its first output, else operator and position: `Add_17`.
    pub name: String,
    /// Operator, `Conv`.
    pub op: String,
    /// Set of operators it is from; empty for the standard's own (`ai.onnx`).
    pub domain: String,
    /// Version of that set: which attributes became inputs, and what defaults are.
    pub opset: u32,
    /// Absent optional inputs are `None`.
    pub inputs: Vec<Option<ValueId>>,
    /// Outputs that nothing asked for are `None`.
    pub outputs: Vec<Option<ValueId>>,
    pub attributes: Attributes,
    /// `metadata_props` of the node, as written.
    pub metadata: Arc<[(String, String)]>,
    /// Path of modules it belongs to, the outermost first: dynamo's `name_scopes`, else the path in
    /// the node's name. Without its own name.
    pub scope: Option<Vec<String>>,
    /// Operator and version of the file's node that it is a part of, `com.microsoft.BiasGelu@1`;
    /// none if it stands for itself.
    pub source: Option<Arc<str>>,
}

impl OnnxNode {
    /// True for recurrent layers of the standard.
    pub(crate) fn is_recurrent(&self) -> bool {
        self.domain.is_empty() && matches!(&*self.op, "GRU" | "LSTM" | "RNN")
    }

    /// The axis of its data that counts sequences, if it is a recurrent layer: the second where time
    /// comes first (attribute `layout`, version 14).
    #[must_use]
    pub fn sequences_axis(&self) -> Option<usize> {
        let layout = self.attributes.int("layout").ok().flatten().unwrap_or(0);
        self.is_recurrent().then_some(usize::from(layout == 0))
    }

    /// Its name with the modules it belongs to before it, which dynamo writes apart:
    /// `encoder/layer.0/dense/node_linear_3`. Other exporters have them in the name.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.scope {
            Some(scope) if !scope.is_empty() && !self.name.contains('/') => {
                format!("{}/{}", scope.join("/"), self.name)
            }
            _ => self.name.clone(),
        }
    }

    /// Operator and version of the file's node that it is or stands for: `Conv@11`.
    #[must_use]
    pub fn source(&self) -> String {
        match &self.source {
            Some(source) => source.to_string(),
            None => format!("{}@{}", self.full_op(), self.opset),
        }
    }

    /// Operator with the set it is from: `Conv`, `com.example.Custom`.
    #[must_use]
    pub fn full_op(&self) -> String {
        full_op(&self.domain, &self.op)
    }
}

/// An operator of a set; those of the standard's own need no name before theirs.
pub(crate) fn full_op(domain: &str, op: &str) -> String {
    if domain.is_empty() { op.to_owned() } else { format!("{domain}.{op}") }
}

/// What an ONNX file computes, with all shapes known: integer arithmetic on shapes is folded,
/// nodes that no output needs are dropped, functions and decided `If`s are inlined.
#[derive(Clone, Debug)]
pub struct OnnxGraph {
    /// Version of the standard's own set of operators.
    pub opset: u32,
    pub values: Vec<OnnxValue>,
    /// In an order in which each reads only what was computed before.
    pub nodes: Vec<OnnxNode>,
    /// In the order of the file, used or not.
    pub inputs: Vec<ValueId>,
    /// In the order of the file.
    pub outputs: Vec<ValueId>,
    /// Operator -> nodes that were folded into constants.
    pub folded: BTreeMap<String, u64>,
    /// Operator -> nodes whose place several others took, which name it as their source. Loops are
    /// among them: their turns stand one behind the other.
    pub composed: BTreeMap<String, u64>,
    /// `metadata_props` of the file.
    pub metadata: Vec<(String, String)>,
}

impl OnnxGraph {
    /// A value by its number.
    ///
    /// # Panics
    /// If the number is of another graph.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &OnnxValue {
        &self.values[id.index()]
    }
}
