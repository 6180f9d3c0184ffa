//! The run: its cycles, lane by lane, and the programs that became slower or faster.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::step_alignment::{LanePair, StepAlignment, StepChange, StepChangeSum, activity_cycles};
use super::{ComparedReports, ViewComparison, WorkDivisors, critical_path};
use crate::data_table::TableCell;
use crate::view_location::ViewLocation;
use tilescope_report::trace::TraceLane;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{Report, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "execution-trace", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let divisors = sides.normalization()?.divisors();
    let mut tables = vec![activities(sides, divisors)?];
    tables.extend(critical_path::tables(sides, divisors)?);
    if let Some(steps) = &sides.alignment.steps {
        tables.push(changes(steps, divisors));
        tables.push(lanes(steps, divisors));
        tables.push(executions(steps, divisors));
    }
    Ok(tables)
}

/// Cycles of lanes by activity, as a mean over lanes: all activities together are the run.
pub(super) fn activities(
    sides: &ComparedReports<'_>,
    divisors: WorkDivisors,
) -> Result<ComparisonTable, ReportError> {
    let cycles = |report: &Report| match report.trace()? {
        Some(trace) => Ok(Some((activity_cycles(&trace)?, trace.lanes().len()))),
        None => Ok(None),
    };
    let (source, target) = sides.both(cycles)?;
    let known = source.iter().chain(&target).next();
    let names = known.into_iter().flat_map(|(values, _)| values).map(|(name, _)| *name);
    let row = |(at, name): (usize, &str)| {
        let cell = |side: &Option<LaneActivities>| {
            side.as_ref().map(|(values, _)| TableCell::Count(values[at].1.0))
        };
        ComparisonRow::new(name.replace('_', " "), cell(&source), cell(&target))
    };
    let rows: Vec<ComparisonRow> = names.enumerate().map(row).collect();
    let sum = |side: &Option<LaneActivities>| {
        let values = side.as_ref().map(|(values, _)| values.iter().map(|value| value.1.0));
        values.map(|values| TableCell::Count(values.sum()))
    };
    let lanes = |side: &Option<LaneActivities>| side.as_ref().map_or(1, |(_, lanes)| *lanes);
    let table =
        ComparisonTable::new("Activities", "Activity", rows).with_total(sum(&source), sum(&target));
    Ok(table.per(divisors.over_lanes(lanes(&source), lanes(&target))).by_change())
}

/// Cycles of all lanes by activity, and the number of lanes.
type LaneActivities = (Vec<(&'static str, Cycles)>, usize);

/// Cycles of programs as a mean over lanes, the largest difference first: all programs and idle
/// time together are the run.
pub(super) fn changes(steps: &StepAlignment, divisors: WorkDivisors) -> ComparisonTable {
    let rows = change_rows(steps, |sum| sum.cycles.0);
    let (source, target) = steps.lane_cycles;
    let table = ComparisonTable::new("Slower and faster", "Cycles of", rows)
        .with_total(Some(TableCell::Count(source.0)), Some(TableCell::Count(target.0)));
    table.per(over_lanes(steps, divisors)).by_change()
}

/// The mean over the lanes of each side.
pub(super) fn over_lanes(steps: &StepAlignment, divisors: WorkDivisors) -> WorkDivisors {
    let lanes = |side: fn(&LanePair) -> bool| steps.lanes.iter().filter(|lane| side(lane)).count();
    divisors.over_lanes(lanes(|lane| lane.source.is_some()), lanes(|lane| lane.target.is_some()))
}

/// Number of executions of programs, on all lanes.
fn executions(steps: &StepAlignment, divisors: WorkDivisors) -> ComparisonTable {
    let rows = change_rows(steps, |sum| sum.steps);
    let mut table = ComparisonTable::new("Steps", "Executions of", rows).per(divisors).by_change();
    table.rows.retain(|row| row.larger() > 0.0);
    table
}

fn change_rows(steps: &StepAlignment, value: fn(StepChangeSum) -> u64) -> Vec<ComparisonRow> {
    let cell = |sum: StepChangeSum| {
        let present = sum.steps > 0 || sum.cycles > Cycles::ZERO;
        present.then(|| TableCell::Count(value(sum)))
    };
    let row = |change: &StepChange| ComparisonRow {
        source_place: place(change.source),
        target_place: place(change.target),
        ..ComparisonRow::new(change.name.clone(), cell(change.source), cell(change.target))
    };
    steps.changes.iter().map(row).collect()
}

fn place(sum: StepChangeSum) -> Option<ViewLocation> {
    let spot = sum.spot?;
    Some(ViewLocation {
        cycles: Some(spot.step.range),
        program: spot.step.program,
        ..ViewLocation::view("execution-trace")
    })
}

/// Length of each lane, from the first start to the last end of its steps.
fn lanes(steps: &StepAlignment, divisors: WorkDivisors) -> ComparisonTable {
    let rows = steps.lanes.iter().map(|lane| {
        let beside = if lane.sub_lane > 0 { ", I/O tiles" } else { "" };
        let cell = |side: Option<tilescope_report::trace::LaneInfo>| {
            side.map(|info| TableCell::Count(info.range.length().0))
        };
        ComparisonRow::new(
            format!("IPU {}{beside}", lane.ipu),
            cell(lane.source),
            cell(lane.target),
        )
    });
    ComparisonTable::new("Lanes", "Length of", rows.collect()).per(divisors)
}

/// Cycles by which the target falls behind the source over a stretch of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepDrift {
    /// Cycles of the source.
    pub range: CycleRange,
    /// Additional cycles of the target for the steps that start there.
    pub change: i64,
    /// Steps of the source that start there.
    pub steps: u64,
    /// Steps among them that the target has as well.
    pub matched: u64,
}

/// The difference between the lengths of steps in `window` of the source and of the same steps in
/// the target, in at most `pieces` stretches. A step that only one report has counts in full. Steps
/// that only the target has count at their position between the steps of the source, or with the
/// source's first or last step if they come before or after all of them, so that over a whole lane
/// the changes add up to the difference of the lanes.
///
/// O(pieces log n): the length of many steps is the distance between the start of the first step
/// and the start of the step after the last.
///
/// # Errors
/// A trace that cannot be read.
pub fn drift(
    pair: &LanePair,
    source: &TraceLane<'_>,
    target: Option<&TraceLane<'_>>,
    window: CycleRange,
    pieces: u32,
) -> Result<Vec<StepDrift>, ReportError> {
    let mut touching = source.touching(window)?;
    // Steps of zero cycles at the very end of the lane belong to a window that ends there.
    if !touching.is_empty() && window.end >= source.info().range.end {
        touching.end = source.info().steps;
    }
    let count = touching.end - touching.start;
    let width = count.div_ceil(u64::from(pieces.max(1))).max(1);
    let mut drifts = Vec::new();
    let mut first = touching.start;
    while first < touching.end {
        let end = (first + width).min(touching.end);
        drifts.extend(stretch(pair, source, target, first, end)?);
        first = end;
    }
    Ok(drifts)
}

/// The position in the target that corresponds to `position` in the source.
fn matching_target_position(pair: &LanePair, position: u64) -> u64 {
    let at = pair.runs.partition_point(|run| run.source <= position);
    match at.checked_sub(1).map(|at| pair.runs[at]) {
        Some(run) => run.target + (position - run.source).min(run.count),
        None => 0,
    }
}

fn stretch(
    pair: &LanePair,
    source: &TraceLane<'_>,
    target: Option<&TraceLane<'_>>,
    first: u64,
    end: u64,
) -> Result<Option<StepDrift>, ReportError> {
    let (Some(start), Some(last)) = (source.step(first)?, source.step(end - 1)?) else {
        return Ok(None);
    };
    let range = CycleRange::new(start.range.start, last.range.end);
    let busy = source.totals(range)?.cycles.total();
    let whole = target.map_or(0, |lane| lane.info().steps);
    let from = if first == 0 { 0 } else { matching_target_position(pair, first) };
    let to = if end == source.info().steps { whole } else { matching_target_position(pair, end) };
    let there = match target {
        Some(lane) if to > from => match (lane.step(from)?, lane.step(to - 1)?) {
            (Some(a), Some(b)) => {
                lane.totals(CycleRange::new(a.range.start, b.range.end))?.cycles.total()
            }
            _ => Cycles::ZERO,
        },
        _ => Cycles::ZERO,
    };
    let matched = pair.runs.iter().map(|run| {
        let stop = (run.source + run.count).min(end);
        stop.saturating_sub(run.source.max(first))
    });
    Ok(Some(StepDrift {
        range,
        change: there.0 as i64 - busy.0 as i64,
        steps: end - first,
        matched: matched.sum(),
    }))
}
