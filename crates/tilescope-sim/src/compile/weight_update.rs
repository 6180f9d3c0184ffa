//! The weight update of one parameter: gradients from the other replicas, state from streaming
//! memory, and the optimiser on all of it or on this replica's shard.

use super::data_flow::BufferKey;
use super::fragments::ProgramBuilder;
use super::program_tables::{EmittedWork, FragmentItem, LeafProgramCost};
use super::tensor_analysis::TensorBuffer;
use super::transfers::external_sync;
use crate::graph::GraphNode;
use crate::operators::{LoweringContext, NodeOperands, ShardCrossing};
use crate::poplar::code_bytes;
use crate::poplar::exchange::send_instructions;
use crate::poplar::work::{OperationWork, OperationWorkItem};
use crate::popops::collective;
use crate::popops::collective::{CollectiveKind, CollectiveRanks, CollectiveRound};
use crate::shape::{BlockId, DType, Tensor, TensorId, TensorInfo, TensorRole};
use tilescope_report::units::{Bytes, Cycles, Elements, IpuId, OperationId, TileRuns};
use tilescope_report::{MemoryCategory, ProgramKind, ProgramNode, TileTraffic, TrainingPass};

impl ProgramBuilder<'_> {
    /// Puts the update of one parameter down.
    pub(super) fn update_node(
        &mut self,
        index: usize,
        node: &GraphNode,
        stage: usize,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let operation = self.operation(node, &node.name, (stage, node.pass), ipu, None);
        let gradient = node.inputs[1];
        let shard = node.inputs[2..].iter().any(|state| self.sharded.contains(state));
        let off_chip: Vec<TensorId> =
            node.inputs.iter().copied().filter(|tensor| self.is_off_chip(*tensor)).collect();
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let mut items = Vec::new();
        let (early, late): (Vec<TensorId>, Vec<TensorId>) = off_chip
            .iter()
            .partition(|tensor| self.graph.tensor(**tensor).role != TensorRole::OptimizerState);
        for tensor in early {
            items.extend(self.remote_tensor_copy(tensor, ipu, true));
        }
        let mut reduction =
            self.collective(CollectiveKind::ReduceScatter, gradient, operation, ipu);
        if !shard {
            reduction.extend(self.collective(CollectiveKind::AllGather, gradient, operation, ipu));
        }
        let buffer = |tensor| {
            BufferKey::Tensor(self.tensors.buffer(tensor, stage, ipu, TrainingPass::Update))
        };
        let (gradients, weights) = (buffer(gradient), buffer(node.inputs[0]));
        self.note_flow(&reduction, &[gradients], &[gradients]);
        items.extend(reduction);
        // State is fetched when the gradient is there, so that it lies in memory for a short time.
        let state_first = self.tables.next_step();
        for tensor in late {
            items.extend(self.remote_tensor_copy(tensor, ipu, true));
        }
        let work = if shard { self.shard_work(node) } else { None };
        let work = work.unwrap_or_else(|| self.lowered_nodes[index].work.clone());
        let EmittedWork { items: leaves, steps, shares_code: shared } =
            self.tables.work(Some(operation), &node.name, ipu, &work);
        self.note_node(node, &leaves, (stage, TrainingPass::Update), ipu);
        items.extend(leaves);
        self.push_temporary_variables(&work, operation, &node.name, ipu, &steps);
        if !shared {
            self.push_worklist_variables(&work, operation, &node.name, ipu);
        }
        if shard {
            let gathering =
                self.collective(CollectiveKind::AllGather, node.inputs[0], operation, ipu);
            self.note_flow(&gathering, &[weights], &[weights]);
            items.extend(gathering);
        }
        for tensor in off_chip {
            items.extend(self.remote_tensor_copy(tensor, ipu, false));
        }
        let end = self.tables.next_step();
        for tensor in &node.inputs {
            let tensor_buffer: TensorBuffer =
                self.tensors.buffer(*tensor, stage, ipu, TrainingPass::Update);
            let from = match self.graph.tensor(*tensor).role {
                TensorRole::OptimizerState => state_first,
                _ => first,
            };
            self.lifetimes.extend_to(tensor_buffer, from..end);
        }
        items
    }

    /// The update of one replica's shard, lowered like any other: the collective leaves the shard
    /// laid out evenly over the tiles.
    fn shard_work(&self, node: &GraphNode) -> Option<OperationWork> {
        let replicas = u64::from(self.spec.options.replication_factor);
        let shard = |id: &TensorId| {
            let whole = self.graph.tensor(*id);
            let elements = whole.ty.elements().div_ceil(replicas).0;
            let ty = TensorInfo::new([elements], whole.ty.dtype);
            Tensor { ty, block: BlockId(0), ..whole.clone() }
        };
        let tensors: Vec<Tensor> = node.inputs.iter().map(shard).collect();
        let inputs: Vec<TensorId> = (0..tensors.len()).map(TensorId).collect();
        let operands = NodeOperands { inputs: &inputs, ..node.operands() };
        let (machine, planning) = (self.lowering.machine, self.lowering.planning);
        let mut lowering =
            LoweringContext::new(&tensors, machine, true, planning, self.lowering.plans);
        node.operator.lower(&mut lowering, &operands).ok().map(|lowered| lowered.work)
    }

    /// What crosses between the IPUs that a layer is split over, after a node at its edge.
    pub(super) fn shard_collective(
        &mut self,
        node: &GraphNode,
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let ranks =
            CollectiveRanks { count: u64::from(self.spec.options.tensor_parallel), ipus: 1 };
        let halves: &[CollectiveKind] = match node.operator.shard_crossing() {
            ShardCrossing::AllReduce => &[CollectiveKind::ReduceScatter, CollectiveKind::AllGather],
            ShardCrossing::AllGather => &[CollectiveKind::AllGather],
            ShardCrossing::Nothing => return Vec::new(),
        };
        let whole = node.outputs[0];
        halves
            .iter()
            .flat_map(|kind| self.collective_over(ranks, *kind, whole, operation, ipu))
            .collect()
    }

    /// One half of an all-reduce over the replicas; nothing where there is one replica.
    fn collective(
        &mut self,
        kind: CollectiveKind,
        tensor: TensorId,
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let options = &self.spec.options;
        let ipus = u64::from(self.spec.target.ipus * options.tensor_parallel);
        let ranks = CollectiveRanks { count: u64::from(options.replication_factor), ipus };
        self.collective_over(ranks, kind, tensor, operation, ipu)
    }

    fn collective_over(
        &mut self,
        ranks: CollectiveRanks,
        kind: CollectiveKind,
        tensor: TensorId,
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let dtype = self.lowering.tensor_type(tensor).dtype;
        let elements = self.lowering.layout_or_linear(tensor).elements;
        let bytes = elements.total() * dtype.bytes();
        let rounds = collective::rounds(self.system, ranks, kind, bytes);
        let name = format!("{}/{}", self.graph.tensor(tensor).name, kind.name());
        let step = |builder: &mut Self, round: &CollectiveRound| {
            let body =
                builder.collective_step(kind, &name, dtype, &elements, round, operation, ipu);
            if round.steps == 1 {
                body
            } else {
                vec![FragmentItem::Loop { times: round.steps, body }]
            }
        };
        rounds.iter().flat_map(|round| step(self, round)).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "a step is made of all of these")]
    fn collective_step(
        &mut self,
        kind: CollectiveKind,
        name: &str,
        dtype: DType,
        elements: &TileRuns<Elements>,
        round: &CollectiveRound,
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let share = |count: &Elements| Elements::from_f64((count.as_f64() * round.share).ceil());
        let part = elements.map(share);
        let (slice, add) = collective::step_phases(kind, dtype, &part);
        let phases = |phase| OperationWork {
            items: vec![OperationWorkItem::Phase(phase)],
            temporaries: Vec::new(),
        };
        let mut items = self.tables.work(Some(operation), name, ipu, &phases(slice)).items;
        items.extend(self.cross_replica_copy(
            name,
            &part.map(|count| *count * dtype.bytes()),
            round,
            ipu,
        ));
        if let Some(add) = add {
            items.extend(self.tables.work(Some(operation), name, ipu, &phases(add)).items);
        }
        items
    }

    /// The copy of one step to the neighbours: every replica sends and receives as much.
    fn cross_replica_copy(
        &mut self,
        name: &str,
        bytes: &TileRuns<Bytes>,
        round: &CollectiveRound,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let total = bytes.total();
        let tiles = bytes.tile_count();
        let sync = external_sync(&mut self.tables);
        // The replicas run alike, so none waits longer for the others than the signal takes.
        let cycles = self.system.external_sync_cycles;
        let waiting = super::program_tables::whole_ipu_cost(ipu, cycles, self.tables.tiles_per_ipu);
        self.tables.costs.insert(sync, waiting);
        self.tables.programs[sync.index()].ipu = Some(ipu);
        let cycles = Cycles::from_f64((total.as_f64() / round.bytes_per_cycle).ceil());
        let cost = LeafProgramCost {
            bytes_in: total,
            bytes_out: total,
            active_tiles: tiles,
            ..super::program_tables::whole_ipu_cost(ipu, cycles, tiles)
        };
        let name = format!("{name}/crossReplicaCopy");
        let program =
            ProgramNode { ipu: Some(ipu), ..ProgramNode::new(ProgramKind::GlobalExchange, name) };
        let target = self.tables.kind;
        let copy = self.tables.push_leaf_with_cost(program, cost, bytes);
        // Equal steps of one IPU share their code.
        let print = format!("{round:?} {bytes:?}");
        let known = self.tables.code_exists_or_insert(ipu, &print);
        let code_bytes =
            if known { Bytes::ZERO } else { code_bytes::collective_code_bytes(target) };
        let traffic = bytes.map(|bytes| TileTraffic {
            bytes_in: *bytes,
            bytes_out: *bytes,
            bytes_delivered: *bytes,
            messages_in: send_instructions(*bytes, 1),
            messages_out: send_instructions(*bytes, 1),
            code_bytes,
        });
        self.tables.traffic(copy, ipu, traffic, MemoryCategory::GlobalExchangeCode);
        if !known {
            let steps = code_bytes::collective_step_bytes(round.steps, round.ranks);
            self.tables.code_on(MemoryCategory::ControlCode, ipu, bytes, steps.control);
            let category = MemoryCategory::InternalExchangeCode;
            self.tables.code_on(category, ipu, bytes, steps.internal_exchange);
        }
        vec![FragmentItem::Leaf(sync), FragmentItem::Leaf(copy)]
    }
}
