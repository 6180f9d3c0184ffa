//! The graph placed on its IPUs, with the layout of its tensors and the memory that holds each one.
//! The later passes read it and do not change it.

use super::replicated_sharding::ReplicatedSharding;
use super::tensor_analysis::{
    StageBoundary, StashPolicy, TensorAnalysis, TensorBuffer, TensorBufferKind,
};
use crate::graph::{GraphNode, ModelGraph};
use crate::operators::{LoweredOperation, LoweringContext, NodeOperands};
use crate::poputil::tensor_layout::{TensorLayout, linear_mapping};
use crate::schedule::{ExecutionSchedule, StagePlacement};
use crate::shape::{BlockId, DType, Tensor, TensorId, TensorInfo, TensorRole};
use crate::specification::{ExecutionStrategy, Spec, TensorLocation};
use crate::targets::SystemCosts;
use std::sync::Arc;
use tilescope_report::TrainingPass;
use tilescope_report::units::{Bytes, Elements, IpuId, TileRuns};

/// The inputs of all passes of the compiler.
pub(super) struct ProgramPlan<'a> {
    pub spec: &'a Spec,
    pub graph: &'a ModelGraph,
    /// The layouts of the tensors of the graph.
    pub lowering: &'a LoweringContext<'a>,
    /// The lowered operation of each node of the graph.
    pub lowered_nodes: &'a [Arc<LoweredOperation>],
    pub placement: StagePlacement,
    pub schedule: ExecutionSchedule,
    /// The tensors that are sharded over replicas.
    pub sharding: ReplicatedSharding,
    pub tensors: TensorAnalysis,
    /// Costs of links, syncs and the host.
    pub system: SystemCosts,
}

impl<'a> ProgramPlan<'a> {
    pub(super) fn new(
        spec: &'a Spec,
        graph: &'a ModelGraph,
        lowering: &'a LoweringContext<'a>,
        lowered_nodes: &'a [Arc<LoweredOperation>],
        placement: StagePlacement,
    ) -> Self {
        let options = &spec.options;
        let training = spec.model.training;
        let schedule = match graph.row_shards {
            1 => ExecutionSchedule::new(options, &placement, training),
            shards => ExecutionSchedule::domain_sharded(options, &placement, shards, training),
        };
        let sharding = ReplicatedSharding::new(spec, graph);
        let keeping = StashPolicy {
            stash_depths: &schedule.stash_depths,
            copying: schedule.copying,
            recomputation: options.recomputation,
            // Steps of IPUs that share rows are stages too, but they are not a pipeline.
            is_pipeline: options.execution == ExecutionStrategy::Pipelined
                && placement.stages.len() > 1
                && graph.row_shards < 2,
            activations_off_chip: !options.location.activations.on_chip,
            one_by_one: schedule.one_by_one,
            shared_weights: &sharding.weights(graph),
        };
        let tensors = TensorAnalysis::new(graph, lowering, &placement, &keeping);
        let system = super::system_costs(spec);
        Self {
            spec,
            graph,
            lowering,
            lowered_nodes,
            placement,
            schedule,
            sharding,
            tensors,
            system,
        }
    }

    pub(super) fn ipu(&self, stage: usize) -> IpuId {
        self.placement.stages[stage].ipu
    }

    /// The number of tiles of all IPUs before an IPU.
    pub(super) fn tiles_before(&self, ipu: IpuId) -> u32 {
        ipu.0 * self.spec.target.chip.tiles
    }

    pub(super) fn name(&self, tensor: TensorId) -> &'a str {
        &self.graph.tensor(tensor).name
    }

    pub(super) fn role(&self, tensor: TensorId) -> TensorRole {
        self.graph.tensor(tensor).role
    }

    pub(super) fn dtype(&self, tensor: TensorId) -> DType {
        self.lowering.tensor_type(tensor).dtype
    }

    /// The layout of a tensor on the tiles of its IPU.
    pub(super) fn layout(&self, tensor: TensorId) -> &'a TensorLayout {
        self.lowering.layout(tensor).expect("all tensors are laid out when a graph is lowered")
    }

    /// Elements of a tensor on each tile of its IPU.
    pub(super) fn elements(&self, tensor: TensorId) -> &'a TileRuns<Elements> {
        &self.layout(tensor).elements
    }

    /// The element type of a tensor, and its elements on each tile of its IPU.
    pub(super) fn values(&self, tensor: TensorId) -> (DType, &'a TileRuns<Elements>) {
        (self.dtype(tensor), self.elements(tensor))
    }

    /// Bytes of a tensor that a replica keeps on each tile of an IPU, in the layout of the tensor
    /// or of its share.
    pub(super) fn bytes(&self, tensor: TensorId) -> TileRuns<Bytes> {
        if self.sharding.splits(tensor) {
            self.share_bytes(tensor)
        } else {
            self.layout(tensor).bytes(self.dtype(tensor).bytes())
        }
    }

    /// Bytes of one of the memories of a tensor on each tile of an IPU.
    pub(super) fn buffer_bytes(&self, buffer: TensorBuffer) -> TileRuns<Bytes> {
        let TensorBuffer { tensor, part, .. } = buffer;
        match part {
            TensorBufferKind::Gathered(..) => self.layout(tensor).bytes(self.dtype(tensor).bytes()),
            _ => self.bytes(tensor),
        }
    }

    /// The layout of a replica's share of a tensor.
    pub(super) fn share_layout(&self, tensor: TensorId) -> TensorLayout {
        self.part_layout(tensor, self.sharding.replicas)
    }

    /// The layout of one of `parts` equal parts of a tensor.
    pub(super) fn part_layout(&self, tensor: TensorId, parts: u64) -> TensorLayout {
        let whole = self.lowering.tensor_type(tensor);
        // All replicas run one program, so every part has the size of the largest.
        let part = whole.elements().div_ceil(parts.max(1));
        TensorLayout::linear(part, whole.dtype.bytes(), self.lowering.tiles)
    }

    /// Bytes of a replica's share of a tensor on each tile of an IPU.
    pub(super) fn share_bytes(&self, tensor: TensorId) -> TileRuns<Bytes> {
        self.share_layout(tensor).bytes(self.dtype(tensor).bytes())
    }

    /// Lowers a node on the shares of its operands.
    pub(super) fn on_share(&self, node: &GraphNode) -> Option<LoweredOperation> {
        let mut tensors = Vec::new();
        for id in &node.inputs {
            let whole = self.graph.tensor(*id);
            let ty = self.sharding.share(&whole.ty);
            tensors.push(Tensor { ty, block: BlockId(0), ..whole.clone() });
        }
        let inputs: Vec<TensorId> = (0..tensors.len()).map(TensorId).collect();
        let operands = NodeOperands { inputs: &inputs, ..node.operands() };
        let LoweringContext { machine, planning, plans, .. } = self.lowering;
        let mut lowering = LoweringContext::new(&tensors, *machine, true, planning, plans);
        node.operator.lower(&mut lowering, &operands).ok()
    }

    /// The parameter updates that a stage makes, with their indices in the graph.
    pub(super) fn update_nodes(&self, stage: usize) -> Vec<(usize, &GraphNode)> {
        let nodes = self.graph.nodes.iter().enumerate();
        let updates = nodes.filter(|(_, node)| node.pass == TrainingPass::Update);
        updates.filter(|(_, node)| self.placement.runs(stage, node.block)).collect()
    }

    /// Floating point operations of a node on the shares of its operands.
    pub(super) fn flops_of_share(&self, node: &GraphNode) -> u64 {
        node.operator.flops(&self.share_types(&node.inputs), &self.share_types(&node.outputs))
    }

    fn share_types(&self, tensors: &[TensorId]) -> Vec<TensorInfo> {
        tensors.iter().map(|id| self.sharding.share(&self.graph.tensor(*id).ty)).collect()
    }

    /// The location of tensors of a role. `None` for roles that never leave the chip.
    pub(super) fn location(&self, role: TensorRole) -> Option<TensorLocation> {
        let location = &self.spec.options.location;
        match role {
            TensorRole::OptimizerState => Some(location.optimizer_state),
            TensorRole::Parameter => Some(location.weights),
            TensorRole::Accumulator => Some(location.accumulators),
            TensorRole::Activation
            | TensorRole::Input
            | TensorRole::Resident
            | TensorRole::Mapped => None,
        }
    }

    /// True if the I/O tiles move this persistent tensor to and from streaming memory.
    pub(super) fn uses_io_tiles(&self, tensor: TensorId) -> bool {
        self.location(self.role(tensor)).is_some_and(|location| location.use_io_tiles)
    }

    /// True if a persistent tensor is in streaming memory.
    pub(super) fn is_off_chip(&self, tensor: TensorId) -> bool {
        let tensor = self.graph.tensor(tensor);
        let location = self.location(tensor.role);
        location.is_some_and(|location| location.is_off_chip(tensor.ty.elements()))
    }

    /// True if tensors of this role are constants of the program, as PopART makes the initialised
    /// tensors of an inference (willow/src/ir.cpp, registerInputTensors).
    pub(super) fn is_constant(&self, role: TensorRole) -> bool {
        self.spec.options.constant_weights && role == TensorRole::Parameter
    }

    /// True if a tensor is kept in streaming memory until the backward pass.
    pub(super) fn stashes_off_chip(&self, tensor: TensorId) -> bool {
        match self.tensors.stated_location(tensor) {
            Some(stated) => !stated.on_chip,
            None => {
                let location = self.spec.options.location.activations;
                location.is_off_chip(self.lowering.tensor_type(tensor).elements())
            }
        }
    }

    /// The source and the destination of a copy between stages.
    pub(super) fn boundary_buffers(&self, boundary: &StageBoundary) -> [TensorBuffer; 2] {
        let tensor = boundary.tensor;
        let from = self.ipu(boundary.from_stage);
        let to = self.ipu(boundary.to_stage);
        let sent = self.tensors.owner_buffer(tensor, boundary.from_stage, from, boundary.from_pass);
        // A tensor that was restored for the backward pass is sent from the memory that it was made
        // in.
        let part = match sent.part {
            TensorBufferKind::Restored(_) => TensorBufferKind::Original,
            part => part,
        };
        let received = TensorBufferKind::Received(boundary.to_stage);
        [TensorBuffer { part, ..sent }, TensorBuffer { tensor, ipu: to, part: received }]
    }

    /// Bytes on each I/O tile when `total` bytes are spread over them. The I/O tiles follow the
    /// compute tiles.
    pub(super) fn io_mapping(&self, total: Bytes) -> TileRuns<Bytes> {
        let byte = Bytes(1);
        let tiles = self.spec.options.num_io_tiles;
        let mapping = linear_mapping(Elements(total / byte), byte, byte, tiles);
        mapping.map(|bytes| *bytes * byte).shifted(self.lowering.tiles)
    }
}
