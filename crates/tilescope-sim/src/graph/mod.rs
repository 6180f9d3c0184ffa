//! The typed graph of a model: tensors, operations, and the training graph derived from them.

mod batch_serialization;
mod builder;
mod domain_sharding;
mod node_options;
mod tensor_parallel;
mod train;

pub use crate::operators::{GraphError, GraphProblem, ImportProblem};
pub use builder::GraphBuilder;
pub(crate) use domain_sharding::name_on_all_shards;
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
    /// Path of names: `layer1/conv`.
    pub name: String,
    pub operator: Arc<dyn Operator>,
    pub inputs: Vec<TensorId>,
    pub outputs: Vec<TensorId>,
    /// Forward, backward or update.
    pub pass: TrainingPass,
    /// Block it belongs to.
    pub block: BlockId,
    /// Operator and version of the node of a file that it was made for, `Conv@11`.
    pub source: Option<Arc<str>>,
    /// The part of the micro-batch that it works on, where batches are serialised.
    pub compute_batch: usize,
    /// What the model says of it alone.
    pub options: NodeOptions,
}

impl GraphNode {
    /// What its operator sees of it.
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

/// A block that annotations of the model make a stage of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotatedStage {
    pub block: String,
    pub annotation: StageAnnotation,
}

/// What makes a block a stage of its own. IPUs are those of the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageAnnotation {
    /// It is a stage of a pipeline on this IPU.
    Stage(IpuId),
    /// It runs on this IPU, which may run others before and after it.
    Visit(IpuId),
    /// It is what one IPU does in a step of the phase of this number. All that its set does between
    /// two exchanges among its IPUs is one step. The parity of the number tells the set where no IPU
    /// is named.
    Phase { number: u32, step: u32, ipu: Option<IpuId> },
}

impl StageAnnotation {
    /// The IPU that is named.
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
    /// Losses; their sum is what training makes small.
    pub losses: Vec<TensorId>,
    /// Stages that the model itself puts its blocks into, in order; none where it leaves that open.
    pub stages: Vec<AnnotatedStage>,
    /// IPUs that share the rows of fields; if several, blocks are steps, each with a part for every
    /// IPU.
    pub row_shards: usize,
    /// Weights of which each of those IPUs has a copy: gradients of copies are added up.
    pub copied_weights: BTreeSet<TensorId>,
    /// How inputs come from the host of which the model says that.
    pub input_settings: BTreeMap<TensorId, InputSettings>,
    /// The file it was imported from, if it was.
    pub imported: Option<Arc<ImportedModel>>,
    /// What the reader of a report should know of how the model was built.
    pub notes: Vec<String>,
}

impl ModelGraph {
    /// By tensor, whether one operation reads it and nothing else needs it, so that it may be
    /// overwritten.
    pub(crate) fn read_once(&self) -> Vec<bool> {
        let mut readers = vec![0; self.tensors.len()];
        let read = self.nodes.iter().flat_map(|node| &node.inputs).chain(&self.outputs);
        for tensor in read {
            readers[tensor.0] += 1;
        }
        let tensors = self.tensors.iter().zip(readers);
        let mut once: Vec<bool> = tensors
            .map(|(tensor, readers)| tensor.role == TensorRole::Activation && readers == 1)
            .collect();
        // Who overwrites a view overwrites what it is a view of.
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

    /// By tensor, whether it is a weight or a view of one.
    pub(crate) fn weights(&self) -> Vec<bool> {
        let mut weights: Vec<bool> =
            self.tensors.iter().map(|tensor| tensor.role == TensorRole::Parameter).collect();
        for node in &self.nodes {
            let shared = node.operator.output_alias().shared_memory(&node.operands());
            let Some(([input, ..], views, true)) = shared else { continue };
            for view in views {
                weights[view.0] = weights[input.0];
            }
        }
        weights
    }

    /// Makes views of what is put together of views of one tensor and no larger than that (popart
    /// willow/src/patterns/inplace.cpp).
    #[must_use]
    pub(crate) fn with_joined_views(mut self) -> Self {
        let mut of: Vec<TensorId> = (0..self.tensors.len()).map(TensorId).collect();
        for node in &mut self.nodes {
            if let Some(view) = node.operator.view_of_one() {
                let whole = of[node.inputs[0].0];
                let is_view = node.inputs.iter().all(|input| of[input.0] == whole);
                let [made, held] = [node.outputs[0], whole].map(|id| &self.tensors[id.0].ty);
                if is_view && made.dtype == held.dtype && made.elements() <= held.elements() {
                    node.operator = view;
                }
            }
            let shared = node.operator.output_alias().shared_memory(&node.operands());
            if let Some(([input, ..], views, true)) = shared {
                for view in views {
                    of[view.0] = of[input.0];
                }
            }
        }
        self
    }

    /// The tensor with this id.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// Types of several tensors.
    pub(crate) fn types(&self, ids: &[TensorId]) -> Vec<TensorInfo> {
        ids.iter().map(|id| self.tensor(*id).ty.clone()).collect()
    }

    /// Number and step of the phase that the model itself makes of a block.
    pub(crate) fn phase_step(&self, block: BlockId) -> Option<(u32, u32)> {
        let name = self.blocks.get(block.0)?;
        let stage = self.stages.iter().find(|stage| stage.block == *name)?;
        match stage.annotation {
            StageAnnotation::Phase { number, step, .. } => Some((number, step)),
            StageAnnotation::Stage(_) | StageAnnotation::Visit(_) => None,
        }
    }

    /// Tensors of one role.
    pub(crate) fn with_role(&self, role: TensorRole) -> impl Iterator<Item = TensorId> {
        let all = self.tensors.iter().enumerate();
        all.filter(move |(_, tensor)| tensor.role == role).map(|(i, _)| TensorId(i))
    }

    /// Number of trainable values.
    pub fn parameter_count(&self) -> u64 {
        self.with_role(TensorRole::Parameter).map(|id| self.tensor(id).ty.elements().0).sum()
    }

    /// Floating point operations of one node.
    pub fn node_flops(&self, node: &GraphNode) -> u64 {
        node.operator.flops(&self.types(&node.inputs), &self.types(&node.outputs))
    }

    /// The extent of one node, by which its error band is chosen.
    pub(crate) fn node_extent(&self, node: &GraphNode) -> OperationExtent {
        let elements = |tensors: &[TensorId]| -> Vec<u64> {
            tensors.iter().map(|id| self.tensor(*id).ty.elements().0).collect()
        };
        let operands = elements(&node.inputs);
        OperationExtent::new(&operands, &elements(&node.outputs), self.node_flops(node))
    }
}
