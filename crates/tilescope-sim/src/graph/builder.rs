//! Builder of graphs, in which models are defined.

use super::{
    AnnotatedStage, GraphNode, GraphProblem, GraphRepeat, InputSettings, ModelGraph, NodeOptions,
    RepeatId,
};
use crate::operators::{GraphError, OperationSink, Operator};
use crate::shape::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilescope_report::{ImportedModel, TrainingPass};

/// Largest number of elements of one tensor. The limit keeps all byte and operation counts far
/// below overflow.
const LARGEST_TENSOR_ELEMENTS: u64 = 1 << 40;

/// Graph under construction.
#[derive(Debug)]
pub struct GraphBuilder {
    graph: ModelGraph,
    pass: TrainingPass,
    block: BlockId,
    source: Option<Arc<str>>,
    compute_batch: usize,
    options: NodeOptions,
    repeat: Option<RepeatId>,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphBuilder {
    /// Creates an empty graph. The first call of [`GraphBuilder::block`] creates the first block.
    pub fn new() -> Self {
        let graph = ModelGraph {
            tensors: Vec::new(),
            nodes: Vec::new(),
            blocks: Vec::new(),
            outputs: Vec::new(),
            losses: Vec::new(),
            stages: Vec::new(),
            row_shards: 1,
            copied_weights: BTreeSet::new(),
            input_settings: BTreeMap::new(),
            repeats: Vec::new(),
            imported: None,
            notes: Vec::new(),
        };
        Self::on(graph, TrainingPass::Forward)
    }

    /// Continues an existing graph.
    pub(super) fn extend(graph: ModelGraph) -> Self {
        Self::on(graph, TrainingPass::Backward)
    }

    fn on(graph: ModelGraph, pass: TrainingPass) -> Self {
        let options = NodeOptions::default();
        let block = BlockId(0);
        Self { graph, pass, block, source: None, compute_batch: 0, options, repeat: None }
    }

    /// Assigns the nodes and tensors that follow to the block with this name.
    pub fn block(&mut self, name: &str) -> BlockId {
        self.block = match self.graph.blocks.iter().position(|block| block == name) {
            Some(known) => BlockId(known),
            None => {
                self.graph.blocks.push(name.to_string());
                BlockId(self.graph.blocks.len() - 1)
            }
        };
        self.block
    }

    /// Assigns the nodes and tensors that follow to a known block.
    pub(crate) fn set_block(&mut self, block: BlockId) {
        self.block = block;
    }

    /// Assigns the nodes and tensors that follow to this pass and block.
    pub(super) fn set_pass_and_block(&mut self, pass: TrainingPass, block: BlockId) {
        self.pass = pass;
        self.block = block;
    }

    /// Assigns blocks to stages.
    pub(crate) fn stages(&mut self, stages: Vec<AnnotatedStage>) {
        self.graph.stages = stages;
    }

    /// Sets how the host supplies an input.
    pub(crate) fn set_input_settings(&mut self, input: TensorId, settings: InputSettings) {
        self.graph.input_settings.insert(input, settings);
    }

    /// Sets the file that the model comes from.
    pub(crate) fn set_imported(&mut self, imported: Option<Arc<ImportedModel>>) {
        self.graph.imported = imported;
    }

    /// Adds a note on how the model was built, for readers of a report.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.graph.notes.push(text.into());
    }

    /// Sets the origin of the nodes that follow: the operator and version of a node of a file, such
    /// as `Conv@11`, and the options that the model sets for it.
    pub(crate) fn set_origin(&mut self, source: Option<Arc<str>>, options: NodeOptions) {
        self.source = source;
        self.options = options;
    }

    /// Adds the repeats that nodes can be in.
    pub(crate) fn set_repeats(&mut self, repeats: Vec<GraphRepeat>) {
        self.graph.repeats = repeats;
    }

    /// Assigns the nodes that follow to a repeat. Returns the previous one.
    pub(crate) fn set_repeat(&mut self, repeat: Option<RepeatId>) -> Option<RepeatId> {
        std::mem::replace(&mut self.repeat, repeat)
    }

    /// Moves nodes that are in no repeat out of the ranges of those that are.
    pub(crate) fn move_out_of_repeats(&mut self) {
        let graph = &self.graph;
        if graph.repeats.is_empty() {
            return;
        }
        let outermost: Vec<Option<RepeatId>> =
            graph.nodes.iter().map(|node| graph.repeats_around(node.repeat).last()).collect();
        let mut last: Vec<usize> = vec![0; graph.repeats.len()];
        for (at, repeat) in outermost.iter().enumerate() {
            if let Some(repeat) = repeat {
                last[repeat.0] = at;
            }
        }
        let mut nodes = Vec::with_capacity(graph.nodes.len());
        // The nodes of the repeat that is not yet complete.
        let mut body = Vec::new();
        let mut until = 0;
        for (at, node) in std::mem::take(&mut self.graph.nodes).into_iter().enumerate() {
            match outermost[at] {
                None => nodes.push(node),
                Some(repeat) => {
                    until = last[repeat.0];
                    body.push(node);
                }
            }
            if at >= until {
                nodes.append(&mut body);
            }
        }
        self.graph.nodes = nodes;
    }

    /// Sets the part of the micro-batch that the nodes that follow work on.
    pub(super) fn set_compute_batch(&mut self, compute_batch: usize) {
        self.compute_batch = compute_batch;
    }

    /// Renames an activation.
    pub(crate) fn rename(&mut self, tensor: TensorId, name: String) {
        self.graph.tensors[tensor.0].name = name;
    }

    /// Returns the graph built so far.
    pub(crate) fn graph(&self) -> &ModelGraph {
        &self.graph
    }

    /// Adds a tensor with a role other than activation.
    pub fn tensor(&mut self, name: &str, ty: TensorInfo, role: TensorRole) -> TensorId {
        self.graph.tensors.push(Tensor { name: name.to_string(), ty, role, block: self.block });
        TensorId(self.graph.tensors.len() - 1)
    }

    /// Applies an operator. Its outputs are named after the node.
    ///
    /// # Errors
    ///
    /// The error of the operator if operands do not fit, and an error for tensors that exceed the
    /// size limit.
    pub fn apply_all(
        &mut self,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        self.add(name, Arc::new(operator), inputs)
    }

    /// Moves the operation added last to directly after the one that makes `operand`.
    pub(crate) fn move_last_node_after(&mut self, operand: TensorId) {
        debug_assert!(operand.0 < self.graph.tensors.len(), "the operand belongs to this graph");
        let nodes = &mut self.graph.nodes;
        let made = nodes.iter().rposition(|node| node.outputs.contains(&operand));
        if let Some((made, last)) = made.zip(nodes.len().checked_sub(1)) {
            nodes[(made + 1).min(last)..].rotate_right(1);
        }
    }

    /// Applies an operator with one output.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::apply_all`].
    pub fn apply(
        &mut self,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, GraphError> {
        let outputs = self.apply_all(name, operator, inputs)?;
        Ok(outputs[0])
    }

    /// Sends a tensor to the host for each micro-batch.
    pub(crate) fn output(&mut self, tensor: TensorId) {
        self.graph.outputs.push(tensor);
    }

    /// Adds a loss. Several losses are summed.
    pub fn loss(&mut self, tensor: TensorId) {
        self.graph.losses.push(tensor);
    }

    /// Finishes the graph and returns it.
    pub fn finish(self) -> ModelGraph {
        self.graph
    }
}

impl OperationSink for GraphBuilder {
    fn tensor_type(&self, tensor: TensorId) -> &TensorInfo {
        &self.graph.tensor(tensor).ty
    }

    fn constant(&mut self, name: &str, ty: TensorInfo) -> TensorId {
        self.tensor(name, ty, TensorRole::Resident)
    }

    fn add(
        &mut self,
        name: &str,
        operator: Arc<dyn Operator>,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        let types = operator.infer(&self.graph.types(inputs));
        let types = types.map_err(|error| GraphError::new(name, error))?;
        let mut outputs = Vec::new();
        for (i, ty) in types.into_iter().enumerate() {
            let elements = ty.shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
            match elements {
                Some(0) => return Err(GraphError::new(name, GraphProblem::Empty(ty))),
                Some(1..=LARGEST_TENSOR_ELEMENTS) => {}
                _ => return Err(GraphError::new(name, GraphProblem::TooLarge(ty))),
            }
            let suffix = if i == 0 { String::new() } else { format!(":{i}") };
            outputs.push(self.tensor(&format!("{name}{suffix}"), ty, TensorRole::Activation));
        }
        self.graph.nodes.push(GraphNode {
            name: name.to_string(),
            operator,
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
            pass: self.pass,
            block: self.block,
            source: self.source.clone(),
            compute_batch: self.compute_batch,
            options: self.options,
            repeat: self.repeat,
        });
        Ok(outputs)
    }
}
