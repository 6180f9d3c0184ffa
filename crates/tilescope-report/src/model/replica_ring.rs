//! Rings in which replicas exchange data, and the links that carry the data.
//!
//! The IPUs of a machine form a ladder of pairs: links join the two IPUs of a pair, and each of
//! them with its neighbours in the rows above and below. Replicas follow each other along the
//! ladder, so that data for the next replica of a ring mostly passes through others. A ladder has
//! two ends, unless a link joins them.

use super::Target;
use crate::units::{IpuId, ProgramId};
use std::collections::BTreeMap;

/// The order of the replicas in a ring (poplibs lib/popops/ReplicatedCollectives.cpp,
/// `RingPattern`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RingOrder {
    /// By number: 0, 1, 2, 3.
    Flat,
    /// Up the ladder over every other one, and down over the rest: 0, 2, 3, 1.
    Interleaved,
    /// From side to side: 0, 1, 3, 2, 4, 5, 7, 6.
    Serpent,
}

impl RingOrder {
    /// All orders.
    pub const ALL: [RingOrder; 3] = [Self::Flat, Self::Interleaved, Self::Serpent];

    /// The name in the file, as poplibs prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Interleaved => "interleaved",
            Self::Serpent => "serpent",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// The ranks of a ring of `count` replicas, clockwise from rank 0.
    fn ranks(self, count: u32) -> Vec<u32> {
        match self {
            Self::Flat => (0..count).collect(),
            Self::Interleaved => {
                let up = (0..count).step_by(2);
                up.chain((0..count).filter(|rank| rank % 2 == 1).rev()).collect()
            }
            // The last one of an odd number has no partner on the other side.
            Self::Serpent => (0..count).map(|at| (at ^ (at >> 1 & 1)).min(count - 1)).collect(),
        }
    }
}

/// The links between the replicas of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RingLinks {
    /// IPU-Links: a ladder with two ends.
    Ladder,
    /// IPU-Links: a ladder whose ends are joined, too.
    ClosedLadder,
    /// GW-Links between racks; each IPU has a share of them.
    Gateways,
}

impl RingLinks {
    /// All kinds.
    pub const ALL: [RingLinks; 3] = [Self::Ladder, Self::ClosedLadder, Self::Gateways];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ladder => "ladder",
            Self::ClosedLadder => "closed_ladder",
            Self::Gateways => "gateways",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|links| links.name() == name)
    }
}

/// A ring of replicas, or several equal ones side by side. All replicas send as much as they
/// receive.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaRing {
    pub order: RingOrder,
    pub links: RingLinks,
    /// Replicas of one ring.
    pub ranks: u32,
    /// Distance from one of them to the next by number. The replicas in between belong to other
    /// rings.
    pub spacing: u32,
    /// Share of the sent data that goes to the next replica of the ring. The rest goes to the
    /// previous one.
    pub clockwise: f64,
    /// The copies that use the ring.
    pub programs: Vec<ProgramId>,
}

/// The data that a replica sends to another one in a step of a collective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingFlow {
    pub from: u32,
    pub to: u32,
    /// Its share of the sent data.
    pub share: f64,
    /// True if it goes to the next replica of the ring.
    pub clockwise: bool,
}

/// A link from an IPU of the machine to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LadderLink {
    pub from: u32,
    pub to: u32,
}

impl LadderLink {
    /// True if it joins the two IPUs of a pair.
    pub fn is_pair(self) -> bool {
        self.from / 2 == self.to / 2
    }
}

impl ReplicaRing {
    /// The replicas of the ring that contains `replica`, clockwise.
    pub fn members(&self, replica: u32) -> Vec<u32> {
        let first = self.first_of(replica);
        let ranks = self.order.ranks(self.ranks);
        ranks.into_iter().map(|rank| first + rank * self.spacing).collect()
    }

    /// The first replica of the ring that contains `replica`.
    fn first_of(&self, replica: u32) -> u32 {
        let spacing = self.spacing.max(1);
        let all = spacing.saturating_mul(self.ranks).max(1);
        replica / all * all + replica % spacing
    }

    /// The flows between `replicas` replicas in a step.
    pub fn flows(&self, replicas: u32) -> Vec<RingFlow> {
        let mut flows = Vec::new();
        for first in (0..replicas).filter(|replica| self.first_of(*replica) == *replica) {
            let members = self.members(first);
            let next = members.iter().cycle().skip(1);
            for (one, other) in members.iter().zip(next) {
                let one = *one;
                let other = *other;
                let ways = [
                    RingFlow { from: one, to: other, share: self.clockwise, clockwise: true },
                    RingFlow {
                        from: other,
                        to: one,
                        share: 1.0 - self.clockwise,
                        clockwise: false,
                    },
                ];
                flows.extend(ways.into_iter().filter(|flow| one != other && flow.share > 0.0));
            }
        }
        flows
    }

    /// The links that a flow passes, from the IPU at a place in one replica to the IPU at the same
    /// place in another. None over GW-Links.
    fn path(&self, flow: RingFlow, at: ReplicaPlaces) -> Vec<LadderLink> {
        if self.links == RingLinks::Gateways {
            return Vec::new();
        }
        // The part of the ladder that belongs to the ring and to the replicas between its members.
        let each = self.ranks.saturating_mul(self.spacing).max(1);
        let extent = each.saturating_mul(at.shape.ipus_per_replica).max(1);
        let from = at.ipu(flow.from);
        let to = at.ipu(flow.to);
        let first = from / extent * extent / 2;
        let rows = extent.div_ceil(2);
        let row = from / 2 - first;
        let end = to / 2 - first;
        let side = from % 2;
        // Along the ladder first, then across.
        let up = (end + rows - row) % rows;
        let goes_up = match self.links {
            // Halfway around, both directions are equally long: data stay in the direction of their
            // ring.
            RingLinks::ClosedLadder if 2 * up == rows => flow.clockwise,
            RingLinks::ClosedLadder => 2 * up < rows,
            RingLinks::Ladder | RingLinks::Gateways => end > row,
        };
        let hops = match self.links {
            RingLinks::ClosedLadder => up.min(rows - up),
            RingLinks::Ladder | RingLinks::Gateways => row.abs_diff(end),
        };
        let mut stops = Vec::with_capacity(hops as usize + 2);
        let mut at = row;
        for _ in 0..=hops {
            stops.push(2 * (first + at) + side);
            at = if goes_up { (at + 1) % rows } else { (at + rows - 1) % rows };
        }
        if stops.last() != Some(&to) {
            stops.push(to);
        }
        stops.windows(2).map(|ends| LadderLink { from: ends[0], to: ends[1] }).collect()
    }

    /// The load of each link in a step in which the IPU at each of `places` sends one byte in each
    /// replica, in bytes. Empty if the route of the data is not known.
    pub fn link_loads(&self, shape: ReplicaShape, places: &[IpuId]) -> BTreeMap<LadderLink, f64> {
        let mut loads: BTreeMap<LadderLink, f64> = BTreeMap::new();
        if self.order == RingOrder::Serpent {
            // The ends of a Barley twist are joined crosswise, so the route is not known.
            return loads;
        }
        let flows = self.flows(shape.replicas);
        for place in places {
            let at = ReplicaPlaces { shape, place: *place };
            for flow in &flows {
                for link in self.path(*flow, at) {
                    *loads.entry(link).or_default() += flow.share;
                }
            }
        }
        loads
    }

    /// Share of the data sent by one IPU of each replica in a step that passes through each replica
    /// on its way between others.
    pub fn passed_on(&self, shape: ReplicaShape, place: IpuId) -> Vec<f64> {
        let mut passed = vec![0.0; shape.replicas as usize];
        let at = ReplicaPlaces { shape, place };
        for flow in self.flows(shape.replicas) {
            let through = self.path(flow, at).into_iter().map(|link| link.to);
            let mut replicas: Vec<u32> =
                through.map(|ipu| ipu / shape.ipus_per_replica.max(1)).collect();
            replicas.dedup();
            for replica in replicas.into_iter().filter(|of| *of != flow.from && *of != flow.to) {
                if let Some(passed) = passed.get_mut(replica as usize) {
                    *passed += flow.share;
                }
            }
        }
        passed
    }
}

/// The number of replicas, and of IPUs of the machine in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaShape {
    pub replicas: u32,
    pub ipus_per_replica: u32,
}

impl ReplicaShape {
    /// The replicas of a target. Each also includes the IPUs that work like those of the report.
    pub fn of(target: &Target) -> Self {
        let ipus_per_replica = target.ipus_per_replica.saturating_mul(target.identical_ipus());
        Self { replicas: target.replicas, ipus_per_replica }
    }

    /// IPUs of all replicas.
    pub fn ipus(self) -> u64 {
        u64::from(self.replicas) * u64::from(self.ipus_per_replica)
    }
}

/// The IPUs at one place in all replicas.
#[derive(Clone, Copy)]
struct ReplicaPlaces {
    shape: ReplicaShape,
    place: IpuId,
}

impl ReplicaPlaces {
    /// The number of an IPU of a replica within the machine.
    fn ipu(self, replica: u32) -> u32 {
        replica * self.shape.ipus_per_replica + self.place.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn ring(order: RingOrder, links: RingLinks, ranks: u32, clockwise: f64) -> ReplicaRing {
        ReplicaRing { order, links, ranks, spacing: 1, clockwise, programs: Vec::new() }
    }

    #[test]
    fn orders_are_those_of_poplibs() {
        let members = |order, count| ring(order, RingLinks::Ladder, count, 1.0).members(0);
        assert_eq!(members(RingOrder::Interleaved, 8), [0, 2, 4, 6, 7, 5, 3, 1]);
        assert_eq!(members(RingOrder::Interleaved, 3), [0, 2, 1]);
        assert_eq!(members(RingOrder::Flat, 4), [0, 1, 2, 3]);
        assert_eq!(members(RingOrder::Serpent, 8), [0, 1, 3, 2, 4, 5, 7, 6]);
    }

    #[test]
    fn parallel_rings_do_not_mix() {
        let mut of = ring(RingOrder::Flat, RingLinks::Ladder, 2, 1.0);
        of.spacing = 3;
        assert_eq!(
            (of.members(1), of.members(5), of.members(6)),
            (vec![1, 4], vec![2, 5], vec![6, 9])
        );
    }

    #[test]
    fn data_pass_through_the_middle_of_an_open_ladder_and_never_through_its_ends() {
        let shape = ReplicaShape { replicas: 6, ipus_per_replica: 4 };
        let open = ring(RingOrder::Interleaved, RingLinks::Ladder, 6, 1.0);
        assert_eq!(open.passed_on(shape, IpuId(2)), [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
        let closed = ring(RingOrder::Flat, RingLinks::ClosedLadder, 6, 0.5);
        assert_eq!(closed.passed_on(shape, IpuId(2)), [0.0; 6]);
        let single = ReplicaShape { replicas: 6, ipus_per_replica: 1 };
        assert_eq!(open.passed_on(single, IpuId(0)), [0.0; 6], "up one side, down the other");
    }

    #[test]
    fn two_ipus_on_a_side_of_the_ladder_share_its_links() {
        let shape = ReplicaShape { replicas: 4, ipus_per_replica: 4 };
        let most = |of: &ReplicaRing, places: &[u32]| {
            let places: Vec<IpuId> = places.iter().copied().map(IpuId).collect();
            of.link_loads(shape, &places).into_values().fold(0.0, f64::max)
        };
        let open = ring(RingOrder::Interleaved, RingLinks::Ladder, 4, 1.0);
        let loads = [&[0][..], &[0, 1], &[0, 2], &[0, 1, 2, 3]].map(|places| most(&open, places));
        assert_eq!(loads, [1.0, 1.0, 2.0, 2.0]);
        let closed = ring(RingOrder::Flat, RingLinks::ClosedLadder, 4, 0.5);
        assert_eq!(most(&closed, &[0, 1, 2, 3]), 1.0);
        // A ring of two has one link for each direction.
        let shape = ReplicaShape { replicas: 2, ipus_per_replica: 4 };
        let two = ring(RingOrder::Flat, RingLinks::ClosedLadder, 2, 0.5);
        let most = two.link_loads(shape, &[IpuId(0)]).into_values().fold(0.0, f64::max);
        assert_eq!(most, 0.5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn every_replica_sends_as_much_as_it_receives(
            order in prop::sample::select(vec![RingOrder::Flat, RingOrder::Interleaved]),
            links in prop::sample::select(RingLinks::ALL.to_vec()),
            (ranks, spacing, rings) in (1u32..9, 1u32..4, 1u32..3),
            ipus in 1u32..5,
            two_ways in any::<bool>(),
        ) {
            let of = ReplicaRing {
                spacing,
                ..ring(order, links, ranks, if two_ways { 0.5 } else { 1.0 })
            };
            let shape = ReplicaShape { replicas: ranks * spacing * rings, ipus_per_replica: ipus };
            let mut sent = vec![0.0; shape.replicas as usize];
            let mut received = sent.clone();
            for RingFlow { from, to, share, .. } in of.flows(shape.replicas) {
                sent[from as usize] += share;
                received[to as usize] += share;
            }
            let each = if ranks > 1 { 1.0 } else { 0.0 };
            prop_assert!(sent.iter().chain(&received).all(|share| (share - each).abs() < 1e-9));
            // Data that leave a replica over its links have come in over them, or are its own.
            let at = IpuId(ipus - 1);
            let replica = |ipu: u32| (ipu / ipus) as usize;
            // The last row of the ladder may have an IPU that belongs to no replica.
            let mut out = vec![0.0; shape.replicas as usize + 1];
            let mut into = out.clone();
            for (link, load) in of.link_loads(shape, &[at]) {
                if replica(link.from) != replica(link.to) {
                    out[replica(link.from)] += load;
                    into[replica(link.to)] += load;
                }
            }
            for (out, into) in out.iter().zip(&into) {
                prop_assert!((out - into).abs() < 1e-9, "{out} {into}");
            }
        }
    }
}
