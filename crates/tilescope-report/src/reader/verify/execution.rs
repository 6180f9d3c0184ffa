//! What ran against what was compiled.

use super::{InvariantCheck, Report};
use crate::error::ReportError;
use crate::model::{MarkKind, TraceMark};
use crate::reader::ReportPart;
use crate::trace::{LaneEdge, VerifiedLane};
use crate::units::{Bytes, IpuId, ProgramId, StepId, TileId, TileRange};
use std::collections::BTreeMap;

/// Bytes that the tiles of an IPU receive and send in one execution of a program.
type IpuTraffic = BTreeMap<(ProgramId, IpuId), (Bytes, Bytes)>;

impl Report {
    /// All steps are of a program, of its kind and on its IPU, and move what it moves.
    pub(super) fn verify_steps(
        &self,
        lanes: &[VerifiedLane],
        law: &mut InvariantCheck,
    ) -> Result<(), ReportError> {
        let programs = self.programs()?;
        let traffic = self.traffic_by_ipu()?;
        // Lanes of an IPU that run a program: where they are several, its bytes are dealt to them.
        let mut lanes_of: BTreeMap<(ProgramId, IpuId), u32> = BTreeMap::new();
        for lane in lanes {
            let ran = lane.programs.iter().filter_map(|totals| totals.program);
            ran.for_each(|program| *lanes_of.entry((program, lane.info.ipu)).or_default() += 1);
        }
        for lane in lanes {
            let ipu = lane.info.ipu;
            for totals in &lane.programs {
                let Some((id, program)) =
                    totals.program.and_then(|id| Some((id, programs.get(id)?)))
                else {
                    law.check(false, || format!("IPU {ipu}: steps of no program"));
                    continue;
                };
                law.check(totals.is_of(program.kind, program.stream), || {
                    let kind = totals.kind().name();
                    format!("IPU {ipu}: {kind} steps of program {}, of another type", id.0)
                });
                law.check(program.ipu.is_none_or(|own| own == ipu), || {
                    format!("IPU {ipu}: steps of program {}, which is of another IPU", id.0)
                });
                let is_alone = lanes_of.get(&(id, ipu)) == Some(&1);
                if self.has(ReportPart::Exchanges) && is_alone {
                    let (arrive, leave) = traffic.get(&(id, ipu)).copied().unwrap_or_default();
                    let all = |bytes: Bytes| bytes.saturating_mul(totals.steps);
                    let same = (totals.bytes_in, totals.bytes_out) == (all(arrive), all(leave));
                    law.check(same, || {
                        format!("IPU {ipu}: program {} moves other bytes than its exchange", id.0)
                    });
                }
            }
        }
        Ok(())
    }

    /// What the tiles of each IPU receive and send in each exchange.
    fn traffic_by_ipu(&self) -> Result<IpuTraffic, ReportError> {
        let tiles_per_ipu = self.target()?.tiles_per_ipu.max(1);
        let mut sums = IpuTraffic::new();
        for exchange in self.exchanges()? {
            for (tiles, traffic) in exchange.tiles.iter() {
                for ipu in tiles.first.0 / tiles_per_ipu..tiles.end.0.div_ceil(tiles_per_ipu) {
                    let first = TileId(ipu * tiles_per_ipu);
                    let own = tiles.intersection(TileRange::new(first, first + tiles_per_ipu));
                    let times = u64::from(own.count());
                    let (arrive, leave) = sums.entry((exchange.program, IpuId(ipu))).or_default();
                    *arrive = arrive.saturating_add(traffic.bytes_in.saturating_mul(times));
                    *leave = leave.saturating_add(traffic.bytes_out.saturating_mul(times));
                }
            }
        }
        Ok(sums)
    }
}

/// Marks start with the first of their steps and end with the last.
pub(super) fn verify_mark_cycles(
    marks: &[TraceMark],
    watched: &[StepId],
    lanes: &[VerifiedLane],
    law: &mut InvariantCheck,
) {
    // What the host does has steps near it, not in it.
    let on_ipus = |mark: &&TraceMark| !matches!(mark.kind, MarkKind::Loader | MarkKind::Callback);
    for mark in marks.iter().filter(on_ipus) {
        let edges = |step: StepId| {
            let place = watched.binary_search(&step).ok();
            let own = lanes.iter().filter(|lane| mark.ipu.is_none_or(|ipu| ipu == lane.info.ipu));
            own.filter_map(move |lane| lane.edges.get(place?).copied())
        };
        let starts = edges(mark.steps.start).filter_map(|LaneEdge { behind, .. }| behind);
        let start = starts.filter(|(step, _)| *step < mark.steps.end).map(|(_, start)| start).min();
        let ends = edges(mark.steps.end).filter_map(|LaneEdge { before, .. }| before);
        let end = ends.filter(|(step, _)| *step >= mark.steps.start).map(|(_, end)| end).max();
        let (Some(start), Some(end)) = (start, end) else { continue };
        // What several IPUs do one after another starts when the last of them is free.
        let free = edges(mark.steps.start).filter_map(|edge| edge.before).map(|(_, end)| end).max();
        let follows = matches!(mark.kind, MarkKind::Iteration | MarkKind::Phase | MarkKind::Slot)
            && free == Some(mark.cycles.start);
        let starts_well = mark.cycles.start == start || follows;
        law.check(starts_well && mark.cycles.end == end, || {
            let (name, found) = (&mark.label, mark.cycles);
            format!(
                "{name} is from {} to {}, its steps from {} to {}",
                found.start.0, found.end.0, start.0, end.0
            )
        });
    }
}
