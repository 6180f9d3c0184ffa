//! Executed steps of compiled programs.

use super::run_share::{RunShare, WholeRun};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::trace::{
    EqualSteps, LaneInfo, LaneStep, ProgramStepSums, ProgramStepTotals, Trace, TraceLane,
};
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId, ProgramId};
use tilescope_report::{ProgramKind, ReportError};

/// A step on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStepLocation {
    /// IPU of the replica.
    pub ipu: IpuId,
    /// The group of tiles of its lane.
    pub sub_lane: u8,
    pub step: LaneStep,
}

/// The first executed step of a program.
///
/// # Errors
/// A trace that cannot be read.
pub fn first_run(
    trace: &Trace,
    program: ProgramId,
) -> Result<Option<LaneStepLocation>, ReportError> {
    let mut first: Option<LaneStepLocation> = None;
    for index in 0..trace.lanes().len() {
        let Some(lane) = trace.lane(index) else { continue };
        let Some(position) = first_position(lane, program)? else { continue };
        let Some(step) = lane.step(position)? else { continue };
        if first.is_none_or(|found| step.range.start < found.step.range.start) {
            let info = lane.info();
            first = Some(LaneStepLocation { ipu: info.ipu, sub_lane: info.sub_lane, step });
        }
    }
    Ok(first)
}

/// The position of a program's first step on a lane.
pub(super) fn first_position(
    lane: TraceLane<'_>,
    program: ProgramId,
) -> Result<Option<u64>, ReportError> {
    let sums = lane.program_sums()?;
    let own = sums.iter().filter(|sums| sums.program == Some(program));
    Ok(own.map(|sums| sums.first_position).min())
}

/// Sums over the steps of one kind of a program on one IPU, or over several of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramRunTotals {
    pub steps: u64,
    /// Sum of the steps' cycles.
    pub cycles: Cycles,
    /// Sum of the bytes that the steps moved.
    pub bytes: Bytes,
}

impl From<&ProgramStepSums> for ProgramRunTotals {
    fn from(sums: &ProgramStepSums) -> Self {
        Self { steps: sums.steps, cycles: sums.cycles, bytes: sums.bytes_moved }
    }
}

impl ProgramRunTotals {
    /// Adds equal steps.
    pub(crate) fn add_steps(&mut self, steps: &EqualSteps) {
        let times = steps.times;
        let cycles = steps.cycles.saturating_mul(times);
        self.add(&Self { steps: times, cycles, bytes: steps.bytes_moved.saturating_mul(times) });
    }

    /// Adds the totals of several steps.
    pub(crate) fn add_totals(&mut self, totals: &ProgramStepTotals) {
        self.add(&Self::from(&ProgramStepSums::from(totals)));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Bytes that a step moved on its IPU: traffic from tile to tile counts once.
pub fn moved(step: &LaneStep) -> Bytes {
    step.bytes_in.max(step.bytes_out)
}

/// Executions of a program on one IPU, or on several.
///
/// One execution may have several steps of different kinds: the begin, middle and end of a stream
/// copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramExecutions {
    pub executions: u64,
    /// Sums over all its steps.
    pub totals: ProgramRunTotals,
}

/// All steps of a run, by IPU, program and kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramRuns {
    /// Sums by IPU, program and kind of step.
    pub steps: BTreeMap<(IpuId, ProgramId, ProgramKind), ProgramRunTotals>,
    /// Sums over steps without a program, by IPU and kind.
    pub unattributed: BTreeMap<(IpuId, ProgramKind), ProgramRunTotals>,
    /// The cycles of the run, from the first step to the last.
    pub range: CycleRange,
}

/// The share of a run of the steps of a program, of one kind and on one IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProgramShare {
    pub(crate) ipu: IpuId,
    pub(crate) program: ProgramId,
    pub(crate) kind: ProgramKind,
    pub(crate) steps: u64,
    pub(crate) share: RunShare,
}

impl ProgramRuns {
    /// The window of all sums.
    pub(crate) fn whole(&self) -> WholeRun {
        WholeRun::of(self.range.length())
    }

    /// The shares of the run by IPU, program and kind.
    pub(crate) fn shares(&self) -> impl Iterator<Item = ProgramShare> {
        self.steps.iter().map(|((ipu, program, kind), of)| ProgramShare {
            ipu: *ipu,
            program: *program,
            kind: *kind,
            steps: of.steps,
            share: self.whole().share(of.cycles),
        })
    }

    /// The sums over programs that satisfy `holds`, by IPU.
    pub(crate) fn shares_by_ipu(
        &self,
        holds: impl Fn(ProgramId) -> bool,
    ) -> BTreeMap<IpuId, RunShare> {
        let mut sums: BTreeMap<IpuId, RunShare> = BTreeMap::new();
        for of in self.shares().filter(|of| holds(of.program)) {
            let sum = sums.entry(of.ipu).or_insert_with(|| self.whole().nothing());
            *sum = *sum + of.share;
        }
        sums
    }

    /// Executions by IPU and program.
    pub fn by_ipu(&self) -> BTreeMap<(IpuId, ProgramId), ProgramExecutions> {
        let mut all: BTreeMap<(IpuId, ProgramId), ProgramExecutions> = BTreeMap::new();
        for ((ipu, program, _), steps) in &self.steps {
            let of = all.entry((*ipu, *program)).or_default();
            of.executions = of.executions.max(steps.steps);
            of.totals.add(steps);
        }
        all
    }

    /// Executions by program, over all IPUs.
    pub(crate) fn by_program(&self) -> BTreeMap<ProgramId, ProgramExecutions> {
        let mut all: BTreeMap<ProgramId, ProgramExecutions> = BTreeMap::new();
        for ((_, program), of) in self.by_ipu() {
            let sum = all.entry(program).or_default();
            sum.executions += of.executions;
            sum.totals.add(&of.totals);
        }
        all
    }
}

/// Sums up all steps by IPU, program and kind, reading lanes in parallel.
///
/// # Errors
/// A trace that cannot be read.
pub fn program_runs(trace: &Trace) -> Result<ProgramRuns, ReportError> {
    program_runs_of(trace, |_, _| true)
}

/// The same for steps of some kinds on some lanes.
///
/// # Errors
/// A trace that cannot be read.
pub(crate) fn program_runs_of(
    trace: &Trace,
    wanted: impl Fn(&LaneInfo, ProgramKind) -> bool,
) -> Result<ProgramRuns, ReportError> {
    let read = |index: usize| match trace.lane(index) {
        Some(lane) => Ok(Some((lane.info(), lane.program_sums()?))),
        None => Ok(None),
    };
    let lanes = (0..trace.lanes().len()).into_par_iter().map(read);
    let lanes: Vec<Option<(LaneInfo, Arc<Vec<ProgramStepSums>>)>> =
        lanes.collect::<Result<_, ReportError>>()?;
    let mut steps = Vec::new();
    let mut unattributed = Vec::new();
    for (info, lane) in lanes.iter().flatten() {
        let ipu = &info.ipu;
        for sums in lane.iter().filter(|sums| wanted(info, sums.kind())) {
            let totals = ProgramRunTotals::from(sums);
            match sums.program {
                Some(program) => steps.push(((*ipu, program, sums.kind()), totals)),
                None => unattributed.push(((*ipu, sums.kind()), totals)),
            }
        }
    }
    let steps = summed(steps);
    let unattributed = summed(unattributed);
    Ok(ProgramRuns { steps, unattributed, range: trace.range() })
}

/// Sums of parts with equal keys.
fn summed<K: Ord + Copy>(mut parts: Vec<(K, ProgramRunTotals)>) -> BTreeMap<K, ProgramRunTotals> {
    // Lanes come in this order, except for the steps of several groups of tiles.
    parts.sort_by_key(|(key, _)| *key);
    parts.dedup_by(|(next, more), (key, totals)| {
        let same = next == key;
        if same {
            totals.add(more);
        }
        same
    });
    parts.into_iter().collect()
}
