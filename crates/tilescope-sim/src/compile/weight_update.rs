//! The weight update of one parameter: gradients from the other replicas, state from streaming
//! memory, and the optimiser on all of it or on this replica's shard.

use super::data_flow::BufferKey;
use super::fragments::ProgramBuilder;
use super::phase_split;
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
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, Elements, IpuId, OperationId, TileRange, TileRuns};
use tilescope_report::{
    MemoryCategory, ModelOperation, ProgramKind, ProgramNode, TileTraffic, TrainingPass,
};

/// The update of one parameter while it is put down.
struct ParameterUpdate<'n> {
    index: usize,
    node: &'n GraphNode,
    stage: usize,
    ipu: IpuId,
    operation: OperationId,
    /// Whether each replica updates its part of the weights.
    is_sharded: bool,
    /// First liveness step that needs its operands.
    first: u32,
}

impl ParameterUpdate<'_> {
    fn parameter(&self) -> TensorId {
        self.node.inputs[0]
    }

    fn gradient(&self) -> TensorId {
        self.node.inputs[1]
    }
}

impl ProgramBuilder<'_> {
    /// Puts the updates of a stage down: one behind the other, or with collectives over all of
    /// their gradients at once.
    pub(super) fn updates(&mut self, stage: usize, ipu: IpuId) -> Vec<FragmentItem> {
        let graph = self.graph;
        let of_stage = |node: &GraphNode| {
            node.pass == TrainingPass::Update && self.placement.runs(stage, node.block)
        };
        let nodes: Vec<(usize, &GraphNode)> =
            graph.nodes.iter().enumerate().filter(|(_, node)| of_stage(node)).collect();
        let options = &self.spec.options;
        if options.merge_collectives && options.replication_factor > 1 {
            return self.merged_updates(&nodes, stage, ipu);
        }
        let mut items = Vec::new();
        for (index, node) in nodes {
            let mut update = self.parameter_update(index, node, stage, ipu);
            items.extend(self.load_operands(&mut update));
            let updates = [update];
            items.extend(self.reduce_gradients(&updates, updates[0].operation));
            items.extend(self.apply_update(&updates[0]));
            items.extend(self.gather_weights(&updates, updates[0].operation));
            items.extend(self.store_operands(&updates[0]));
        }
        items
    }

    /// The updates of a stage with one collective over all gradients, and one over all weights that
    /// the replicas share out.
    fn merged_updates(
        &mut self,
        nodes: &[(usize, &GraphNode)],
        stage: usize,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let mut items = Vec::new();
        let mut updates = Vec::new();
        for (index, node) in nodes {
            let mut update = self.parameter_update(*index, node, stage, ipu);
            items.extend(self.load_operands(&mut update));
            updates.push(update);
        }
        let name = format!("{}/mergedCollectives", self.placement.stages[stage].name);
        let operation = self.collective_operation(&name, &updates, ipu);
        items.extend(self.reduce_gradients(&updates, operation));
        for update in &updates {
            items.extend(self.apply_update(update));
        }
        items.extend(self.gather_weights(&updates, operation));
        for update in &updates {
            items.extend(self.store_operands(update));
        }
        items
    }

    fn parameter_update<'n>(
        &mut self,
        index: usize,
        node: &'n GraphNode,
        stage: usize,
        ipu: IpuId,
    ) -> ParameterUpdate<'n> {
        let operation = self.operation(node, &node.name, (stage, node.pass), ipu, None);
        let is_sharded = node.inputs[2..].iter().any(|state| self.sharded.contains(state));
        ParameterUpdate { index, node, stage, ipu, operation, is_sharded, first: 0 }
    }

    /// The operation that collectives over several gradients belong to.
    fn collective_operation(
        &mut self,
        name: &str,
        updates: &[ParameterUpdate],
        ipu: IpuId,
    ) -> OperationId {
        let gradient = |update: &ParameterUpdate| self.update_buffer(update, update.gradient());
        let gradients: Vec<TensorBuffer> = updates.iter().map(gradient).collect();
        let inputs = self.inputs(&gradients);
        self.operations.push(ModelOperation {
            name: name.to_owned(),
            kind: "collectives".to_owned(),
            pass: TrainingPass::Update,
            block: None,
            ipu,
            flops: 0,
            shapes: String::new(),
            plan: None,
            inputs,
        });
        OperationId::from_index(self.operations.len() - 1)
    }

    fn update_buffer(&self, update: &ParameterUpdate, tensor: TensorId) -> TensorBuffer {
        self.tensors.buffer(tensor, update.stage, update.ipu, TrainingPass::Update)
    }

    /// Operands in streaming memory: those that the gradient needs, and the optimiser's state.
    fn off_chip_operands(&self, update: &ParameterUpdate) -> (Vec<TensorId>, Vec<TensorId>) {
        let off_chip = update.node.inputs.iter().copied().filter(|of| self.is_off_chip(*of));
        off_chip.partition(|of| self.graph.tensor(*of).role != TensorRole::OptimizerState)
    }

    /// Fetches what the gradient needs from streaming memory.
    fn load_operands(&mut self, update: &mut ParameterUpdate) -> Vec<FragmentItem> {
        self.tables.bind_arguments(update.ipu);
        update.first = self.tables.next_step();
        let (early, _) = self.off_chip_operands(update);
        self.remote_tensor_copies(&early, update.ipu, true)
    }

    /// Adds the gradients of all replicas up: each keeps the sum, or the part that it updates.
    fn reduce_gradients(
        &mut self,
        updates: &[ParameterUpdate],
        operation: OperationId,
    ) -> Vec<FragmentItem> {
        let of = |is_sharded: bool| -> Vec<&ParameterUpdate> {
            updates.iter().filter(|update| update.is_sharded == is_sharded).collect()
        };
        let mut items = Vec::new();
        for (updates, kinds) in [
            (of(false), &[CollectiveKind::ReduceScatter, CollectiveKind::AllGather][..]),
            (of(true), &[CollectiveKind::ReduceScatter][..]),
        ] {
            for kind in kinds {
                let gradients: Vec<(&ParameterUpdate, TensorId)> =
                    updates.iter().map(|update| (*update, update.gradient())).collect();
                items.extend(self.collectives(*kind, &gradients, operation));
            }
        }
        items
    }

    /// Brings the parts of the weights that other replicas updated.
    fn gather_weights(
        &mut self,
        updates: &[ParameterUpdate],
        operation: OperationId,
    ) -> Vec<FragmentItem> {
        let sharded = updates.iter().filter(|update| update.is_sharded);
        let weights: Vec<(&ParameterUpdate, TensorId)> =
            sharded.map(|update| (update, update.parameter())).collect();
        self.collectives(CollectiveKind::AllGather, &weights, operation)
    }

    /// Half of an all-reduce over tensors of some updates: one for all those of an element type.
    fn collectives(
        &mut self,
        kind: CollectiveKind,
        tensors: &[(&ParameterUpdate, TensorId)],
        operation: OperationId,
    ) -> Vec<FragmentItem> {
        let mut by_type: BTreeMap<DType, Vec<(&ParameterUpdate, TensorId)>> = BTreeMap::new();
        for (update, tensor) in tensors {
            let dtype = self.lowering.tensor_type(*tensor).dtype;
            by_type.entry(dtype).or_default().push((update, *tensor));
        }
        let mut items = Vec::new();
        for (dtype, tensors) in by_type {
            let name = match tensors.as_slice() {
                [(_, tensor)] => self.graph.tensor(*tensor).name.clone(),
                _ => format!("merged/{}", dtype.name()),
            };
            let elements = self.elements_of_all(&tensors);
            let ipu = tensors[0].0.ipu;
            let collective = self.collective(kind, &name, (dtype, &elements), operation, ipu);
            let buffers: Vec<BufferKey> = tensors
                .iter()
                .map(|(update, tensor)| BufferKey::Tensor(self.update_buffer(update, *tensor)))
                .collect();
            self.note_flow(&collective, &buffers, &buffers);
            items.extend(collective);
        }
        items
    }

    /// Elements that each tile has of some tensors together.
    fn elements_of_all(&mut self, tensors: &[(&ParameterUpdate, TensorId)]) -> TileRuns<Elements> {
        let none = TileRuns::uniform(TileRange::first_tiles(self.lowering.tiles), Elements::ZERO);
        let sum = tensors.iter().fold(none, |sum, (_, tensor)| {
            sum.zip(&self.lowering.layout_or_linear(*tensor).elements, |sum, more| sum + more)
        });
        let mut used = TileRuns::empty();
        for (tiles, elements) in sum.iter().filter(|(_, elements)| !elements.is_zero()) {
            used.push(tiles, *elements);
        }
        used
    }

    /// The optimiser's step on one parameter, or on this replica's part of it.
    fn apply_update(&mut self, update: &ParameterUpdate) -> Vec<FragmentItem> {
        let ParameterUpdate { index, node, stage, ipu, operation, is_sharded, .. } = *update;
        // State is fetched when the gradient is there, so that it lies in memory for a short time.
        let state_first = self.tables.next_step();
        let (_, late) = self.off_chip_operands(update);
        let mut items = self.remote_tensor_copies(&late, ipu, true);
        let work = if is_sharded { self.shard_work(node) } else { None };
        let work = work.unwrap_or_else(|| self.lowered_nodes[index].work.clone());
        let EmittedWork { items: leaves, steps, shares_code: shared } =
            self.tables.work(Some(operation), &node.name, ipu, &work);
        self.note_node(node, &leaves, (stage, TrainingPass::Update), ipu);
        items.extend(leaves);
        self.push_temporary_variables(&work, operation, &node.name, ipu, &steps);
        if !shared {
            self.push_worklist_variables(&work, operation, &node.name, ipu);
        }
        for tensor in &node.inputs[2..] {
            let buffer = self.update_buffer(update, *tensor);
            self.lifetimes.extend_to(buffer, state_first..self.tables.next_step());
        }
        items
    }

    /// Stores what changed and lives in streaming memory.
    fn store_operands(&mut self, update: &ParameterUpdate) -> Vec<FragmentItem> {
        let first_store = self.tables.next_step();
        let (early, late) = self.off_chip_operands(update);
        let changed = [early, late].concat();
        let items = self.remote_tensor_copies(&changed, update.ipu, false);
        let end = self.tables.next_step();
        for tensor in &update.node.inputs {
            let buffer = self.update_buffer(update, *tensor);
            // State was noted where it was fetched.
            let is_state = self.graph.tensor(*tensor).role == TensorRole::OptimizerState;
            let from = if is_state { first_store } else { update.first };
            self.lifetimes.extend_to(buffer, from..end);
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
        let set = phase_split::set_size(self.spec);
        let ranks = match set {
            Some(size) => phase_split::set_ranks(u64::from(size)),
            None => {
                CollectiveRanks { count: u64::from(self.spec.options.tensor_parallel), ipus: 1 }
            }
        };
        let halves: &[CollectiveKind] = match node.operator.shard_crossing() {
            ShardCrossing::AllReduce => &[CollectiveKind::ReduceScatter, CollectiveKind::AllGather],
            ShardCrossing::AllGather => &[CollectiveKind::AllGather],
            ShardCrossing::Nothing => return Vec::new(),
        };
        let whole = node.outputs[0];
        let name = self.graph.tensor(whole).name.clone();
        let dtype = self.lowering.tensor_type(whole).dtype;
        let elements = self.lowering.layout_or_linear(whole).elements;
        let half = |kind: &CollectiveKind| {
            self.collective_over(ranks, *kind, &name, (dtype, &elements), operation, ipu)
        };
        let items: Vec<FragmentItem> = halves.iter().flat_map(half).collect();
        if set.is_some() { self.join_set(items, ipu) } else { items }
    }

    /// One half of an all-reduce over the replicas; nothing where there is one replica.
    fn collective(
        &mut self,
        kind: CollectiveKind,
        name: &str,
        elements: (DType, &TileRuns<Elements>),
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let options = &self.spec.options;
        let ipus = u64::from(self.spec.target.ipus * options.tensor_parallel);
        let ranks = CollectiveRanks { count: u64::from(options.replication_factor), ipus };
        self.collective_over(ranks, kind, name, elements, operation, ipu)
    }

    fn collective_over(
        &mut self,
        ranks: CollectiveRanks,
        kind: CollectiveKind,
        name: &str,
        (dtype, elements): (DType, &TileRuns<Elements>),
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let bytes = elements.total() * dtype.bytes();
        let rounds = collective::rounds(self.system, ranks, kind, bytes);
        let name = format!("{name}/{}", kind.name());
        let step = |builder: &mut Self, round: &CollectiveRound| {
            let body = builder.collective_step(kind, &name, dtype, elements, round, operation, ipu);
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
