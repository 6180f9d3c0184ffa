//! The execution compared with the compiled program.

use super::{InvariantCheck, InvariantViolation, Report};
use crate::error::ReportError;
use crate::model::{MachineInterface, ProgramKind, StepActivity};
use crate::reader::ReportPart;
use crate::trace::VerifiedLane;
use crate::units::{Bytes, IpuId, ProgramId, ReplicaClassId, TileId, TileRange};
use std::collections::BTreeMap;

/// Bytes that the tiles of an IPU receive and send in one execution of a program.
#[derive(Clone, Copy, Debug, Default)]
struct IpuTraffic {
    bytes_in: Bytes,
    bytes_out: Bytes,
    /// The most bytes that any of them receives, or sends.
    most_of_a_tile: Bytes,
}

impl Report {
    /// Checks that each step belongs to a program, has its kind and IPU, and moves its bytes.
    pub(super) fn verify_steps(
        &self,
        lanes: &[VerifiedLane],
        law: &mut InvariantCheck,
    ) -> Result<(), ReportError> {
        let programs = self.programs()?;
        let traffic = self.traffic_by_ipu()?;
        // Number of lanes of an IPU that run a program: its bytes are distributed over them.
        let mut lanes_of: BTreeMap<(ProgramId, ReplicaClassId, IpuId), u32> = BTreeMap::new();
        for lane in lanes {
            let ran = lane.programs.iter().filter_map(|totals| totals.program);
            let make_key = |program| (program, lane.info.class, lane.info.ipu);
            ran.for_each(|program| *lanes_of.entry(make_key(program)).or_default() += 1);
        }
        for lane in lanes {
            let ipu = lane.info.ipu;
            for totals in &lane.programs {
                let Some((id, program)) =
                    totals.program.and_then(|id| Some((id, programs.get(id)?)))
                else {
                    law.check(false, || format!("IPU {ipu}: steps without a program"));
                    continue;
                };
                law.check(totals.is_of(program.kind, program.stream), || {
                    let kind = totals.kind().name();
                    format!("IPU {ipu}: {kind} steps of program {}, which has another type", id.0)
                });
                law.check(program.ipu.is_none_or(|own| own == ipu), || {
                    format!("IPU {ipu}: steps of program {}, which belongs to another IPU", id.0)
                });
                let is_alone = lanes_of.get(&(id, lane.info.class, ipu)) == Some(&1);
                if self.has(ReportPart::Exchanges) && is_alone {
                    let once = traffic.get(&(id, ipu)).copied().unwrap_or_default();
                    let scale = |bytes: Bytes| bytes.saturating_mul(totals.steps);
                    let moved = (totals.bytes_in, totals.bytes_out);
                    law.check(moved == (scale(once.bytes_in), scale(once.bytes_out)), || {
                        format!(
                            "IPU {ipu}: program {} moves a different number of bytes than its \
                             exchange",
                            id.0
                        )
                    });
                }
            }
        }
        self.verify_bandwidths(lanes, &traffic, law.found)
    }

    /// Checks that no tile, host interface or link exceeds its bandwidth.
    fn verify_bandwidths(
        &self,
        lanes: &[VerifiedLane],
        traffic: &BTreeMap<(ProgramId, IpuId), IpuTraffic>,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("bandwidths_hold", found);
        let known = self.bandwidths()?;
        let find_most = |interface| {
            let found = known.iter().find(|bandwidth| bandwidth.interface == interface)?;
            Some(found.bytes_per_cycle)
        };
        for lane in lanes {
            let ipu = lane.info.ipu;
            for totals in &lane.programs {
                let in_and_out = totals.bytes_in.saturating_add(totals.bytes_out);
                let most_way = totals.bytes_in.max(totals.bytes_out);
                let (interface, bytes) = match (totals.kind(), totals.activity()) {
                    // The busiest tile determines the duration.
                    (ProgramKind::DoExchange, _) => {
                        let once = totals.program.and_then(|id| traffic.get(&(id, ipu)));
                        let tile = once.map_or(Bytes::ZERO, |once| once.most_of_a_tile);
                        (MachineInterface::Tile, tile.saturating_mul(totals.steps))
                    }
                    // Links work in both directions at once; the host interface does not.
                    (ProgramKind::GlobalExchange, _) => (MachineInterface::IpuLinks, most_way),
                    (ProgramKind::StreamCopyMid, StepActivity::RemoteBuffer) => {
                        (MachineInterface::RemoteBuffer, in_and_out)
                    }
                    (ProgramKind::StreamCopyMid, _) => (MachineInterface::Host, in_and_out),
                    _ => continue,
                };
                let Some(most) = find_most(interface) else { continue };
                // Rates are fractions: a byte is allowed for rounding.
                let holds = bytes.as_f64() <= most * totals.cycles.as_f64() + 1.0;
                law.check(holds, || {
                    let program = totals.program.map_or(0, |id| id.0);
                    let bytes = bytes.0;
                    let cycles = totals.cycles.0;
                    let name = interface.name();
                    format!(
                        "IPU {ipu}: program {program} moves {bytes} B in {cycles} cycles, but the \
                         {name} interface transfers at most {most:.2} B per cycle"
                    )
                });
            }
        }
        Ok(())
    }

    /// Bytes that the tiles of each IPU receive and send in each exchange.
    fn traffic_by_ipu(&self) -> Result<BTreeMap<(ProgramId, IpuId), IpuTraffic>, ReportError> {
        let tiles_per_ipu = self.target()?.tiles_per_ipu.max(1);
        let mut sums: BTreeMap<(ProgramId, IpuId), IpuTraffic> = BTreeMap::new();
        for exchange in self.exchanges()? {
            for (tiles, traffic) in exchange.tiles.iter() {
                for ipu in tiles.first.0 / tiles_per_ipu..tiles.end.0.div_ceil(tiles_per_ipu) {
                    let first = TileId(ipu * tiles_per_ipu);
                    let own = tiles.intersection(TileRange::new(first, first + tiles_per_ipu));
                    let times = u64::from(own.count());
                    let sum = sums.entry((exchange.program, IpuId(ipu))).or_default();
                    let add = |sum: Bytes, of: Bytes| sum.saturating_add(of.saturating_mul(times));
                    sum.bytes_in = add(sum.bytes_in, traffic.bytes_in);
                    sum.bytes_out = add(sum.bytes_out, traffic.bytes_out);
                    let most = traffic.bytes_in.max(traffic.bytes_out);
                    sum.most_of_a_tile = sum.most_of_a_tile.max(most);
                }
            }
        }
        // Further calls of a function move the same bytes as its own exchanges.
        for (id, body) in self.programs()?.further_uses() {
            let of_body = (body, IpuId(0))..=(body, IpuId(u32::MAX));
            let own: Vec<_> = sums.range(of_body).map(|((_, ipu), sum)| (*ipu, *sum)).collect();
            sums.extend(own.into_iter().map(|(ipu, sum)| ((id, ipu), sum)));
        }
        Ok(sums)
    }
}
