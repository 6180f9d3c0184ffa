//! The graph after every dimension has a value.

use crate::attributes::Attributes;
use crate::constant::ConstantTensor;
use crate::element::ElementKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a value in [`OnnxGraph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The id as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// Fed by the user.
    Input,
    /// A tensor in the file: a weight, a table, a statistic, a constant.
    Initializer,
    /// A `Constant` node, or a value folded from constants and shapes. Without content if it is too
    /// large for folding.
    Constant,
    /// Output of this node of [`OnnxGraph::nodes`].
    Node(usize),
}

/// A tensor of the graph.
#[derive(Clone, Debug)]
pub struct OnnxValue {
    /// Its name in the file. Values of inlined functions have the name of the calling node as a
    /// prefix.
    pub name: String,
    pub element: ElementKind,
    pub dims: Vec<u64>,
    pub source: ValueSource,
    /// True if its values are in another file, which is never opened.
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
    /// The node's name, or else its first output, or else operator and position: `Add_17`.
    pub name: String,
    /// The operator, `Conv`.
    pub op: String,
    /// The operator set; empty for the standard's own (`ai.onnx`).
    pub domain: String,
    /// Version of that set, which determines inputs, attributes and defaults.
    pub opset: u32,
    /// The inputs; absent optional ones are `None`.
    pub inputs: Vec<Option<ValueId>>,
    /// The outputs; unused ones are `None`.
    pub outputs: Vec<Option<ValueId>>,
    pub attributes: Attributes,
    /// `metadata_props` of the node, verbatim.
    pub metadata: Arc<[(String, String)]>,
    /// Path of modules that it belongs to, the outermost first: from dynamo's `name_scopes`, or
    /// else from the path in the node's name. Its own name is not part of it.
    pub scope: Option<Vec<String>>,
    /// Operator and version of the file's node that it is a part of, `com.microsoft.BiasGelu@1`;
    /// `None` if it is a node of the file.
    pub source: Option<Arc<str>>,
    /// The innermost repeat whose body it is in.
    pub repeat: Option<OnnxRepeatId>,
    /// The task of a node that connects a repeat with the nodes around it.
    pub repeat_part: Option<RepeatPart>,
}

/// Index of a repeat in [`OnnxGraph::repeats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OnnxRepeatId(pub u32);

impl OnnxRepeatId {
    /// The id as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A loop whose body exists once. The nodes of the body follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnnxRepeat {
    /// Name of the node of the file.
    pub name: String,
    /// Number of iterations, at least two.
    pub trips: u64,
    /// The repeat that it is a part of.
    pub outer: Option<OnnxRepeatId>,
}

/// The task of a node that connects a repeat with the nodes around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RepeatPart {
    /// Copies a value into a tensor that the iterations change.
    State,
    /// Overwrites a state, its second input, with the first at the end of an iteration.
    Update,
    /// Puts a tensor into a place from which iterations take parts of its first axis.
    Operand,
    /// Takes the part of its first input for the iteration that the second counts.
    Slice,
    /// Reserves the tensor that the iterations write parts of.
    Buffer,
    /// Writes its second input into the first, as the part of the iteration that the third counts.
    Write,
}

impl OnnxNode {
    /// True for recurrent layers of the standard.
    pub(crate) fn is_recurrent(&self) -> bool {
        self.domain.is_empty() && matches!(&*self.op, "GRU" | "LSTM" | "RNN")
    }

    /// The axis of its data that counts sequences, if it is a recurrent layer: the second if time
    /// comes first (attribute `layout`, version 14).
    #[must_use]
    pub fn sequences_axis(&self) -> Option<usize> {
        let layout = self.attributes.int("layout").ok().flatten().unwrap_or(0);
        if self.is_recurrent() { Some(usize::from(layout == 0)) } else { None }
    }

    /// Its name with the path of its modules, which dynamo writes separately:
    /// `encoder/layer.0/dense/node_linear_3`. Other exporters include them in the name.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.scope {
            Some(scope) if !scope.is_empty() && !self.name.contains('/') => {
                format!("{}/{}", scope.join("/"), self.name)
            }
            _ => self.name.clone(),
        }
    }

    /// Operator and version of the file's node that it is or belongs to: `Conv@11`.
    #[must_use]
    pub fn source(&self) -> String {
        match &self.source {
            Some(source) => source.to_string(),
            None => format!("{}@{}", self.full_op(), self.opset),
        }
    }

    /// Operator with its set: `Conv`, `com.example.Custom`.
    #[must_use]
    pub fn full_op(&self) -> String {
        full_op(&self.domain, &self.op)
    }
}

/// An operator with its set, which is omitted for the standard one.
pub(crate) fn full_op(domain: &str, op: &str) -> String {
    if domain.is_empty() { op.to_owned() } else { format!("{domain}.{op}") }
}

/// The computation of an ONNX file, with all shapes known: integer arithmetic on shapes is folded,
/// nodes that no output needs are dropped, functions and decided `If`s are inlined.
#[derive(Clone, Debug)]
pub struct OnnxGraph {
    /// Version of the standard operator set.
    pub opset: u32,
    pub values: Vec<OnnxValue>,
    /// Nodes in an order in which each reads only earlier results.
    pub nodes: Vec<OnnxNode>,
    /// Inputs in the order of the file, used or not.
    pub inputs: Vec<ValueId>,
    /// Outputs in the order of the file.
    pub outputs: Vec<ValueId>,
    /// Operator -> nodes that were folded into constants.
    pub folded: BTreeMap<String, u64>,
    /// Operator -> nodes that were replaced by several others, which name it as their source. Loops
    /// are among them.
    pub composed: BTreeMap<String, u64>,
    /// Loops that were not unrolled.
    pub repeats: Vec<OnnxRepeat>,
    /// `metadata_props` of the file.
    pub metadata: Vec<(String, String)>,
}

impl OnnxGraph {
    /// The value with an id.
    ///
    /// # Panics
    /// If the id belongs to another graph.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &OnnxValue {
        &self.values[id.index()]
    }

    /// The number of times that a node runs in a forward pass.
    #[must_use]
    pub fn runs(&self, node: &OnnxNode) -> u64 {
        let mut runs = 1_u64;
        for repeat in self.repeats_around(node) {
            runs = runs.saturating_mul(self.repeats[repeat.index()].trips);
        }
        runs
    }

    /// The repeats whose bodies a node is in, from the inside.
    pub fn repeats_around(&self, node: &OnnxNode) -> impl Iterator<Item = OnnxRepeatId> + '_ {
        std::iter::successors(node.repeat, |repeat| self.repeats[repeat.index()].outer)
    }
}
