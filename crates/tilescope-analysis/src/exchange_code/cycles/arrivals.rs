//! When the tiles of an IPU arrive at an exchange: a tile that is done with the step before waits
//! for the last one.
//!
//! A report holds the cycles of each tile once per compute set and exchange, so the step before an
//! exchange tells when tiles arrive; syncs between both are what tiles wait in. All steps of a run
//! are looked at, in parts beside each other, and nothing is kept of them.

use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use tilescope_report::trace::{LaneInfo, LaneStep, Trace, TraceLane};
use tilescope_report::units::{
    ComputeSetId, Cycles, IpuId, ProgramId, TileId, TileRange, TileRuns,
};
use tilescope_report::{ComputeSet, ExchangeTraffic, ProgramKind, Report, ReportError};

/// Steps of a part, and parts that are looked at side by side.
const PART_STEPS: u64 = 1 << 16;
const PARTS_AT_ONCE: usize = 16;

/// How far apart the tiles of an IPU arrive at an exchange, over all its executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileArrivals {
    pub executions: u64,
    /// Cycles from the first to the last tile, summed over executions.
    pub spread: Cycles,
    /// The same of the execution in which it is most.
    pub widest: Cycles,
    /// The last tile of that one, the first of those that come last together; `None` where all
    /// tiles always arrive together.
    pub last: Option<TileId>,
    /// Tiles that come last together.
    pub last_tiles: u32,
}

/// Why nobody knows when tiles arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownArrivals {
    /// Executions of which it is not known.
    pub executions: u64,
    /// What ran before the first of these; `None` where nothing did.
    pub behind: Option<ProgramKind>,
}

impl UnknownArrivals {
    /// The reason in words, of so many executions.
    pub fn sentence(&self, all: u64) -> String {
        let these = match self.executions == all {
            true => "Its executions".to_owned(),
            false => format!("{} of its {all} executions", self.executions),
        };
        match self.behind {
            Some(kind) => format!("{these} follow {}, whose cycles by tile are not recorded.", kind.name()),
            None => format!("{these} have no step before them."),
        }
    }
}

/// What is known of the arrivals at one exchange.
pub(super) type KnownArrivals = Result<TileArrivals, UnknownArrivals>;

/// When the tiles of an IPU are done with a program, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TileEnds {
    spread: Cycles,
    last: TileId,
    last_tiles: u32,
}

impl TileEnds {
    fn new(cycles: &TileRuns<Cycles>, tiles: TileRange) -> Option<Self> {
        let own = cycles.iter().map(|(run, of)| (run.intersection(tiles), *of));
        let own = own.filter(|(run, _)| run.count() > 0);
        let mut first: Option<Cycles> = None;
        let mut last: Option<(Cycles, TileId, u32)> = None;
        for (run, cycles) in own {
            first = Some(first.map_or(cycles, |first| first.min(cycles)));
            last = match last {
                Some((most, tile, count)) if most == cycles => {
                    Some((most, tile, count + run.count()))
                }
                Some((most, ..)) if most > cycles => last,
                _ => Some((cycles, run.first, run.count())),
            };
        }
        let (most, last, last_tiles) = last?;
        Some(Self { spread: most.saturating_sub(first?), last, last_tiles })
    }
}

/// Arrivals at every exchange that ran, by program and IPU.
pub(super) fn arrivals(
    report: &Report,
    trace: &Trace,
    exchanges: &BTreeMap<ProgramId, ExchangeTraffic>,
) -> Result<BTreeMap<(ProgramId, IpuId), KnownArrivals>, ReportError> {
    let sets: BTreeMap<ComputeSetId, ComputeSet> = report.compute_sets()?.into_iter().collect();
    let mut all: BTreeMap<(ProgramId, IpuId), LaneArrivals> = BTreeMap::new();
    for index in 0..trace.lanes().len() {
        let Some(lane) = trace.lane(index) else { continue };
        let ends = ends_on(report, lane, &sets, exchanges)?;
        let ipu = lane.info().ipu;
        for (program, found) in lane_arrivals(lane, &ends)? {
            all.entry((program, ipu)).or_default().add(&found);
        }
    }
    Ok(all.into_iter().map(|(at, found)| (at, found.known())).collect())
}

/// When tiles are done with each program that runs on a lane.
fn ends_on(
    report: &Report,
    lane: TraceLane<'_>,
    sets: &BTreeMap<ComputeSetId, ComputeSet>,
    exchanges: &BTreeMap<ProgramId, ExchangeTraffic>,
) -> Result<HashMap<ProgramId, TileEnds>, ReportError> {
    let LaneInfo { ipu, .. } = lane.info();
    let (programs, tiles) = (report.programs()?, report.target()?.tiles_of_ipu(ipu));
    let sums = lane.program_sums()?;
    let ids = sums.iter().filter_map(|sums| sums.program);
    let ends = ids.filter_map(|id| {
        let set = programs.get(id).and_then(|program| program.compute_set);
        let cycles = match set {
            Some(set) => &sets.get(&set)?.cycles,
            None => &exchanges.get(&programs.body(id))?.cycles,
        };
        Some((id, TileEnds::new(cycles, tiles)?))
    });
    Ok(ends.collect())
}

fn lane_arrivals(
    lane: TraceLane<'_>,
    ends: &HashMap<ProgramId, TileEnds>,
) -> Result<HashMap<ProgramId, LaneArrivals>, ReportError> {
    let steps = lane.info().steps;
    let starts: Vec<u64> = (0..steps.div_ceil(PART_STEPS)).map(|at| at * PART_STEPS).collect();
    let mut all = PartArrivals::new(ends);
    for starts in starts.chunks(PARTS_AT_ONCE) {
        let part = |start: &u64| PartArrivals::read(lane, *start..*start + PART_STEPS, ends);
        let parts: Vec<PartArrivals<'_>> =
            starts.par_iter().map(part).collect::<Result<_, ReportError>>()?;
        parts.into_iter().for_each(|part| all.append(part));
    }
    Ok(all.finish())
}

/// A step that tiles are busy in.
#[derive(Clone, Copy)]
struct BusyStep {
    program: Option<ProgramId>,
    kind: ProgramKind,
}

impl BusyStep {
    /// `None` for steps in which tiles only wait.
    fn of(step: &LaneStep) -> Option<Self> {
        let waits = matches!(step.kind, ProgramKind::Sync | ProgramKind::WriteUndef);
        (!waits).then_some(Self { program: step.program, kind: step.kind })
    }

    /// The program, if it is one that moves data.
    fn exchange(self) -> Option<ProgramId> {
        self.program.filter(|_| super::moves_data(self.kind))
    }
}

/// Arrivals in consecutive steps of a lane.
struct PartArrivals<'a> {
    ends: &'a HashMap<ProgramId, TileEnds>,
    /// The first busy step, whose arrivals the part before knows, and the last one.
    first: Option<BusyStep>,
    last: Option<BusyStep>,
    by_program: HashMap<ProgramId, LaneArrivals>,
}

impl<'a> PartArrivals<'a> {
    fn new(ends: &'a HashMap<ProgramId, TileEnds>) -> Self {
        Self { ends, first: None, last: None, by_program: HashMap::new() }
    }

    fn read(
        lane: TraceLane<'_>,
        positions: Range<u64>,
        ends: &'a HashMap<ProgramId, TileEnds>,
    ) -> Result<Self, ReportError> {
        let mut part = Self::new(ends);
        lane.visit_each_step(positions, |step, _| {
            if let Some(step) = BusyStep::of(&step) {
                if let Some(before) = part.last {
                    part.arrive(step, Some(before));
                }
                part.first = part.first.or(Some(step));
                part.last = Some(step);
            }
        })?;
        Ok(part)
    }

    /// Counts the arrival at a step behind another one.
    fn arrive(&mut self, step: BusyStep, before: Option<BusyStep>) {
        let Some(program) = step.exchange() else { return };
        let ends = before.and_then(|before| self.ends.get(&before.program?));
        let found = self.by_program.entry(program).or_default();
        match ends {
            Some(ends) => found.arrive(ends),
            None => found.miss(before),
        }
    }

    /// Takes in the steps behind its own.
    fn append(&mut self, next: Self) {
        if let Some(first) = next.first {
            if self.first.is_some() {
                self.arrive(first, self.last);
            }
            self.first = self.first.or(Some(first));
        }
        for (program, found) in next.by_program {
            self.by_program.entry(program).or_default().add(&found);
        }
        self.last = next.last.or(self.last);
    }

    /// All of them, those at the first step of the lane too.
    fn finish(mut self) -> HashMap<ProgramId, LaneArrivals> {
        if let Some(first) = self.first {
            self.arrive(first, None);
        }
        self.by_program
    }
}

/// Arrivals at one exchange, as far as they are known.
#[derive(Clone, Copy, Default)]
struct LaneArrivals {
    known: TileArrivals,
    unknown: Option<UnknownArrivals>,
}

impl LaneArrivals {
    fn arrive(&mut self, ends: &TileEnds) {
        let TileEnds { spread, last, last_tiles } = *ends;
        let last = (!spread.is_zero()).then_some(last);
        self.known.add(&TileArrivals { executions: 1, spread, widest: spread, last, last_tiles });
    }

    fn miss(&mut self, before: Option<BusyStep>) {
        let behind = before.map(|before| before.kind);
        self.add_unknown(UnknownArrivals { executions: 1, behind });
    }

    fn add_unknown(&mut self, more: UnknownArrivals) {
        // Something that ran before says more than that nothing did.
        self.unknown = Some(self.unknown.map_or(more, |known| UnknownArrivals {
            executions: known.executions + more.executions,
            behind: known.behind.or(more.behind),
        }));
    }

    fn add(&mut self, other: &Self) {
        self.known.add(&other.known);
        if let Some(unknown) = other.unknown {
            self.add_unknown(unknown);
        }
    }

    fn known(self) -> KnownArrivals {
        self.unknown.map_or(Ok(self.known), Err)
    }
}

impl TileArrivals {
    fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.spread = self.spread.saturating_add(other.spread);
        if other.widest > self.widest {
            (self.widest, self.last, self.last_tiles) = (other.widest, other.last, other.last_tiles);
        }
    }

    /// Cycles from the first to the last tile in an execution, on average.
    pub fn mean_spread(&self) -> Cycles {
        self.spread / self.executions.max(1)
    }
}
