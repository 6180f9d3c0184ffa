//! Collectives between replicas, and between IPUs of a replica that share a layer, or rows.

use super::fragments::ProgramBuilder;
use super::phase_split;
use super::program_tables::{FragmentItem, LeafProgramCost};
use super::transfers::external_sync;
use crate::graph::GraphNode;
use crate::operators::ShardCrossing;
use crate::poplar::code_bytes;
use crate::poplar::exchange::send_instructions;
use crate::poplar::work::{OperationWork, OperationWorkItem};
use crate::popops::collective;
use crate::popops::collective::{CollectiveKind, CollectiveRanks, CollectiveRound};
use crate::shape::DType;
use tilescope_report::units::{Bytes, Cycles, Elements, IpuId, OperationId, TileRuns};
use tilescope_report::{MemoryCategory, ProgramKind, ProgramNode, ReplicaRing, TileTraffic};

/// Who takes part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectiveGroup {
    /// All replicas.
    All,
    /// Replicas that share tensors out.
    Domain,
    /// Replicas that have the same share, one of each domain (PopART's orthogonal group).
    Orthogonal,
    /// The IPUs of a replica, which share the rows of fields.
    Rows,
}

/// Who takes part in a collective.
#[derive(Clone, Copy)]
struct CollectiveOver {
    ranks: CollectiveRanks,
    /// None between the IPUs that a layer is split over.
    group: Option<CollectiveGroup>,
}

impl ProgramBuilder<'_> {
    /// What crosses between the IPUs that a layer is split over, after a node at its edge.
    pub(super) fn shard_collective(
        &mut self,
        node: &GraphNode,
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let set = phase_split::set_size(self.spec);
        let ranks = match set {
            Some(size) => phase_split::set_ranks(self.spec, u64::from(size)),
            None => {
                let count = u64::from(self.spec.options.tensor_parallel);
                CollectiveRanks { count, ipus: 1, groups: 1 }
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
            let over = CollectiveOver { ranks, group: None };
            self.collective_over(over, *kind, &name, (dtype, &elements), operation, ipu)
        };
        let items: Vec<FragmentItem> = halves.iter().flat_map(half).collect();
        if set.is_some() { self.join_set(items, ipu) } else { items }
    }

    /// One half of an all-reduce over replicas, or over the IPUs that share rows; nothing where there
    /// is one.
    pub(super) fn collective(
        &mut self,
        kind: CollectiveKind,
        over: CollectiveGroup,
        name: &str,
        elements: (DType, &TileRuns<Elements>),
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let members = CollectiveOver { ranks: self.ranks(over), group: Some(over) };
        let items = self.collective_over(members, kind, name, elements, operation, ipu);
        // IPUs that share rows all take part, each with the same steps.
        if over == CollectiveGroup::Rows { self.join_set(items, ipu) } else { items }
    }

    /// The members of a group, as they lie in the system.
    fn ranks(&self, over: CollectiveGroup) -> CollectiveRanks {
        let options = &self.spec.options;
        let ipus = u64::from(self.spec.target.ipus * options.tensor_parallel);
        let (sharding, row_shards) = (&self.sharding, self.graph.row_shards as u64);
        match over {
            CollectiveGroup::All => {
                let count = u64::from(options.replication_factor);
                // IPUs that share rows go round with those at their place all at once.
                CollectiveRanks { count, ipus, groups: row_shards }
            }
            CollectiveGroup::Rows => CollectiveRanks { count: row_shards, ipus: 1, groups: 1 },
            CollectiveGroup::Domain => {
                CollectiveRanks { count: sharding.replicas, ipus, groups: 1 }
            }
            CollectiveGroup::Orthogonal => CollectiveRanks {
                count: sharding.domains,
                ipus: ipus * sharding.replicas,
                groups: sharding.replicas,
            },
        }
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
        let rounds = collective::rounds(self.system, over.ranks, kind, bytes);
        let name = format!("{name}/{}", kind.name());
        let step = |builder: &mut Self, round: &CollectiveRound| {
            let ring = over.group.and_then(|group| builder.ring(group, round));
            let round = match &ring {
                Some(ring) => builder.within_links(*round, ring, (operation, ipu)),
                None => *round,
            };
            let round = (&round, ring.as_ref());
            let body = builder.collective_step(kind, &name, dtype, elements, round, operation, ipu);
            let (round, _) = round;
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
        (round, ring): (&CollectiveRound, Option<&ReplicaRing>),
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
            (round, ring),
            operation,
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
        (round, ring): (&CollectiveRound, Option<&ReplicaRing>),
        operation: OperationId,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let total = bytes.total();
        let tiles = bytes.tile_count();
        let sync = external_sync(&mut self.tables);
        // Beyond the signal, replicas that are alike do not wait for each other.
        let cycles = self.system.external_sync_cycles;
        let waiting = super::program_tables::whole_ipu_cost(ipu, cycles, self.tables.tiles_per_ipu);
        self.tables.costs.insert(sync, waiting);
        self.tables.replica_syncs.insert(sync);
        self.tables.programs[sync.index()].ipu = Some(ipu);
        let cycles = Cycles::from_f64((total.as_f64() / round.bytes_per_cycle).ceil());
        let cost = LeafProgramCost {
            bytes_in: total,
            bytes_out: total,
            active_tiles: tiles,
            ..super::program_tables::whole_ipu_cost(ipu, cycles, tiles)
        };
        let name = format!("{name}/crossReplicaCopy");
        let program = ProgramNode {
            ipu: Some(ipu),
            operation: Some(operation),
            ..ProgramNode::new(ProgramKind::GlobalExchange, name)
        };
        let target = self.tables.kind;
        let copy = self.tables.push_leaf_with_cost(program, cost, bytes);
        ring.into_iter().for_each(|ring| self.rings.note(ring, copy));
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
            self.tables.program_code(copy, ipu, bytes, steps.control);
            let category = MemoryCategory::InternalExchangeCode;
            self.tables.code_on(category, ipu, bytes, steps.internal_exchange);
        }
        vec![FragmentItem::Leaf(sync), FragmentItem::Leaf(copy)]
    }
}
