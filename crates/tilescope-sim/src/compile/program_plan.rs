//! The graph on its IPUs, how its tensors lie, and which memory each is kept in. The passes that
//! follow read it and change nothing of it.

use super::replicated_sharding::ReplicatedSharding;
use super::tensor_analysis::{
    StageBoundary, StashPolicy, TensorAnalysis, TensorBuffer, TensorBufferKind,
};
use crate::graph::{GraphNode, ModelGraph};
use crate::operators::{LoweredOperation, LoweringContext, NodeOperands};
use crate::poputil::tensor_layout::{TensorLayout, linear_mapping};
use crate::schedule::{ExecutionSchedule, StagePlacement};
use crate::shape::{BlockId, DType, Tensor, TensorId, TensorInfo, TensorRole};
use crate::specification::{Spec, TensorLocation};
use crate::targets::SystemCosts;
use tilescope_report::TrainingPass;
use tilescope_report::units::{Bytes, Elements, IpuId, TileRuns};

/// The inputs of all passes of the compiler.
pub(super) struct ProgramPlan<'a> {
    pub spec: &'a Spec,
    pub graph: &'a ModelGraph,
    /// How the tensors of the graph lie.
    pub lowering: &'a LoweringContext<'a>,
    /// The lowered operation of each node of the graph.
    pub lowered_nodes: &'a [LoweredOperation],
    pub placement: StagePlacement,
    pub schedule: ExecutionSchedule,
    /// The tensors that replicas share out.
    pub sharding: ReplicatedSharding,
    pub tensors: TensorAnalysis,
    /// Links, sync and host.
    pub system: SystemCosts,
}

impl<'a> ProgramPlan<'a> {
    pub(super) fn new(
        spec: &'a Spec,
        graph: &'a ModelGraph,
        lowering: &'a LoweringContext<'a>,
        lowered_nodes: &'a [LoweredOperation],
        placement: StagePlacement,
    ) -> Self {
        let (options, training) = (&spec.options, spec.model.training);
        let schedule = match graph.row_shards {
            1 => ExecutionSchedule::new(options, &placement, training),
            shards => ExecutionSchedule::domain_sharded(options, &placement, shards, training),
        };
        let sharding = ReplicatedSharding::new(spec, graph);
        let keeping = StashPolicy {
            stash_depths: &schedule.stash_depths,
            copying: schedule.copying,
            recomputation: options.recomputation,
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

    /// Tiles of the IPUs before an IPU.
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

    /// How a tensor lies on the tiles of its IPU.
    pub(super) fn layout(&self, tensor: TensorId) -> &'a TensorLayout {
        self.lowering.layout(tensor).expect("all tensors are laid out when a graph is lowered")
    }

    /// Elements of a tensor on each tile of its IPU.
    pub(super) fn elements(&self, tensor: TensorId) -> &'a TileRuns<Elements> {
        &self.layout(tensor).elements
    }

    /// Type and elements of a tensor.
    pub(super) fn values(&self, tensor: TensorId) -> (DType, &'a TileRuns<Elements>) {
        (self.dtype(tensor), self.elements(tensor))
    }

    /// Bytes that a replica keeps of a tensor on each tile of an IPU, laid out as it lies.
    pub(super) fn bytes(&self, tensor: TensorId) -> TileRuns<Bytes> {
        match self.sharding.splits(tensor) {
            true => self.share_bytes(tensor),
            false => self.layout(tensor).bytes(self.dtype(tensor).bytes()),
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
        self.share_layout(tensor).bytes(self.dtype(tensor).bytes())
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
        let LoweringContext { machine, planning, plans, .. } = self.lowering;
        let mut lowering = LoweringContext::new(&tensors, *machine, true, planning, plans);
        node.operator.lower(&mut lowering, &operands).ok()
    }

    /// The updates of parameters that a stage makes, with their numbers in the graph.
    pub(super) fn update_nodes(&self, stage: usize) -> Vec<(usize, &GraphNode)> {
        let nodes = self.graph.nodes.iter().enumerate();
        let updates = nodes.filter(|(_, node)| node.pass == TrainingPass::Update);
        updates.filter(|(_, node)| self.placement.runs(stage, node.block)).collect()
    }

    /// Floating point operations of a node on the shares of its operands.
    pub(super) fn flops_of_share(&self, node: &GraphNode) -> u64 {
        let shares = |ids: &[TensorId]| -> Vec<TensorInfo> {
            ids.iter().map(|id| self.sharding.share(&self.graph.tensor(*id).ty)).collect()
        };
        node.operator.flops(&shares(&node.inputs), &shares(&node.outputs))
    }

    /// Where tensors of a role live; `None` for those that never leave the chip.
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

    /// True if the I/O tiles move a kept tensor that lives in streaming memory.
    pub(super) fn uses_io_tiles(&self, tensor: TensorId) -> bool {
        self.location(self.role(tensor)).is_some_and(|location| location.use_io_tiles)
    }

    /// True if a kept tensor lives in streaming memory.
    pub(super) fn is_off_chip(&self, tensor: TensorId) -> bool {
        let tensor = self.graph.tensor(tensor);
        let location = self.location(tensor.role);
        location.is_some_and(|location| location.is_off_chip(tensor.ty.elements()))
    }

    /// True if a tensor is a constant of the program, as PopART makes the initialised tensors of an
    /// inference (willow/src/ir.cpp, registerInputTensors).
    pub(super) fn is_constant(&self, role: TensorRole) -> bool {
        self.spec.options.constant_weights && role == TensorRole::Parameter
    }

    /// True if a tensor waits for the backward pass in streaming memory.
    pub(super) fn stashes_off_chip(&self, tensor: TensorId) -> bool {
        match self.tensors.stated_location(tensor) {
            Some(stated) => !stated.on_chip,
            None => {
                let location = self.spec.options.location.activations;
                location.is_off_chip(self.lowering.tensor_type(tensor).elements())
            }
        }
    }

    /// Where a copy between stages takes a tensor from, and where it brings it.
    pub(super) fn boundary_buffers(&self, boundary: &StageBoundary) -> [TensorBuffer; 2] {
        let tensor = boundary.tensor;
        let (from, to) = (self.ipu(boundary.from_stage), self.ipu(boundary.to_stage));
        let sent = self.tensors.buffer(tensor, boundary.from_stage, from, boundary.from_pass);
        // What was restored for the backward pass is sent from where it was made.
        let part = match sent.part {
            TensorBufferKind::Restored(_) => TensorBufferKind::Original,
            part => part,
        };
        let received = TensorBufferKind::Received(boundary.to_stage);
        [TensorBuffer { part, ..sent }, TensorBuffer { tensor, ipu: to, part: received }]
    }

    /// Bytes of each I/O tile when `total` bytes are dealt out over them; they follow the compute
    /// tiles.
    pub(super) fn io_mapping(&self, total: Bytes) -> TileRuns<Bytes> {
        let (byte, tiles) = (Bytes(1), self.spec.options.num_io_tiles);
        let mapping = linear_mapping(Elements(total / byte), byte, byte, tiles);
        mapping.map(|bytes| *bytes * byte).shifted(self.lowering.tiles)
    }
}
