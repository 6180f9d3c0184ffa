//! Links between replicas: no copy between replicas exceeds the bandwidth of the links on its way,
//! nor do all concurrent copies over one link together.

use super::{Findings, InvariantCheck, InvariantViolation};
use crate::model::{
    Bandwidth, LadderLink, MachineInterface, ReplicaRing, ReplicaShape, RingLinks, Target,
};
use crate::trace::{StepRecord, VerifiedLane};
use crate::units::{CycleRange, IpuId, ProgramId, ReplicaClassId};
use std::collections::{BTreeMap, HashMap};

const LAW: &str = "links_between_replicas_hold";
/// Rates are fractions: a smaller excess is rounding.
const ROUNDING: f64 = 1e-6;

/// The loads of the links if an IPU of each replica sends a byte.
type LinkLoads = BTreeMap<LadderLink, f64>;

/// A copy between replicas.
#[derive(Clone, Copy)]
struct RingCopy {
    ipu: IpuId,
    program: ProgramId,
    range: CycleRange,
    /// Bytes that it sends per cycle.
    rate: f64,
}

/// Follows the copies between replicas of a run.
pub(super) struct ReplicaLinkCheck<'a> {
    rings: &'a [ReplicaRing],
    /// The ring of each program.
    ring_of: HashMap<ProgramId, usize>,
    shape: ReplicaShape,
    /// IPUs of the machine for each IPU of the report.
    alike: u32,
    ladder: Option<f64>,
    pair: Option<f64>,
    gateways: Option<f64>,
    loads: HashMap<(usize, IpuId), LinkLoads>,
    /// Copies since all IPUs last waited for each other.
    open: Vec<RingCopy>,
    /// Sets of concurrent copies that were checked, with the result.
    known: HashMap<Vec<ProgramId>, bool>,
    overloaded: Findings,
}

impl<'a> ReplicaLinkCheck<'a> {
    pub(super) fn new(rings: &'a [ReplicaRing], target: &Target, most: &[Bandwidth]) -> Self {
        let programs = rings.iter().enumerate();
        let ring_of = programs.flat_map(|(at, ring)| ring.programs.iter().map(move |of| (*of, at)));
        let find_rate = |interface| {
            let known = most.iter().find(|known| known.interface == interface)?;
            Some(known.bytes_per_cycle)
        };
        Self {
            rings,
            ring_of: ring_of.collect(),
            shape: ReplicaShape::of(target),
            alike: target.identical_ipus(),
            ladder: find_rate(MachineInterface::LadderLinks),
            pair: find_rate(MachineInterface::PairLinks),
            gateways: find_rate(MachineInterface::Gateways),
            loads: HashMap::new(),
            open: Vec::new(),
            known: HashMap::new(),
            overloaded: Findings::default(),
        }
    }

    /// True if the steps of a program are to be passed to this check.
    pub(super) fn watches(&self, program: ProgramId) -> bool {
        self.ring_of.contains_key(&program)
    }

    /// Records a copy, on one class of replicas, since all begin it at once.
    pub(super) fn copy(&mut self, class: ReplicaClassId, ipu: IpuId, record: &StepRecord) {
        let Some(program) = record.program else { return };
        let ReplicaClassId(0) = class else { return };
        let cycles = record.range.length().as_f64().max(1.0);
        let rate = record.bytes_out.as_f64() / cycles;
        self.open.push(RingCopy { ipu, program, range: record.range, rate });
    }

    /// Records that all IPUs have waited for each other: later copies start after all earlier ones.
    pub(super) fn all_met(&mut self) {
        let mut copies = std::mem::take(&mut self.open);
        // A single IPU does one copy after the other.
        if copies.iter().all(|copy| Some(copy.ipu) == copies.first().map(|first| first.ipu)) {
            return;
        }
        copies.sort_by_key(|copy| (copy.range.start, copy.program));
        let mut running: Vec<RingCopy> = Vec::new();
        for copy in copies {
            running.retain(|before| before.range.end > copy.range.start);
            running.push(copy);
            if running.len() > 1 {
                self.check_together(&running);
            }
        }
    }

    fn check_together(&mut self, running: &[RingCopy]) {
        let mut programs: Vec<ProgramId> = running.iter().map(|copy| copy.program).collect();
        programs.sort_unstable();
        if self.known.contains_key(&programs) {
            return;
        }
        let mut carried = LinkLoads::new();
        for copy in running {
            let Some(ring) = self.ring_of.get(&copy.program).copied() else { continue };
            for (link, load) in self.loads_of(ring, copy.ipu) {
                *carried.entry(*link).or_default() += load * copy.rate;
            }
        }
        let over = carried.into_iter().find(|(link, rate)| {
            let most = if link.is_pair() { self.pair } else { self.ladder };
            most.is_some_and(|most| *rate > most * (1.0 + ROUNDING))
        });
        if let Some((LadderLink { from, to }, rate)) = over {
            let programs: Vec<String> = programs.iter().map(|id| id.0.to_string()).collect();
            let programs = programs.join(", ");
            let at = running.last().map(|last| last.range.start);
            let cycle = at.unwrap_or_default();
            self.overloaded.add(|| {
                format!(
                    "at cycle {cycle} programs {programs} together move {rate:.2} B per cycle over \
                     the links from IPU {from} to {to} of the machine"
                )
            });
        }
        self.known.insert(programs, over.is_none());
    }

    /// The loads of the links if an IPU of each replica sends a byte in a ring.
    fn loads_of(&mut self, ring: usize, ipu: IpuId) -> &LinkLoads {
        let rings = self.rings;
        let shape = self.shape;
        let alike = self.alike;
        self.loads.entry((ring, ipu)).or_insert_with(|| {
            let places: Vec<IpuId> = (ipu.0 * alike..(ipu.0 + 1) * alike).map(IpuId).collect();
            rings.get(ring).map(|ring| ring.link_loads(shape, &places)).unwrap_or_default()
        })
    }

    /// Reports the findings, and checks each copy by itself over all its executions.
    pub(super) fn finish(mut self, lanes: &[VerifiedLane], found: &mut Vec<InvariantViolation>) {
        self.all_met();
        let mut law = InvariantCheck::new(LAW, found);
        for lane in lanes {
            let ipu = lane.info.ipu;
            for totals in &lane.programs {
                let program = totals.program.unwrap_or(ProgramId(u32::MAX));
                let Some(ring) = self.ring_of.get(&program).copied() else { continue };
                let bytes = totals.bytes_out.as_f64();
                let cycles = totals.cycles.as_f64();
                let crosses = self.rings.get(ring).map(|ring| ring.links);
                let ladder = self.ladder;
                let pair = self.pair;
                let needed = match crosses {
                    Some(RingLinks::Gateways) => self.gateways.map(|most| bytes / most),
                    _ => {
                        let each = self.loads_of(ring, ipu).iter().filter_map(|(link, load)| {
                            Some(bytes * load / if link.is_pair() { pair? } else { ladder? })
                        });
                        each.reduce(f64::max)
                    }
                };
                let holds = needed.is_none_or(|needed| needed <= cycles * (1.0 + ROUNDING) + 1.0);
                law.check(holds, || {
                    let needed = needed.unwrap_or_default();
                    format!(
                        "IPU {ipu}: program {} takes {cycles} cycles, but the links between \
                         replicas need {needed:.0} for its data",
                        program.0
                    )
                });
            }
        }
        drop(law);
        self.overloaded.tell(LAW, found);
    }
}
