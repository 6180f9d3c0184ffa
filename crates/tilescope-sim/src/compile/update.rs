//! The weight update of one parameter: gradients from the other replicas, state from streaming
//! memory, and the optimiser on all of it or on this replica's shard.

use super::fragments::Maker;
use super::tables::{Item, LeafCost, Placed, leaf};
use super::tensors::Home;
use super::transfers::external_sync;
use crate::graph::Node;
use crate::operators::{Lowering, NodeOperands, ShardCrossing};
use crate::poplar::code;
use crate::poplar::exchange::sends;
use crate::poplar::work::{Work, WorkItem};
use crate::popops::collective;
use crate::popops::collective::{Kind, Ranks, Round};
use crate::shape::{BlockId, DType, Role, Tensor, TensorId, TensorType};
use tilescope_report::units::{OperationId, TileRuns};
use tilescope_report::{Category, Pass, Program, ProgramKind, TileTraffic};

impl Maker<'_> {
    /// Puts the update of one parameter down.
    pub(super) fn update_node(
        &mut self,
        index: usize,
        node: &Node,
        stage: usize,
        ipu: u32,
    ) -> Vec<Item> {
        let operation = self.operation(node, &node.name, (stage, node.pass), ipu, None);
        let gradient = node.inputs[1];
        let shard = node.inputs[2..].iter().any(|state| self.sharded.contains(state));
        let off_chip: Vec<TensorId> =
            node.inputs.iter().copied().filter(|tensor| self.is_off_chip(*tensor)).collect();
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let mut items = Vec::new();
        let (early, late): (Vec<TensorId>, Vec<TensorId>) =
            off_chip.iter().partition(|tensor| self.graph.tensor(**tensor).role != Role::State);
        for tensor in early {
            items.extend(self.kept_copy(tensor, ipu, true));
        }
        items.extend(self.collective(Kind::ReduceScatter, gradient, operation, ipu));
        if !shard {
            items.extend(self.collective(Kind::AllGather, gradient, operation, ipu));
        }
        // State is fetched when the gradient is there, so that it lies in memory for a short time.
        let state_first = self.tables.next_step();
        for tensor in late {
            items.extend(self.kept_copy(tensor, ipu, true));
        }
        let work = if shard { self.shard_work(node) } else { None };
        let work = work.unwrap_or_else(|| self.works[index].work.clone());
        let Placed { items: leaves, steps, shared } =
            self.tables.work(Some(operation), &node.name, ipu, &work);
        items.extend(leaves);
        self.keep_temporaries(&work, operation, &node.name, ipu, &steps);
        if !shared {
            self.keep_constants(&work, operation, &node.name, ipu);
        }
        if shard {
            items.extend(self.collective(Kind::AllGather, node.inputs[0], operation, ipu));
        }
        for tensor in off_chip {
            items.extend(self.kept_copy(tensor, ipu, false));
        }
        let end = self.tables.next_step();
        for tensor in &node.inputs {
            let home: Home = self.tensors.home(*tensor, stage, ipu, Pass::Update);
            let from = match self.graph.tensor(*tensor).role {
                Role::State => state_first,
                _ => first,
            };
            self.lifetimes.touch(home, from..end);
        }
        items
    }

    /// The update of one replica's shard, lowered like any other: the collective leaves the shard
    /// laid out evenly over the tiles.
    fn shard_work(&self, node: &Node) -> Option<Work> {
        let replicas = u64::from(self.spec.options.replication_factor);
        let shard = |id: &TensorId| {
            let whole = self.graph.tensor(*id);
            let elements = whole.ty.elements().div_ceil(replicas);
            let ty = TensorType::new([elements], whole.ty.dtype);
            Tensor { ty, block: BlockId(0), ..whole.clone() }
        };
        let tensors: Vec<Tensor> = node.inputs.iter().map(shard).collect();
        let inputs: Vec<TensorId> = (0..tensors.len()).map(TensorId).collect();
        let operands = NodeOperands { inputs: &inputs, ..node.operands() };
        let (machine, planning) = (self.lowering.machine, self.lowering.planning);
        let mut lowering = Lowering::new(&tensors, machine, true, planning, self.lowering.plans);
        node.operator.lower(&mut lowering, &operands).ok().map(|lowered| lowered.work)
    }

    /// What crosses between the IPUs that a layer is split over, after a node at its edge.
    pub(super) fn shard_collective(
        &mut self,
        node: &Node,
        operation: OperationId,
        ipu: u32,
    ) -> Vec<Item> {
        let ranks = Ranks { count: u64::from(self.spec.options.tensor_parallel), ipus: 1 };
        let halves: &[Kind] = match node.operator.shard_crossing() {
            ShardCrossing::Sum => &[Kind::ReduceScatter, Kind::AllGather],
            ShardCrossing::Gather => &[Kind::AllGather],
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
        kind: Kind,
        tensor: TensorId,
        operation: OperationId,
        ipu: u32,
    ) -> Vec<Item> {
        let options = &self.spec.options;
        let ipus = u64::from(self.spec.target.ipus * options.tensor_parallel);
        let ranks = Ranks { count: u64::from(options.replication_factor), ipus };
        self.collective_over(ranks, kind, tensor, operation, ipu)
    }

    fn collective_over(
        &mut self,
        ranks: Ranks,
        kind: Kind,
        tensor: TensorId,
        operation: OperationId,
        ipu: u32,
    ) -> Vec<Item> {
        let dtype = self.lowering.ty(tensor).dtype;
        let elements = self.lowering.layout_or_linear(tensor).elements;
        let bytes = elements.total() * dtype.bytes();
        let rounds = collective::rounds(self.system, ranks, kind, bytes);
        let name = format!("{}/{}", self.graph.tensor(tensor).name, kind.name());
        let step = |maker: &mut Self, round: &Round| {
            let body = maker.collective_step(kind, &name, dtype, &elements, round, operation, ipu);
            if round.steps == 1 { body } else { vec![Item::Loop { times: round.steps, body }] }
        };
        rounds.iter().flat_map(|round| step(self, round)).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "a step is made of all of these")]
    fn collective_step(
        &mut self,
        kind: Kind,
        name: &str,
        dtype: DType,
        elements: &TileRuns<u64>,
        round: &Round,
        operation: OperationId,
        ipu: u32,
    ) -> Vec<Item> {
        let share = |count: &u64| (*count as f64 * round.share).ceil() as u64;
        let part = elements.map(share);
        let (slice, add) = collective::step_phases(kind, dtype, &part);
        let phases = |phase| Work { items: vec![WorkItem::Phase(phase)], temporaries: Vec::new() };
        let mut items = self.tables.work(Some(operation), name, ipu, &phases(slice)).items;
        items.extend(self.cross_replica_copy(name, &part.map(|n| n * dtype.bytes()), round, ipu));
        if let Some(add) = add {
            items.extend(self.tables.work(Some(operation), name, ipu, &phases(add)).items);
        }
        items
    }

    /// The copy of one step to the neighbours: every replica sends and receives as much.
    fn cross_replica_copy(
        &mut self,
        name: &str,
        bytes: &TileRuns<u64>,
        round: &Round,
        ipu: u32,
    ) -> Vec<Item> {
        let total = bytes.total();
        let tiles = bytes.tile_count() as u32;
        let sync = external_sync(&mut self.tables);
        // The replicas run alike, so none waits longer for the others than the signal takes.
        let cycles = self.system.external_sync_cycles;
        let waiting = super::tables::whole_ipu(ipu, cycles, self.tables.tiles_per_ipu);
        self.tables.costs.insert(sync, waiting);
        self.tables.programs[sync.index()].ipu = Some(ipu);
        let cycles = (total as f64 / round.bytes_per_cycle).ceil() as u64;
        let cost = LeafCost {
            bytes_in: total,
            bytes_out: total,
            active_tiles: tiles,
            ..super::tables::whole_ipu(ipu, cycles, tiles)
        };
        let name = format!("{name}/crossReplicaCopy");
        let program = Program { name, ipu: Some(ipu), ..leaf(ProgramKind::GlobalExchange) };
        let target = self.tables.kind;
        let copy = self.tables.costed(program, cost, bytes);
        // Equal steps of one IPU share their code.
        let print = format!("{round:?} {bytes:?}");
        let known = self.tables.has_code(ipu, &print);
        let code_bytes = if known { 0 } else { code::collective_code_bytes(target) };
        let traffic = bytes.map(|bytes| TileTraffic {
            bytes_in: *bytes,
            bytes_out: *bytes,
            bytes_delivered: *bytes,
            messages_in: sends(*bytes, 1),
            messages_out: sends(*bytes, 1),
            code_bytes,
        });
        self.tables.traffic(copy, ipu, traffic, Category::GlobalExchangeCode);
        if !known {
            let (control, internal) = code::collective_step_bytes(round.steps, round.ranks);
            self.tables.code_on(Category::ControlCode, ipu, bytes, control);
            self.tables.code_on(Category::InternalExchangeCode, ipu, bytes, internal);
        }
        vec![Item::Leaf(sync), Item::Leaf(copy)]
    }
}
