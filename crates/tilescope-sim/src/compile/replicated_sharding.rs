//! Replicated tensor sharding: tensors that are alike on all replicas are split over those of a
//! domain, each of which keeps a share.
//!
//! A share is a tensor of its own, dealt out evenly over the tiles. Weights that are shared out are
//! gathered just before the first operation of a pass that reads them, and are given up behind the
//! last. Accumulators that are shared out take the sum of the gradients of the domain, which is
//! scattered before it is added.

use super::collectives::CollectiveGroup;
use super::data_flow::BufferKey;
use super::fragments::{ProgramBuilder, UnplacedVariable};
use super::program_tables::FragmentItem;
use super::tensor_analysis::{TensorBuffer, TensorBufferKind};
use crate::graph::{GraphNode, ModelGraph};
use crate::operators::{LoweredOperation, LoweringContext, NodeOperands};
use crate::poplar::work::{MemoryConstraint, OperationWork};
use crate::popops::collective::CollectiveKind;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
use crate::spec::Spec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::units::{Bytes, Elements, IpuId, OperationId, TileRuns};
use tilescope_report::{MemoryCategory, ModelOperation, TrainingPass};

/// Which tensors the replicas share out, and among how many.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplicatedSharding {
    tensors: BTreeSet<TensorId>,
    /// Replicas that share a tensor out.
    pub replicas: u64,
    /// Domains of so many replicas, each of which has all of a tensor.
    pub domains: u64,
}

impl ReplicatedSharding {
    /// What a spec splits of a graph.
    pub(crate) fn new(spec: &Spec, graph: &ModelGraph) -> Self {
        let (options, location) = (&spec.options, &spec.options.location);
        let mut kinds = location.shardings().into_iter().map(|(_, kind)| kind);
        let Some(kind) = kinds.find(|kind| kind.replicated_tensor_sharding) else {
            return Self::default();
        };
        let replicas = options.replicas_of(kind.sharding_domain);
        let is_split = |id: &TensorId| {
            let tensor = graph.tensor(*id);
            let kind = match tensor.role {
                TensorRole::Parameter => &location.weights_sharding,
                TensorRole::Accumulator => &location.accumulators_sharding,
                TensorRole::OptimizerState => &location.optimizer_state_sharding,
                TensorRole::Activation | TensorRole::Input | TensorRole::Resident => return false,
            };
            kind.applies_to(tensor.ty.elements())
        };
        Self {
            tensors: (0..graph.tensors.len()).map(TensorId).filter(is_split).collect(),
            replicas: replicas.into(),
            domains: u64::from(options.replication_factor / replicas),
        }
    }

    /// Whether each replica keeps only its share of a tensor.
    pub(crate) fn splits(&self, tensor: TensorId) -> bool {
        self.tensors.contains(&tensor)
    }

    /// Weights of which each replica keeps only its share.
    pub(crate) fn weights(&self, graph: &ModelGraph) -> BTreeSet<TensorId> {
        let is_weight = |id: &TensorId| graph.tensor(*id).role == TensorRole::Parameter;
        self.tensors.iter().copied().filter(is_weight).collect()
    }

    /// The share of a tensor, the last one filled up: `ceil(elements / replicas)` (PopART user
    /// guide, replicated tensor sharding).
    pub(super) fn share(&self, tensor: &TensorInfo) -> TensorInfo {
        let elements = tensor.elements().div_ceil(self.replicas.max(1));
        TensorInfo::new([elements.0], tensor.dtype)
    }
}

impl ProgramBuilder<'_> {
    /// How the share of a tensor lies.
    pub(super) fn share_layout(&self, tensor: TensorId) -> TensorLayout {
        self.part_layout(tensor, self.sharding.replicas)
    }

    /// How one of some equal parts of a tensor lies.
    pub(super) fn part_layout(&self, tensor: TensorId, parts: u64) -> TensorLayout {
        let whole = self.lowering.tensor_type(tensor);
        let part = whole.elements().div_ceil(parts.max(1));
        TensorLayout::linear(part, whole.dtype.bytes(), self.lowering.tiles)
    }

    /// Bytes of the share of a tensor on each tile of an IPU.
    pub(super) fn share_bytes(&self, tensor: TensorId) -> TileRuns<Bytes> {
        self.share_layout(tensor).bytes(self.lowering.tensor_type(tensor).dtype.bytes())
    }

    /// A node on the shares of its operands, lowered like any other.
    pub(super) fn on_share(&self, node: &GraphNode) -> Option<LoweredOperation> {
        let share = |id: &TensorId| {
            let whole = self.graph.tensor(*id);
            Tensor { ty: self.sharding.share(&whole.ty), block: BlockId(0), ..whole.clone() }
        };
        let tensors: Vec<Tensor> = node.inputs.iter().map(share).collect();
        let inputs: Vec<TensorId> = (0..tensors.len()).map(TensorId).collect();
        let operands = NodeOperands { inputs: &inputs, ..node.operands() };
        let (machine, planning) = (self.lowering.machine, self.lowering.planning);
        let mut lowering =
            LoweringContext::new(&tensors, machine, true, planning, self.lowering.plans);
        node.operator.lower(&mut lowering, &operands).ok()
    }

    /// Floating point operations of a node on the shares of its operands.
    pub(super) fn flops_of_share(&self, node: &GraphNode) -> u64 {
        let shares = |ids: &[TensorId]| -> Vec<TensorInfo> {
            ids.iter().map(|id| self.sharding.share(&self.graph.tensor(*id).ty)).collect()
        };
        node.operator.flops(&shares(&node.inputs), &shares(&node.outputs))
    }

    /// An operation that only moves tensors between replicas.
    pub(super) fn collective_operation(
        &mut self,
        name: &str,
        pass: TrainingPass,
        read: &[TensorBuffer],
        ipu: IpuId,
    ) -> OperationId {
        let inputs = self.inputs(read);
        self.operations.push(ModelOperation {
            name: name.to_owned(),
            kind: "collectives".to_owned(),
            source: None,
            pass,
            block: None,
            ipu: Some(ipu),
            flops: 0,
            element_type: None,
            inner_runs: None,
            shapes: String::new(),
            plan: None,
            inputs,
        });
        OperationId::from_index(self.operations.len() - 1)
    }

    /// The share of a tensor, while it exists beside the tensor.
    pub(super) fn push_share_variable(
        &mut self,
        tensor: TensorId,
        ipu: IpuId,
        operation: OperationId,
        lifetime: Range<u32>,
    ) {
        let whole = self.graph.tensor(tensor);
        let (name, share) = (&whole.name, self.sharding.share(&whole.ty));
        if lifetime.is_empty() {
            return;
        }
        self.unplaced_variables.push(UnplacedVariable {
            name: format!("{name}/share"),
            category: MemoryCategory::Variable,
            operation: Some(operation),
            shape: share.to_string(),
            lifetime: Some(lifetime),
            place: MemoryConstraint::Any,
            bytes: self.share_bytes(tensor).shifted(self.offset(ipu)),
        });
    }

    /// The gathered weights that a node reads.
    fn gathered_operands(
        &self,
        node: &GraphNode,
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
    ) -> BTreeSet<TensorBuffer> {
        let buffers =
            node.inputs.iter().map(|tensor| self.tensors.buffer(*tensor, stage, ipu, pass));
        buffers.filter(|of| matches!(of.part, TensorBufferKind::Gathered(..))).collect()
    }

    /// For each node of a fragment, in their order, the gathered weights that no later one reads.
    pub(super) fn last_reads_of_gathered(
        &self,
        nodes: &[&GraphNode],
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
    ) -> Vec<Vec<TensorBuffer>> {
        let mut last: BTreeMap<TensorBuffer, usize> = BTreeMap::new();
        for (position, node) in nodes.iter().enumerate() {
            let read = self.gathered_operands(node, (stage, pass), ipu);
            last.extend(read.into_iter().map(|buffer| (buffer, position)));
        }
        let mut by_node = vec![Vec::new(); nodes.len()];
        for (buffer, position) in last {
            by_node[position].push(buffer);
        }
        by_node
    }

    /// Gathers the weights that a node reads and that are not in `gathered` yet.
    pub(super) fn gather_operands(
        &mut self,
        node: &GraphNode,
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
        gathered: &mut BTreeSet<TensorBuffer>,
    ) -> Vec<FragmentItem> {
        let wanted = self.gathered_operands(node, (stage, pass), ipu);
        let missing: Vec<TensorBuffer> = wanted.difference(gathered).copied().collect();
        let mut items = Vec::new();
        for whole in missing {
            items.extend(self.gather_weights(whole, pass));
            gathered.insert(whole);
        }
        items
    }

    /// Puts the weights of all shares together.
    fn gather_weights(&mut self, whole: TensorBuffer, pass: TrainingPass) -> Vec<FragmentItem> {
        let TensorBuffer { tensor, ipu, .. } = whole;
        let share = TensorBuffer { part: TensorBufferKind::Original, ..whole };
        let name = self.graph.tensor(tensor).name.clone();
        let operation =
            self.collective_operation(&format!("{name}/allGather"), pass, &[share], ipu);
        let dtype = self.lowering.tensor_type(tensor).dtype;
        let elements = self.lowering.layout_or_linear(tensor).elements;
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let (kind, over) = (CollectiveKind::AllGather, CollectiveGroup::Domain);
        let items = self.collective(kind, over, &name, (dtype, &elements), operation, ipu);
        self.note_flow(&items, &[BufferKey::Tensor(share)], &[BufferKey::Tensor(whole)]);
        for buffer in [share, whole] {
            self.lifetimes.extend_to(buffer, first..self.tables.next_step());
        }
        self.producers.insert(whole, operation);
        items
    }

    /// Scatters the sum of a gradient over the replicas before it is added to a shared accumulator,
    /// and gives what adds this replica's share; nothing for other nodes.
    pub(super) fn scatter_gradient(
        &mut self,
        node: &GraphNode,
        operation: OperationId,
        ipu: IpuId,
    ) -> Option<(Vec<FragmentItem>, OperationWork)> {
        let is_split = |of: &TensorId| {
            self.sharding.splits(*of) && self.graph.tensor(*of).role == TensorRole::Accumulator
        };
        if !node.inputs.first().is_some_and(is_split) {
            return None;
        }
        let gradient = *node.inputs.get(1)?;
        let work = self.on_share(node)?.work;
        self.operations[operation.index()].flops = self.flops_of_share(node);
        let name = self.graph.tensor(gradient).name.clone();
        let dtype = self.lowering.tensor_type(gradient).dtype;
        let elements: TileRuns<Elements> = self.lowering.layout_or_linear(gradient).elements;
        let first = self.tables.next_step();
        let (kind, over) = (CollectiveKind::ReduceScatter, CollectiveGroup::Domain);
        let items = self.collective(kind, over, &name, (dtype, &elements), operation, ipu);
        // The step behind the collective reads the share.
        self.push_share_variable(gradient, ipu, operation, first..self.tables.next_step() + 1);
        Some((items, work))
    }
}
