//! The step that a location in the trace refers to.

use super::program_runs::{LaneStepLocation, first_position, first_run};
use crate::view_location::ViewLocation;
use tilescope_report::trace::{LaneStep, Trace, TraceLane};
use tilescope_report::units::{CycleRange, Cycles, ProgramId};
use tilescope_report::{Report, ReportError};

/// The largest number of steps of a lane that are searched for those of a program.
const MOST_STEPS: usize = 1 << 16;
/// The inverse of the share of the location's cycles below which a step is too narrow, so that the
/// window zooms in.
const NARROWEST: u64 = 50;

/// A step, and a window in which it is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocatedStep {
    pub location: LaneStepLocation,
    /// The cycles of the location, or a narrower window if the step would not be visible in them.
    pub window: CycleRange,
}

/// The step that a location refers to: the longest step of its program, on its IPU, within its
/// cycles, or the first step of its program if it has no cycles. `None` if it refers to no step, or
/// if nothing was executed.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn located_step(
    report: &Report,
    place: &ViewLocation,
) -> Result<Option<LocatedStep>, ReportError> {
    let Some(trace) = report.trace()? else { return Ok(None) };
    let here = step_of(&trace, place)?;
    Ok(here.map(|location| {
        let step = location.step.range;
        let window = match place.cycles {
            Some(cycles) if shows(cycles, step) => cycles,
            Some(_) => around(step),
            None => step,
        };
        LocatedStep { location, window }
    }))
}

/// True if a window overlaps a step, and is narrow enough to show it.
fn shows(window: CycleRange, step: CycleRange) -> bool {
    window.overlaps(step) && step.length() * NARROWEST >= window.length()
}

/// A step, with a margin of its length before and after it.
fn around(step: CycleRange) -> CycleRange {
    let more = step.length() + Cycles(1);
    CycleRange::new(step.start.saturating_sub(more), step.end.saturating_add(more))
}

fn step_of(trace: &Trace, place: &ViewLocation) -> Result<Option<LaneStepLocation>, ReportError> {
    let mut longest: Option<LaneStepLocation> = None;
    let infos = trace.lanes().iter().filter(|info| place.ipu.is_none_or(|ipu| info.ipu == ipu));
    for info in infos {
        let Some(lane) = trace.lane_of(info.ipu, info.sub_lane) else { continue };
        let step = match (place.program, place.cycles) {
            (Some(program), Some(cycles)) => match longest_of(lane, program, cycles)? {
                Some(step) => Some(step),
                None => first_of(lane, program)?,
            },
            (Some(program), None) => first_of(lane, program)?,
            (None, Some(cycles)) => lane.longest_in(cycles)?,
            (None, None) => None,
        };
        let longer = |step: &LaneStep| {
            longest.is_none_or(|known| step.range.length() > known.step.range.length())
        };
        let ipu = info.ipu;
        let sub_lane = info.sub_lane;
        let found = step.filter(longer).map(|step| LaneStepLocation { ipu, sub_lane, step });
        longest = found.or(longest);
    }
    match (place.program, place.ipu, place.cycles) {
        (Some(program), None, None) => first_run(trace, program),
        _ => Ok(longest),
    }
}

/// The longest step of a program that overlaps a window.
fn longest_of(
    lane: TraceLane<'_>,
    program: ProgramId,
    window: CycleRange,
) -> Result<Option<LaneStep>, ReportError> {
    let steps = lane.steps_in(window, MOST_STEPS)?;
    let own = steps.into_iter().filter(|step| step.program == Some(program));
    Ok(own.reduce(|best, next| if next.range.length() > best.range.length() { next } else { best }))
}

/// The first step of a program on a lane.
fn first_of(lane: TraceLane<'_>, program: ProgramId) -> Result<Option<LaneStep>, ReportError> {
    first_position(lane, program)?.map_or(Ok(None), |first| lane.step(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::IpuId;

    #[test]
    fn the_longest_step_of_a_place_is_found() {
        let mut builder = ReportBuilder::new(2, 4);
        let (work, wait) = (builder.compute("work", 1), builder.compute("wait", 1));
        let mut at = 0;
        for index in 0..2_000u64 {
            let program = if index % 7 == 3 { wait } else { work };
            let length = 5 + index * 7_919 % 101;
            builder.run_on(program, IpuId(1), at..at + length);
            at += length;
        }
        builder.run_on(work, IpuId(0), at..at + 10);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let lane = report.trace().unwrap().unwrap();
        let all = lane.lane_of(IpuId(1), 0).unwrap().steps_in(lane.range(), 5_000).unwrap();
        for (start, end) in [(0, at), (1_000, 3_000), (40_000, 90_000)] {
            let cycles = CycleRange::new(Cycles(start), Cycles(end));
            let place = ViewLocation {
                ipu: Some(IpuId(1)),
                cycles: Some(cycles),
                ..ViewLocation::view("execution-trace")
            };
            let inside = |step: &&LaneStep| step.range.overlaps(cycles);
            let part = |step: &LaneStep| step.range.intersection(cycles).length();
            let most = all.iter().filter(inside).map(part).max().unwrap();
            let found = located_step(&report, &place).unwrap().unwrap();
            assert_eq!(part(&found.location.step), most);
            let of = ViewLocation { program: Some(wait), ..place };
            let found = located_step(&report, &of).unwrap().unwrap();
            assert_eq!(found.location.step.program, Some(wait));
            assert!(found.window.overlaps(found.location.step.range), "it can be seen");
        }
        let first = ViewLocation { program: Some(wait), ..ViewLocation::view("execution-trace") };
        let found = located_step(&report, &first).unwrap().unwrap();
        assert_eq!(found.location.step.range, all[3].range);
        let nowhere = ViewLocation::view("execution-trace");
        assert_eq!(located_step(&report, &nowhere).unwrap(), None);
    }
}
