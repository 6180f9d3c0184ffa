//! The traversal of the nodes of a file.

use super::build;
use super::fuse::NodeOrigin;
use super::node_import::NodeImport;
use super::{ImportSettings, blocks, loss};
use crate::graph::{
    GraphBuilder, GraphError, GraphRepeat, ImportProblem, ModelGraph, NodeOptions, RepeatId,
};
use crate::shape::{BlockId, TensorId, TensorInfo, TensorRole};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tilescope_onnx::{OnnxGraph, OnnxRepeat, OnnxValue, ValueId};
use tilescope_report::UnknownOperator;

/// The largest number of node names that are listed for an operator.
const MOST_NAMES: usize = 100;

/// The value that a number of few bits stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct StraightThrough {
    /// The value that was rounded.
    pub of: TensorId,
    /// True for elements that were within the range of the few bits.
    pub within: TensorId,
}

/// A file while it is converted to a graph.
pub(super) struct Importer<'a> {
    pub file: &'a OnnxGraph,
    pub settings: &'a ImportSettings<'a>,
    pub graph: GraphBuilder,
    /// The tensor of each value that was reached.
    pub tensors: Vec<Option<TensorId>>,
    /// The number of nodes that read each value, plus the number of outputs that it is.
    pub readers: Vec<usize>,
    /// The number of `DequantizeLinear` nodes among those readers.
    pub dequantizers: Vec<usize>,
    /// Numbers of few bits that stand for trained values.
    pub straight_through: BTreeMap<ValueId, StraightThrough>,
    pub frozen: Vec<Regex>,
    /// True for each value that depends on a trained weight. Empty without training.
    pub trained: Vec<bool>,
    /// Names that are taken, each with the number of the next tensor with that name.
    names: HashMap<String, usize>,
    /// Tensors that are named after a value.
    named: HashSet<TensorId>,
}

impl<'a> Importer<'a> {
    /// Makes an importer that has built nothing yet.
    ///
    /// # Errors
    /// Returns an error if a string in `frozen` is not a regular expression.
    pub(super) fn new(
        file: &'a OnnxGraph,
        settings: &'a ImportSettings,
    ) -> Result<Self, GraphError> {
        let frozen = settings.options.frozen.iter().map(|text| {
            Regex::new(text).map_err(|error| {
                GraphError::new("model.frozen", ImportProblem::Pattern(text.clone(), error))
            })
        });
        let mut readers = vec![0; file.values.len()];
        let read = file.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
        for value in read.chain(&file.outputs) {
            readers[value.index()] += 1;
        }
        let mut dequantizers = vec![0; file.values.len()];
        for node in file.nodes.iter().filter(|node| node.op == "DequantizeLinear") {
            if let Some(value) = node.inputs.first().copied().flatten() {
                dequantizers[value.index()] += 1;
            }
        }
        let mut importer = Self {
            file,
            dequantizers,
            straight_through: BTreeMap::new(),
            settings,
            graph: GraphBuilder::new(),
            tensors: vec![None; file.values.len()],
            readers,
            frozen: frozen.collect::<Result<_, _>>()?,
            trained: Vec::new(),
            names: HashMap::new(),
            named: HashSet::new(),
        };
        if settings.training {
            importer.trained = importer.trained_values();
        }
        Ok(importer)
    }

    /// For each value, true if it is a trained weight or depends on one.
    fn trained_values(&self) -> Vec<bool> {
        let mut trained: Vec<bool> = self
            .file
            .values
            .iter()
            .map(|value| self.role(value) == TensorRole::Parameter)
            .collect();
        for node in &self.file.nodes {
            if node.inputs.iter().flatten().any(|input| trained[input.index()]) {
                for output in node.outputs.iter().flatten() {
                    trained[output.index()] = true;
                }
            }
        }
        trained
    }

    /// Unknown operators, each with its nodes.
    pub(super) fn unknown_operators(&self, origins: &[NodeOrigin]) -> Vec<UnknownOperator> {
        let mut found: BTreeMap<&str, UnknownOperator> = BTreeMap::new();
        let nodes = self.file.nodes.iter().zip(origins);
        for (node, origin) in nodes.filter(|(node, _)| build::find(node).is_none()) {
            let operator = found.entry(&origin.source).or_default();
            operator.source = origin.source.to_string();
            operator.count += 1;
            if operator.nodes.len() < MOST_NAMES {
                operator.nodes.push(node.path());
            }
        }
        found.into_values().collect()
    }

    /// Rejects all unknown operators at once, unless the spec allows them.
    pub(super) fn check_known(&self, unknown: &[UnknownOperator]) -> Result<(), GraphError> {
        if self.settings.options.allow_unknown {
            return Ok(());
        }
        let Some(first) = unknown.first() else { return Ok(()) };
        let node = first.nodes.first().cloned().unwrap_or_default();
        Err(GraphError::new(node, ImportProblem::UnknownOperators(unknown.to_vec())))
    }

    /// Builds all nodes in order, each with its origin.
    pub(super) fn build_nodes(&mut self, origins: &[NodeOrigin]) -> Result<(), GraphError> {
        let blocks = blocks::of_nodes(self.file, self.settings.options.blocks)?;
        self.graph.stages(blocks.stages);
        let mut repeats = Vec::with_capacity(self.file.repeats.len());
        for OnnxRepeat { name, trips, outer } in &self.file.repeats {
            let outer = outer.map(|outer| RepeatId(outer.index()));
            repeats.push(GraphRepeat { name: name.clone(), trips: *trips, outer });
        }
        self.graph.set_repeats(repeats);
        let known: Vec<BlockId> = blocks.names.iter().map(|name| self.graph.block(name)).collect();
        let file = self.file;
        for ((node, origin), block) in file.nodes.iter().zip(origins).zip(&blocks.of_node) {
            self.graph.set_block(known[*block]);
            self.graph.set_origin(Some(Arc::clone(&origin.source)), origin.options);
            self.graph.set_repeat(node.repeat.map(|repeat| RepeatId(repeat.index())));
            let build = build::find(node)
                .map_or(build::build_unknown as build::Build, |builder| builder.build);
            build(&mut NodeImport { importer: self, node })?;
        }
        self.graph.set_origin(None, NodeOptions::default());
        self.graph.set_repeat(None);
        self.graph.move_out_of_repeats();
        Ok(())
    }

    /// Sends the outputs to the host, and adds the loss if the model is trained.
    pub(super) fn end(mut self) -> Result<ModelGraph, GraphError> {
        if self.settings.training {
            loss::add(&mut self)?;
        }
        let file = self.file;
        let mut known: BTreeSet<TensorId> = self.graph.graph().outputs.iter().copied().collect();
        for output in &file.outputs {
            let Some(tensor) = self.tensors[output.index()] else { continue };
            let made = self.graph.graph().tensor(tensor).role == TensorRole::Activation;
            if made && known.insert(tensor) {
                self.graph.output(tensor);
            }
        }
        Ok(self.graph.finish())
    }

    /// A value of the file.
    pub(super) fn value(&self, id: ValueId) -> &'a OnnxValue {
        self.file.value(id)
    }

    /// The type of a tensor.
    pub(super) fn ty(&self, tensor: TensorId) -> &TensorInfo {
        &self.graph.graph().tensor(tensor).ty
    }

    /// Names the result of a node after its value. A tensor that passes through a node keeps its
    /// name.
    pub(super) fn name_result(&mut self, tensor: TensorId, value: &str) {
        let role = self.graph.graph().tensor(tensor).role;
        if role == TensorRole::Activation && self.named.insert(tensor) {
            let name = self.unique(value);
            self.graph.rename(tensor, name);
        }
    }

    /// Returns the name, with a number appended if it is taken.
    pub(super) fn unique(&mut self, name: &str) -> String {
        let Some(next) = self.names.get(name).copied() else {
            self.names.insert(name.to_string(), 2);
            return name.to_string();
        };
        for number in next.. {
            let free = format!("{name}_{number}");
            if self.names.contains_key(&free) {
                continue;
            }
            self.names.insert(name.to_string(), number + 1);
            self.names.insert(free.clone(), 2);
            return free;
        }
        String::new()
    }
}
