//! The rings of collectives, and the bandwidth that the links between replicas leave to each.

use super::program_plan::ProgramPlan;
use crate::popops::collective::{CollectiveMethod, CollectiveRanks, CollectiveRound};
use crate::schedule::{SyncGroups, WeightUpdateTiming};
use crate::specification::{AccumulateOuterSchedule, Spec};
use crate::targets::IpuLinkTopology;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{IpuId, ProgramId};
use tilescope_report::{
    Bandwidth, MachineInterface, ReplicaRing, ReplicaShape, RingLinks, RingOrder, TrainingPass,
};

/// The identity of a ring.
type RingKey = (RingOrder, RingLinks, u32, u32, bool);

/// The participants of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectiveGroup {
    /// All replicas.
    All,
    /// Replicas that share tensors.
    Domain,
    /// Replicas that hold the same share, one from each domain (PopART's orthogonal group).
    Orthogonal,
    /// The IPUs of a replica, which share the rows of fields.
    Rows,
}

/// The rings of a program, collected while its collectives are added.
pub(super) struct ReplicaRings<'a> {
    plan: &'a ProgramPlan<'a>,
    programs: BTreeMap<RingKey, Vec<ProgramId>>,
    /// Bytes per cycle that the links leave to each IPU in a ring, by the IPUs that use them at
    /// once.
    rates: BTreeMap<(RingKey, Vec<IpuId>), f64>,
}

impl<'a> ReplicaRings<'a> {
    pub(super) fn new(plan: &'a ProgramPlan<'a>) -> Self {
        Self { plan, programs: BTreeMap::new(), rates: BTreeMap::new() }
    }

    /// Records that a copy uses a ring.
    pub(super) fn note(&mut self, ring: &ReplicaRing, program: ProgramId) {
        self.programs.entry(key(ring)).or_default().push(program);
    }

    /// Returns all rings, and the peak bandwidth of the links that they use.
    pub(super) fn into_rings(self) -> (Vec<ReplicaRing>, Vec<Bandwidth>) {
        let system = &self.plan.system;
        let rings: Vec<ReplicaRing> = self
            .programs
            .into_iter()
            .map(|((order, links, ranks, spacing, both), programs)| ReplicaRing {
                order,
                links,
                ranks,
                spacing,
                clockwise: if both { 0.5 } else { 1.0 },
                programs,
            })
            .collect();
        if rings.is_empty() {
            return (rings, Vec::new());
        }
        let most = [
            (MachineInterface::LadderLinks, system.ladder_bytes_per_cycle),
            (MachineInterface::PairLinks, system.pair_bytes_per_cycle),
            (MachineInterface::Gateways, system.gateway_bytes_per_cycle),
        ];
        let bandwidths =
            most.map(|(interface, bytes_per_cycle)| Bandwidth { interface, bytes_per_cycle });
        (rings, bandwidths.to_vec())
    }

    /// The members of a group and their positions in the system.
    pub(super) fn ranks(&self, over: CollectiveGroup) -> CollectiveRanks {
        let options = &self.plan.spec.options;
        let ipus = u64::from(self.plan.spec.target.ipus * options.tensor_parallel);
        let sharding = &self.plan.sharding;
        let row_shards = self.plan.graph.row_shards as u64;
        match over {
            CollectiveGroup::All => {
                let count = u64::from(options.replication_factor);
                // IPUs that share rows take part at once, each with its counterparts in the other
                // replicas.
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

    /// The ring in which some replicas perform a round of a collective. `None` if they do not fill
    /// their rings, or if the participants are not replicas.
    pub(super) fn ring(
        &self,
        over: CollectiveGroup,
        round: &CollectiveRound,
    ) -> Option<ReplicaRing> {
        let spacing = match over {
            CollectiveGroup::All | CollectiveGroup::Domain => 1,
            CollectiveGroup::Orthogonal => self.plan.sharding.replicas,
            CollectiveGroup::Rows => return None,
        };
        let spacing = spacing * round.spacing;
        let ipus = u64::from(shape(self.plan.spec).ipus_per_replica);
        // True if neighbours of a ring are neighbouring IPUs.
        let single = ipus * spacing == 1;
        let fills_rack = round.ranks * ipus == u64::from(self.plan.system.link_domain);
        let closed = !single && spacing == 1 && fills_rack;
        let (order, links) = match self.plan.system.topology {
            // IPU-Links end at the rack, so the topology within it does not matter.
            _ if round.between_racks => (RingOrder::Flat, RingLinks::Gateways),
            IpuLinkTopology::BarleyTwist => (RingOrder::Serpent, RingLinks::ClosedLadder),
            IpuLinkTopology::Torus if closed => (RingOrder::Flat, RingLinks::ClosedLadder),
            // Poplar does not use the links that join the ends for replicas of one IPU.
            IpuLinkTopology::Torus if !single => (RingOrder::Flat, RingLinks::Ladder),
            IpuLinkTopology::Torus | IpuLinkTopology::Mesh => {
                (RingOrder::Interleaved, RingLinks::Ladder)
            }
        };
        let clockwise = match round.method {
            CollectiveMethod::ClockwiseRing => 1.0,
            // The last step of an even ring that meets in the middle uses one direction only. Over
            // all steps, both directions are assumed to carry the same amount.
            CollectiveMethod::MeetInMiddleRing
            | CollectiveMethod::BidirectionalRingPair
            | CollectiveMethod::QuadDirectionalRing => 0.5,
        };
        let all = round.ranks.saturating_mul(spacing);
        let fits = u64::from(shape(self.plan.spec).replicas).is_multiple_of(all.max(1));
        let ranks = u32::try_from(round.ranks).unwrap_or(u32::MAX);
        let spacing = u32::try_from(spacing).unwrap_or(u32::MAX);
        let ring = ReplicaRing { order, links, ranks, spacing, clockwise, programs: Vec::new() };
        if !fits {
            return None;
        }
        Some(ring)
    }

    /// Extends a round to the time that the links between replicas need for all their simultaneous
    /// traffic. The busiest link decides.
    pub(super) fn within_links(
        &mut self,
        round: CollectiveRound,
        ring: &ReplicaRing,
        (pass, ipu): (TrainingPass, IpuId),
    ) -> CollectiveRound {
        let places = self.places_at_once(pass, ipu);
        let system = &self.plan.system;
        let shape = shape(self.plan.spec);
        // Most collectives of an IPU share ring and neighbours, so loads are computed once.
        let rate = *self.rates.entry((key(ring), places)).or_insert_with_key(|(_, places)| {
            let loads = ring.link_loads(shape, places).into_iter();
            let left = loads.map(|(link, load)| {
                if link.is_pair() {
                    system.pair_bytes_per_cycle / load
                } else {
                    system.ladder_bytes_per_cycle / load
                }
            });
            left.fold(f64::INFINITY, f64::min)
        });
        CollectiveRound { bytes_per_cycle: round.bytes_per_cycle.min(rate), ..round }
    }

    /// The IPUs whose collectives can run at the same time as that of a pass of an IPU, including
    /// the IPU itself, by their positions in a replica.
    fn places_at_once(&self, pass: TrainingPass, ipu: IpuId) -> Vec<IpuId> {
        let plan = self.plan;
        let options = &self.plan.spec.options;
        let takes_turns = match pass {
            TrainingPass::Update => {
                // Updates in slots or phases overlap with those of other stages. Only updates after
                // an iteration can take turns.
                plan.schedule.update == WeightUpdateTiming::PerIteration
                    && options.accumulate_outer_schedule == AccumulateOuterSchedule::Serial
            }
            _ => plan.schedule.one_by_one,
        };
        // The IPUs that a layer is split over run the same collectives, each on its own part.
        let alike = options.tensor_parallel;
        let own = |ipu: IpuId| (ipu.0 * alike..(ipu.0 + 1) * alike).map(IpuId);
        let all = (0..plan.spec.target.ipus).map(IpuId);
        if plan.graph.row_shards > 1 || !takes_turns {
            return all.flat_map(own).collect();
        }
        // The IPUs of a set work on their phase at the same time.
        let stages = &plan.placement.stages;
        let sets = plan.placement.peers().iter();
        let mine = sets.filter(|set| stages[(*set).clone()].iter().any(|stage| stage.ipu == ipu));
        let mut at_once: BTreeSet<IpuId> =
            mine.flat_map(|set| &stages[set.clone()]).map(|stage| stage.ipu).collect();
        if pass == TrainingPass::Update {
            // An update waits at the syncs of another, unless it is on the other side of the
            // ladder.
            let groups = SyncGroups::new(options.sync_pattern, plan.spec.target.ipus);
            let joined = groups.copy_sync_group(&[ipu]);
            at_once.extend(all.filter(|of| !joined.contains(of)));
        }
        at_once.into_iter().flat_map(own).collect()
    }
}

fn key(ring: &ReplicaRing) -> RingKey {
    (ring.order, ring.links, ring.ranks, ring.spacing, ring.clockwise < 1.0)
}

/// The number of replicas, and the number of IPUs of the machine that each has.
fn shape(spec: &Spec) -> ReplicaShape {
    ReplicaShape {
        replicas: spec.options.replication_factor,
        ipus_per_replica: spec.target.ipus * spec.options.tensor_parallel,
    }
}
