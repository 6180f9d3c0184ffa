//! Exchanges of measured tiles: the arrival of each tile, and the time that data moved after the
//! last one.
//!
//! A tile arrives at an exchange when it begins to wait in the sync before it, or without a sync
//! when it begins to exchange. The lower bound of the exchange is planned, not measured: the cycles
//! in which its busiest tile sends or receives.

use super::arrivals::TileArrivals;
use std::collections::{BTreeMap, HashMap};
use tilescope_report::trace::Trace;
use tilescope_report::units::{Cycles, IpuId, ProgramId, StepId, TileId};
use tilescope_report::{Report, ReportError, SampleKind, Target, TileSample};

/// All executions of an exchange on an IPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeasuredExchange {
    pub(super) arrivals: TileArrivals,
    /// Cycles from the last arrival to the end.
    pub(super) transfer: Cycles,
    /// Planned cycles of the busiest tile; `None` if an execution has no plan.
    pub(super) least: Option<Cycles>,
}

/// Exchanges of a report of measured tiles, by program and IPU; empty for any other report.
pub(super) fn measured_exchanges(
    report: &Report,
    trace: &Trace,
) -> Result<BTreeMap<(ProgramId, IpuId), MeasuredExchange>, ReportError> {
    let mut found = BTreeMap::new();
    if !report.has_tile_samples() {
        return Ok(found);
    }
    let programs = exchange_steps(trace)?;
    let labels = report.sample_labels()?;
    let target = report.target()?;
    let mut walk = Walk { target: &target, before: HashMap::new(), open: None, found: &mut found };
    report.visit_tile_samples(StepId(0)..StepId(u64::MAX), |step, sample| {
        let kind = labels.get(sample.label as usize).map(|label| label.kind);
        match (kind, programs.get(&step)) {
            (Some(SampleKind::Exchange), Some(program)) => walk.exchange(step, *program, &sample),
            _ => walk.close(),
        }
        if let Some(kind) = kind {
            walk.before.insert(sample.tile, (kind, sample.cycles.start, sample.cycles.end));
        }
    })?;
    walk.close();
    Ok(found)
}

/// The program of each step that moves data.
fn exchange_steps(trace: &Trace) -> Result<HashMap<StepId, ProgramId>, ReportError> {
    let mut programs = HashMap::new();
    for lane in (0..trace.lanes().len()).filter_map(|index| trace.lane(index)) {
        lane.visit_records(0..lane.info().steps, |step| {
            if let Some(program) = step.program.filter(|_| step.kind.moves_data()) {
                programs.insert(step.step, program);
            }
        })?;
    }
    Ok(programs)
}

/// The execution of an exchange on an IPU whose samples are being read.
struct OpenExchange {
    at: (StepId, ProgramId, IpuId),
    first: Cycles,
    last: Cycles,
    last_tile: TileId,
    last_tiles: u32,
    end: Cycles,
    /// Planned cycles of the busiest tile so far.
    least: Option<Cycles>,
}

struct Walk<'a> {
    target: &'a Target,
    /// The last activity of each tile: its kind, start and end.
    before: HashMap<TileId, (SampleKind, Cycles, Cycles)>,
    open: Option<OpenExchange>,
    found: &'a mut BTreeMap<(ProgramId, IpuId), MeasuredExchange>,
}

impl Walk<'_> {
    /// Adds the part of a tile in an exchange.
    fn exchange(&mut self, step: StepId, program: ProgramId, sample: &TileSample) {
        let arrived = match self.before.get(&sample.tile) {
            Some((SampleKind::Synchronization, start, end)) if *end <= sample.cycles.start => {
                *start
            }
            _ => sample.cycles.start,
        };
        let at = (step, program, self.target.ipu_of_tile(sample.tile));
        if self.open.as_ref().is_none_or(|open| open.at != at) {
            self.close();
        }
        let open = self.open.get_or_insert(OpenExchange {
            at,
            first: arrived,
            last: arrived,
            last_tile: sample.tile,
            last_tiles: 0,
            end: sample.cycles.end,
            least: None,
        });
        open.first = open.first.min(arrived);
        if arrived > open.last {
            (open.last, open.last_tile, open.last_tiles) = (arrived, sample.tile, 0);
        }
        open.last_tiles += u32::from(arrived == open.last);
        open.end = open.end.max(sample.cycles.end);
        open.least = open.least.max(sample.endpoint_cycles());
    }

    /// Adds the execution whose samples were read to the totals.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let (_, program, ipu) = open.at;
        let spread = open.last.saturating_sub(open.first);
        let arrivals = TileArrivals {
            executions: 1,
            spread,
            widest: spread,
            last: if spread.is_zero() { None } else { Some(open.last_tile) },
            last_tiles: open.last_tiles,
        };
        let transfer = open.end.saturating_sub(open.last);
        let new = MeasuredExchange { arrivals, transfer, least: open.least };
        let place = self.found.entry((program, ipu));
        place
            .and_modify(|all| {
                all.arrivals.add(&new.arrivals);
                all.transfer = all.transfer.saturating_add(new.transfer);
                all.least = all.least.zip(new.least).map(|(sum, more)| sum.saturating_add(more));
            })
            .or_insert(new);
    }
}
