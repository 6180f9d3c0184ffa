//! The run: its cycles, lane by lane, and the programs that became slower or faster.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::step_alignment::{LanePair, StepAlignment, StepChangeSum, activity_cycles};
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
    let (source, target) = sides.both(LaneActivities::read)?;
    let mut rows = Vec::new();
    if let Some(known) = source.as_ref().or(target.as_ref()) {
        for (at, (name, _)) in known.cycles.iter().enumerate() {
            let [source, target] = [&source, &target]
                .map(|side| side.as_ref().map(|side| TableCell::Count(side.cycles[at].1.0)));
            rows.push(ComparisonRow::new(name.replace('_', " "), source, target));
        }
    }
    let [source_total, target_total] =
        [&source, &target].map(|side| side.as_ref().map(LaneActivities::total));
    let [source_lanes, target_lanes] =
        [&source, &target].map(|side| side.as_ref().map_or(1, |side| side.lanes));
    let table =
        ComparisonTable::new("Activities", "Activity", rows).with_total(source_total, target_total);
    Ok(table.per(divisors.over_lanes(source_lanes, target_lanes)).by_change())
}

/// Cycles of all lanes by activity, and the number of lanes.
struct LaneActivities {
    cycles: Vec<(&'static str, Cycles)>,
    lanes: usize,
}

impl LaneActivities {
    /// `None` if the program was not executed.
    fn read(report: &Report) -> Result<Option<Self>, ReportError> {
        let Some(trace) = report.trace()? else { return Ok(None) };
        Ok(Some(Self { cycles: activity_cycles(&trace)?, lanes: trace.lanes().len() }))
    }

    fn total(&self) -> TableCell {
        TableCell::Count(self.cycles.iter().map(|(_, cycles)| cycles.0).sum())
    }
}

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
    let source = steps.lanes.iter().filter(|lane| lane.source.is_some()).count();
    let target = steps.lanes.iter().filter(|lane| lane.target.is_some()).count();
    divisors.over_lanes(source, target)
}

/// Number of executions of programs, on all lanes.
fn executions(steps: &StepAlignment, divisors: WorkDivisors) -> ComparisonTable {
    let rows = change_rows(steps, |sum| sum.steps);
    let mut table = ComparisonTable::new("Steps", "Executions of", rows).per(divisors).by_change();
    table.rows.retain(|row| row.larger() > 0.0);
    table
}

fn change_rows(steps: &StepAlignment, value: fn(StepChangeSum) -> u64) -> Vec<ComparisonRow> {
    let mut rows = Vec::with_capacity(steps.changes.len());
    for change in &steps.changes {
        let [source, target] = [change.source, change.target].map(|sum| {
            let is_present = sum.steps > 0 || sum.cycles > Cycles::ZERO;
            if is_present { Some(TableCell::Count(value(sum))) } else { None }
        });
        rows.push(ComparisonRow {
            source_place: place(change.source),
            target_place: place(change.target),
            ..ComparisonRow::new(change.name.clone(), source, target)
        });
    }
    rows
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
    let mut rows = Vec::with_capacity(steps.lanes.len());
    for lane in &steps.lanes {
        let beside = if lane.sub_lane > 0 { ", I/O tiles" } else { "" };
        let [source, target] = [lane.source, lane.target]
            .map(|side| side.map(|info| TableCell::Count(info.range.length().0)));
        rows.push(ComparisonRow::new(format!("IPU {}{beside}", lane.ipu), source, target));
    }
    ComparisonTable::new("Lanes", "Length of", rows).per(divisors)
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
