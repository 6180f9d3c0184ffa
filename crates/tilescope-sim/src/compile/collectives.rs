//! Collectives between replicas, and between the IPUs of a replica that share a layer or rows.

use super::data_flow::BufferKey;
use super::fragment_items::{FragmentItem, last_leaf};
use super::phase_split;
use super::program_builder::ProgramBuilder;
use super::program_tables::{LeafProgramCost, whole_ipu_cost};
use super::replica_rings::CollectiveGroup;
use super::tensor_analysis::{TensorBuffer, TensorBufferKind};
use crate::graph::GraphNode;
use crate::operators::ShardCrossing;
use crate::poplar::code_bytes;
use crate::poplar::exchange::send_instructions;
use crate::poplar::work::OperationWork;
use crate::popops::collective;
use crate::popops::collective::{CollectiveKind, CollectiveRanks, CollectiveRound, RingPrograms};
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles, Elements, IpuId, OperationId, TileRuns};
use tilescope_report::{
    ExchangeRoute, MemoryCategory, ProgramKind, ProgramNode, ReplicaRing, TileTraffic, TrainingPass,
};

/// The participants of a collective.
#[derive(Clone, Copy)]
struct CollectiveOver {
    ranks: CollectiveRanks,
    /// The group of the collective. `None` for the IPUs that a layer is split over.
    group: Option<CollectiveGroup>,
}

impl ProgramBuilder<'_> {
    /// Adds the collective between the IPUs that a layer is split over, after a node at its edge.
    pub(super) fn shard_collective(
        &mut self,
        node: &GraphNode,
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let set = phase_split::set_size(self.plan.spec);
        let ranks = match set {
            Some(size) => phase_split::set_ranks(self.plan.spec, u64::from(size)),
            None => {
                let count = u64::from(self.plan.spec.options.tensor_parallel);
                CollectiveRanks { count, ipus: 1, groups: 1 }
            }
        };
        let halves: &[CollectiveKind] = match node.operator.shard_crossing() {
            ShardCrossing::AllReduce => &[CollectiveKind::ReduceScatter, CollectiveKind::AllGather],
            ShardCrossing::AllGather => &[CollectiveKind::AllGather],
            ShardCrossing::Nothing => return Vec::new(),
        };
        let whole = node.outputs[0];
        let name = self.plan.name(whole);
        let values = self.plan.values(whole);
        let mut items = Vec::new();
        for kind in halves {
            let over = CollectiveOver { ranks, group: None };
            items.extend(self.collective_over(over, *kind, name, values, operation, ipu));
        }
        if set.is_some() { join_set(items) } else { items }
    }

    /// Adds one half of an all-reduce over replicas, or over the IPUs that share rows. Adds nothing
    /// if there is only one participant.
    pub(super) fn collective(
        &mut self,
        kind: CollectiveKind,
        over: CollectiveGroup,
        name: &str,
        elements: (DType, &TileRuns<Elements>),
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let members = CollectiveOver { ranks: self.rings.ranks(over), group: Some(over) };
        let items = self.collective_over(members, kind, name, elements, operation, ipu);
        // All IPUs that share rows take part, each with the same steps.
        if over == CollectiveGroup::Rows { join_set(items) } else { items }
    }

    fn collective_over(
        &mut self,
        over: CollectiveOver,
        kind: CollectiveKind,
        name: &str,
        (dtype, elements): (DType, &TileRuns<Elements>),
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let bytes = elements.total() * dtype.bytes();
        let rounds = collective::rounds(&self.plan.system, over.ranks, kind, bytes);
        let name = format!("{name}/{}", kind.name());
        let pass = self.operations.pass(operation);
        let mut items = Vec::new();
        for mut round in rounds {
            let ring = over.group.and_then(|group| self.rings.ring(group, &round));
            if let Some(ring) = &ring {
                round = self.rings.within_links(round, ring, (pass, ipu));
            }
            let machine = &self.plan.lowering.machine;
            let programs = collective::ring_programs(machine, &round, kind, dtype, elements);
            let bytes = round.part(elements).map(|count| *count * dtype.bytes());
            let place = (&*name, operation, ipu);
            let first = self.tables.next_step();
            items.extend(self.ring_work(&programs.before, place));
            items.extend(self.fragment_copy(&programs, place));
            let mut body = self.ring_work(&programs.ahead, place);
            let going = (&round, ring.as_ref());
            body.extend(self.cross_replica_copy(&name, &bytes, going, operation, ipu));
            body.extend(self.fragment_copy(&programs, place));
            body.extend(self.ring_work(&programs.behind, place));
            match round.steps {
                1 => items.extend(body),
                times => items.push(FragmentItem::Loop { times, body }),
            }
            items.extend(self.ring_work(&programs.after, place));
            // One fragment to send, and one that arrives.
            let shape = TensorInfo::new([round.part(elements).total().0], dtype).to_string();
            for end in ["Src", "Dst"] {
                let buffer = format!("{name}/{end}");
                let lifetime = first..self.tables.next_step();
                let buffer = (buffer, shape.clone());
                self.variables.add(buffer, Some(operation), Some(lifetime), ipu, &bytes);
            }
        }
        items
    }

    fn ring_work(
        &mut self,
        work: &OperationWork,
        (name, operation, ipu): (&str, OperationId, IpuId),
    ) -> Vec<FragmentItem> {
        if work.items.is_empty() {
            return Vec::new();
        }
        self.tables.work(Some(operation), name, ipu, work).items
    }

    /// Adds the function that takes the fragment of a step, with the cases of its switch that this
    /// replica does not run.
    fn fragment_copy(
        &mut self,
        programs: &RingPrograms,
        (name, operation, ipu): (&str, OperationId, IpuId),
    ) -> Vec<FragmentItem> {
        let emitted = self.tables.work(Some(operation), name, ipu, &programs.fragment);
        let (Some(switch), false) = (&programs.switch, emitted.shares_code) else {
            return emitted.items;
        };
        // All replicas have the same code, so each tile has the cases of the other replicas too.
        let cases = code_bytes::SWITCH_CASE_BYTES * (switch.switches * switch.cases);
        if let Some(program) = last_leaf(&emitted.items) {
            self.tables.program_code(program, ipu, &switch.traffic, cases);
        }
        // The emitted work contains the exchange of the case that runs.
        let others = switch.switches * (switch.cases - 1);
        for (tiles, traffic) in switch.traffic.iter() {
            let bytes = others * code_bytes::exchange_code_bytes(traffic, self.tables.kind);
            let tiles = TileRuns::uniform(tiles, ());
            self.tables.code_on(MemoryCategory::InternalExchangeCode, ipu, &tiles, bytes);
        }
        emitted.items
    }

    /// Adds the copy of one step to the neighbours. Every replica sends and receives the same
    /// amount.
    fn cross_replica_copy(
        &mut self,
        name: &str,
        bytes: &TileRuns<Bytes>,
        (round, ring): (&CollectiveRound, Option<&ReplicaRing>),
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let total = bytes.total();
        let tiles = bytes.tile_count();
        let sync = self.tables.external_sync();
        // The constant of a step includes neither its bytes nor its sync.
        let cycles = Cycles::from_f64((total.as_f64() / round.bytes_per_cycle).ceil())
            + self.plan.system.collective_step_cycles;
        let cost = LeafProgramCost {
            bytes_in: total,
            bytes_out: total,
            active_tiles: tiles,
            ..whole_ipu_cost(ipu, cycles, tiles)
        };
        let name = format!("{name}/crossReplicaCopy");
        let program = ProgramNode {
            ipu: Some(ipu),
            operation: Some(operation),
            ..ProgramNode::new(ProgramKind::GlobalExchange, name)
        };
        let target = self.tables.kind;
        let copy = self.tables.push_leaf_with_cost(program, cost, bytes);
        if let Some(ring) = ring {
            self.rings.note(ring, copy);
        }
        // Equal steps of one IPU share code.
        let known = self.tables.code_exists_or_insert(ipu, &format!("{round:?} {bytes:?}"));
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
        // The buffers of all replicas are on the same tiles, and each tile sends to that of the
        // neighbour.
        let bytes = bytes.shifted(self.tables.tiles_before(ipu));
        self.tables.routes.push(ExchangeRoute::in_order(copy, &bytes, &bytes));
        vec![FragmentItem::ReplicaSync { program: sync, ipu }, FragmentItem::Leaf(copy)]
    }

    /// Adds an operation that only moves tensors between replicas.
    pub(super) fn collective_operation(
        &mut self,
        name: String,
        pass: TrainingPass,
        read: &[TensorBuffer],
        ipu: IpuId,
    ) -> OperationId {
        self.operations.add(self.operations.copy((name, "collectives"), pass, read, ipu))
    }

    /// Adds the variable of a tensor's share, for the steps in which it exists beside the tensor.
    pub(super) fn push_share_variable(
        &mut self,
        tensor: TensorId,
        ipu: IpuId,
        operation: OperationId,
        lifetime: Range<u32>,
    ) {
        let whole = self.plan.graph.tensor(tensor);
        if lifetime.is_empty() {
            return;
        }
        let share = self.plan.sharding.share(&whole.ty).to_string();
        let bytes = self.plan.share_bytes(tensor);
        let name = (format!("{}/share", whole.name), share);
        self.variables.add(name, Some(operation), Some(lifetime), ipu, &bytes);
    }

    /// Gathers the weights of all shares into the whole tensor.
    pub(super) fn gather_weights(
        &mut self,
        whole: TensorBuffer,
        pass: TrainingPass,
    ) -> Vec<FragmentItem> {
        let TensorBuffer { tensor, ipu, .. } = whole;
        let share = TensorBuffer { part: TensorBufferKind::Original, ..whole };
        let name = self.plan.name(tensor);
        let values = self.plan.values(tensor);
        let operation = self.collective_operation(format!("{name}/allGather"), pass, &[share], ipu);
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let kind = CollectiveKind::AllGather;
        let over = CollectiveGroup::Domain;
        let items = self.collective(kind, over, name, values, operation, ipu);
        self.flows.note(&items, &[BufferKey::Tensor(share)], &[BufferKey::Tensor(whole)]);
        for buffer in [share, whole] {
            self.variables.lifetimes.extend_to(buffer, first..self.tables.next_step());
        }
        self.operations.note_writer(whole, operation);
        items
    }

    /// Scatters the sum of a gradient over the replicas before it is added to a shared accumulator.
    /// Returns the scatter and the work that adds the share of this replica, or `None` for other
    /// nodes.
    pub(super) fn scatter_gradient(
        &mut self,
        node: &GraphNode,
        operation: OperationId,
        ipu: IpuId,
    ) -> Option<(Vec<FragmentItem>, OperationWork)> {
        let accumulator = *node.inputs.first()?;
        if self.plan.role(accumulator) != TensorRole::Accumulator
            || !self.plan.sharding.splits(accumulator)
        {
            return None;
        }
        // Only sums over the domain can be sharded, so each micro-batch scatters its gradient.
        let gradient = *node.inputs.get(1)?;
        let work = self.plan.on_share(node)?.work;
        self.operations.set_flops(operation, self.plan.flops_of_share(node));
        let name = self.plan.name(gradient);
        let values = self.plan.values(gradient);
        let first = self.tables.next_step();
        let kind = CollectiveKind::ReduceScatter;
        let over = CollectiveGroup::Domain;
        let items = self.collective(kind, over, name, values, operation, ipu);
        // The step after the collective reads the share.
        self.push_share_variable(gradient, ipu, operation, first..self.tables.next_step() + 1);
        Some((items, work))
    }
}

/// Marks the syncs of a collective as shared with the other IPUs of the set. Each IPU runs the
/// steps on its own part.
fn join_set(items: Vec<FragmentItem>) -> Vec<FragmentItem> {
    let joined = items.into_iter().map(|item| match item {
        FragmentItem::Loop { times, body } => FragmentItem::Loop { times, body: join_set(body) },
        FragmentItem::ReplicaSync { program, ipu } => FragmentItem::SetSync { program, ipu },
        other => other,
    });
    joined.collect()
}
