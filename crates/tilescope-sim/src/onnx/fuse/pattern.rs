//! The view that patterns have of a graph: the maker of a value, and its readers.

use tilescope_onnx::{
    Attribute, AttributeValue, Attributes, OnnxGraph, OnnxNode, OnnxValue, ValueId, ValueSource,
};

/// A node that replaces several.
#[derive(Clone, Debug)]
pub(super) struct FusedNode {
    /// An operator of the standard, or `Linear` and ONNX Runtime's `FastGelu`.
    pub op: &'static str,
    pub inputs: Vec<ValueId>,
    /// The nodes that it replaces, including the one that ends the pattern.
    pub nodes: Vec<usize>,
    /// An attribute of the operator and its value, in addition to those of the node that ends the
    /// pattern.
    pub attribute: Option<(&'static str, i64)>,
}

impl FusedNode {
    /// Makes an operator without attributes of its own.
    pub(super) fn new(op: &'static str, inputs: Vec<ValueId>, nodes: Vec<usize>) -> Self {
        Self { op, inputs, nodes, attribute: None }
    }

    /// Makes a node with the name, version and outputs of the node that ends the pattern. The
    /// operator has the meaning of the current standard.
    pub(super) fn node(&self, file: &OnnxGraph, last: usize) -> OnnxNode {
        let of_file = &file.nodes[last];
        let own = self.attribute.map(|(name, value)| Attribute {
            name: name.to_string(),
            value: AttributeValue::Int(value),
        });
        OnnxNode {
            op: self.op.to_string(),
            domain: String::new(),
            inputs: self.inputs.iter().copied().map(Some).collect(),
            attributes: match own {
                None => of_file.attributes.clone(),
                Some(own) => {
                    let list = of_file.attributes.iter().cloned().chain([own]).collect();
                    Attributes::new(&of_file.path(), list)
                }
            },
            ..of_file.clone()
        }
    }
}

/// A product of several factors, in any order of multiplication.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// The product of the known constants among the factors.
    pub constant: f64,
    /// The other factors.
    pub factors: Vec<ValueId>,
    /// The multiplications of the product.
    pub nodes: Vec<usize>,
}

/// The largest number of factors in a pattern.
const MOST_FACTORS: usize = 4;

/// A graph with the readers of its values.
pub(super) struct GraphView<'a> {
    pub file: &'a OnnxGraph,
    readers: Vec<usize>,
}

impl<'a> GraphView<'a> {
    pub(super) fn new(file: &'a OnnxGraph) -> Self {
        let mut readers = vec![0; file.values.len()];
        let read = file.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
        for value in read.chain(&file.outputs) {
            readers[value.index()] += 1;
        }
        Self { file, readers }
    }

    pub(super) fn node(&self, at: usize) -> &'a OnnxNode {
        &self.file.nodes[at]
    }

    pub(super) fn value(&self, id: ValueId) -> &'a OnnxValue {
        self.file.value(id)
    }

    /// The number of readers of a value.
    pub(super) fn readers(&self, id: ValueId) -> usize {
        self.readers[id.index()]
    }

    /// An input of a node.
    pub(super) fn input(&self, at: usize, input: usize) -> Option<ValueId> {
        self.node(at).inputs.get(input).copied().flatten()
    }

    /// The node that makes a value, if it has this operator.
    pub(super) fn maker(&self, value: ValueId, op: &str) -> Option<usize> {
        match self.value(value).source {
            ValueSource::Node(at) if self.node(at).op == op && self.node(at).domain.is_empty() => {
                Some(at)
            }
            _ => None,
        }
    }

    /// The node that makes a value, if it has this operator and the value has no other reader.
    pub(super) fn only_maker(&self, value: ValueId, op: &str) -> Option<usize> {
        if self.readers(value) != 1 {
            return None;
        }
        self.maker(value, op)
    }

    /// The two operands of a node whose operator commutes, in both orders.
    pub(super) fn either_way(&self, at: usize) -> Vec<[ValueId; 2]> {
        match (self.input(at, 0), self.input(at, 1)) {
            (Some(a), Some(b)) => vec![[a, b], [b, a]],
            _ => Vec::new(),
        }
    }

    /// The known single element of a value.
    pub(super) fn scalar(&self, value: ValueId) -> Option<f64> {
        self.value(value).content.as_ref()?.scalar()
    }

    /// True if a value is a constant of one element near `expected`.
    pub(super) fn is_about(&self, value: ValueId, expected: f64) -> bool {
        self.scalar(value).is_some_and(|found| (found - expected).abs() <= 1e-3 * expected.abs())
    }

    /// True if a value is known before the model runs.
    pub(super) fn is_constant(&self, value: ValueId) -> bool {
        matches!(self.value(value).source, ValueSource::Constant | ValueSource::Initializer)
    }

    /// The product that ends at a multiplication.
    pub(super) fn product_of(&self, last: usize) -> Option<Product> {
        if self.node(last).op != "Mul" {
            return None;
        }
        let mut product = Product { constant: 1.0, factors: Vec::new(), nodes: vec![last] };
        let mut open = vec![self.input(last, 1)?, self.input(last, 0)?];
        while let Some(value) = open.pop() {
            if let Some(constant) = self.scalar(value)
                && self.is_constant(value)
            {
                product.constant *= constant;
            } else if let Some(inner) = self.only_maker(value, "Mul") {
                product.nodes.push(inner);
                open.extend([self.input(inner, 1)?, self.input(inner, 0)?]);
            } else {
                product.factors.push(value);
            }
            if product.factors.len() + open.len() > MOST_FACTORS {
                return None;
            }
        }
        Some(product)
    }

    /// True if a value is a weight with `rank` axes.
    pub(super) fn is_weight(&self, value: ValueId, rank: usize) -> bool {
        let of_file = self.value(value);
        of_file.source == ValueSource::Initializer && of_file.dims.len() == rank
    }
}

/// True if all nodes of a pattern are in one repeat, or in none.
pub(super) fn has_one_repeat(file: &OnnxGraph, nodes: &[usize]) -> bool {
    let mut repeats = nodes.iter().map(|at| file.nodes[*at].repeat);
    let first = repeats.next();
    repeats.all(|repeat| Some(repeat) == first)
}

/// True if annotations place all nodes of a pattern in one stage.
pub(super) fn has_one_stage(file: &OnnxGraph, nodes: &[usize]) -> bool {
    ["__pipeline_stage", "__ipu_number", "__execution_phase"].into_iter().all(|name| {
        let mut stages = nodes.iter().map(|at| file.nodes[*at].attributes.get(name));
        let first = stages.next();
        stages.all(|stage| Some(stage) == first)
    })
}

/// Updates the source node of each value after nodes were removed.
pub(super) fn renumber(graph: &mut OnnxGraph) {
    for (at, node) in graph.nodes.iter().enumerate() {
        for output in node.outputs.iter().flatten() {
            graph.values[output.index()].source = ValueSource::Node(at);
        }
    }
}
