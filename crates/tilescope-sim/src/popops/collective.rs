//! Collectives between replicas: method, number of steps, and duration of a step.
//!
//! Poplar lowers them to ordinary programs. Each step extracts the fragment to send from the
//! tensor, copies it to the neighbour and, when reducing, adds the received data. Programs, methods
//! and thresholds are those of the last open version (poplibs lib/popops/ReplicatedCollectives.cpp,
//! 2021). Bytes per rank are `(n-1)/n` of the tensor for each half (poplibs tools/collectives.cpp).

use super::elementwise::{self, BinaryOpType, ElementwiseOp, FusedExpression, vector_width};
use super::relayout;
use crate::cost_constants::{
    MANY_RANKS, SMALL_ALL_GATHER_BYTES, SMALL_BARLEY_TWIST_BYTES, SMALL_BYTES_FROM_FIVE_RANKS,
    SMALL_BYTES_FROM_NINE_RANKS,
};
use crate::poplar::code_bytes;
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::work::{OperationWork, WorkPhase, WorkPhaseKind};
use crate::shape::DType;
use crate::targets::{IpuLinkTopology, IpuTarget, SystemCosts, WORKERS};
use tilescope_report::TileTraffic;
use tilescope_report::units::{Bytes, Cycles, Elements, TileRange, TileRuns};

/// The two halves of an all-reduce. Each is a separate collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    /// Leaves each replica with the sum of its part.
    ReduceScatter,
    /// Leaves each replica with all parts.
    AllGather,
}

impl CollectiveKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReduceScatter => "reduceScatter",
            Self::AllGather => "allGather",
        }
    }
}

/// Route of the fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveMethod {
    ClockwiseRing,
    /// Both directions to the far side, with half the number of steps.
    MeetInMiddleRing,
    /// Two rings, one in each direction, with half a fragment on each.
    BidirectionalRingPair,
    /// Both directions on two rings at once.
    QuadDirectionalRing,
}

/// Replicas that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CollectiveRanks {
    pub count: u64,
    /// Distance between adjacent replicas in IPUs.
    pub ipus: u64,
    /// Number of such groups that run at the same time, over the same links of the ladder.
    pub groups: u64,
}

/// Steps of one half on one kind of link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CollectiveRound {
    /// Route of the fragments.
    pub method: CollectiveMethod,
    /// Number of replicas that take part.
    pub ranks: u64,
    /// Distance between adjacent replicas of the round in the numbering of all replicas.
    pub spacing: u64,
    /// True if the replicas are in different racks.
    pub between_racks: bool,
    pub steps: u64,
    /// Share of the tensor that each step moves.
    pub share: f64,
    /// Bytes per cycle of an IPU. Four single-IPU replicas that use both directions were measured
    /// at the rate of one direction (PopTorch's data-loading tutorial), so both directions share
    /// it.
    pub bytes_per_cycle: f64,
}

/// Returns the method for `bytes` on each IPU.
pub(crate) fn method(
    topology: IpuLinkTopology,
    ranks: CollectiveRanks,
    kind: CollectiveKind,
    bytes: Bytes,
) -> CollectiveMethod {
    // Thresholds apply to the input of one IPU: its part of an all-gather, or the whole of a
    // reduce-scatter, whose thresholds are twice as high.
    let bytes = match kind {
        CollectiveKind::AllGather => bytes / ranks.count.max(1),
        CollectiveKind::ReduceScatter => bytes / 2,
    };
    let small = bytes < SMALL_ALL_GATHER_BYTES.bytes()
        || (ranks.count > 4 && bytes < SMALL_BYTES_FROM_FIVE_RANKS.bytes())
        || (ranks.count > 8 && bytes < SMALL_BYTES_FROM_NINE_RANKS.bytes())
        || ranks.count > MANY_RANKS.count();
    match topology {
        IpuLinkTopology::BarleyTwist if bytes < SMALL_BARLEY_TWIST_BYTES.bytes() => {
            CollectiveMethod::MeetInMiddleRing
        }
        IpuLinkTopology::BarleyTwist => CollectiveMethod::QuadDirectionalRing,
        IpuLinkTopology::Torus if ranks.ipus > 1 => CollectiveMethod::MeetInMiddleRing,
        // Upstream and downstream neighbours of two ranks are the same: two streams would only
        // share its links.
        _ if ranks.ipus > 1 || ranks.count <= 2 => CollectiveMethod::ClockwiseRing,
        _ if small => CollectiveMethod::MeetInMiddleRing,
        _ => CollectiveMethod::BidirectionalRingPair,
    }
}

/// Returns the rounds of one half for `bytes` on each IPU: within a rack, and over GW-Links between
/// racks.
pub(crate) fn rounds(
    system: &SystemCosts,
    ranks: CollectiveRanks,
    kind: CollectiveKind,
    bytes: Bytes,
) -> Vec<CollectiveRound> {
    if ranks.count < 2 {
        return Vec::new();
    }
    let in_rack = (u64::from(system.link_domain) / ranks.ipus.max(1)).clamp(1, ranks.count);
    let racks = ranks.count.div_ceil(in_rack);
    let mut rounds = Vec::new();
    let make_round = |count: u64, (spacing, part): (u64, f64), bytes_per_cycle: f64| {
        let part_bytes = Bytes::from_f64(bytes.as_f64() * part);
        let method = method(system.topology, CollectiveRanks { count, ..ranks }, kind, part_bytes);
        let steps = match method {
            CollectiveMethod::ClockwiseRing | CollectiveMethod::BidirectionalRingPair => count - 1,
            CollectiveMethod::MeetInMiddleRing | CollectiveMethod::QuadDirectionalRing => {
                (count - 1).div_ceil(2)
            }
        };
        let moved = part * (count - 1) as f64 / count as f64;
        debug_assert!(steps > 0 && moved < 1.0, "each rank keeps its own part");
        CollectiveRound {
            method,
            ranks: count,
            spacing,
            between_racks: spacing > 1,
            steps,
            share: moved / steps as f64,
            bytes_per_cycle,
        }
    };
    if in_rack > 1 {
        // The IPUs of a pair are connected by four links, neighbours on the ladder by two.
        let pair = in_rack == 2 && ranks.ipus == 1;
        let speed = if pair { system.pair_bytes_per_cycle } else { system.ladder_bytes_per_cycle };
        // The ranks of the groups are interleaved, so each link carries data of all groups. The
        // ladder has two sides.
        let speed = speed / (ranks.groups as f64 / 2.0).max(1.0);
        rounds.push(make_round(in_rack, (1, 1.0), speed));
    }
    if racks > 1 {
        // Between racks each replica moves only the part that it reduced in its own rack.
        let part = (in_rack, 1.0 / in_rack as f64);
        rounds.push(make_round(racks, part, system.gateway_bytes_per_cycle));
    }
    if kind == CollectiveKind::AllGather {
        // Gathering reverses scattering step by step, so it begins between racks.
        rounds.reverse();
    }
    rounds
}

/// Programs of one half of an all-reduce besides the copies between replicas, in this order
/// (unidirectionalRingReduceScatter, unidirectionalRingAllGatherImpl, and multiDirectionalSequence
/// of lib/popops/CollectivesProgram.hpp).
pub(crate) struct RingPrograms {
    /// Program that runs once, before the first step.
    pub before: OperationWork,
    /// Program that runs before each copy.
    pub ahead: OperationWork,
    /// Function that extracts the fragment, after each copy and before the first.
    pub fragment: OperationWork,
    /// Program that runs in each step, after the copy and the function.
    pub behind: OperationWork,
    /// Program that runs once, after the last step.
    pub after: OperationWork,
    /// Additional code of the function.
    pub switch: Option<FragmentSwitch>,
}

/// Switches on the replica that contain a copy of each fragment. A replica runs one of the copies.
pub(crate) struct FragmentSwitch {
    pub switches: u64,
    /// Number of cases of each switch, including the one in `fragment`.
    pub cases: u64,
    /// Bytes that a case moves.
    pub traffic: TileRuns<TileTraffic>,
}

/// Ways in which a step extracts its fragment from the tensor or inserts it.
enum FragmentCopy {
    /// A copy for each fragment, and a switch on the replica.
    Switch(WorkPhase),
    /// A slice of a copy of the tensor in a sliceable layout.
    Slice(OperationWork),
}

impl CollectiveMethod {
    /// Number of rings on which fragments move at the same time.
    fn rings(self, ranks: u64) -> u64 {
        match self {
            Self::MeetInMiddleRing if ranks <= 2 => 1,
            Self::ClockwiseRing => 1,
            Self::MeetInMiddleRing | Self::BidirectionalRingPair => 2,
            Self::QuadDirectionalRing => 4,
        }
    }
}

/// Returns the programs of one half over `round`, for a tensor with `elements` on each tile.
pub(crate) fn ring_programs(
    machine: &IpuTarget,
    round: &CollectiveRound,
    kind: CollectiveKind,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> RingPrograms {
    let rings = round.method.rings(round.ranks);
    let part = round.part(elements);
    let of_ring = part.map(|count| Elements(count.0.div_ceil(rings)));
    let copy = fragment_copy(machine, round.ranks, dtype, elements, &of_ring);
    let mut programs = RingPrograms {
        before: OperationWork::default(),
        ahead: OperationWork::default(),
        fragment: OperationWork::default(),
        behind: OperationWork::default(),
        after: OperationWork::default(),
        switch: None,
    };
    let rearranged = match &copy {
        FragmentCopy::Switch(_) => None,
        // The tensor is rearranged for slices, or back from that layout.
        FragmentCopy::Slice(_) => {
            let bytes = elements.map(|count| *count * dtype.bytes());
            moved(machine, "rearrange", &bytes, TileMessages::each_way(round.ranks))
        }
    };
    match kind {
        CollectiveKind::ReduceScatter => programs.before.push_some(rearranged),
        CollectiveKind::AllGather => {
            programs.after.push_some(rearranged);
            programs.fragment.push(relayout::copy(
                "allGatherCopy",
                dtype,
                &part,
                vector_width(dtype),
            ));
        }
    }
    for _ in 0..rings {
        // The replica within its ring, and its position there.
        programs.before.push(index("initIndex", 1));
        programs.before.push(index("initIndex/ring", 8));
        programs.ahead.push(index("incrementIndex", 2));
        match &copy {
            FragmentCopy::Switch(copy) => programs.fragment.push(copy.clone()),
            FragmentCopy::Slice(copy) => programs.fragment.append(copy.clone()),
        }
    }
    if let FragmentCopy::Switch(WorkPhase {
        kind: WorkPhaseKind::Exchange { traffic, .. }, ..
    }) = copy
    {
        programs.switch = Some(FragmentSwitch { switches: rings, cases: round.ranks, traffic });
    }
    if kind == CollectiveKind::ReduceScatter {
        let add = ElementwiseOp::Binary(BinaryOpType::Add);
        programs.behind.push(elementwise::in_place("Reduce/Add", add, dtype, &part));
    }
    programs
}

impl CollectiveRound {
    /// Elements that a step moves of a tensor with `elements` on each tile.
    pub(crate) fn part(&self, elements: &TileRuns<Elements>) -> TileRuns<Elements> {
        elements.map(|count| Elements::from_f64((count.as_f64() * self.share).ceil()))
    }
}

/// Returns the way in which one ring extracts `part` of each tile's `elements`
/// (createSliceableTensorIfBenefical).
fn fragment_copy(
    machine: &IpuTarget,
    ranks: u64,
    dtype: DType,
    elements: &TileRuns<Elements>,
    part: &TileRuns<Elements>,
) -> FragmentCopy {
    /// Number of collectives that poplibs expects in a program, each with its switches in memory.
    const EXPECTED_CALLS: u64 = 8;
    let bytes = part.map(|count| *count * dtype.bytes());
    // Each fragment begins where the previous one ended, whereas the buffer begins at its first
    // tile, so every tile sends its data to another one.
    let shifted = moved(machine, "sliceFragments", &bytes, TileMessages::each_way(1));
    let fragment = Elements(elements.max().0.div_ceil(ranks));
    let case_bytes = code_bytes::SWITCH_CASE_BYTES * EXPECTED_CALLS;
    match shifted {
        Some(copy) if case_bytes.0 < fragment.0 => FragmentCopy::Switch(copy),
        _ => FragmentCopy::Slice(OperationWork::of_phases([
            slice(dtype, part),
            relayout::copy("sliceFragments", dtype, part, vector_width(dtype)),
        ])),
    }
}

/// Exchange in which every tile sends its data to another tile.
fn moved(
    machine: &IpuTarget,
    name: &str,
    bytes: &TileRuns<Bytes>,
    messages: TileMessages,
) -> Option<WorkPhase> {
    exchange::phase(name, bytes, bytes, messages, machine.tiles, machine.exchange_speed())
}

/// Phase that evaluates an expression of the index of a fragment on one tile.
fn index(name: &str, functions: u64) -> WorkPhase {
    let one = TileRuns::uniform(TileRange::first_tiles(1), Elements(1));
    let expression = FusedExpression { operands: 1, functions };
    elementwise::fused(name, expression, (DType::Int, &one), true)
}

/// Compute set that slices `elements` of each tile from a larger tensor.
pub(crate) fn slice(dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    elementwise::compute(
        "dynamicSlice",
        format!("popops::DynamicSlice1D<{}>", dtype.poplar_name()),
        3,
        elements.map(|count| slice_cycles(*count, dtype)),
    )
}

/// Cycles to slice `count` elements of a tile from a larger tensor: `25 + 6 (39 + 24 + 2 n / 6 v)`
/// (poplibs lib/popops/popopsCycleEstimators.cpp, DynamicSlice1D).
pub(crate) fn slice_cycles(Elements(count): Elements, dtype: DType) -> Cycles {
    let width = elementwise::vector_width(dtype);
    Cycles(25 + WORKERS * (39 + 24 + 2 * count.div_ceil(WORKERS * width)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{SystemRates, find_system};
    use proptest::prelude::*;
    use tilescope_report::TargetKind;
    use tilescope_test_tiers::cases;

    #[test]
    fn methods_follow_the_table() {
        use CollectiveMethod::{
            BidirectionalRingPair, ClockwiseRing, MeetInMiddleRing, QuadDirectionalRing,
        };
        let all_gather = |topology, count, ipus, fragment: u64| {
            method(
                topology,
                CollectiveRanks { count, ipus, groups: 1 },
                CollectiveKind::AllGather,
                Bytes(fragment * count),
            )
        };
        assert_eq!(all_gather(IpuLinkTopology::Mesh, 2, 1, 10_000_000), ClockwiseRing);
        assert_eq!(all_gather(IpuLinkTopology::Mesh, 4, 4, 10_000_000), ClockwiseRing);
        assert_eq!(all_gather(IpuLinkTopology::Torus, 16, 4, 10_000_000), MeetInMiddleRing);
        assert_eq!(all_gather(IpuLinkTopology::Mesh, 4, 1, 600_000), MeetInMiddleRing);
        assert_eq!(all_gather(IpuLinkTopology::Mesh, 4, 1, 700_000), BidirectionalRingPair);
        assert_eq!(all_gather(IpuLinkTopology::Mesh, 8, 1, 700_000), MeetInMiddleRing);
        assert_eq!(all_gather(IpuLinkTopology::Mesh, 32, 1, 1 << 30), MeetInMiddleRing);
        assert_eq!(all_gather(IpuLinkTopology::BarleyTwist, 8, 1, 100_000), MeetInMiddleRing);
        assert_eq!(all_gather(IpuLinkTopology::BarleyTwist, 8, 1, 1 << 20), QuadDirectionalRing);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn every_half_moves_all_parts_but_one(
            log in 1u32..7, ipus in prop_oneof![Just(1u64), Just(4)], bytes in 1u64..1 << 30
        ) {
            let pod = find_system("pod256").expect("a system");
            let rates = SystemRates::of(pod, TargetKind::Ipu, ipus as u32, None);
            let system = SystemCosts::new(pod, &rates, TargetKind::Ipu, pod.chip.clock);
            let ranks = CollectiveRanks { count: 1 << log, ipus, groups: 1 };
            for kind in [CollectiveKind::ReduceScatter, CollectiveKind::AllGather] {
                let rounds = rounds(&system, ranks, kind, Bytes(bytes));
                let moved: f64 = rounds.iter().map(|round| round.share * round.steps as f64).sum();
                let expected = (ranks.count - 1) as f64 / ranks.count as f64;
                prop_assert!((moved - expected).abs() < 1e-9, "{} {}", moved, expected);
                prop_assert!(rounds.iter().all(|round| round.steps > 0));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn a_switch_has_a_case_for_each_fragment_and_small_tensors_are_sliced(
            ranks in 2u64..20, tiles in 1u32..1_472, count in 1u64..5_000, half in any::<bool>()
        ) {
            let machine = IpuTarget::all_tiles_of(crate::targets::MK2);
            let dtype = if half { DType::Half } else { DType::Float };
            let elements = TileRuns::uniform(TileRange::first_tiles(tiles), Elements(count));
            let round = CollectiveRound {
                method: CollectiveMethod::ClockwiseRing,
                ranks,
                spacing: 1,
                between_racks: false,
                steps: ranks - 1,
                share: 1.0 / ranks as f64,
                bytes_per_cycle: 1.0,
            };
            for kind in [CollectiveKind::ReduceScatter, CollectiveKind::AllGather] {
                let programs = ring_programs(&machine, &round, kind, dtype, &elements);
                let phases = programs.fragment.phases();
                let sliced = phases.iter().any(|(phase, _)| phase.name == "dynamicSlice");
                prop_assert_eq!(sliced, programs.switch.is_none());
                prop_assert_eq!(sliced, count.div_ceil(ranks) <= 96);
                // A sliced tensor is rearranged once, before or after the ring.
                let exchanges = |work: &OperationWork| {
                    let kinds = work.phases().into_iter().map(|(phase, _)| &phase.kind);
                    kinds.filter(|kind| matches!(kind, WorkPhaseKind::Exchange { .. })).count()
                };
                let rearranged = exchanges(&programs.before) + exchanges(&programs.after);
                prop_assert_eq!(rearranged, usize::from(sliced));
                if let Some(switch) = programs.switch {
                    prop_assert_eq!((switch.switches, switch.cases), (1, ranks));
                    prop_assert_eq!(switch.traffic.tile_count(), tiles);
                }
                prop_assert_eq!(
                    programs.behind.phases().len(),
                    usize::from(kind == CollectiveKind::ReduceScatter)
                );
            }
        }
    }
}
