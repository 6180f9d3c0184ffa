//! The one walk over a graph: every node is inlined, folded or kept, and its outputs get shapes.
//!
//! No second pass is needed: when a node is reached, the shapes of its operands are known, and the
//! values of those that shapes are computed from.

mod attributes;
mod inline;
mod prune;
mod scope;

use crate::attributes::Attributes;
use crate::check;
use crate::constant::ConstantTensor;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::file::{Dimension, OnnxFile};
use crate::fold;
use crate::graph::{OnnxGraph, OnnxNode, OnnxValue, ValueId, ValueSource};
use crate::proto::{FunctionProto, MAX_RANK, NodeProto, TensorProto};
use crate::shape::{self, NodeView, TensorType};
use attributes::NodeIdentity;
use scope::Scope;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Most elements of a tensor, as many as a model of any size today has parameters a thousand times.
const MAX_ELEMENTS: u64 = 1 << 40;

/// Most nodes that functions and branches stand for, beside those of the graph.
const MAX_INLINED: usize = 1 << 18;

/// Most elements of tensors that folding reads and makes, all together.
const MAX_FOLDED: u64 = 1 << 27;

/// Most bytes of names and attributes, which nested functions could make long.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// Domain, name and overload of a function.
type FunctionKey<'f> = (&'f str, &'f str, &'f str);

struct Resolver<'f> {
    /// Symbol -> value.
    symbols: &'f BTreeMap<String, u64>,
    functions: HashMap<FunctionKey<'f>, &'f FunctionProto>,
    values: Vec<OnnxValue>,
    nodes: Vec<OnnxNode>,
    folded: BTreeMap<String, u64>,
    folded_elements: u64,
    text_bytes: usize,
    visited: usize,
    inlined: usize,
}

/// The graph of a file with these values of its symbols.
pub(crate) fn resolve(
    file: &OnnxFile,
    symbols: &BTreeMap<String, u64>,
    first: Option<(u64, u64)>,
) -> Result<OnnxGraph, OnnxError> {
    let graph = check::graph(&file.model)?;
    let functions = file.model.functions.iter();
    let functions = functions.map(|function| (function_key(function), function)).collect();
    let mut resolver = Resolver {
        symbols,
        functions,
        values: Vec::new(),
        nodes: Vec::new(),
        folded: BTreeMap::new(),
        folded_elements: 0,
        text_bytes: 0,
        visited: 0,
        inlined: 0,
    };
    let mut scope = Scope::of_model(&file.model.opset_imports, graph);
    let inputs = resolver.inputs(file, first, &mut scope)?;
    resolver.initializers(&graph.initializers, &mut scope)?;
    for at in &file.order {
        resolver.node(&graph.nodes[*at], &mut scope)?;
    }
    let output = |info: &crate::proto::ValueInfoProto| {
        scope.find(&info.name).ok_or_else(|| OnnxError::Graph {
            place: format!("output {:?}", info.name),
            problem: "nothing computes it".to_owned(),
        })
    };
    let outputs = graph.outputs.iter().map(output).collect::<Result<_, _>>()?;
    let graph = prune::used(OnnxGraph {
        opset: file.opset,
        values: resolver.values,
        nodes: resolver.nodes,
        inputs,
        outputs,
        folded: resolver.folded,
        metadata: file.metadata.clone(),
    });
    check_texts(&graph)?;
    Ok(graph)
}

/// Nothing on a device holds texts: nodes that read or make some are the host's.
fn check_texts(graph: &OnnxGraph) -> Result<(), OnnxError> {
    let is_text = |id: &ValueId| graph.value(*id).element == ElementKind::Text;
    for node in &graph.nodes {
        let mut operands = node.inputs.iter().chain(&node.outputs).flatten();
        let Some(found) = operands.find(|id| is_text(id)) else { continue };
        let does = if node.inputs.contains(&Some(*found)) { "reads" } else { "makes" };
        return Err(OnnxError::Graph {
            place: check::place(&node.name, &node.op),
            problem: format!(
                "it {does} {:?}, a tensor of strings, which no IPU holds: leave what works on \
                 strings to the host, and export the model that reads its results as numbers",
                graph.value(*found).name
            ),
        });
    }
    Ok(())
}

fn function_key(function: &FunctionProto) -> FunctionKey<'_> {
    (check::standard_domain(&function.domain), &function.name, &function.overload)
}

/// A value that the device need not compute: made of shapes and constants. Floats of initialisers
/// are weights, unless they are single numbers.
fn is_constant(value: &OnnxValue) -> bool {
    match value.source {
        ValueSource::Constant => true,
        ValueSource::Initializer => !value.element.is_float() || value.elements() <= 1,
        ValueSource::Input | ValueSource::Node(_) => false,
    }
}

impl<'f> Resolver<'f> {
    /// Values of the graph's inputs, initialisers left out.
    fn inputs(
        &mut self,
        file: &'f OnnxFile,
        first: Option<(u64, u64)>,
        scope: &mut Scope<'f, '_>,
    ) -> Result<Vec<ValueId>, OnnxError> {
        let mut ids = Vec::new();
        for input in file.inputs() {
            let dim = |dim: &Dimension| match dim {
                Dimension::Known(size) => *size,
                Dimension::Symbol(name) => self.symbols.get(name).copied().unwrap_or(0),
            };
            let mut dims: Vec<u64> = input.dims.iter().map(dim).collect();
            if let Some((written, wanted)) = first
                && input.dims.first() == Some(&Dimension::Known(written))
            {
                dims[0] = wanted;
            }
            let place = || format!("input {:?}", input.name);
            let id = self.value(&input.name, input.element, dims, ValueSource::Input, place)?;
            scope.define(input.name.as_str().into(), id);
            ids.push(id);
        }
        Ok(ids)
    }

    fn initializers(
        &mut self,
        tensors: &'f [TensorProto],
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        for tensor in tensors {
            let place = || format!("initialiser {:?}", tensor.name);
            let dims = tensor.sizes().ok_or_else(|| OnnxError::Graph {
                place: place(),
                problem: format!("its shape is {:?}", tensor.dims),
            })?;
            let name = scope.value_name(&tensor.name);
            let id = self.value(&name, tensor.element, dims, ValueSource::Initializer, place)?;
            let value = &mut self.values[id.index()];
            value.content.clone_from(&tensor.content);
            value.is_external = tensor.is_external;
            scope.define(Arc::clone(&tensor.name), id);
        }
        Ok(())
    }

    /// Adds a value whose size can be.
    fn value(
        &mut self,
        name: &str,
        element: ElementKind,
        dims: Vec<u64>,
        source: ValueSource,
        place: impl FnOnce() -> String,
    ) -> Result<ValueId, OnnxError> {
        let elements = dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim));
        let is_sane = elements.is_some_and(|elements| elements <= MAX_ELEMENTS)
            && dims.iter().all(|dim| *dim <= MAX_ELEMENTS)
            && dims.len() <= MAX_RANK;
        let number = u32::try_from(self.values.len()).ok().filter(|_| is_sane);
        let Some(number) = number else {
            let problem = if dims.len() > MAX_RANK {
                format!("the tensor {name:?} has {} dimensions", dims.len())
            } else {
                format!("the tensor {name:?} of shape {dims:?} is larger than any machine")
            };
            return Err(OnnxError::Graph { place: place(), problem });
        };
        let name = name.to_owned();
        let value = OnnxValue { name, element, dims, source, is_external: false, content: None };
        self.values.push(value);
        Ok(ValueId(number))
    }

    /// One node as written: inlines it if it stands for others.
    fn node(&mut self, node: &'f NodeProto, scope: &mut Scope<'f, '_>) -> Result<(), OnnxError> {
        self.visited += 1;
        let identity = NodeIdentity::new(node, scope, self.visited);
        self.inlined += usize::from(scope.is_inner());
        if self.inlined > MAX_INLINED {
            let problem = format!("functions and branches stand for more than {MAX_INLINED} nodes");
            return Err(identity.error(problem));
        }
        self.keep_text(&identity, identity.bytes())?;
        let inputs = self.operands(node, &identity, scope)?;
        let domain = check::standard_domain(&node.domain);
        if let Some(function) = self.functions.get(&(domain, &*node.op, &*node.overload)).copied() {
            return self.call(function, node, &identity, &inputs, scope);
        }
        match (domain, &*node.op) {
            ("", "If") => self.branch(node, &identity, &inputs, scope),
            ("", "Loop" | "Scan") => Err(identity.error(
                "loops whose turns are counted while the program runs are not modelled: \
                 export the model with its loops unrolled",
            )),
            _ => self.operation(node, identity, inputs, scope),
        }
    }

    /// Counts bytes of names and attributes that are going to be kept.
    fn keep_text(&mut self, identity: &NodeIdentity, bytes: usize) -> Result<(), OnnxError> {
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        if self.text_bytes > MAX_TEXT_BYTES {
            return Err(identity.error("names and attributes of all nodes are more than 1 GiB"));
        }
        Ok(())
    }

    /// The values that a node reads.
    fn operands(
        &self,
        node: &NodeProto,
        identity: &NodeIdentity,
        scope: &Scope<'f, '_>,
    ) -> Result<Vec<Option<ValueId>>, OnnxError> {
        let operand = |name: &Arc<str>| {
            if name.is_empty() {
                return Ok(None);
            }
            let missing = || identity.error(format!("it reads {name:?}, which nothing computes"));
            scope.operand(name).ok_or_else(missing)
        };
        node.inputs.iter().map(operand).collect()
    }

    /// A node that stands for itself: folded if all it reads is known, else kept.
    fn operation(
        &mut self,
        node: &'f NodeProto,
        identity: NodeIdentity,
        inputs: Vec<Option<ValueId>>,
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        let attributes = scope.attributes(node, &identity)?;
        self.keep_text(&identity, attributes.bytes())?;
        let opset = scope.opset(check::standard_domain(&node.domain));
        let view = NodeView {
            name: &identity.name,
            op: &node.op,
            domain: check::standard_domain(&node.domain),
            opset,
            inputs: inputs.iter().map(|id| id.map(|id| &self.values[id.index()])).collect(),
            attributes: &attributes,
            outputs: node.outputs.len(),
        };
        let types = self.types(node, &view, scope)?;
        let contents = self.contents(&view, &types);
        let is_folded = contents.is_some();
        if let Some(contents) = &contents {
            let read =
                inputs.iter().flatten().filter_map(|id| self.values[id.index()].content.as_ref());
            let elements = contents.iter().flatten().chain(read).map(|tensor| tensor.len() as u64);
            self.folded_elements += elements.sum::<u64>();
        }
        let mut contents = contents.unwrap_or_default().into_iter();
        let source = if is_folded {
            *self.folded.entry(node.op.to_string()).or_insert(0) += 1;
            ValueSource::Constant
        } else {
            ValueSource::Node(self.nodes.len())
        };
        let mut outputs = Vec::with_capacity(node.outputs.len());
        let mut types = types.into_iter();
        for name in &node.outputs {
            let (kind, content) = (types.next(), contents.next().flatten());
            if name.is_empty() {
                outputs.push(None);
                continue;
            }
            let Some(TensorType { element, dims }) = kind else {
                return Err(
                    identity.error(format!("the shape of its output {name:?} is not known"))
                );
            };
            let full = scope.value_name(name);
            let id = self.value(&full, element, dims, source, || identity.place())?;
            self.values[id.index()].content = content;
            scope.define(Arc::clone(name), id);
            outputs.push(Some(id));
        }
        if !is_folded {
            self.nodes.push(identity.into_node(node, opset, inputs, outputs, attributes));
        }
        Ok(())
    }

    /// Types of a node's outputs: by the rule of its operator, else as the file says, else as those
    /// of an element-wise operation.
    fn types(
        &self,
        node: &NodeProto,
        view: &NodeView,
        scope: &Scope<'f, '_>,
    ) -> Result<Vec<TensorType>, OnnxError> {
        let written = || {
            let written = |name: &Arc<str>| scope.written_type(name, self.symbols);
            node.outputs.iter().map(written).collect::<Option<Vec<TensorType>>>()
        };
        let inferred = shape::infer(view);
        let file_decides = match &inferred {
            Ok(types) => types.is_none(),
            Err(_) => shape::counts_results(view.op),
        };
        if let Some(types) = written().filter(|_| file_decides) {
            return Ok(types);
        }
        match inferred? {
            Some(types) => Ok(types),
            None => shape::as_element_wise(view),
        }
    }

    /// Contents of the outputs of a node that need not be computed: made of shapes and constants.
    /// The inner `None` are those that are too large to be kept.
    fn contents(
        &self,
        view: &NodeView,
        types: &[TensorType],
    ) -> Option<Vec<Option<Arc<ConstantTensor>>>> {
        let mut operands = view.inputs.iter().flatten().peekable();
        let needs_shapes_only = view.domain.is_empty() && fold::reads_only_shapes(view.op);
        let can_fold = needs_shapes_only
            || view.domain.is_empty()
                && fold::is_pure(view.op)
                && (operands.peek().is_some() || fold::makes_constants(view.op))
                && operands.all(|value| is_constant(value));
        if !can_fold {
            return None;
        }
        let left = MAX_FOLDED.saturating_sub(self.folded_elements);
        let tensors = fold::evaluate(view, types, left).unwrap_or_default();
        Some(tensors.into_iter().map(|tensor| tensor.map(Arc::new)).collect())
    }
}

impl NodeIdentity {
    fn into_node(
        self,
        node: &NodeProto,
        opset: u32,
        inputs: Vec<Option<ValueId>>,
        outputs: Vec<Option<ValueId>>,
        attributes: Attributes,
    ) -> OnnxNode {
        OnnxNode {
            name: self.name,
            op: node.op.to_string(),
            domain: check::standard_domain(&node.domain).to_owned(),
            opset,
            inputs,
            outputs,
            attributes,
            metadata: Arc::clone(&node.metadata),
            scope: self.scope,
        }
    }
}

/// Value -> type that the file states for it in numbers, for tests.
#[cfg(test)]
pub(crate) fn written_types(file: &OnnxFile) -> BTreeMap<&str, TensorType> {
    let graph = file.model.graph.as_ref().expect("a file that was read has a graph");
    let no_symbols = BTreeMap::new();
    let scope = Scope::of_model(&file.model.opset_imports, graph);
    let infos = graph.value_infos.iter().chain(&graph.outputs);
    infos
        .filter_map(|info| Some((&*info.name, scope.written_type(&info.name, &no_symbols)?)))
        .collect()
}
