//! The weight update of one parameter: the reduction of gradients over the other replicas, the
//! copies of state from streaming memory, and the optimiser on the whole parameter or on the share
//! of this replica.
//!
//! If the IPUs of a replica share rows, each has a copy of the weights and its own gradient. The
//! gradients are first added up over the IPUs: each IPU receives the sum of one share, which is
//! reduced over the replicas, and then all shares. Every IPU updates its whole copy.
//!
//! If any tensor of an update is sharded over the replicas, each replica works on its share of all
//! of them, as PopART does (willow/src/transforms/streamingmemoryopinserter.cpp: sharding
//! propagates through the operations of the optimiser). Unsharded tensors are sliced before, and
//! gathered again if they have changed.

use super::data_flow::BufferKey;
use super::fragment_items::FragmentItem;
use super::fragment_plan;
use super::program_builder::ProgramBuilder;
use super::program_tables::EmittedWork;
use super::replica_rings::CollectiveGroup;
use super::tensor_analysis::TensorBuffer;
use crate::graph::GraphNode;
use crate::operators::{Optimizer, ReplicaSum};
use crate::poplar::work::OperationWork;
use crate::popops::collective::{self, CollectiveKind};
use crate::popops::elementwise;
use crate::shape::{DType, TensorId, TensorRole};
use crate::specification::ExecutionPhaseSchedule;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::slice::{from_mut, from_ref};
use tilescope_report::TrainingPass;
use tilescope_report::units::{Elements, IpuId, OperationId, TileRange, TileRuns};

/// The update of one parameter while it is added.
struct ParameterUpdate<'n> {
    index: usize,
    node: &'n GraphNode,
    stage: usize,
    ipu: IpuId,
    operation: OperationId,
    /// True if each replica updates only its share.
    is_sharded: bool,
    /// The first liveness step that needs the operands of the update.
    first: u32,
    /// The first liveness step that needs the optimiser's state.
    state_first: u32,
    /// Operands in streaming memory that are not loaded yet, except for the optimiser's state.
    loads: Vec<TensorId>,
    /// Optimiser's state in streaming memory that is not loaded yet.
    state_loads: Vec<TensorId>,
}

impl ParameterUpdate<'_> {
    fn gradient(&self) -> TensorId {
        self.node.inputs[1]
    }
}

impl ProgramBuilder<'_> {
    /// Adds the updates of a stage, either one after the other or step by step for all of them.
    pub(super) fn updates(&mut self, stage: usize, ipu: IpuId) -> Vec<FragmentItem> {
        let nodes = self.plan.update_nodes(stage);
        let loaded = fragment_plan::loaded_for_update(self.plan, stage);
        if self.merges_collectives() || self.updates_in_batches() {
            return self.updates_by_step(&nodes, &loaded, stage, ipu);
        }
        let mut items = Vec::new();
        for (index, node) in nodes {
            let mut update = self.parameter_update((index, node), &loaded, stage, ipu);
            items.extend(self.load_operands(from_mut(&mut update), ipu));
            items.extend(self.reduce_gradients(from_ref(&update), update.operation));
            items.extend(self.load_state(from_mut(&mut update), ipu));
            items.extend(self.apply_update(&update));
            items.extend(self.gather_updated(from_ref(&update), update.operation));
            items.extend(self.store_operands(from_ref(&update), ipu));
        }
        items
    }

    /// True if one collective adds up all gradients of a stage.
    fn merges_collectives(&self) -> bool {
        let options = &self.plan.spec.options;
        let has_collectives = options.replication_factor > 1 || self.plan.graph.row_shards > 1;
        options.merge_collectives && has_collectives
    }

    /// True if a phase completes each step of its updates for all weights before the next step.
    fn updates_in_batches(&self) -> bool {
        let schedule = self.plan.spec.options.execution_phase_settings.schedule;
        self.plan.schedule.phased && schedule != ExecutionPhaseSchedule::Interleaving
    }

    /// Adds the updates of a stage with all loads first and all stores last, each as one exchange.
    /// If collectives are merged, one collective adds up the gradients, and one gathers the sharded
    /// weights.
    fn updates_by_step(
        &mut self,
        nodes: &[(usize, &GraphNode)],
        loaded: &BTreeSet<TensorId>,
        stage: usize,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let mut updates: Vec<ParameterUpdate> = nodes
            .iter()
            .map(|(index, node)| self.parameter_update((*index, *node), loaded, stage, ipu))
            .collect();
        let mut items = self.load_operands(&mut updates, ipu);
        let batch = self.updates_in_batches();
        if batch {
            items.extend(self.load_state(&mut updates, ipu));
        }
        let groups: Vec<(OperationId, Range<usize>)> = if self.merges_collectives() {
            let name = format!("{}/mergedCollectives", self.plan.placement.stages[stage].name);
            vec![(self.merged_operation(name, &updates, ipu), 0..updates.len())]
        } else {
            updates.iter().enumerate().map(|(at, update)| (update.operation, at..at + 1)).collect()
        };
        for (operation, group) in &groups {
            items.extend(self.reduce_gradients(&updates[group.clone()], *operation));
        }
        for update in &mut updates {
            if !batch {
                items.extend(self.load_state(from_mut(update), ipu));
            }
            items.extend(self.apply_update(update));
        }
        for (operation, group) in groups {
            items.extend(self.gather_updated(&updates[group], operation));
        }
        items.extend(self.store_operands(&updates, ipu));
        items
    }

    /// Begins the update of a parameter by a node. Tensors in `loaded` are already on the chip.
    fn parameter_update<'n>(
        &mut self,
        (index, node): (usize, &'n GraphNode),
        loaded: &BTreeSet<TensorId>,
        stage: usize,
        ipu: IpuId,
    ) -> ParameterUpdate<'n> {
        let mut missing = self.off_chip_operands(node);
        missing.retain(|tensor| !loaded.contains(tensor));
        let (state_loads, loads): (Vec<TensorId>, Vec<TensorId>) =
            missing.into_iter().partition(|of| self.plan.role(*of) == TensorRole::OptimizerState);
        let operation = self.operations.add_node(node, &node.name, (stage, node.pass), ipu, None);
        let is_sharded = node.inputs.iter().any(|tensor| self.plan.sharding.splits(*tensor));
        ParameterUpdate {
            index,
            node,
            stage,
            ipu,
            operation,
            is_sharded,
            first: 0,
            state_first: 0,
            loads,
            state_loads,
        }
    }

    /// Adds the operation that collectives over several gradients belong to.
    fn merged_operation(
        &mut self,
        name: String,
        updates: &[ParameterUpdate],
        ipu: IpuId,
    ) -> OperationId {
        let gradients: Vec<TensorBuffer> =
            updates.iter().flat_map(|of| self.update_buffers(of, of.gradient())).collect();
        self.collective_operation(name, TrainingPass::Update, &gradients, ipu)
    }

    fn update_buffers(&self, update: &ParameterUpdate, tensor: TensorId) -> Vec<TensorBuffer> {
        let ParameterUpdate { stage, ipu, .. } = *update;
        self.plan.tensors.buffers(tensor, stage, ipu, TrainingPass::Update).collect()
    }

    fn update_keys(&self, update: &ParameterUpdate, tensor: TensorId) -> Vec<BufferKey> {
        self.update_buffers(update, tensor).into_iter().map(BufferKey::Tensor).collect()
    }

    fn off_chip_operands(&self, node: &GraphNode) -> Vec<TensorId> {
        node.inputs.iter().copied().filter(|of| self.plan.is_off_chip(*of)).collect()
    }

    /// Loads the tensors that gradients need from streaming memory.
    fn load_operands(&mut self, updates: &mut [ParameterUpdate], ipu: IpuId) -> Vec<FragmentItem> {
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let mut early = Vec::new();
        for update in updates {
            update.first = first;
            early.extend_from_slice(&update.loads);
        }
        self.remote_tensor_copies(&early, ipu, true)
    }

    /// Loads the optimiser's state. Unless all updates of a phase go step by step, this happens
    /// once the gradient is there, so that the state takes memory for a short time.
    fn load_state(&mut self, updates: &mut [ParameterUpdate], ipu: IpuId) -> Vec<FragmentItem> {
        let first = self.tables.next_step();
        let mut late = Vec::new();
        for update in updates {
            update.state_first = first;
            late.extend_from_slice(&update.state_loads);
        }
        self.remote_tensor_copies(&late, ipu, true)
    }

    /// Adds up the gradients of all replicas, and of the IPUs that share rows. Each keeps the sum,
    /// or the share that it updates.
    fn reduce_gradients(
        &mut self,
        updates: &[ParameterUpdate],
        operation: OperationId,
    ) -> Vec<FragmentItem> {
        use CollectiveGroup::{All, Domain, Orthogonal, Rows};
        use CollectiveKind::{AllGather, ReduceScatter};
        let gradients = updates.iter().map(|update| (update, update.gradient()));
        let (split, whole): (Vec<_>, Vec<_>) = gradients.partition(|(of, _)| of.is_sharded);
        // Sharded accumulators already hold sums over the domain.
        let mut scattered = split.clone();
        scattered.retain(|(_, gradient)| !self.plan.sharding.splits(*gradient));
        let mut copied_whole = whole.clone();
        copied_whole.retain(|(update, _)| self.is_copied(update));
        let mut copied_split = split.clone();
        copied_split.retain(|(update, _)| self.is_copied(update));
        let copied = updates.iter().filter(|update| self.is_copied(update));
        let copied: Vec<_> = copied.map(|update| (update, update.gradient())).collect();
        let steps = [
            (ReduceScatter, Rows, &copied),
            // A scatter over the domain needs whole gradients, so their rows are gathered first.
            (AllGather, Rows, &copied_split),
            (ReduceScatter, All, &whole),
            (AllGather, All, &whole),
            // Replicas add up only the share of each IPU, so these rows are gathered last.
            (AllGather, Rows, &copied_whole),
            (ReduceScatter, Domain, &scattered),
            // Each domain has the sum of its own replicas only.
            (ReduceScatter, Orthogonal, &split),
            (AllGather, Orthogonal, &split),
        ];
        let mut items = Vec::new();
        for (kind, over, gradients) in steps {
            items.extend(self.collectives(kind, over, gradients, operation));
        }
        items
    }

    /// True if every IPU of the replica has a copy of the parameter.
    fn is_copied(&self, update: &ParameterUpdate) -> bool {
        self.plan.graph.copied_weights.contains(&update.node.inputs[0])
    }

    /// Gathers the shares that other replicas updated, for tensors that each replica holds as a
    /// whole.
    fn gather_updated(
        &mut self,
        updates: &[ParameterUpdate],
        operation: OperationId,
    ) -> Vec<FragmentItem> {
        let mut changed: Vec<(&ParameterUpdate, TensorId)> = Vec::new();
        for update in updates.iter().filter(|update| update.is_sharded) {
            let whole =
                self.changed_tensors(update.node).filter(|of| !self.plan.sharding.splits(*of));
            changed.extend(whole.map(|tensor| (update, tensor)));
        }
        self.collectives(CollectiveKind::AllGather, CollectiveGroup::Domain, &changed, operation)
    }

    /// The tensors that an update changes: the parameter, its state, and the accumulator if it is
    /// also the momentum.
    fn changed_tensors<'n>(&self, node: &'n GraphNode) -> impl Iterator<Item = TensorId> + 'n {
        let keeps_momentum = self.plan.spec.model.optimizer == Optimizer::SgdMomentumCombined
            && self.plan.role(node.inputs[1]) == TensorRole::Accumulator;
        // Operand 1 is the gradient, which an update reads but usually does not change.
        let operands = node.inputs.iter().enumerate();
        operands.filter(move |(place, _)| *place != 1 || keeps_momentum).map(|(_, tensor)| *tensor)
    }

    /// Adds half of an all-reduce over tensors of some updates, as one collective for all tensors
    /// of an element type.
    fn collectives(
        &mut self,
        kind: CollectiveKind,
        over: CollectiveGroup,
        tensors: &[(&ParameterUpdate, TensorId)],
        operation: OperationId,
    ) -> Vec<FragmentItem> {
        let merges = self.plan.spec.options.merge_collectives;
        let mut by_type: BTreeMap<(DType, usize), Vec<(&ParameterUpdate, TensorId)>> =
            BTreeMap::new();
        for (index, (update, tensor)) in tensors.iter().enumerate() {
            let dtype = self.plan.dtype(*tensor);
            let group = if merges { 0 } else { index };
            by_type.entry((dtype, group)).or_default().push((update, *tensor));
        }
        let mut items = Vec::new();
        for ((dtype, _), tensors) in by_type {
            let mut name = match tensors.as_slice() {
                [(_, tensor)] => self.plan.name(*tensor).to_owned(),
                _ => format!("merged/{}", dtype.name()),
            };
            match over {
                CollectiveGroup::Orthogonal => name.push_str("/share"),
                CollectiveGroup::Rows => name.push_str("/rows"),
                CollectiveGroup::All | CollectiveGroup::Domain => {}
            }
            let elements = self.elements_of_all(&tensors, over);
            let ipu = tensors[0].0.ipu;
            let collective = self.collective(kind, over, &name, (dtype, &elements), operation, ipu);
            let buffers: Vec<BufferKey> = tensors
                .iter()
                .flat_map(|(update, tensor)| self.update_keys(update, *tensor))
                .collect();
            self.flows.note(&collective, &buffers, &buffers);
            items.extend(collective);
        }
        items
    }

    /// The elements of some tensors together, or of their shares, on each tile.
    fn elements_of_all(
        &mut self,
        tensors: &[(&ParameterUpdate, TensorId)],
        over: CollectiveGroup,
    ) -> TileRuns<Elements> {
        let none =
            TileRuns::uniform(TileRange::first_tiles(self.plan.lowering.tiles), Elements::ZERO);
        let sum = tensors.iter().fold(none, |sum, (update, tensor)| {
            let elements = match over {
                CollectiveGroup::Orthogonal => self.plan.share_layout(*tensor).elements,
                // The IPUs of a replica have already added up their gradients, each a share of
                // them.
                CollectiveGroup::All if self.is_copied(update) => {
                    self.plan.part_layout(*tensor, self.plan.graph.row_shards as u64).elements
                }
                CollectiveGroup::All | CollectiveGroup::Domain | CollectiveGroup::Rows => {
                    self.plan.elements(*tensor).clone()
                }
            };
            sum.zip(&elements, |sum, more| sum + more)
        });
        // Tiles without elements take no part in a copy, so they must not count as active.
        let mut used = TileRuns::empty();
        for (tiles, elements) in sum.iter().filter(|(_, elements)| !elements.is_zero()) {
            used.push(tiles, *elements);
        }
        used
    }

    /// Adds the optimiser's step on one parameter, or on the share of this replica.
    fn apply_update(&mut self, update: &ParameterUpdate) -> Vec<FragmentItem> {
        let ParameterUpdate { index, node, stage, ipu, operation, is_sharded, .. } = *update;
        let mut items = Vec::new();
        let share = if is_sharded { self.plan.on_share(node) } else { None };
        if share.is_some() {
            self.operations.set_flops(operation, self.plan.flops_of_share(node));
            items.extend(self.slice_shares(update));
        }
        let (work, sum) = match &share {
            Some(share) => (&share.work, share.replica_sum.as_ref()),
            None => (&self.plan.lowered_nodes[index].work, None),
        };
        let mut emitted = self.emit_with_sum(update, work, sum);
        self.flows.note_node(node, &emitted.items, (stage, TrainingPass::Update), ipu);
        items.append(&mut emitted.items);
        if is_sharded {
            items.extend(self.zero_rest_of_accumulator(update));
        }
        self.variables.add_of_work((work, &emitted), operation, &node.name, ipu);
        for tensor in &node.inputs[2..] {
            for buffer in self.update_buffers(update, *tensor) {
                let end = self.tables.next_step();
                self.variables.lifetimes.extend_to(buffer, update.state_first..end);
            }
        }
        items
    }

    /// Adds a work. In the middle of it, replicas with shares add up their partial sums.
    fn emit_with_sum(
        &mut self,
        update: &ParameterUpdate,
        work: &OperationWork,
        sum: Option<&ReplicaSum>,
    ) -> EmittedWork {
        let operation = update.operation;
        let name = &update.node.name;
        let ipu = update.ipu;
        let Some(sum) = sum else {
            return self.tables.work(Some(operation), name, ipu, work);
        };
        let (before, behind) = work.items.split_at(sum.after);
        let before = OperationWork { items: before.to_vec(), temporaries: Vec::new() };
        let mut emitted = self.tables.work(Some(operation), name, ipu, &before);
        for kind in [CollectiveKind::ReduceScatter, CollectiveKind::AllGather] {
            let over = CollectiveGroup::Domain;
            let name = format!("{name}/norms");
            let values = (sum.dtype, &sum.elements);
            emitted.items.extend(self.collective(kind, over, &name, values, operation, ipu));
        }
        let behind = OperationWork { items: behind.to_vec(), temporaries: Vec::new() };
        let rest = self.tables.work(Some(operation), name, ipu, &behind);
        emitted.items.extend(rest.items);
        emitted.steps.extend(rest.steps);
        emitted.shares_code &= rest.shares_code;
        emitted
    }

    /// Slices this replica's share from the weights and state that it holds as a whole.
    fn slice_shares(&mut self, update: &ParameterUpdate) -> Vec<FragmentItem> {
        let whole = self.changed_tensors(update.node);
        let whole: Vec<TensorId> = whole.filter(|of| !self.plan.sharding.splits(*of)).collect();
        let mut items = Vec::new();
        for tensor in whole {
            let name = format!("{}/share", self.plan.name(tensor));
            let dtype = self.plan.dtype(tensor);
            let elements = self.plan.share_layout(tensor).elements;
            let work = OperationWork::of_phase(collective::slice(dtype, &elements));
            let sliced = self.tables.work(Some(update.operation), &name, update.ipu, &work).items;
            let read = self.update_keys(update, tensor);
            self.flows.note(&sliced, &read, &[]);
            items.extend(sliced);
        }
        items
    }

    /// Zeroes an accumulator for the next sum if the update has only read a share of it.
    fn zero_rest_of_accumulator(&mut self, update: &ParameterUpdate) -> Vec<FragmentItem> {
        let accumulator = update.gradient();
        let keeps = self.changed_tensors(update.node).any(|tensor| tensor == accumulator);
        let is_accumulator = self.plan.role(accumulator) == TensorRole::Accumulator;
        if !is_accumulator || keeps || self.plan.sharding.splits(accumulator) {
            return Vec::new();
        }
        let (dtype, elements) = self.plan.values(accumulator);
        let fill = elementwise::fill("accumulatorUpdate/zero", dtype, elements);
        let name = &update.node.name;
        let work = OperationWork::of_phase(fill);
        let items = self.tables.work(Some(update.operation), name, update.ipu, &work).items;
        let zeroed = self.update_keys(update, accumulator);
        self.flows.note(&items, &[], &zeroed);
        items
    }

    /// Adds the variables of the shares of unsharded tensors, which exist during the update.
    fn push_share_variables(&mut self, update: &ParameterUpdate) {
        if !update.is_sharded {
            return;
        }
        let lifetime = update.first..self.tables.next_step();
        let whole = update.node.inputs.iter().filter(|of| !self.plan.sharding.splits(**of));
        for tensor in whole.copied().collect::<Vec<_>>() {
            self.push_share_variable(tensor, update.ipu, update.operation, lifetime.clone());
        }
    }

    /// Stores the changed tensors that are kept in streaming memory.
    fn store_operands(&mut self, updates: &[ParameterUpdate], ipu: IpuId) -> Vec<FragmentItem> {
        let mut changed = Vec::new();
        for update in updates {
            self.push_share_variables(update);
            changed.extend(self.off_chip_operands(update.node));
        }
        // The optimiser's state was recorded where it was updated, and a stored tensor is where it
        // is.
        let end = self.tables.next_step();
        for update in updates {
            for tensor in &update.node.inputs {
                if self.plan.role(*tensor) != TensorRole::OptimizerState {
                    for buffer in self.update_buffers(update, *tensor) {
                        self.variables.lifetimes.extend_to(buffer, update.first..end);
                    }
                }
            }
        }
        self.remote_tensor_copies(&changed, ipu, false)
    }
}
