//! The only walk over a graph: every node is inlined, folded or kept, and its outputs get shapes.
//!
//! One pass is enough: when a node is reached, the shapes of its operands are known, and so are the
//! values of those that determine shapes.

mod attributes;
mod bag_loops;
mod bag_sequences;
mod inline;
mod loops;
mod open_decisions;
mod prune;
mod repeats;
mod scope;
mod types;

use crate::attributes::Attributes;
use crate::check;
use crate::compose::{self, NodeComposition};
use crate::constant::ConstantTensor;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::file::{DimValues, Dimension, OnnxFile};
use crate::fold;
use crate::graph::{
    OnnxGraph, OnnxNode, OnnxRepeat, OnnxRepeatId, OnnxValue, ValueId, ValueSource, full_op,
};
use crate::proto::{FunctionProto, GraphProto, MAX_RANK, NodeProto, Properties, TensorProto};
use crate::shape::{self, NodeView, TensorType};
use open_decisions::OpenDecisions;
use scope::Scope;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(crate) use attributes::NodeIdentity;
pub(crate) use loops::NodeParts;

/// The maximum number of elements of a tensor: a thousand times the number of parameters of today's
/// largest models.
const MAX_ELEMENTS: u64 = 1 << 40;

/// The maximum number of nodes from functions, branches, loops and composed operators, beside those
/// of the graph.
const MAX_INLINED: usize = 1 << 18;

/// The maximum number of elements of tensors that folding reads and writes in total.
const MAX_FOLDED: u64 = 1 << 27;

/// The maximum number of bytes of names and attributes, which nested functions could make long.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// The operator set of onnxruntime whose data are in blocks of channels, which it writes only with
/// all its optimisations.
const CPU_LAYOUT: &str = "com.microsoft.nchwc";

/// Domain, name and overload of a function.
type FunctionKey<'f> = (&'f str, &'f str, &'f str);

pub(crate) struct Resolver<'f> {
    /// Symbol -> value.
    symbols: &'f BTreeMap<String, u64>,
    /// The user's decisions on branches, loops and results that depend on data.
    given: &'f DimValues,
    /// Decisions that nodes have used.
    asked: BTreeSet<String>,
    /// Decisions that nodes need and the user has not made.
    open: OpenDecisions,
    functions: HashMap<FunctionKey<'f>, &'f FunctionProto>,
    pub(crate) values: Vec<OnnxValue>,
    /// Elements of values that are sequences of tensors.
    pub(crate) sequences: HashMap<ValueId, Vec<ValueId>>,
    nodes: Vec<OnnxNode>,
    folded: BTreeMap<String, u64>,
    composed: BTreeMap<String, u64>,
    repeats: Vec<OnnxRepeat>,
    /// The innermost repeat whose body is being resolved.
    repeat: Option<OnnxRepeatId>,
    folded_elements: u64,
    text_bytes: usize,
    visited: usize,
    inlined: usize,
    /// Nodes of attempts to keep loops as repeats that failed.
    rejected: usize,
}

/// Resolves the graph of a file with these values of its symbols.
pub(crate) fn resolve(
    file: &OnnxFile,
    symbols: &BTreeMap<String, u64>,
    given: &DimValues,
) -> Result<OnnxGraph, OnnxError> {
    let graph = check::graph(&file.model)?;
    let functions = file.model.functions.iter();
    let functions = functions.map(|function| (function_key(function), function)).collect();
    let mut resolver = Resolver {
        symbols,
        given,
        asked: BTreeSet::new(),
        open: OpenDecisions::default(),
        functions,
        values: Vec::new(),
        sequences: HashMap::new(),
        nodes: Vec::new(),
        folded: BTreeMap::new(),
        composed: BTreeMap::new(),
        repeats: Vec::new(),
        repeat: None,
        folded_elements: 0,
        text_bytes: 0,
        visited: 0,
        inlined: 0,
        rejected: 0,
    };
    let resolved = resolver.graph(file, graph);
    if let Some(error) = std::mem::take(&mut resolver.open).into_error() {
        return Err(error);
    }
    let (inputs, outputs) = resolved?;
    let graph = prune::used(OnnxGraph {
        opset: file.opset,
        values: resolver.values,
        nodes: resolver.nodes,
        inputs,
        outputs,
        folded: resolver.folded,
        composed: resolver.composed,
        repeats: resolver.repeats,
        metadata: file.metadata.clone(),
    });
    check_texts(&graph)?;
    Ok(graph)
}

/// No device memory contains texts: nodes that read or write texts belong to the host.
fn check_texts(graph: &OnnxGraph) -> Result<(), OnnxError> {
    let is_text = |id: &ValueId| graph.value(*id).element == ElementKind::Text;
    for node in &graph.nodes {
        let mut operands = node.inputs.iter().chain(&node.outputs).flatten();
        let Some(found) = operands.find(|id| is_text(id)) else { continue };
        let does = if node.inputs.contains(&Some(*found)) { "reads" } else { "makes" };
        return Err(OnnxError::Graph {
            place: check::place(&node.name, &node.op),
            problem: format!(
                "it {does} {:?}, a tensor of strings, which IPUs do not support: process strings \
                 on the host, and export a model with numeric inputs",
                graph.value(*found).name
            ),
        });
    }
    Ok(())
}

fn function_key(function: &FunctionProto) -> FunctionKey<'_> {
    (check::standard_domain(&function.domain), &function.name, &function.overload)
}

/// True for a value that the device need not compute, because it follows from shapes and constants.
/// Floats of initialisers are weights, unless they are single numbers.
fn is_constant(value: &OnnxValue) -> bool {
    match value.source {
        // A value without elements has none in any run.
        _ if value.elements() == 0 => true,
        ValueSource::Constant => true,
        ValueSource::Initializer => !value.element.is_float() || value.elements() <= 1,
        ValueSource::Input | ValueSource::Node(_) => false,
    }
}

impl<'f> Resolver<'f> {
    /// Adds all nodes. Returns inputs and outputs.
    fn graph(
        &mut self,
        file: &'f OnnxFile,
        graph: &'f GraphProto,
    ) -> Result<(Vec<ValueId>, Vec<ValueId>), OnnxError> {
        let mut scope = Scope::of_model(&file.model.opset_imports, graph);
        let inputs = self.inputs(file, self.given.first, &mut scope)?;
        self.initializers(&graph.initializers, &mut scope)?;
        for at in &file.order {
            self.node(&graph.nodes[*at], &mut scope)?;
        }
        let find_output = |info: &crate::proto::ValueInfoProto| {
            scope.find(&info.name).ok_or_else(|| OnnxError::Graph {
                place: format!("output {:?}", info.name),
                problem: "no node computes it".to_owned(),
            })
        };
        let outputs: Vec<ValueId> =
            graph.outputs.iter().map(find_output).collect::<Result<_, _>>()?;
        if let Some(id) = outputs.iter().find(|id| self.sequences.contains_key(id)) {
            return Err(OnnxError::Graph {
                place: format!("output {:?}", self.values[id.index()].name),
                problem: "it is a sequence of tensors: export the model with a tensor instead"
                    .to_owned(),
            });
        }
        self.check_given()?;
        Ok((inputs, outputs))
    }

    /// Values of the graph's inputs, without initialisers.
    fn inputs(
        &mut self,
        file: &'f OnnxFile,
        first: Option<(u64, u64)>,
        scope: &mut Scope<'f, '_>,
    ) -> Result<Vec<ValueId>, OnnxError> {
        let mut ids = Vec::new();
        for input in file.inputs() {
            let mut dims: Vec<u64> = input
                .dims
                .iter()
                .map(|dim| match dim {
                    Dimension::Known(size) => *size,
                    Dimension::Symbol(name) => self.symbols.get(name).copied().unwrap_or(0),
                })
                .collect();
            if let Some((written, wanted)) = first
                && input.dims.first() == Some(&Dimension::Known(written))
            {
                dims[0] = wanted;
            }
            let id = self.value(&input.name, input.element, dims, ValueSource::Input, || {
                format!("input {:?}", input.name)
            })?;
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
            let describe = || format!("initialiser {:?}", tensor.name);
            let dims = tensor.sizes().ok_or_else(|| OnnxError::Graph {
                place: describe(),
                problem: format!("its shape is {:?}", tensor.dims),
            })?;
            let name = scope.value_name(&tensor.name);
            let id = self.value(&name, tensor.element, dims, ValueSource::Initializer, describe)?;
            let value = &mut self.values[id.index()];
            value.content.clone_from(&tensor.content);
            value.is_external = tensor.is_external;
            scope.define(Arc::clone(&tensor.name), id);
        }
        Ok(())
    }

    /// Adds a value, with a check of its size.
    pub(crate) fn value(
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

    /// Processes one node of the file: inlines it if it is composed of others.
    fn node(&mut self, node: &'f NodeProto, scope: &mut Scope<'f, '_>) -> Result<(), OnnxError> {
        self.visited += 1;
        let identity = NodeIdentity::new(node, scope, self.visited);
        if scope.is_inner() {
            self.keep_inlined(&identity)?;
        }
        self.keep_text(&identity, identity.bytes())?;
        let inputs = self.operands(node, &identity, scope)?;
        let domain = check::standard_domain(&node.domain);
        if let Some(function) = self.functions.get(&(domain, &*node.op, &*node.overload)).copied() {
            return self.call(function, node, &identity, &inputs, scope);
        }
        if domain == CPU_LAYOUT {
            return Err(identity.error(
                "its data are in a layout for CPUs: save the model with \
                 graph_optimization_level = ORT_ENABLE_EXTENDED or lower",
            ));
        }
        match (domain, &*node.op) {
            ("", "If") => return self.branch(node, &identity, &inputs, scope),
            ("", "Loop") => return self.counted_loop(node, &identity, &inputs, scope),
            ("", "Scan") => return self.scan(node, &identity, &inputs, scope),
            _ => {}
        }
        let attributes = scope.attributes(node, &identity)?;
        self.keep_text(&identity, attributes.bytes())?;
        let opset = scope.opset(domain);
        if let Some(compose) = compose::find(domain, &node.op) {
            let parts = NodeParts {
                metadata: Arc::clone(&node.metadata),
                source: format!("{}@{opset}", full_op(domain, &node.op)).into(),
            };
            let mut composition = NodeComposition {
                resolver: &mut *self,
                identity: &identity,
                parts: &parts,
                op: &node.op,
                attributes: &attributes,
                opset,
                inputs: &inputs,
                outputs: node.outputs.len(),
            };
            if let Some(results) = compose(&mut composition)? {
                *self.composed.entry(full_op(domain, &node.op)).or_insert(0) += 1;
                return self.take_results(node, &identity, &results, scope);
            }
        }
        if let Some(id) = inputs.iter().flatten().find(|id| self.sequences.contains_key(id)) {
            return Err(identity.error(format!(
                "it reads {:?}, which is a sequence of tensors",
                self.values[id.index()].name
            )));
        }
        let symbols = self.symbols;
        let names = node
            .outputs
            .iter()
            .map(|name| if name.is_empty() { None } else { Some(scope.value_name(name)) });
        let draft = NodeDraft {
            identity,
            op: &node.op,
            domain,
            opset,
            attributes,
            metadata: &node.metadata,
            outputs: names.collect(),
            source: None,
        };
        let added = self.add(draft, inputs, &|at| scope.written_type(&node.outputs[at], symbols));
        let outputs = match added {
            // The number of results depends on data: continue with a guess, which composes the node.
            Err(error) if self.needs_max_results(domain, node) => {
                self.open.add(shape::MOST_KEY, || error);
                self.open.max_results = Some(1);
                return self.node(node, scope);
            }
            outputs => outputs?,
        };
        for (name, id) in node.outputs.iter().zip(outputs) {
            if let Some(id) = id {
                scope.define(Arc::clone(name), id);
            }
        }
        Ok(())
    }

    /// True for a node whose number of results depends on data, until the user gives it.
    fn needs_max_results(&self, domain: &str, node: &NodeProto) -> bool {
        domain.is_empty() && shape::counts_results(&node.op) && self.max_results().is_none()
    }

    /// Counts bytes of names and attributes that will be kept.
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
        node.inputs
            .iter()
            .map(|name| {
                if name.is_empty() {
                    return Ok(None);
                }
                scope.operand(name).ok_or_else(|| {
                    identity.error(format!("it reads {name:?}, which no node computes"))
                })
            })
            .collect()
    }

    /// Adds a node of its own: folded if all its inputs are known, otherwise kept. `written` gives
    /// the type that the file states for an output.
    pub(crate) fn add(
        &mut self,
        draft: NodeDraft,
        inputs: Vec<Option<ValueId>>,
        written: &dyn Fn(usize) -> Option<TensorType>,
    ) -> Result<Vec<Option<ValueId>>, OnnxError> {
        if draft.source.is_some() {
            self.keep_inlined(&draft.identity)?;
        }
        if draft.domain.is_empty() {
            self.match_weight_types(draft.op, &inputs);
        }
        let view = NodeView {
            name: &draft.identity.name,
            op: draft.op,
            domain: draft.domain,
            opset: draft.opset,
            inputs: inputs.iter().map(|id| id.map(|id| &self.values[id.index()])).collect(),
            attributes: &draft.attributes,
            outputs: draft.outputs.len(),
        };
        let types = types::of_outputs(&view, written)?;
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
            if draft.source.is_none() {
                *self.folded.entry(draft.op.to_string()).or_insert(0) += 1;
            }
            ValueSource::Constant
        } else {
            ValueSource::Node(self.nodes.len())
        };
        let mut outputs = Vec::with_capacity(draft.outputs.len());
        let mut types = types.into_iter();
        for name in &draft.outputs {
            let kind = types.next();
            let content = contents.next().flatten();
            let Some(name) = name else {
                outputs.push(None);
                continue;
            };
            let Some(TensorType { element, dims }) = kind else {
                let problem = format!("the shape of its output {name:?} is unknown");
                return Err(draft.identity.error(problem));
            };
            let id = self.value(name, element, dims, source, || draft.identity.place())?;
            self.values[id.index()].content = content;
            outputs.push(Some(id));
        }
        if !is_folded {
            let node = draft.into_node(inputs, outputs.clone());
            self.nodes.push(OnnxNode { repeat: self.repeat, ..node });
        }
        Ok(outputs)
    }

    /// Counts a node that replaces another.
    fn keep_inlined(&mut self, identity: &NodeIdentity) -> Result<(), OnnxError> {
        self.inlined += 1;
        if self.inlined > MAX_INLINED {
            let problem =
                format!("functions, branches and loops expand to more than {MAX_INLINED} nodes");
            return Err(identity.error(problem));
        }
        Ok(())
    }

    /// Contents of the outputs of a node that need not be computed: from shapes and constants, or
    /// without elements. An inner `None` is a content that is too large to keep.
    fn contents(
        &self,
        view: &NodeView,
        types: &[TensorType],
    ) -> Option<Vec<Option<Arc<ConstantTensor>>>> {
        let is_empty = |kind: &TensorType| kind.dims.contains(&0);
        if !types.is_empty() && types.iter().all(is_empty) {
            return Some(
                types
                    .iter()
                    .map(|kind| {
                        ConstantTensor::empty(kind.element, kind.dims.clone()).map(Arc::new)
                    })
                    .collect(),
            );
        }
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

/// A node before its outputs have types.
pub(crate) struct NodeDraft<'d> {
    pub identity: NodeIdentity,
    pub op: &'d str,
    pub domain: &'d str,
    pub opset: u32,
    pub attributes: Attributes,
    pub metadata: &'d Properties,
    /// Names of the outputs that may be used.
    pub outputs: Vec<Option<String>>,
    /// Operator and version of the node that it is a part of.
    pub source: Option<Arc<str>>,
}

impl NodeDraft<'_> {
    fn into_node(self, inputs: Vec<Option<ValueId>>, outputs: Vec<Option<ValueId>>) -> OnnxNode {
        OnnxNode {
            name: self.identity.name,
            op: self.op.to_owned(),
            domain: self.domain.to_owned(),
            opset: self.opset,
            inputs,
            outputs,
            attributes: self.attributes,
            metadata: Arc::clone(self.metadata),
            scope: self.identity.scope,
            source: self.source,
            repeat: None,
            repeat_part: None,
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
