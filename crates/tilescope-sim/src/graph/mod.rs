//! Typed graph of a model: tensors, operations, and the training graph derived from them.

mod batch_serialization;
mod builder;
mod domain_sharding;
mod memory_owners;
mod node_options;
mod tensor_parallel;
mod train;

pub use crate::operators::{GraphError, GraphProblem, ImportProblem};
pub use builder::GraphBuilder;
pub(crate) use domain_sharding::name_on_all_shards;
pub(crate) use memory_owners::MemoryOwners;
pub use node_options::{
    InputExchange, InputSettings, NodeOptions, NodeRecomputation, OutputLocation,
};
pub use train::TrainingConfig;

use crate::error_bands::OperationExtent;
use crate::operators::{NodeOperands, Operator};
use crate::shape::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilescope_report::units::IpuId;
use tilescope_report::{ImportedModel, TrainingPass};

/// Index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GraphNodeId(pub usize);

/// An operation of the graph.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Path of names, such as `layer1/conv`.
    pub name: String,
    pub operator: Arc<dyn Operator>,
    pub inputs: Vec<TensorId>,
    pub outputs: Vec<TensorId>,
    /// Forward, backward or update pass.
    pub pass: TrainingPass,
    /// Block of the node.
    pub block: BlockId,
    /// Operator and version of the node of the imported file from which it was made, such as
    /// `Conv@11`.
    pub source: Option<Arc<str>>,
    /// Part of the micro-batch that the node works on, if batches are serialised.
    pub compute_batch: usize,
    /// Options that the model sets for this node alone.
    pub options: NodeOptions,
    /// The innermost repeat whose body it is in.
    pub repeat: Option<RepeatId>,
}

/// Index of a repeat in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepeatId(pub usize);

/// A loop of the model whose body exists once. Its nodes follow one another and are in one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRepeat {
    pub name: String,
    /// Number of iterations.
    pub trips: u64,
    /// The repeat that it is a part of.
    pub outer: Option<RepeatId>,
}

impl GraphNode {
    /// The operands of the node as its operator sees them.
    pub fn operands(&self) -> NodeOperands<'_> {
        NodeOperands {
            name: &self.name,
            inputs: &self.inputs,
            outputs: &self.outputs,
            planning: self.options.planning,
            block: self.block,
        }
    }
}

/// Block that annotations of the model make a separate stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotatedStage {
    pub block: String,
    pub annotation: StageAnnotation,
}

/// Annotation that makes a block a separate stage. IPUs are those of the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageAnnotation {
    /// The block is a stage of a pipeline on this IPU.
    Stage(IpuId),
    /// The block runs on this IPU, which may run others before and after it.
    Visit(IpuId),
    /// The block is the work of one IPU in a step of the phase with this number. A step comprises
    /// everything its set of IPUs does between two exchanges among them. If no IPU is named, the
    /// parity of the number selects the set.
    Phase { number: u32, step: u32, ipu: Option<IpuId> },
}

impl StageAnnotation {
    /// The IPU that the annotation names.
    pub fn ipu(self) -> Option<IpuId> {
        match self {
            Self::Stage(ipu) | Self::Visit(ipu) => Some(ipu),
            Self::Phase { ipu, .. } => ipu,
        }
    }
}

/// A model, or its training graph. Nodes are in an order in which they can run.
#[derive(Clone, Debug)]
pub struct ModelGraph {
    pub tensors: Vec<Tensor>,
    pub nodes: Vec<GraphNode>,
    /// Names of the blocks, in the order of the forward pass.
    pub blocks: Vec<String>,
    /// Tensors sent to the host for each micro-batch.
    pub outputs: Vec<TensorId>,
    /// Losses. Training minimises their sum.
    pub losses: Vec<TensorId>,
    /// Stages that the model defines for its blocks, in order. Empty if it defines none.
    pub stages: Vec<AnnotatedStage>,
    /// IPUs that share the rows of fields. If there are several, blocks are steps, each with one
    /// part for every IPU.
    pub row_shards: usize,
    /// Weights that each of those IPUs holds a copy of. The gradients of the copies are added.
    pub copied_weights: BTreeSet<TensorId>,
    /// Transfer settings of the inputs for which the model specifies them.
    pub input_settings: BTreeMap<TensorId, InputSettings>,
    /// Loops whose bodies exist once.
    pub repeats: Vec<GraphRepeat>,
    /// The file that the model was imported from, if any.
    pub imported: Option<Arc<ImportedModel>>,
    /// Notes for readers of a report on how the model was built.
    pub notes: Vec<String>,
}

impl ModelGraph {
    /// For each tensor, true if exactly one operation reads it and nothing else needs it, so that
    /// it may be overwritten.
    pub(crate) fn read_once(&self) -> Vec<bool> {
        let mut readers = vec![0; self.tensors.len()];
        for tensor in &self.outputs {
            readers[tensor.0] += 1;
        }
        let rewritten = self.rewritten();
        for node in &self.nodes {
            let overwritten = node.operator.overwritten_operand();
            for (place, tensor) in node.inputs.iter().enumerate() {
                if Some(place) == overwritten {
                    continue;
                }
                // Every iteration reads a tensor that none of them writes.
                let is_read_again = node.repeat.is_some()
                    && self.repeats_around(rewritten[tensor.0]).all(|of| Some(of) != node.repeat);
                readers[tensor.0] += if is_read_again { 2 } else { 1 };
            }
        }
        let tensors = self.tensors.iter().zip(readers);
        let mut once: Vec<bool> = tensors
            .map(|(tensor, readers)| tensor.role == TensorRole::Activation && readers == 1)
            .collect();
        // Overwriting a view also overwrites the tensor behind it.
        for node in &self.nodes {
            let shared = node.operator.output_alias().shared_memory(&node.operands());
            let Some((inputs, views, true)) = shared else { continue };
            let alone = inputs.iter().all(|input| once[input.0]);
            for view in views {
                once[view.0] &= alone;
            }
        }
        once
    }

    /// For each tensor, the innermost repeat in which every iteration writes it.
    fn rewritten(&self) -> Vec<Option<RepeatId>> {
        let mut rewritten = vec![None; self.tensors.len()];
        for node in self.nodes.iter().filter(|node| node.repeat.is_some()) {
            let overwritten = node.operator.overwritten_operand().map(|place| node.inputs[place]);
            for tensor in node.outputs.iter().copied().chain(overwritten) {
                rewritten[tensor.0] = node.repeat;
            }
        }
        rewritten
    }

    /// The number of times that a node runs for each micro-batch.
    pub(crate) fn runs(&self, node: &GraphNode) -> u64 {
        let mut runs = 1_u64;
        for repeat in self.repeats_around(node.repeat) {
            runs = runs.saturating_mul(self.repeats[repeat.0].trips);
        }
        runs
    }

    /// A repeat and those around it, from the inside.
    pub(crate) fn repeats_around(
        &self,
        innermost: Option<RepeatId>,
    ) -> impl Iterator<Item = RepeatId> + '_ {
        std::iter::successors(innermost, |repeat| self.repeats[repeat.0].outer)
    }

    /// The repeat directly inside `outer` that a node is in.
    pub(crate) fn repeat_inside(
        &self,
        outer: Option<RepeatId>,
        node: &GraphNode,
    ) -> Option<RepeatId> {
        self.repeats_around(node.repeat).find(|repeat| self.repeats[repeat.0].outer == outer)
    }

    /// For each tensor, true if it is a weight or a view of one.
    pub(crate) fn weights(&self) -> Vec<bool> {
        let mut weights: Vec<bool> =
            self.tensors.iter().map(|tensor| tensor.role == TensorRole::Parameter).collect();
        for node in &self.nodes {
            let shared = node.operator.output_alias().shared_memory(&node.operands());
            let Some((inputs, views, true)) = shared else { continue };
            let is_weight = inputs.iter().all(|input| weights[input.0]);
            for view in views {
                weights[view.0] = is_weight;
            }
        }
        weights
    }

    /// Turns concatenations into views if they are no larger than the tensors that they join
    /// (popart willow/src/patterns/inplace.cpp).
    #[must_use]
    pub(crate) fn with_joined_views(mut self) -> Self {
        let mut owners = MemoryOwners::new(self.tensors.len());
        for node in &mut self.nodes {
            if let Some(view) = node.operator.view_of_parts()
                && let Some(parts) = owners.joinable(&node.inputs)
            {
                let made = &self.tensors[node.outputs[0].0].ty;
                let held = parts.iter().map(|part| &self.tensors[part.0].ty);
                let is_of_one_type = held.clone().all(|ty| ty.dtype == made.dtype);
                if is_of_one_type && made.elements() <= held.map(TensorInfo::elements).sum() {
                    node.operator = view;
                }
            }
            let shared = node.operator.output_alias().shared_memory(&node.operands());
            if let Some((inputs, views, true)) = shared {
                for view in views {
                    owners.share(*view, inputs);
                }
            }
        }
        self
    }

    /// Returns the tensor with this id.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// Returns the types of several tensors.
    pub(crate) fn types(&self, ids: &[TensorId]) -> Vec<TensorInfo> {
        ids.iter().map(|id| self.tensor(*id).ty.clone()).collect()
    }

    /// Number and step of the phase that the model assigns to a block.
    pub(crate) fn phase_step(&self, block: BlockId) -> Option<(u32, u32)> {
        let name = self.blocks.get(block.0)?;
        let stage = self.stages.iter().find(|stage| stage.block == *name)?;
        match stage.annotation {
            StageAnnotation::Phase { number, step, .. } => Some((number, step)),
            StageAnnotation::Stage(_) | StageAnnotation::Visit(_) => None,
        }
    }

    /// The tensors with a given role.
    pub(crate) fn with_role(&self, role: TensorRole) -> impl Iterator<Item = TensorId> {
        let all = self.tensors.iter().enumerate();
        all.filter(move |(_, tensor)| tensor.role == role).map(|(i, _)| TensorId(i))
    }

    /// Number of trainable parameters.
    pub fn parameter_count(&self) -> u64 {
        self.with_role(TensorRole::Parameter).map(|id| self.tensor(id).ty.elements().0).sum()
    }

    /// Floating-point operations of one node.
    pub fn node_flops(&self, node: &GraphNode) -> u64 {
        node.operator.flops(&self.types(&node.inputs), &self.types(&node.outputs))
    }

    /// Extent of one node, which selects its error band.
    pub(crate) fn node_extent(&self, node: &GraphNode) -> OperationExtent {
        let operands = self.element_counts(&node.inputs);
        let results = self.element_counts(&node.outputs);
        OperationExtent::new(&operands, &results, self.node_flops(node))
    }

    fn element_counts(&self, tensors: &[TensorId]) -> Vec<u64> {
        tensors.iter().map(|id| self.tensor(*id).ty.elements().0).collect()
    }
}
