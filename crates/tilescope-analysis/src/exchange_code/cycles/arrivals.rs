//! Arrival of the tiles of an IPU at an exchange: a tile that ends the step before waits for the
//! last one.
//!
//! A report holds the cycles of each tile once per compute set and exchange, so the step before an
//! exchange determines the arrival of its tiles; tiles wait in the syncs between both. All steps of
//! a run are read, in parallel parts, and none of them is kept.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use tilescope_report::trace::{ExchangeFollowing, LaneInfo, LaneStep, Trace, TraceLane};
use tilescope_report::units::{
    ComputeSetId, Cycles, IpuId, ProgramId, TileId, TileRange, TileRuns,
};
use tilescope_report::{ComputeSet, ExchangeTraffic, ProgramKind, Report, ReportError};

/// Steps of a part, and parts that are read in parallel: fewer if each of them has more sums than
/// `MOST_AT_ONCE`.
const PART_STEPS: u64 = 1 << 16;
const PARTS_AT_ONCE: usize = 16;
const MOST_AT_ONCE: usize = 1 << 20;

/// Spread of the arrivals of an IPU's tiles at an exchange, over all its executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileArrivals {
    pub executions: u64,
    /// Cycles from the first to the last tile, summed over executions.
    pub spread: Cycles,
    /// The largest spread of a single execution.
    pub widest: Cycles,
    /// The last tile of that execution, or the first of several that arrive last together; `None`
    /// if all tiles always arrive together.
    pub last: Option<TileId>,
    /// Number of tiles that arrive last together.
    pub last_tiles: u32,
}

/// The reason that arrivals are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownArrivals {
    /// Number of executions with unknown arrivals.
    pub executions: u64,
    /// The kind of the step before the first of these; `None` if there was no such step.
    pub behind: Option<ProgramKind>,
}

impl UnknownArrivals {
    /// The reason as a sentence, for `all` executions.
    pub fn sentence(&self, all: u64) -> String {
        let these = if self.executions == all {
            "Its executions".to_owned()
        } else {
            format!("{} of its {all} executions", self.executions)
        };
        match self.behind {
            Some(kind) => {
                format!("{these} follow {}, whose cycles by tile are not recorded.", kind.name())
            }
            None => format!("{these} have no step before them."),
        }
    }
}

/// The arrivals at one exchange, or the reason that they are not known.
pub(super) type KnownArrivals = Result<TileArrivals, UnknownArrivals>;

/// End of a program on each tile of an IPU, counted from its start.
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

/// Arrivals at every executed exchange, by program and IPU.
pub(super) fn arrivals(
    report: &Report,
    trace: &Trace,
    exchanges: &BTreeMap<ProgramId, ExchangeTraffic>,
) -> Result<BTreeMap<(ProgramId, IpuId), KnownArrivals>, ReportError> {
    let sets: BTreeMap<ComputeSetId, ComputeSet> = report.compute_sets()?.into_iter().collect();
    let mut all: BTreeMap<(ProgramId, IpuId), Arrivals> = BTreeMap::new();
    for lane in (0..trace.lanes().len()).filter_map(|index| trace.lane(index)) {
        let programs = LanePrograms::read(report, lane, &sets, exchanges)?;
        let ipu = lane.info().ipu;
        for (program, found) in lane_arrivals(lane, &programs, PART_STEPS)? {
            all.entry((program, ipu)).or_default().add(&found);
        }
    }
    Ok(all.into_iter().map(|(at, found)| (at, found.known())).collect())
}

/// The programs that run on a lane.
#[derive(Default)]
struct LanePrograms {
    /// Index of each program that moves data among the exchanges, by program number.
    exchanges: Vec<Option<u32>>,
    ids: Vec<ProgramId>,
    /// Tile ends of each program, by program number; `None` if they were not recorded.
    ends: Vec<Option<TileEnds>>,
}

impl LanePrograms {
    fn read(
        report: &Report,
        lane: TraceLane<'_>,
        sets: &BTreeMap<ComputeSetId, ComputeSet>,
        exchanges: &BTreeMap<ProgramId, ExchangeTraffic>,
    ) -> Result<Self, ReportError> {
        let LaneInfo { ipu, .. } = lane.info();
        let programs = report.programs()?;
        let tiles = report.target()?.tiles_of_ipu(ipu);
        let mut found = Self::default();
        found.exchanges.resize(programs.len(), None);
        found.ends.resize(programs.len(), None);
        for sums in lane.program_sums()?.iter() {
            // Steps may name programs that are not in the table.
            let Some(id) = sums.program else { continue };
            let Some(program) = programs.get(id) else { continue };
            let place = u32::try_from(found.ids.len()).ok().filter(|_| sums.kind().moves_data());
            if let (Some(exchange @ None), Some(_)) = (found.exchanges.get_mut(id.index()), place) {
                *exchange = place;
                found.ids.push(id);
            }
            let cycles = match program.compute_set {
                Some(set) => sets.get(&set).map(|set| &set.cycles),
                None => exchanges.get(&programs.body(id)).map(|of| &of.cycles),
            };
            if let Some(ends) = found.ends.get_mut(id.index()) {
                *ends = cycles.and_then(|cycles| TileEnds::new(cycles, tiles));
            }
        }
        Ok(found)
    }

    /// Index of the exchange that a step executes, if it is one.
    fn exchange(&self, step: BusyStep) -> Option<usize> {
        let place = (*self.exchanges.get(step.program?.index())?)?;
        if step.kind.moves_data() { Some(place as usize) } else { None }
    }

    fn ends(&self, step: BusyStep) -> Option<TileEnds> {
        *self.ends.get(step.program?.index())?
    }
}

/// Arrivals at each exchange of a lane, which is read in parts of `part_steps` steps.
fn lane_arrivals(
    lane: TraceLane<'_>,
    programs: &LanePrograms,
    part_steps: u64,
) -> Result<Vec<(ProgramId, Arrivals)>, ReportError> {
    if let Some(order) = lane.exchange_order()? {
        return Ok(arrivals_in_order(&order, programs));
    }
    let parts = lane.info().steps.div_ceil(part_steps);
    let starts: Vec<u64> = (0..parts).map(|at| at * part_steps).collect();
    let mut all = PartArrivals::new(programs);
    let at_once = (MOST_AT_ONCE / programs.ids.len().max(1)).clamp(1, PARTS_AT_ONCE);
    for starts in starts.chunks(at_once) {
        let part = |start: &u64| PartArrivals::read(lane, *start..*start + part_steps, programs);
        let parts: Vec<PartArrivals<'_>> =
            starts.par_iter().map(part).collect::<Result<_, ReportError>>()?;
        parts.into_iter().for_each(|part| all.append(part));
    }
    Ok(all.into_arrivals())
}

/// Arrivals at each exchange of a lane with a known order.
fn arrivals_in_order(
    order: &[ExchangeFollowing],
    programs: &LanePrograms,
) -> Vec<(ProgramId, Arrivals)> {
    let mut all = PartArrivals::new(programs);
    // The exchange at the first step of the lane comes last, as when steps are read one by one.
    let (at_start, behind): (Vec<_>, Vec<_>) = order.iter().partition(|of| of.before.is_none());
    for ExchangeFollowing { exchange, kind, before, executions } in
        behind.into_iter().chain(at_start)
    {
        let step = BusyStep { program: Some(exchange), kind };
        let before = before.map(|(program, kind)| BusyStep { program, kind });
        all.arrive(step, before, executions);
    }
    all.into_arrivals()
}

/// A step in which tiles work.
#[derive(Clone, Copy)]
struct BusyStep {
    program: Option<ProgramId>,
    kind: ProgramKind,
}

impl BusyStep {
    /// `None` for steps in which tiles only wait.
    fn of(step: &LaneStep) -> Option<Self> {
        let waits = matches!(step.kind, ProgramKind::Sync | ProgramKind::WriteUndef);
        if !waits { Some(Self { program: step.program, kind: step.kind }) } else { None }
    }
}

/// Arrivals in consecutive steps of a lane.
struct PartArrivals<'a> {
    programs: &'a LanePrograms,
    /// The first working step, whose arrivals depend on the previous part, and the last one.
    first: Option<BusyStep>,
    last: Option<BusyStep>,
    /// Arrivals by index of the exchange.
    found: Vec<Arrivals>,
}

impl<'a> PartArrivals<'a> {
    fn new(programs: &'a LanePrograms) -> Self {
        let found = vec![Arrivals::default(); programs.ids.len()];
        Self { programs, first: None, last: None, found }
    }

    fn read(
        lane: TraceLane<'_>,
        positions: Range<u64>,
        programs: &'a LanePrograms,
    ) -> Result<Self, ReportError> {
        let mut part = Self::new(programs);
        lane.visit_records(positions, |step| {
            let Some(step) = BusyStep::of(&step) else { return };
            if let Some(before) = part.last.replace(step) {
                part.arrive(step, Some(before), 1);
            } else {
                part.first = Some(step);
            }
        })?;
        Ok(part)
    }

    /// Counts arrivals at a step that follows another one.
    fn arrive(&mut self, step: BusyStep, before: Option<BusyStep>, executions: u64) {
        let exchange = self.programs.exchange(step);
        let Some(found) = exchange.and_then(|place| self.found.get_mut(place)) else { return };
        match before.and_then(|before| self.programs.ends(before)) {
            Some(ends) => found.arrive(ends, executions),
            None => found.miss(before, executions),
        }
    }

    /// Appends the steps of the next part.
    fn append(&mut self, next: Self) {
        match (self.first, next.first) {
            (Some(_), Some(first)) => self.arrive(first, self.last, 1),
            (None, first) => self.first = first,
            (Some(_), None) => {}
        }
        self.last = next.last.or(self.last);
        self.found.iter_mut().zip(&next.found).for_each(|(sum, more)| sum.add(more));
    }

    /// Arrivals at executed exchanges, including the one at the first step of the lane.
    fn into_arrivals(mut self) -> Vec<(ProgramId, Arrivals)> {
        if let Some(first) = self.first {
            self.arrive(first, None, 1);
        }
        let all = self.programs.ids.iter().copied().zip(self.found);
        all.filter(|(_, arrivals)| arrivals.executions() > 0).collect()
    }
}

/// Arrivals at one exchange, known and unknown.
#[derive(Clone, Copy, Default)]
struct Arrivals {
    known: TileArrivals,
    unknown: Option<UnknownArrivals>,
}

impl Arrivals {
    fn arrive(&mut self, ends: TileEnds, executions: u64) {
        let TileEnds { spread: widest, last, last_tiles } = ends;
        let last = if widest.is_zero() { None } else { Some(last) };
        let spread = Cycles(widest.0.saturating_mul(executions));
        self.known.add(&TileArrivals { executions, spread, widest, last, last_tiles });
    }

    fn miss(&mut self, before: Option<BusyStep>, executions: u64) {
        let behind = before.map(|before| before.kind);
        self.add_unknown(UnknownArrivals { executions, behind });
    }

    fn add_unknown(&mut self, more: UnknownArrivals) {
        // A reason that names a step before is more informative than one that names none.
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

    fn executions(&self) -> u64 {
        self.known.executions + self.unknown.map_or(0, |unknown| unknown.executions)
    }

    fn known(self) -> KnownArrivals {
        self.unknown.map_or(Ok(self.known), Err)
    }
}

impl TileArrivals {
    pub(super) fn add(&mut self, other: &Self) {
        self.executions += other.executions;
        self.spread = self.spread.saturating_add(other.spread);
        if other.widest > self.widest {
            (self.widest, self.last, self.last_tiles) =
                (other.widest, other.last, other.last_tiles);
        }
    }

    /// Cycles from the first to the last tile in an execution, on average.
    pub fn mean_spread(&self) -> Cycles {
        self.spread / self.executions.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;

    /// Compute sets with different spreads, syncs and exchanges in an order without repetition.
    fn report() -> (tempfile::TempDir, Report) {
        let mut builder = ReportBuilder::new(1, 4);
        let work: Vec<ProgramId> = (0..3u64)
            .map(|at| {
                let id = builder.compute("work", 10);
                let cycles = (0..4).map(|tile| Some(Cycles(10 + at * tile)));
                let set = builder.parts.compute_sets.last_mut().unwrap();
                set.cycles = TileRuns::from_tiles(TileId(0), cycles);
                id
            })
            .collect();
        let sync = builder.program(ProgramKind::Sync, "Internal");
        let exchanges = [builder.exchange("a", 4), builder.exchange("b", 8)];
        let mut place = 0u64;
        for at in 0..200u64 {
            let programs = [
                Some(work[(at * at % 7 % 3) as usize]),
                (at % 3 > 0).then_some(sync),
                (at % 5 > 0).then_some(exchanges[usize::from(at % 4 == 0)]),
                (at % 11 == 0).then_some(sync),
                (at % 6 == 0).then_some(exchanges[0]),
            ];
            for program in programs.into_iter().flatten() {
                builder.run(program, place..place + 20);
                place += 20;
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        (directory, report)
    }

    #[test]
    fn parts_of_any_length_give_equal_sums() {
        let (_directory, report) = report();
        let trace = report.trace().unwrap().unwrap();
        let lane = trace.lane(0).unwrap();
        let exchanges = report.exchanges().unwrap().into_iter().map(|of| (of.program, of));
        let sets = report.compute_sets().unwrap().into_iter().collect();
        let programs = LanePrograms::read(&report, lane, &sets, &exchanges.collect()).unwrap();
        let of_parts = |steps| {
            let found = lane_arrivals(lane, &programs, steps).unwrap();
            found.into_iter().map(|(id, of)| (id, of.known, of.unknown)).collect::<Vec<_>>()
        };
        let whole = of_parts(1 << 40);
        assert_eq!(whole.len(), 2);
        // The tiles of exchanges are not recorded here, so arrivals after an exchange are not
        // known.
        assert!(whole.iter().all(|(_, known, _)| known.spread > Cycles::ZERO));
        assert!(whole.iter().any(|(.., unknown)| unknown.is_some()));
        for steps in [1, 2, 3, 5, 64, 1000] {
            assert_eq!(of_parts(steps), whole, "{steps}");
        }
    }

    #[test]
    fn the_first_of_those_that_are_done_last_is_named() {
        let cycles = [Some(5), None, Some(9), Some(9), Some(7), Some(9)];
        let cycles = cycles.map(|cycles| cycles.map(Cycles));
        let cycles = TileRuns::from_tiles(TileId(0), cycles);
        let ends = |tiles| TileEnds::new(&cycles, tiles);
        let all = TileEnds { spread: Cycles(4), last: TileId(2), last_tiles: 3 };
        assert_eq!(ends(TileRange::first_tiles(8)), Some(all));
        let two = TileEnds { spread: Cycles(2), last: TileId(5), last_tiles: 1 };
        assert_eq!(ends(TileRange::new(TileId(4), TileId(9))), Some(two));
        assert_eq!(ends(TileRange::single(TileId(1))), None);
    }
}
