//! State of every tile at one cycle of the run, according to the step of its IPU at that cycle.
//!
//! A report states the length of a step, and for its program the working cycles and the traffic of
//! each tile in one execution. A tile waits for the rest of the step. Memory is the live memory of
//! the tile at the liveness step of the program. For measured tiles, active and waiting cycles are
//! those of the tile's sample at the cycle.

use super::program_labels::ProgramLabels;
use crate::tile_curves::TileCurveUnit;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tilescope_report::trace::{LaneStep, Trace};
use tilescope_report::units::{
    Bytes, ComputeSetId, CycleRange, Cycles, IpuId, ProgramId, Quantity, StepId, TileRange,
    TileRuns,
};
use tilescope_report::{
    ExchangeTraffic, ProgramKind, ProgramNodeTable, Report, ReportError, ReportPart, SampleKind,
    SampleLabel, Target, TileTraffic, VariableFilter, VariablePlacement,
};

/// The number of steps before and after the one under the cursor that measured tiles may be in at
/// its cycle.
const NEIGHBOURS: u64 = 8;

/// A figure of every tile at a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TileFigure {
    /// Cycles of the step in which the tile works.
    #[default]
    Active,
    /// Cycles of the step in which the tile waits.
    Waiting,
    /// Bytes that the tile sends in the step.
    Sent,
    /// Bytes that the tile receives in the step.
    Received,
    /// Live bytes of the tile.
    Memory,
}

impl TileFigure {
    /// Every figure.
    pub const ALL: [TileFigure; 5] =
        [Self::Active, Self::Waiting, Self::Sent, Self::Received, Self::Memory];

    /// The title of the figure.
    pub fn title(self) -> &'static str {
        match self {
            Self::Active => "Active cycles",
            Self::Waiting => "Waiting cycles",
            Self::Sent => "Sent",
            Self::Received => "Received",
            Self::Memory => "Live memory",
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> TileCurveUnit {
        match self {
            Self::Active | Self::Waiting => TileCurveUnit::Cycles,
            Self::Sent | Self::Received | Self::Memory => TileCurveUnit::Bytes,
        }
    }
}

/// The step of an IPU, or of a group of its tiles, at a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepAtCycle {
    pub ipu: IpuId,
    /// The group of tiles.
    pub sub_lane: u8,
    /// Its name, or the kind of the step.
    pub name: String,
    pub range: CycleRange,
    /// True if the figure of its tiles is known.
    pub known: bool,
}

/// A figure of every tile of a replica at a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TilesAtCycle {
    pub cycle: Cycles,
    pub figure: TileFigure,
    /// One value per tile; 0 for unknown values.
    pub values: Vec<u64>,
    /// The steps at the cycle, by IPU and group of tiles; idle IPUs have none.
    pub steps: Vec<StepAtCycle>,
}

/// All parts of a report that describe the work of tiles.
pub struct TileSources {
    target: Arc<Target>,
    programs: Arc<ProgramNodeTable>,
    exchanges: BTreeMap<ProgramId, ExchangeTraffic>,
    cycles: BTreeMap<ComputeSetId, TileRuns<Cycles>>,
    /// Liveness step of each program.
    steps: HashMap<ProgramId, u32>,
    /// Read at the first request for memory.
    memory: OnceLock<LiveBytes>,
    /// Labels of samples, if tiles were measured.
    labels: Option<Arc<Vec<SampleLabel>>>,
}

/// The live memory of tiles.
struct LiveBytes {
    always: TileRuns<Bytes>,
    /// Other variables with their lifetimes.
    others: Vec<(Range<u32>, TileRuns<VariablePlacement>)>,
}

impl TileSources {
    /// Reads the sources of a report.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report) -> Result<Self, ReportError> {
        let exchanges = report.exchanges()?.into_iter().map(|of| (of.program, of));
        let sets = report.compute_sets()?.into_iter().map(|(id, set)| (id, set.cycles));
        let mut steps = HashMap::new();
        // Without lifetimes every variable would count as always live, and be drawn as if that were
        // known.
        if report.has(ReportPart::Liveness) && report.has(ReportPart::Lifetimes) {
            for (at, step) in (0u32..).zip(report.liveness()?.iter()) {
                steps.entry(step.program).or_insert(at);
            }
        }
        let labels = if report.has_tile_samples() { Some(report.sample_labels()?) } else { None };
        Ok(Self {
            target: report.target()?,
            programs: report.programs()?,
            exchanges: exchanges.collect(),
            cycles: sets.collect(),
            steps,
            memory: OnceLock::new(),
            labels,
        })
    }

    fn memory(&self, report: &Report) -> Result<&LiveBytes, ReportError> {
        if let Some(known) = self.memory.get() {
            return Ok(known);
        }
        let filter = VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
        let variables = report.variables(&filter)?.into_iter();
        let others = variables.filter_map(|(_, of)| Some((of.lifetime?, of.tiles))).collect();
        let always = report.tile_memory()?.map(|tile| tile.always_live);
        Ok(self.memory.get_or_init(|| LiveBytes { always, others }))
    }

    /// A figure of all tiles at a cycle of a replica's trace.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn at(
        &self,
        report: &Report,
        (trace, labels): (&Trace, &ProgramLabels),
        cycle: Cycles,
        figure: TileFigure,
    ) -> Result<TilesAtCycle, ReportError> {
        let count = self.target.tiles_per_replica() as usize;
        let mut found = TilesAtCycle { cycle, figure, values: vec![0; count], steps: Vec::new() };
        for info in trace.lanes() {
            let lane = trace.lane_of(info.ipu, info.sub_lane);
            let Some(step) = lane.map(|lane| lane.step_at(cycle)).transpose()?.flatten() else {
                continue;
            };
            let tiles = self.tiles_of(info.ipu, info.sub_lane);
            let known = match figure {
                // Compute tiles and I/O tiles share the variables of their IPU.
                TileFigure::Memory if info.sub_lane > 0 => continue,
                TileFigure::Memory => self.fill_memory(report, &step, info.ipu, &mut found)?,
                TileFigure::Sent | TileFigure::Received => {
                    self.fill_traffic(&step, tiles, figure, &mut found.values)
                }
                TileFigure::Active | TileFigure::Waiting if self.labels.is_some() => {
                    self.fill_measured(report, (&step, tiles), &mut found)?
                }
                TileFigure::Active | TileFigure::Waiting => {
                    self.fill_cycles(&step, tiles, figure, &mut found.values)
                }
            };
            let name = step.program.and_then(|id| labels.program_name(id));
            let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            found.steps.push(StepAtCycle {
                ipu: info.ipu,
                sub_lane: info.sub_lane,
                name: name.unwrap_or_else(|| step.kind.name().to_owned()),
                range: step.range,
                known,
            });
        }
        Ok(found)
    }

    /// The tiles of a group of an IPU: I/O tiles are the last ones.
    fn tiles_of(&self, ipu: IpuId, sub_lane: u8) -> TileRange {
        let all = self.target.tiles_of_ipu(ipu);
        let io = all.first + self.target.compute_tiles_per_ipu();
        match (sub_lane, self.target.io_tiles_per_ipu) {
            (_, 0) => all,
            (0, _) => TileRange::new(all.first, io),
            _ => TileRange::new(io, all.end),
        }
    }

    /// Sets the sent or received bytes of tiles; returns false if they are not known.
    fn fill_traffic(
        &self,
        step: &LaneStep,
        tiles: TileRange,
        figure: TileFigure,
        values: &mut [u64],
    ) -> bool {
        if !step.kind.moves_data() {
            // No other step moves data, so the zeros are known.
            return true;
        }
        let body = step.program.map(|id| self.programs.body(id));
        let Some(traffic) = body.and_then(|id| self.exchanges.get(&id)) else { return false };
        let bytes = |of: &TileTraffic| match figure {
            TileFigure::Received => of.bytes_in,
            _ => of.bytes_out,
        };
        fill(&traffic.tiles, tiles, values, bytes);
        true
    }

    /// Sets the working or waiting cycles of tiles; returns false if they are not known.
    fn fill_cycles(
        &self,
        step: &LaneStep,
        tiles: TileRange,
        figure: TileFigure,
        values: &mut [u64],
    ) -> bool {
        let length = step.range.length();
        let empty = TileRuns::empty();
        let own = match step.kind {
            ProgramKind::Sync => Some(&empty),
            _ => self.cycles_of(step.program),
        };
        let Some(own) = own else { return false };
        if figure == TileFigure::Waiting
            && let Some(values) = values.get_mut(tiles.indices())
        {
            values.fill(length.0);
        }
        // A report of another tool may state that a tile works longer than its step.
        fill(own, tiles, values, |cycles| match figure {
            TileFigure::Waiting => length.saturating_sub(*cycles),
            _ => (*cycles).min(length),
        });
        true
    }

    /// Sets the cycles of the samples of tiles at the cycle, by working or waiting; these are
    /// always known.
    fn fill_measured(
        &self,
        report: &Report,
        (step, tiles): (&LaneStep, TileRange),
        found: &mut TilesAtCycle,
    ) -> Result<bool, ReportError> {
        let cycle = found.cycle;
        let wanted = found.figure == TileFigure::Active;
        let first = StepId(step.step.0.saturating_sub(NEIGHBOURS));
        let end = StepId(step.step.0.saturating_add(NEIGHBOURS + 1));
        let labels = self.labels.as_deref().map_or(&[][..], Vec::as_slice);
        report.visit_tile_samples(first..end, |_, sample| {
            let under_cursor = sample.cycles.start <= cycle && cycle < sample.cycles.end;
            if !under_cursor || !tiles.contains(sample.tile) {
                return;
            }
            let kind = labels.get(sample.label as usize).map(|label| label.kind);
            let works = matches!(kind, Some(SampleKind::Compute | SampleKind::Exchange));
            if let Some(value) =
                found.values.get_mut(sample.tile.index()).filter(|_| works == wanted)
            {
                *value = sample.cycles.length().0;
            }
        })?;
        Ok(true)
    }

    /// Cycles of each tile in a program, if they were recorded.
    fn cycles_of(&self, program: Option<ProgramId>) -> Option<&TileRuns<Cycles>> {
        let body = self.programs.body(program?);
        let set = self.programs.get(body).and_then(|program| program.compute_set);
        let own = match set {
            Some(set) => self.cycles.get(&set),
            None => self.exchanges.get(&body).map(|traffic| &traffic.cycles),
        };
        own.filter(|cycles| cycles.iter().next().is_some())
    }

    /// Sets the live bytes of the tiles of an IPU at the liveness step of a program; returns false
    /// if they are not known.
    fn fill_memory(
        &self,
        report: &Report,
        step: &LaneStep,
        ipu: IpuId,
        found: &mut TilesAtCycle,
    ) -> Result<bool, ReportError> {
        let at = step.program.and_then(|id| self.steps.get(&id).copied());
        let Some(at) = at else { return Ok(false) };
        let tiles = self.target.tiles_of_ipu(ipu);
        let memory = self.memory(report)?;
        fill(&memory.always, tiles, &mut found.values, |bytes| *bytes);
        for (_, placed) in memory.others.iter().filter(|(life, _)| life.contains(&at)) {
            for (run, part) in placed.iter() {
                let run = run.intersection(tiles);
                for value in found.values.get_mut(run.indices()).into_iter().flatten() {
                    *value = value.saturating_add(part.bytes.0);
                }
            }
        }
        Ok(true)
    }
}

/// Sets the values of those of `tiles` with a value.
fn fill<T, Q: Quantity>(
    runs: &TileRuns<T>,
    tiles: TileRange,
    values: &mut [u64],
    value: impl Fn(&T) -> Q,
) {
    for (run, of) in runs.iter() {
        let run = run.intersection(tiles);
        if let Some(own) = values.get_mut(run.indices()) {
            own.fill(value(of).number());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::MemoryCategory;
    use tilescope_report::units::TileId;

    /// A compute step with tiles that work 10, 20, 30 and 40 cycles, an exchange, a sync and a
    /// pause.
    fn report() -> (tempfile::TempDir, Report) {
        let mut builder = ReportBuilder::new(1, 4);
        let work = builder.compute("work", 40);
        builder.parts.compute_sets[0].cycles =
            TileRuns::from_tiles(TileId(0), (1..5).map(|tile| Some(Cycles(10 * tile))));
        let copy = builder.exchange("copy", 100);
        let sync = builder.program(ProgramKind::Sync, "External");
        builder.root(ProgramKind::Sequence, "main", &[work, copy, sync]);
        builder.variable("always", MemoryCategory::Constant, 0..4, 1_000, None);
        builder.variable("early", MemoryCategory::Variable, 0..2, 100, Some(0..1));
        builder.variable("late", MemoryCategory::Variable, 2..4, 10, Some(1..2));
        builder.live(work, 200).live(copy, 20);
        builder.run(work, 0..40).run(copy, 40..60).run(sync, 60..70);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        (directory, report)
    }

    fn at(report: &Report, cycle: u64, figure: TileFigure) -> TilesAtCycle {
        let trace = report.trace().unwrap().unwrap();
        let labels = ProgramLabels::new(&report.programs().unwrap());
        let sources = TileSources::read(report).unwrap();
        sources.at(report, (&trace, &labels), Cycles(cycle), figure).unwrap()
    }

    #[test]
    fn tiles_work_and_wait_as_long_as_their_step() {
        let (_directory, report) = report();
        let active = at(&report, 5, TileFigure::Active);
        assert_eq!(active.values, [10, 20, 30, 40]);
        assert_eq!(active.steps.len(), 1);
        assert!(active.steps[0].known && active.steps[0].name == "work");
        assert_eq!(at(&report, 39, TileFigure::Waiting).values, [30, 20, 10, 0]);
        // All tiles wait in a sync.
        assert_eq!(at(&report, 65, TileFigure::Waiting).values, [10; 4]);
        assert_eq!(at(&report, 65, TileFigure::Active).values, [0; 4]);
        let idle = at(&report, 1_000, TileFigure::Active);
        assert_eq!((idle.values, idle.steps.len()), (vec![0; 4], 0));
    }

    #[test]
    fn traffic_is_that_of_the_exchange_under_the_cursor() {
        let (_directory, report) = report();
        assert_eq!(at(&report, 5, TileFigure::Sent).values, [0; 4]);
        let (sent, received) =
            (at(&report, 50, TileFigure::Sent), at(&report, 50, TileFigure::Received));
        assert!(sent.steps[0].known);
        let trace = report.exchange(report.liveness().unwrap()[1].program).unwrap().unwrap();
        for tile in (0..4).map(TileId) {
            let own = trace.tiles.get(tile).copied().unwrap_or_default();
            assert_eq!(sent.values[tile.index()], own.bytes_out.0);
            assert_eq!(received.values[tile.index()], own.bytes_in.0);
        }
    }

    #[test]
    fn memory_is_the_live_bytes_at_the_step_of_the_program() {
        let (_directory, report) = report();
        let bytes = |cycle| at(&report, cycle, TileFigure::Memory).values;
        let (early, late) = (bytes(5), bytes(50));
        assert!(early[0] > early[2] && late[0] < late[2], "{early:?} {late:?}");
        // The liveness walk has no syncs, so the memory is not known and not drawn.
        let sync = at(&report, 65, TileFigure::Memory);
        assert!(!sync.steps[0].known && sync.values == [0; 4]);
    }
}
