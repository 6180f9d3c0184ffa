//! Cycles of exchanges in the run, their lower bounds, and the tiles that determine them.
//!
//! For each program that moves data, on each IPU that takes part:
//!
//! - arrival spread: from the first to the last tile that ends the step before;
//! - start: cycles of a step before its tiles move any data, without the sync;
//! - transfer: cycles of the step - its start; all of them are after the last arrival;
//! - lower bound: the cycles that its busiest sender or receiver needs (see
//!   [`tilescope_report::MachineLimits::tile_exchange_cycles`]); for exchanges between IPUs and
//!   copies, bytes / bytes per cycle of the interface of an IPU;
//! - avoidable: (transfer - lower bound) x executions.
//!
//! Figures that a report does not hold are absent. With measured tiles, arrivals and transfers are
//! measured, and the lower bound is the plan of the busiest tile (see `measured`).

mod arrivals;
mod explanation;
mod measured;

pub use arrivals::{TileArrivals, UnknownArrivals};
pub use explanation::{ExchangeLine, explain_exchange};

use super::ExchangeLink;
use crate::limits::{ExchangeBound, Machine};
use arrivals::{KnownArrivals, arrivals};
use measured::{MeasuredExchange, measured_exchanges};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilescope_report::trace::{ProgramStepSums, Trace};
use tilescope_report::units::{Bytes, Cycles, IpuId, OperationId, ProgramId, TileId};
use tilescope_report::{
    ExchangeTraffic, MachineInterface, ProgramKind, ProgramNodeTable, Report, ReportError,
    ReportPart, StepActivity, Target, TileTraffic,
};

/// An exchange on one IPU.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeCycles {
    pub program: ProgramId,
    pub name: String,
    pub kind: ProgramKind,
    pub link: ExchangeLink,
    /// The operation that the exchange belongs to.
    pub operation: Option<OperationId>,
    /// IPU of the replica.
    pub ipu: IpuId,
    /// The traffic of its tiles and their lower bound; `None` if that was not recorded.
    pub traffic: Option<ExchangeBound>,
    /// The executions; `None` if the program was only compiled.
    pub run: Option<ExchangeRun>,
}

/// All executions of an exchange on one IPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeRun {
    pub executions: u64,
    /// Cycles of its steps.
    pub cycles: Cycles,
    /// Cycles in which data moves; all cycles if the start of the transfer is not known.
    pub transfer: Cycles,
    /// True if the report states the start of the transfer.
    pub knows_start: bool,
    /// Lower bound of the cycles in which data moves; `None` if not known.
    pub least: Option<Cycles>,
    pub arrivals: KnownArrivals,
}

impl ExchangeRun {
    /// The same with the measurements of its tiles.
    fn measured(self, of: &MeasuredExchange) -> Self {
        Self { transfer: of.transfer, least: of.least, arrivals: Ok(of.arrivals), ..self }
    }

    /// Transfer cycles beyond the need of the busiest tile.
    pub fn avoidable(&self) -> Option<Cycles> {
        // Files of other tools may state transfers faster than the bound.
        self.least.map(|least| self.transfer.saturating_sub(least))
    }

    /// Mean cycles of an execution before its tiles move any data.
    pub fn mean_start(&self) -> Option<Cycles> {
        let start = self.cycles.saturating_sub(self.transfer);
        if self.knows_start { Some(start / self.executions.max(1)) } else { None }
    }

    /// Mean cycles of an execution in which data moves.
    pub fn mean_transfer(&self) -> Cycles {
        self.transfer / self.executions.max(1)
    }
}

impl ExchangeCycles {
    /// Mean lower bound of an execution's transfer cycles.
    pub fn mean_least(&self) -> Option<Cycles> {
        match self.run {
            Some(run) if run.executions > 0 => Some(run.least? / run.executions),
            _ if self.kind == ProgramKind::DoExchange => self.once(),
            _ => None,
        }
    }

    /// The cycles that its busiest tile needs at least for one execution.
    fn once(&self) -> Option<Cycles> {
        Some(whole(self.traffic?.cycles?.most))
    }

    /// The mean need of the IPU's tiles / the need of the busiest one: 1 if all move the same
    /// amount.
    pub fn balance(&self, machine: &Machine) -> Option<f64> {
        let internal = self.traffic.filter(|_| self.kind == ProgramKind::DoExchange)?;
        let cycles = internal.cycles.filter(|cycles| cycles.most > 0.0)?;
        Some(cycles.sum / cycles.most / f64::from(machine.tiles))
    }
}

/// Every exchange of a report, those that waste the most cycles first.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeCyclesList {
    pub rows: Vec<ExchangeCycles>,
    /// Cycles of steps that move data but belong to no program.
    pub unattributed: Cycles,
    pub machine: Machine,
}

/// Reads the cycles of every exchange and their lower bounds.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn exchange_cycles(report: &Report) -> Result<ExchangeCyclesList, ReportError> {
    let reader = ExchangeReader::new(report)?;
    let mut steps = ExchangeSteps::default();
    let mut known = None;
    let mut measured = BTreeMap::new();
    if let Some(trace) = report.trace()? {
        steps = ExchangeSteps::read(&trace)?;
        known = Some(arrivals(report, &trace, &reader.exchanges)?);
        measured = measured_exchanges(report, &trace)?;
    }
    let mut places: BTreeSet<(ProgramId, IpuId)> = steps.sums.keys().copied().collect();
    places.extend(reader.compiled());
    let mut rows = Vec::new();
    for (id, ipu) in places {
        let sums = steps.sums.get(&(id, ipu)).map_or(&[][..], Vec::as_slice);
        let mut row = reader.row(id, ipu, sums);
        if let Some(known) = &known {
            let arrivals = known.get(&(id, ipu)).copied();
            let run = reader.run(&row, sums, arrivals.unwrap_or(Ok(TileArrivals::default())));
            row.run = match measured.get(&(id, ipu)) {
                Some(measured) => Some(run.measured(measured)),
                None => Some(run),
            };
        }
        rows.push(row);
    }
    rows.sort_by_key(|row| {
        let run = row.run.as_ref();
        Reverse((run.and_then(ExchangeRun::avoidable), run.map(|run| run.cycles)))
    });
    Ok(ExchangeCyclesList { rows, unattributed: steps.unattributed, machine: reader.machine })
}

/// Sums over the steps that move data.
#[derive(Default)]
struct ExchangeSteps {
    /// Sums by program and IPU, with separate entries for several kinds or groups of tiles.
    sums: BTreeMap<(ProgramId, IpuId), Vec<ProgramStepSums>>,
    /// Cycles of steps that belong to no program.
    unattributed: Cycles,
}

impl ExchangeSteps {
    fn read(trace: &Trace) -> Result<Self, ReportError> {
        let mut found = Self::default();
        for lane in (0..trace.lanes().len()).filter_map(|index| trace.lane(index)) {
            for sums in lane.program_sums()?.iter().filter(|sums| sums.kind().moves_data()) {
                match sums.program {
                    Some(id) => found.sums.entry((id, lane.info().ipu)).or_default().push(*sums),
                    None => {
                        found.unattributed = found.unattributed.saturating_add(sums.cycles);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// All parts of a report that describe exchanges.
struct ExchangeReader {
    machine: Machine,
    target: Arc<Target>,
    programs: Arc<ProgramNodeTable>,
    exchanges: BTreeMap<ProgramId, ExchangeTraffic>,
    /// True if steps state the bytes they move.
    has_bytes: bool,
}

impl ExchangeReader {
    fn new(report: &Report) -> Result<Self, ReportError> {
        let exchanges = report.exchanges()?.into_iter().map(|of| (of.program, of));
        Ok(Self {
            machine: Machine::read(report)?,
            target: report.target()?,
            programs: report.programs()?,
            exchanges: exchanges.collect(),
            has_bytes: report.has(ReportPart::StepBytes),
        })
    }

    /// Programs that move data, executed or not, and the IPUs whose tiles take part.
    fn compiled(&self) -> Vec<(ProgramId, IpuId)> {
        let own = self.exchanges.keys().map(|id| (*id, *id));
        let mut places = Vec::new();
        for (id, body) in own.chain(self.programs.further_uses()) {
            let Some(traffic) = self.exchanges.get(&body) else { continue };
            for ipu in (0..self.target.ipus_per_replica).map(IpuId) {
                if traffic.tiles.overlaps(self.target.tiles_of_ipu(ipu)) {
                    places.push((id, ipu));
                }
            }
        }
        places
    }

    fn row(&self, id: ProgramId, ipu: IpuId, sums: &[ProgramStepSums]) -> ExchangeCycles {
        let program = self.programs.get(id);
        let of_steps = sums.first().map(ProgramStepSums::kind);
        let of_program = program.map_or(ProgramKind::Unknown, |program| program.kind);
        let kind = of_steps.unwrap_or(of_program);
        // Further calls of a function move the data of the function's own exchanges.
        let traffic = self.exchanges.get(&self.programs.body(id));
        let tiles = self.target.tiles_of_ipu(ipu);
        ExchangeCycles {
            program: id,
            name: program.map_or_else(|| "unknown".to_owned(), |program| program.name.clone()),
            kind,
            link: ExchangeLink::from_program_kind(kind),
            operation: program.and_then(|program| program.operation),
            ipu,
            traffic: traffic.map(|traffic| ExchangeBound::new(&self.machine, traffic, tiles)),
            run: None,
        }
    }

    /// All executions of an exchange.
    fn run(
        &self,
        row: &ExchangeCycles,
        sums: &[ProgramStepSums],
        arrivals: KnownArrivals,
    ) -> ExchangeRun {
        let mut executions = 0;
        let mut cycles = Cycles::ZERO;
        let mut transfer = Cycles::ZERO;
        for sums in sums {
            let moving = match row.traffic {
                Some(bound) if row.kind == ProgramKind::DoExchange => bound.moving(sums),
                _ => sums.cycles,
            };
            executions += sums.steps;
            cycles = cycles.saturating_add(sums.cycles);
            transfer = transfer.saturating_add(moving);
        }
        ExchangeRun {
            executions,
            cycles,
            transfer,
            knows_start: row.traffic.is_some_and(|bound| bound.slowest.is_some()),
            least: sums.iter().map(|sums| self.least(row, sums)).sum::<Option<f64>>().map(whole),
            arrivals,
        }
    }

    /// Cycles that steps need at least to move their data.
    fn least(&self, row: &ExchangeCycles, sums: &ProgramStepSums) -> Option<f64> {
        let interface = match sums.activity() {
            StepActivity::InternalExchange => {
                return Some(row.traffic?.cycles?.most * sums.steps as f64);
            }
            StepActivity::GlobalExchange => MachineInterface::IpuLinks,
            StepActivity::Host => MachineInterface::Host,
            StepActivity::RemoteBuffer => MachineInterface::RemoteBuffer,
            StepActivity::Compute | StepActivity::Sync | StepActivity::Other => return None,
        };
        let rate = self.machine.ipu_bytes_per_cycle(interface).filter(|_| self.has_bytes)?;
        Some(sums.bytes_moved.as_f64() / rate)
    }
}

/// Whole cycles of a lower bound.
fn whole(cycles: f64) -> Cycles {
    Cycles::from_f64(cycles.floor())
}

/// The part of a tile in one execution of an exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeTile {
    pub tile: TileId,
    pub traffic: TileTraffic,
    /// Cycles that it needs at least; `None` if the speed of tiles is not known.
    pub least: Option<f64>,
    /// Cycles that it takes, if recorded.
    pub cycles: Option<Cycles>,
}

/// The tiles of an exchange, those that need the most cycles first; empty if not recorded.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn exchange_tiles(
    report: &Report,
    program: ProgramId,
) -> Result<Vec<ExchangeTile>, ReportError> {
    let Some(traffic) = report.exchange(program)? else { return Ok(Vec::new()) };
    let machine = Machine::read(report)?;
    let target = report.target()?;
    let internal =
        report.programs()?.get(program).is_some_and(|of| of.kind == ProgramKind::DoExchange);
    let mut rows = Vec::new();
    for ipu in (0..target.ipus_per_replica).map(IpuId) {
        let tiles = target.tiles_of_ipu(ipu);
        let bound = ExchangeBound::new(&machine, &traffic, tiles);
        let repeated = bound.received.saturating_sub(bound.sent);
        let own = traffic.tiles.iter().map(|(run, of)| (run.intersection(tiles), of));
        for (tile, of) in own.flat_map(|(run, of)| run.iter().map(move |tile| (tile, of))) {
            // Tiles do not limit exchanges that use the links of an IPU.
            let least = machine.limits.tile_exchange_cycles(of, repeated).filter(|_| internal);
            let cycles = traffic.cycles.get(tile).copied();
            rows.push(ExchangeTile { tile, traffic: *of, least, cycles });
        }
    }
    rows.sort_by(|one, other| {
        let by_least = other.least.unwrap_or_default().total_cmp(&one.least.unwrap_or_default());
        by_least.then_with(|| other.moved().cmp(&one.moved()))
    });
    Ok(rows)
}

impl ExchangeTile {
    /// Bytes received or sent, the larger of the two.
    fn moved(&self) -> Bytes {
        self.traffic.bytes_in.max(self.traffic.bytes_out)
    }
}
