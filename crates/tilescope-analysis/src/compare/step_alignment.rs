//! The executed steps of two reports, side by side.
//!
//! Lanes correspond by IPU and group of tiles. Two steps are the same if they ran the same program
//! (see [`ProgramPairs`]). Their executions are matched by aligning the lanes, step by step, so
//! that inserted and removed steps do not shift the others. Figures cover all steps; links from one
//! side to the other end with the last step that was aligned.

use super::program_pairs::{ProgramPair, ProgramPairs, title};
use super::sequence_alignment::align;
use rayon::prelude::*;
use std::collections::BTreeMap;
use tilescope_report::trace::{LaneInfo, LaneStep, Trace, TraceLane};
use tilescope_report::units::{CycleRange, Cycles, IpuId, ProgramId};
use tilescope_report::{ProgramKind, ProgramNodeTable, Report, ReportError, StepActivity};

/// The largest number of steps of a report, over all lanes, that are aligned one by one.
pub const MAX_STEPS: u64 = 4_000_000;

/// The location of a step, for links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedStepLocation {
    /// IPU of the replica.
    pub ipu: IpuId,
    /// The group of tiles of its lane.
    pub sub_lane: u8,
    pub step: LaneStep,
}

/// Sums over the steps of one report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepChangeSum {
    pub steps: u64,
    /// Cycles of all lanes.
    pub cycles: Cycles,
    pub spot: Option<ComparedStepLocation>,
}

/// Sums over the steps of one report while lanes are being summed.
#[derive(Clone, Copy, Default)]
struct SideSum {
    steps: u64,
    cycles: Cycles,
    spot: Option<StepSpot>,
}

/// The step that a sum links to.
#[derive(Clone, Copy)]
enum StepSpot {
    Read(ComparedStepLocation),
    /// IPU, group of tiles and position of a step that is read only when it is shown.
    Unread(IpuId, u8, u64),
}

impl SideSum {
    fn add(&mut self, more: Self) {
        self.steps += more.steps;
        self.cycles += more.cycles;
        self.spot = self.spot.or(more.spot);
    }

    /// The sum with its step.
    fn located(self, trace: &Trace) -> Result<StepChangeSum, ReportError> {
        let spot = match self.spot {
            Some(StepSpot::Unread(ipu, sub_lane, position)) => {
                let lane = trace.lane_of(ipu, sub_lane);
                let step = lane.map_or(Ok(None), |lane| lane.step(position))?;
                step.map(|step| ComparedStepLocation { ipu, sub_lane, step })
            }
            Some(StepSpot::Read(location)) => Some(location),
            None => None,
        };
        Ok(StepChangeSum { steps: self.steps, cycles: self.cycles, spot })
    }
}

/// The subject of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepChangeKind {
    /// A program: its index in [`ProgramPairs::pairs`].
    Program(u32),
    /// Steps of a kind whose programs are not known.
    Kind(ProgramKind),
    /// Cycles of lanes without a running step, up to the end of the run.
    Idle,
}

/// A program or a kind of steps that became slower or faster.
#[derive(Clone, Debug, PartialEq)]
pub struct StepChange {
    pub what: StepChangeKind,
    pub name: String,
    /// Its steps in the source.
    pub source: StepChangeSum,
    /// Its steps in the target.
    pub target: StepChangeSum,
}

impl StepChange {
    /// Additional cycles of the target.
    pub fn cycles(&self) -> i128 {
        i128::from(self.target.cycles.0) - i128::from(self.source.cycles.0)
    }
}

/// Consecutive steps that match on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedStepRun {
    /// Position of the first in the source.
    pub source: u64,
    /// Position of the first in the target.
    pub target: u64,
    pub count: u64,
}

/// The alignment of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanePair {
    /// IPU of the replica.
    pub ipu: IpuId,
    /// The group of tiles of the lane.
    pub sub_lane: u8,
    /// The lane in the source.
    pub source: Option<LaneInfo>,
    /// The lane in the target.
    pub target: Option<LaneInfo>,
    /// Matching steps, rising on both sides.
    pub runs: Vec<MatchedStepRun>,
}

impl LanePair {
    /// Position in the target of a step of the source.
    pub fn to_target(&self, position: u64) -> Option<u64> {
        let at = self.runs.partition_point(|run| run.source <= position).checked_sub(1)?;
        let run = self.runs[at];
        if position < run.source + run.count {
            Some(run.target + (position - run.source))
        } else {
            None
        }
    }

    /// Position in the source of a step of the target.
    pub fn to_source(&self, position: u64) -> Option<u64> {
        let at = self.runs.partition_point(|run| run.target <= position).checked_sub(1)?;
        let run = self.runs[at];
        if position < run.target + run.count {
            Some(run.source + (position - run.target))
        } else {
            None
        }
    }

    /// Number of steps that are in both lanes.
    pub fn matched(&self) -> u64 {
        self.runs.iter().map(|run| run.count).sum()
    }
}

/// The executed steps of two reports.
#[derive(Clone, Debug, Default)]
pub struct StepAlignment {
    /// Lanes of both, by IPU and group of tiles.
    pub lanes: Vec<LanePair>,
    /// The changes, the largest difference first. Their cycles add up to
    /// [`StepAlignment::lane_cycles`].
    pub changes: Vec<StepChange>,
    /// Cycles of the run, in the source and the target.
    pub run: (Cycles, Cycles),
    /// Cycles of the run times the number of lanes, in the source and the target.
    pub lane_cycles: (Cycles, Cycles),
}

impl StepAlignment {
    /// Aligns up to `most` steps of each report; `None` if one of them was not executed.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub(crate) fn read(
        source: &Report,
        target: &Report,
        pairs: &ProgramPairs,
        most: u64,
    ) -> Result<Option<Self>, ReportError> {
        let (Some(a), Some(b)) = (source.trace()?, target.trace()?) else { return Ok(None) };
        let limits = (limit(&a, most), limit(&b, most));
        let work = StepAligner { pairs, limits, traces: (&a, &b) };
        let mut keys: Vec<(IpuId, u8)> =
            a.lanes().iter().chain(b.lanes()).map(|lane| (lane.ipu, lane.sub_lane)).collect();
        keys.sort_unstable();
        keys.dedup();
        let aligned: Result<Vec<AlignedLane>, ReportError> =
            keys.par_iter().map(|key| work.lane(*key)).collect();
        let mut sums: BTreeMap<StepChangeKind, (SideSum, SideSum)> = BTreeMap::new();
        let mut lanes = Vec::new();
        for lane in aligned? {
            for (what, (source, target)) in lane.sums {
                let sum = sums.entry(what).or_default();
                sum.0.add(source);
                sum.1.add(target);
            }
            lanes.push(lane.lane);
        }
        let run = (a.range().length(), b.range().length());
        let lane_cycles = (run.0 * a.lanes().len() as u64, run.1 * b.lanes().len() as u64);
        let mut idle = lane_cycles;
        for (source, target) in sums.values() {
            idle.0 = idle.0.saturating_sub(source.cycles);
            idle.1 = idle.1.saturating_sub(target.cycles);
        }
        let idle_source = SideSum { cycles: idle.0, ..SideSum::default() };
        let idle_target = SideSum { cycles: idle.1, ..SideSum::default() };
        sums.insert(StepChangeKind::Idle, (idle_source, idle_target));
        let names = StepChangeNames {
            pairs,
            programs: (&*source.executed_program_nodes()?, &*target.executed_program_nodes()?),
        };
        let change = |(what, (source, target)): (StepChangeKind, (SideSum, SideSum))| {
            let source = source.located(&a)?;
            let target = target.located(&b)?;
            Ok(StepChange { what, name: names.name_of(what), source, target })
        };
        let mut changes: Vec<StepChange> =
            sums.into_iter().map(change).collect::<Result<_, ReportError>>()?;
        changes.sort_by(|a, b| {
            let [size_a, size_b] = [a, b].map(|change| change.cycles().unsigned_abs());
            size_b.cmp(&size_a).then_with(|| a.name.cmp(&b.name)).then(a.what.cmp(&b.what))
        });
        Ok(Some(Self { lanes, changes, run, lane_cycles }))
    }

    /// The alignment of a lane.
    pub fn lane(&self, ipu: IpuId, sub_lane: u8) -> Option<&LanePair> {
        self.lanes.iter().find(|lane| (lane.ipu, lane.sub_lane) == (ipu, sub_lane))
    }
}

/// Steps of each lane that are aligned, for `most` steps over all lanes.
fn limit(trace: &Trace, most: u64) -> u64 {
    most / trace.lanes().len().max(1) as u64
}

struct StepChangeNames<'a> {
    pairs: &'a ProgramPairs,
    programs: (&'a ProgramNodeTable, &'a ProgramNodeTable),
}

impl StepChangeNames<'_> {
    fn name_of(&self, what: StepChangeKind) -> String {
        match what {
            StepChangeKind::Program(place) => {
                let ProgramPair { source, target } = self.pairs.pairs[place as usize];
                let in_source = source.and_then(|id| self.programs.0.get(id));
                let in_target = target.and_then(|id| self.programs.1.get(id));
                in_source.or(in_target).map_or_else(String::new, title)
            }
            StepChangeKind::Kind(kind) => format!("{} of unknown program", kind.name()),
            StepChangeKind::Idle => "Idle".to_owned(),
        }
    }
}

struct StepAligner<'a> {
    pairs: &'a ProgramPairs,
    limits: (u64, u64),
    traces: (&'a Trace, &'a Trace),
}

/// A lane with the sums of its steps.
struct AlignedLane {
    lane: LanePair,
    sums: BTreeMap<StepChangeKind, (SideSum, SideSum)>,
}

/// One side of a lane: its first steps, which are aligned, and the sums over all its steps.
#[derive(Default)]
struct AlignedLaneSide {
    info: Option<LaneInfo>,
    kinds: Vec<StepChangeKind>,
    steps: Vec<LaneStep>,
    sums: BTreeMap<StepChangeKind, SideSum>,
}

impl AlignedLaneSide {
    fn read(
        lane: Option<TraceLane<'_>>,
        limit: u64,
        pair_of: impl Fn(ProgramId) -> Option<u32>,
    ) -> Result<Self, ReportError> {
        let Some(lane) = lane else { return Ok(Self::default()) };
        let info = lane.info();
        let what = |program: Option<ProgramId>, kind| {
            let place = program.and_then(&pair_of);
            place.map_or(StepChangeKind::Kind(kind), StepChangeKind::Program)
        };
        let whole = CycleRange::new(info.range.start, info.range.end + Cycles(1));
        let steps = lane.steps_in(whole, usize::try_from(limit).unwrap_or(usize::MAX))?;
        let mut sums: BTreeMap<StepChangeKind, SideSum> = BTreeMap::new();
        for of in lane.program_sums()?.iter() {
            let first = StepSpot::Unread(info.ipu, info.sub_lane, of.first_position);
            let own = SideSum { steps: of.steps, cycles: of.cycles, spot: Some(first) };
            sums.entry(what(of.program, of.kind())).or_default().add(own);
        }
        let kinds = steps.iter().map(|step| what(step.program, step.kind)).collect();
        Ok(Self { info: Some(info), kinds, steps, sums })
    }
}

impl StepAligner<'_> {
    fn lane(&self, (ipu, sub_lane): (IpuId, u8)) -> Result<AlignedLane, ReportError> {
        let a = self.traces.0.lane_of(ipu, sub_lane);
        let b = self.traces.1.lane_of(ipu, sub_lane);
        let source = AlignedLaneSide::read(a, self.limits.0, |id| self.pairs.place_of_source(id))?;
        let target = AlignedLaneSide::read(b, self.limits.1, |id| self.pairs.place_of_target(id))?;
        let pairs = align(&numbers(&source.kinds), &numbers(&target.kinds));
        let mut sums: BTreeMap<StepChangeKind, (SideSum, SideSum)> = BTreeMap::new();
        for (what, sum) in source.sums {
            sums.entry(what).or_default().0 = sum;
        }
        for (what, sum) in target.sums {
            sums.entry(what).or_default().1 = sum;
        }
        // Links lead to the executions that differ most, or to the first ones if none differ.
        let mut most: BTreeMap<StepChangeKind, (Cycles, u32, u32)> = BTreeMap::new();
        for (at_a, at_b) in &pairs {
            let step_a = &source.steps[*at_a as usize];
            let step_b = &target.steps[*at_b as usize];
            let apart = step_a.range.length().abs_diff(step_b.range.length());
            let known = most.entry(source.kinds[*at_a as usize]).or_insert((apart, *at_a, *at_b));
            if apart > known.0 {
                *known = (apart, *at_a, *at_b);
            }
        }
        for (what, (_, at_a, at_b)) in most {
            let sum = sums.entry(what).or_default();
            let step = source.steps[at_a as usize];
            sum.0.spot = Some(StepSpot::Read(ComparedStepLocation { ipu, sub_lane, step }));
            let step = target.steps[at_b as usize];
            sum.1.spot = Some(StepSpot::Read(ComparedStepLocation { ipu, sub_lane, step }));
        }
        let runs = runs(&pairs);
        let lane = LanePair { ipu, sub_lane, source: source.info, target: target.info, runs };
        Ok(AlignedLane { lane, sums })
    }
}

/// Numbers for the aligner, equal for the same subject in both reports.
fn numbers(kinds: &[StepChangeKind]) -> Vec<u32> {
    const KINDS: u32 = ProgramKind::ALL.len() as u32;
    let numbers = kinds.iter().map(|what| match what {
        StepChangeKind::Program(place) => KINDS + place,
        StepChangeKind::Kind(kind) => *kind as u32,
        // Idle time is not a step.
        StepChangeKind::Idle => 0,
    });
    numbers.collect()
}

fn runs(pairs: &[(u32, u32)]) -> Vec<MatchedStepRun> {
    let mut runs: Vec<MatchedStepRun> = Vec::new();
    for (source, target) in pairs.iter().map(|(a, b)| (u64::from(*a), u64::from(*b))) {
        match runs.last_mut() {
            Some(run) if (source, target) == (run.source + run.count, run.target + run.count) => {
                run.count += 1;
            }
            _ => runs.push(MatchedStepRun { source, target, count: 1 }),
        }
    }
    runs
}

/// Activities with the cycles that all lanes of a run spent on them; the remainder is idle time.
///
/// # Errors
/// A trace that cannot be read.
pub(crate) fn activity_cycles(trace: &Trace) -> Result<Vec<(&'static str, Cycles)>, ReportError> {
    let mut cycles: Vec<(&'static str, Cycles)> =
        StepActivity::ALL.iter().map(|activity| (activity.name(), Cycles::ZERO)).collect();
    let whole = trace.range();
    for index in 0..trace.lanes().len() {
        let Some(lane) = trace.lane(index) else { continue };
        let totals = lane.all_totals()?;
        for (sum, (_, value)) in cycles.iter_mut().zip(totals.cycles.iter()) {
            sum.1 += value;
        }
    }
    let all = whole.length() * trace.lanes().len() as u64;
    let busy: Cycles = cycles.iter().map(|(_, cycles)| cycles).sum();
    cycles.push(("idle", all.saturating_sub(busy)));
    Ok(cycles)
}
