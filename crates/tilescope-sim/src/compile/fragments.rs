//! What one stage does in one pass: its nodes, what it computes again, and what it fetches.

use super::data_flow::{BufferKey, DataFlowRecorder};
use super::fragment_loads::FragmentLoads;
use super::program_tables::{EmittedWork, FragmentItem, ProgramTables};
use super::replica_rings::ReplicaRings;
use super::replicated_sharding::ReplicatedSharding;
use super::tensor_analysis::{
    BufferLifetimes, RecomputeGroup, RecomputeNodes, TensorAnalysis, TensorBuffer, TensorBufferKind,
};
use crate::graph::{GraphNode, GraphNodeId, ModelGraph};
use crate::operators::{LoweredOperation, LoweringContext};
use crate::poplar::work::{
    MemoryConstraint, OperationWork, OperationWorkItem, TemporaryVariable, WorkPhase, WorkPhaseKind,
};
use crate::schedule::{ExecutionSchedule, StagePlacement};
use crate::shape::{ShapeDisplay, TensorId, TensorInfo, TensorRole};
use crate::spec::{Spec, TensorLocation};
use crate::targets::SystemCosts;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::units::{Bytes, IpuId, OperationId, ProgramId, TileRuns};
use tilescope_report::{ArithmeticType, MemoryCategory, ModelOperation, ProgramKind, TrainingPass};

/// What one stage does in one pass.
#[derive(Clone, Debug)]
pub struct StageFragment {
    pub stage: usize,
    /// Forward, backward or update.
    pub pass: TrainingPass,
    /// IPU of the replica.
    pub ipu: IpuId,
    /// What it fetches from streaming memory before it can start, where phases fetch early.
    pub remote_loads: Vec<FragmentItem>,
    /// Copies of the I/O tiles among that, where phases follow each other on the same IPUs.
    pub io_loads: Vec<FragmentItem>,
    pub items: Vec<FragmentItem>,
}

/// A temporary or kept variable that belongs to no tensor of the graph.
#[derive(Clone, Debug)]
pub(crate) struct UnplacedVariable {
    pub name: String,
    pub category: MemoryCategory,
    /// Operation it was made for.
    pub operation: Option<OperationId>,
    /// Type and shape in words.
    pub shape: String,
    /// Liveness steps; `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// What its vertices need of its place.
    pub place: MemoryConstraint,
    /// Bytes on each tile of the replica.
    pub bytes: TileRuns<Bytes>,
}

/// Everything needed while fragments are made.
pub(crate) struct ProgramBuilder<'a> {
    pub graph: &'a ModelGraph,
    pub placement: &'a StagePlacement,
    pub tensors: &'a TensorAnalysis,
    pub lowering: LoweringContext<'a>,
    pub tables: ProgramTables,
    /// What each node of the graph lowers to.
    pub lowered_nodes: &'a [LoweredOperation],
    pub lifetimes: BufferLifetimes,
    pub unplaced_variables: Vec<UnplacedVariable>,
    /// Operations of the report.
    pub operations: Vec<ModelOperation>,
    pub spec: &'a Spec,
    pub schedule: &'a ExecutionSchedule,
    /// Links, sync and host.
    pub system: &'a SystemCosts,
    /// What the replicas share out.
    pub sharding: ReplicatedSharding,
    /// The operation that wrote a memory last.
    pub producers: BTreeMap<TensorBuffer, OperationId>,
    /// What programs read and write.
    pub data_flows: DataFlowRecorder,
    /// How collectives go round the replicas.
    pub rings: ReplicaRings,
    /// What was fetched for stages that are yet to come, of the steps of a phase.
    pub later_loads: BTreeMap<usize, FragmentLoads>,
}

impl ProgramBuilder<'_> {
    pub(super) fn ipu(&self, stage: usize) -> IpuId {
        self.placement.stages[stage].ipu
    }

    pub(super) fn offset(&self, ipu: IpuId) -> u32 {
        self.tables.tiles_before(ipu)
    }

    /// Bytes that a replica keeps of a tensor on each tile of an IPU, laid out as it lies.
    pub(super) fn bytes(&mut self, tensor: TensorId) -> TileRuns<Bytes> {
        if self.sharding.splits(tensor) {
            return self.share_bytes(tensor);
        }
        self.whole_bytes(tensor)
    }

    /// Bytes of a tensor on each tile of an IPU.
    fn whole_bytes(&mut self, tensor: TensorId) -> TileRuns<Bytes> {
        let element_bytes = self.lowering.tensor_type(tensor).dtype.bytes();
        self.lowering.layout_or_linear(tensor).bytes(element_bytes)
    }

    /// Bytes of one of the memories of a tensor on each tile of an IPU.
    pub(super) fn buffer_bytes(&mut self, buffer: TensorBuffer) -> TileRuns<Bytes> {
        match buffer.part {
            TensorBufferKind::Gathered(..) => self.whole_bytes(buffer.tensor),
            _ => self.bytes(buffer.tensor),
        }
    }

    /// Where tensors of a role live; `None` for those that never leave the chip.
    pub(super) fn location(&self, role: TensorRole) -> Option<TensorLocation> {
        let location = &self.spec.options.location;
        match role {
            TensorRole::OptimizerState => Some(location.optimizer_state),
            TensorRole::Parameter => Some(location.weights),
            TensorRole::Accumulator => Some(location.accumulators),
            TensorRole::Activation | TensorRole::Input | TensorRole::Resident => None,
        }
    }

    /// Whether a kept tensor lives in streaming memory.
    pub(crate) fn is_off_chip(&self, tensor: TensorId) -> bool {
        let tensor = self.graph.tensor(tensor);
        let location = self.location(tensor.role);
        location.is_some_and(|location| location.is_off_chip(tensor.ty.elements()))
    }

    /// Whether a tensor keeps its value between micro-batches.
    fn is_kept(&self, tensor: TensorId) -> bool {
        self.graph.tensor(tensor).role.is_persistent()
    }

    /// Puts together what one stage does in one pass.
    pub(crate) fn fragment(&mut self, stage: usize, pass: TrainingPass) -> StageFragment {
        let graph = self.graph;
        let ipu = self.ipu(stage);
        let nodes = self.fragment_nodes(stage, pass);
        let of_graph: Vec<&GraphNode> = nodes.iter().map(|(id, _)| &graph.nodes[id.0]).collect();
        let mut loads = self.loads_of_phase((stage, pass), &of_graph);
        let mut items = std::mem::take(&mut loads.early);
        let (mut remote_loads, mut io_loads) = (Vec::new(), Vec::new());
        // The phase before works meanwhile.
        if self.schedule.phased {
            remote_loads = std::mem::take(&mut items);
        }
        if self.spec.options.execution_phase_settings.stages == 1 {
            let is_stream = |item: &FragmentItem| matches!(item, FragmentItem::IoStream { .. });
            (io_loads, remote_loads) = remote_loads.into_iter().partition(is_stream);
        }
        let last_reads = self.last_reads_of_gathered(&of_graph, (stage, pass), ipu);
        let mut gathered = BTreeSet::new();
        let nodes = nodes.into_iter().zip(of_graph).zip(last_reads).enumerate();
        for (position, (((index, again), node), given_up)) in nodes {
            items.extend(self.load_for_node(&mut loads, node, stage));
            items.extend(self.gather_operands(node, (stage, pass), ipu, &mut gathered));
            if node.inputs.iter().chain(&node.outputs).any(|id| self.is_kept(*id)) {
                self.tables.bind_arguments(ipu);
            }
            items.extend(self.load_accumulators(&mut loads, node, ipu));
            let done = self.node(index.0, node, stage, ipu, again);
            let given_up: Vec<BufferKey> = given_up.into_iter().map(BufferKey::Tensor).collect();
            self.note_free(&done, &given_up);
            items.extend(done);
            items.extend(self.store_accumulators(&loads, (position, node), ipu));
        }
        if pass == TrainingPass::Update {
            let updates = self.updates(stage, ipu);
            remote_loads.extend(updates.loads);
            items.extend(updates.items);
        }
        if pass == TrainingPass::Forward {
            items.extend(self.stash(stage));
        }
        self.release_remote_weights(stage, pass, &items);
        StageFragment { stage, pass, ipu, remote_loads, io_loads, items }
    }

    /// What a stage fetches in a pass. Where it begins what its IPU does in a phase, the later steps
    /// of that are fetched with it.
    fn loads_of_phase(
        &mut self,
        (stage, pass): (usize, TrainingPass),
        nodes: &[&GraphNode],
    ) -> FragmentLoads {
        if let Some(loads) = self.later_loads.remove(&stage) {
            return loads;
        }
        let graph = self.graph;
        let loads = self.fragment_loads((stage, pass), nodes);
        let placement = self.placement;
        for later in placement.later_steps(stage, pass) {
            let nodes = self.fragment_nodes(later, pass);
            let nodes: Vec<&GraphNode> = nodes.iter().map(|(id, _)| &graph.nodes[id.0]).collect();
            let loads = self.fragment_loads((later, pass), &nodes);
            self.later_loads.insert(later, loads);
        }
        loads
    }

    /// The nodes that a stage runs in a pass, in their order, and whether it runs them again.
    fn fragment_nodes(&self, stage: usize, pass: TrainingPass) -> Vec<(GraphNodeId, bool)> {
        let mut again = match pass {
            TrainingPass::Backward => self.tensors.recompute_nodes(stage).clone(),
            _ => Default::default(),
        };
        let mut nodes = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let is_update = pass == TrainingPass::Update;
            if is_update || node.pass != pass || !self.placement.runs(stage, node.block) {
                continue;
            }
            let before = take_recompute_nodes(&mut again, RecomputeGroup::of(node));
            nodes.extend(before.into_iter().map(|node| (node, true)));
            nodes.push((GraphNodeId(index), false));
        }
        nodes
    }

    /// Puts the steps of one node down and notes what they keep alive. `again` means that the
    /// backward pass computes a forward node once more.
    pub(super) fn node(
        &mut self,
        index: usize,
        node: &GraphNode,
        stage: usize,
        ipu: IpuId,
        again: bool,
    ) -> Vec<FragmentItem> {
        let LoweredOperation { mut work, plan, liveness: lives, .. } =
            self.lowered_nodes[index].clone();
        let pass = if again { TrainingPass::Backward } else { node.pass };
        let name = if again { format!("{}/recompute", node.name) } else { node.name.clone() };
        let operation = self.operation(node, &name, (stage, pass), ipu, plan);
        let mut items = Vec::new();
        let first = self.tables.next_step();
        if let Some((scatter, share)) = self.scatter_gradient(node, operation, ipu) {
            items.extend(scatter);
            work = share;
        }
        let EmittedWork { items: leaves, steps, shares_code: shared } =
            self.tables.work(Some(operation), &name, ipu, &work);
        items.extend(leaves);
        items.extend(self.shard_collective(node, operation, ipu));
        let end = self.tables.next_step();
        self.note_node(node, &items, (stage, pass), ipu);
        if first == end {
            return items;
        }
        let step = |phase: usize| steps.get(phase).copied();
        let span = |live: Range<usize>| {
            let last = live.end.checked_sub(1).filter(|_| live.end < steps.len()).and_then(step);
            step(live.start).unwrap_or(first)..last.map_or(end, |last| last + 1)
        };
        let inputs = node.inputs.iter().zip(lives.input_phases(steps.len()));
        let outputs = node.outputs.iter().zip(lives.output_phases(steps.len()));
        let inputs =
            inputs.map(|(tensor, live)| (tensor, first..span(live).end, lives.input_constraint));
        let outputs =
            outputs.map(|(tensor, live)| (tensor, span(live).start..end, lives.output_constraint));
        for (tensor, used, place) in inputs.chain(outputs) {
            let tensor_buffer = self.tensors.buffer(*tensor, stage, ipu, pass);
            self.lifetimes.extend_to(tensor_buffer, used);
            self.lifetimes.require_place(tensor_buffer, place);
        }
        self.push_temporary_variables(&work, operation, &name, ipu, &steps);
        if !shared {
            self.push_worklist_variables(&work, operation, &name, ipu);
        }
        items
    }

    /// Adds a row to the report's operations.
    pub(super) fn operation(
        &mut self,
        node: &GraphNode,
        name: &str,
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
        plan: Option<String>,
    ) -> OperationId {
        let tensor_buffers = |tensors: &[TensorId]| -> Vec<TensorBuffer> {
            let tensor_buffer = |tensor: &TensorId| self.tensors.buffer(*tensor, stage, ipu, pass);
            tensors.iter().map(tensor_buffer).collect()
        };
        let (read, written) = (tensor_buffers(&node.inputs), tensor_buffers(&node.outputs));
        let inputs = self.inputs(&read);
        let types = self.graph.types(&node.inputs);
        let operands: Vec<String> =
            types.iter().map(|ty| ShapeDisplay(&ty.shape).to_string()).collect();
        let results: Vec<String> = self
            .graph
            .types(&node.outputs)
            .iter()
            .map(|ty| ShapeDisplay(&ty.shape).to_string())
            .collect();
        let arrow = if results.is_empty() { "" } else { " -> " };
        self.operations.push(ModelOperation {
            name: name.to_string(),
            kind: node.operator.kind().to_string(),
            source: node.source.as_deref().map(str::to_string),
            pass,
            block: self.graph.blocks.get(node.block.0).cloned(),
            ipu: Some(ipu),
            flops: self.graph.node_flops(node),
            element_type: self.element_type(node),
            inner_runs: None,
            shapes: format!("{}{arrow}{}", operands.join(" x "), results.join(", ")),
            plan,
            inputs,
        });
        let operation = OperationId::from_index(self.operations.len() - 1);
        self.producers.extend(written.into_iter().map(|tensor_buffer| (tensor_buffer, operation)));
        operation
    }

    /// The type that a node computes in: that of its first floating point number, or else of its
    /// first operand.
    fn element_type(&self, node: &GraphNode) -> Option<ArithmeticType> {
        let types = self.graph.types(&node.inputs).into_iter();
        let types: Vec<TensorInfo> = types.chain(self.graph.types(&node.outputs)).collect();
        let number = types.iter().find(|of| of.dtype.is_floating_point()).or(types.first());
        number.map(|of| of.dtype.arithmetic_type())
    }

    /// The operations that wrote what is read; what other IPUs made comes from there.
    pub(super) fn inputs(&self, read: &[TensorBuffer]) -> Vec<OperationId> {
        let mut inputs: Vec<OperationId> = Vec::new();
        for tensor_buffer in read {
            let elsewhere = || {
                let own =
                    |ipu| TensorBuffer { ipu, part: TensorBufferKind::Original, ..*tensor_buffer };
                let mut copies = self.producers.range(own(IpuId(0))..=own(IpuId(u32::MAX)));
                copies
                    .find(|(of, _)| of.part == TensorBufferKind::Original)
                    .map(|(_, operation)| operation)
            };
            if let Some(operation) = self.producers.get(tensor_buffer).or_else(elsewhere)
                && !inputs.contains(operation)
            {
                inputs.push(*operation);
            }
        }
        inputs
    }

    /// Adds an exchange on IPU 0 that belongs to no operation.
    pub(crate) fn control_exchange(&mut self, phase: WorkPhase) -> Vec<FragmentItem> {
        let work =
            OperationWork { items: vec![OperationWorkItem::Phase(phase)], temporaries: Vec::new() };
        self.tables.work(None, "copy", IpuId(0), &work).items
    }

    /// Turns the temporaries of a work into variables.
    pub(super) fn push_temporary_variables(
        &mut self,
        work: &OperationWork,
        operation: OperationId,
        name: &str,
        ipu: IpuId,
        steps: &[u32],
    ) {
        for TemporaryVariable { name: part, category, bytes, memory_constraint: place, live } in
            &work.temporaries
        {
            let lifetime = phase_steps(live, steps);
            if !lifetime.is_empty() {
                self.unplaced_variables.push(UnplacedVariable {
                    name: format!("{name}/{part}"),
                    category: *category,
                    operation: Some(operation),
                    shape: String::new(),
                    lifetime: Some(lifetime),
                    place: *place,
                    bytes: bytes.shifted(self.offset(ipu)),
                });
            }
        }
    }

    /// Turns the constants of a work's vertices into variables.
    pub(super) fn push_worklist_variables(
        &mut self,
        work: &OperationWork,
        operation: OperationId,
        name: &str,
        ipu: IpuId,
    ) {
        for (phase, _) in work.phases() {
            let WorkPhaseKind::Compute { vertices, .. } = &phase.kind else { continue };
            for vertex in vertices.iter().filter(|vertex| !vertex.constant_bytes.is_zero()) {
                let bytes = vertex.count.map(|count| *count * vertex.constant_bytes);
                self.unplaced_variables.push(UnplacedVariable {
                    name: format!("{name}/{}/worklists", phase.name),
                    category: MemoryCategory::Constant,
                    operation: Some(operation),
                    shape: String::new(),
                    lifetime: None,
                    place: MemoryConstraint::Any,
                    bytes: bytes.shifted(self.offset(ipu)),
                });
            }
        }
    }
}

/// Takes the nodes that a backward node of a group is the first to need again.
fn take_recompute_nodes(again: &mut RecomputeNodes, of: RecomputeGroup) -> Vec<GraphNodeId> {
    // The backward pass meets the last group first; what it skips is due as well.
    let due: Vec<RecomputeGroup> = again.keys().copied().filter(|group| *group >= of).collect();
    due.iter().rev().flat_map(|group| again.remove(group).unwrap_or_default()).collect()
}

/// Liveness steps of a range of phases.
fn phase_steps(live: &Range<usize>, steps: &[u32]) -> Range<u32> {
    let first = steps.get(live.start).copied();
    let last = live.end.min(steps.len()).checked_sub(1).and_then(|last| steps.get(last)).copied();
    match (first, last) {
        (Some(first), Some(last)) if first <= last => first..last + 1,
        _ => 0..0,
    }
}

/// Program nodes of items: leaves as they are, loops as `Repeat`.
pub(super) fn program_nodes(items: &[FragmentItem], tables: &mut ProgramTables) -> Vec<ProgramId> {
    items
        .iter()
        .flat_map(|item| match item {
            FragmentItem::Leaf(program)
            | FragmentItem::HostSync { program, .. }
            | FragmentItem::SetSync { program, .. } => vec![*program],
            FragmentItem::IoStream { sync, steps, .. } => [&[*sync], &steps[..]].concat(),
            FragmentItem::WaitForIo(_) => Vec::new(),
            FragmentItem::Loop { times, body } => {
                let children = program_nodes(body, tables);
                let body = tables.group(ProgramKind::Sequence, "", children);
                vec![tables.repeat(*times, body)]
            }
        })
        .collect()
}

/// Words for a pass.
pub(crate) fn pass_name(pass: TrainingPass) -> &'static str {
    match pass {
        TrainingPass::Forward => "forward",
        TrainingPass::Backward => "backward",
        TrainingPass::Update => "update",
    }
}
