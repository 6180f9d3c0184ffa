//! From compiled programs to the steps that ran them.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tilescope_report::ReportError;
use tilescope_report::trace::{LaneInfo, LaneStep, Trace, TraceLane};
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId, ProgramId};

/// Steps that are decoded at a time.
const BATCH: usize = 65_536;
/// Most steps that are looked at: a fraction of a second's work.
pub const MAX_STEPS: u64 = 4_000_000;

/// Calls `each` with the steps of a lane, in order, until it breaks off or `limit` steps were seen.
pub(crate) fn scan(
    lane: &TraceLane<'_>,
    limit: u64,
    mut each: impl FnMut(&LaneStep) -> ControlFlow<()>,
) -> Result<(), ReportError> {
    let info = lane.info();
    let (mut start, mut next) = (info.range.start, 0u64);
    while next < info.steps.min(limit) {
        let steps = lane.steps_in(CycleRange::new(start, info.range.end + Cycles(1)), BATCH)?;
        let before = next;
        for step in steps.iter().filter(|step| step.position >= before) {
            if step.position >= limit || each(step).is_break() {
                return Ok(());
            }
            next = step.position + 1;
            start = step.range.start;
        }
        // Only more steps without cycles than a batch holds can stop the walk.
        if next == before {
            return Ok(());
        }
    }
    Ok(())
}

/// A step on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStepLocation {
    /// IPU of the replica.
    pub ipu: IpuId,
    /// Its group of tiles.
    pub sub_lane: u8,
    pub step: LaneStep,
}

/// The first step of a program in time, among the first [`MAX_STEPS`] of each lane.
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
        let info = lane.info();
        scan(&lane, MAX_STEPS, |step| {
            let begun = first.is_none_or(|found| step.range.start < found.step.range.start);
            if begun && step.program == Some(program) {
                first =
                    Some(LaneStepLocation { ipu: info.ipu, sub_lane: info.sub_lane, step: *step });
            }
            if begun && step.program != Some(program) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
    }
    Ok(first)
}

/// Sums over the executions of a program on one IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramRunTotals {
    pub steps: u64,
    /// Sum of their lengths.
    pub cycles: Cycles,
    /// Sum of the bytes they moved.
    pub bytes: Bytes,
}

impl ProgramRunTotals {
    /// Counts one more execution.
    pub(crate) fn add_step(&mut self, step: &LaneStep) {
        self.add(&Self { steps: 1, cycles: step.range.length(), bytes: moved(step) });
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Bytes that a step moved on its IPU: what goes from tile to tile is counted once.
pub fn moved(step: &LaneStep) -> Bytes {
    step.bytes_in.max(step.bytes_out)
}

/// Executions by program and IPU, and the cycles they were counted in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramRuns {
    /// Sums by IPU and program.
    pub runs: BTreeMap<(IpuId, ProgramId), ProgramRunTotals>,
    /// The cycles that were looked at, from the first step to the last.
    pub window: CycleRange,
    /// Whether these are all of them.
    pub complete: bool,
}

impl ProgramRuns {
    /// Sums over all IPUs, by program.
    pub(crate) fn by_program(&self) -> BTreeMap<ProgramId, ProgramRunTotals> {
        let mut sums: BTreeMap<ProgramId, ProgramRunTotals> = BTreeMap::new();
        for ((_, program), runs) in &self.runs {
            sums.entry(*program).or_default().add(runs);
        }
        sums
    }
}

/// Calls `each` with the lane and the steps of all lanes, lane by lane, of the first [`MAX_STEPS`]
/// steps of the trace at most; whether that was all of them.
///
/// # Errors
/// A trace that cannot be read.
pub fn each_step(
    trace: &Trace,
    mut each: impl FnMut(&LaneInfo, &LaneStep),
) -> Result<bool, ReportError> {
    let limit = steps_per_lane(trace);
    for index in 0..trace.lanes().len() {
        let Some(lane) = trace.lane(index) else { continue };
        let info = lane.info();
        scan(&lane, limit, |step| {
            each(&info, step);
            ControlFlow::Continue(())
        })?;
    }
    Ok(trace.lanes().iter().all(|lane| lane.steps <= limit))
}

/// Steps of each lane that are looked at.
fn steps_per_lane(trace: &Trace) -> u64 {
    let lanes = trace.lanes().len().max(1) as u64;
    (MAX_STEPS / lanes).max(BATCH as u64)
}

/// Executions on one lane by program, with its IPU and the end of the last one.
type LaneProgramRuns = (IpuId, BTreeMap<ProgramId, ProgramRunTotals>, Cycles);

/// Adds the executions of all programs up, as far as [`each_step`] goes; lanes at the same time.
///
/// # Errors
/// A trace that cannot be read.
pub fn program_runs(trace: &Trace) -> Result<ProgramRuns, ReportError> {
    let start = trace.range().start;
    let limit = steps_per_lane(trace);
    let lane_runs = |index: usize| -> Result<LaneProgramRuns, ReportError> {
        let (mut runs, mut end) = (BTreeMap::new(), start);
        let Some(lane) = trace.lane(index) else { return Ok((IpuId(0), runs, end)) };
        scan(&lane, limit, |step| {
            end = end.max(step.range.end);
            if let Some(program) = step.program {
                runs.entry(program).or_insert_with(ProgramRunTotals::default).add_step(step);
            }
            ControlFlow::Continue(())
        })?;
        Ok((lane.info().ipu, runs, end))
    };
    let lanes = (0..trace.lanes().len()).into_par_iter().map(lane_runs);
    let lanes: Vec<LaneProgramRuns> = lanes.collect::<Result<_, _>>()?;
    let mut all = ProgramRuns { window: CycleRange::new(start, start), ..ProgramRuns::default() };
    for (ipu, runs, end) in lanes {
        all.window.end = all.window.end.max(end);
        for (program, runs) in runs {
            all.runs.entry((ipu, program)).or_default().add(&runs);
        }
    }
    all.complete = trace.lanes().iter().all(|lane| lane.steps <= limit);
    if all.complete {
        all.window = trace.range();
    }
    Ok(all)
}
