//! Rings of replicas: their order, and the data that replicas forward for others.

use crate::replica_classes::replica_numbers;
use crate::trace::program_runs;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, IpuId, ProgramId};
use tilescope_report::{ReplicaRing, ReplicaShape, Report, ReportError, RingLinks, Target};

/// The largest number of members of a ring that are listed individually.
const MOST_MEMBERS: usize = 8;
/// The separator of members of a ring.
const ARROW: &str = " \u{2192} ";

/// The traffic of one replica with others in a run, over all of its IPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaLinkTotals {
    pub replica: u32,
    /// The replicas that it sends to, in order.
    pub to: Vec<u32>,
    /// The replicas that send to it, in order.
    pub from: Vec<u32>,
    pub sent: Bytes,
    pub received: Bytes,
    /// Bytes between other replicas that use its links.
    pub passed_on: Bytes,
}

/// Sums up the sent, received and forwarded data of each replica in a run; empty if the report has
/// no rings, or nothing was executed.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn replica_links(report: &Report) -> Result<Vec<ReplicaLinkTotals>, ReportError> {
    let rings = report.replica_rings()?;
    let target = report.target()?;
    let Some(trace) = report.trace()?.filter(|_| !rings.is_empty()) else { return Ok(Vec::new()) };
    let mut sent: BTreeMap<(ProgramId, IpuId), Bytes> = BTreeMap::new();
    for ((ipu, program, _), run) in program_runs(&trace)?.steps {
        *sent.entry((program, ipu)).or_default() += run.bytes;
    }
    let mut all = Vec::new();
    for replica in 0..target.replicas {
        all.push(ReplicaLinkTotals { replica, ..ReplicaLinkTotals::default() });
    }
    for ring in &rings {
        let mut by_ipu: BTreeMap<IpuId, Bytes> = BTreeMap::new();
        for program in &ring.programs {
            let own = sent.range((*program, IpuId(0))..=(*program, IpuId(u32::MAX)));
            for ((_, ipu), bytes) in own {
                *by_ipu.entry(*ipu).or_default() += *bytes;
            }
        }
        add_ring(ring, &target, &by_ipu, &mut all);
    }
    Ok(all)
}

fn add_ring(
    ring: &ReplicaRing,
    target: &Target,
    sent: &BTreeMap<IpuId, Bytes>,
    all: &mut [ReplicaLinkTotals],
) {
    let bytes: Bytes = sent.values().copied().sum();
    if bytes.is_zero() {
        return;
    }
    for flow in ring.flows(target.replicas) {
        if let Some(from) = all.get_mut(flow.from as usize) {
            add_number(&mut from.to, flow.to);
        }
        if let Some(to) = all.get_mut(flow.to as usize) {
            add_number(&mut to.from, flow.from);
        }
    }
    let alike = target.identical_ipus();
    for (ipu, own) in sent {
        let passed = ring.passed_on(ReplicaShape::of(target), IpuId(ipu.0 * alike));
        for (replica, share) in all.iter_mut().zip(passed) {
            replica.passed_on += Bytes::from_f64(own.as_f64() * share);
        }
    }
    for replica in all {
        replica.sent += bytes;
        replica.received += bytes;
    }
}

fn add_number(numbers: &mut Vec<u32>, number: u32) {
    if let Err(place) = numbers.binary_search(&number) {
        numbers.insert(place, number);
    }
}

/// A ring as text: the order of its members, directions, links, and the kind of its ends.
pub fn ring_words(ring: &ReplicaRing, target: &Target) -> String {
    let members = ring.members(0);
    let names: Vec<String> = members.iter().chain(members.first()).map(u32::to_string).collect();
    let order = if names.len() > MOST_MEMBERS + 1 {
        let (first, rest) = names.split_at(MOST_MEMBERS / 2);
        let (_, last) = rest.split_at(rest.len() - MOST_MEMBERS / 2);
        [first.join(ARROW).as_str(), "…", last.join(ARROW).as_str()].join(ARROW)
    } else {
        names.join(ARROW)
    };
    let ways = if ring.clockwise < 1.0 { "in both directions around" } else { "around" };
    let rings = target.replicas / ring.ranks.max(1);
    let beside = match rings {
        0 | 1 => String::new(),
        2 => ", and another ring like it".to_owned(),
        more => format!(", and {} other rings like it", more - 1),
    };
    let links = match ring.links {
        RingLinks::Ladder => "over a ladder with two ends",
        RingLinks::ClosedLadder => "over a ladder whose ends are joined",
        RingLinks::Gateways => "over GW-Links between racks",
    };
    format!("{ways} {order}{beside}, {links}")
}

/// The replicas that forward data for others, in one sentence; `None` if there are none.
pub fn passed_on_words(
    links: &[ReplicaLinkTotals],
    bytes: impl Fn(u64) -> String,
) -> Option<String> {
    let most = links.iter().map(|of| of.passed_on).max().filter(|most| !most.is_zero())?;
    let mut ends = Vec::new();
    let mut others = Vec::new();
    for of in links {
        if of.passed_on.is_zero() {
            ends.push(of.replica);
        } else {
            others.push(of.replica);
        }
    }
    let ends = replica_numbers(&ends);
    let others = replica_numbers(&others);
    let sent = links.first().map_or(Bytes::ZERO, |of| of.sent);
    Some(format!(
        "Each replica sends and receives {}; nothing passes through the ends ({ends}), through each \
         of the others ({others}) up to {}.",
        bytes(sent.0),
        bytes(most.0)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::RingOrder;

    #[test]
    fn rings_are_described_in_order() {
        let mut target = ReportBuilder::new(2, 4).parts.target;
        target.replicas = 4;
        let mut ring = ReplicaRing {
            order: RingOrder::Interleaved,
            links: RingLinks::Ladder,
            ranks: 4,
            spacing: 1,
            clockwise: 1.0,
            programs: Vec::new(),
        };
        let said =
            "around 0 \u{2192} 2 \u{2192} 3 \u{2192} 1 \u{2192} 0, over a ladder with two ends";
        assert_eq!(ring_words(&ring, &target), said);
        (ring.ranks, target.replicas) = (2, 2);
        let said = "around 0 \u{2192} 1 \u{2192} 0, over a ladder with two ends";
        assert_eq!(ring_words(&ring, &target), said);
        (ring.ranks, ring.clockwise, target.replicas) = (16, 0.5, 32);
        let said = ring_words(&ring, &target);
        assert!(said.starts_with(
            "in both directions around 0 \u{2192} 2 \u{2192} 4 \u{2192} 6 \u{2192} … "
        ));
        assert!(
            said.contains("5 \u{2192} 3 \u{2192} 1 \u{2192} 0, and another ring like it"),
            "{said}"
        );
    }
}
