//! Runs, iterations, phases, slots and stages as slices over the steps of one lane.
//!
//! A mark covers a range of step ids, and ids never descend along a lane. On a lane it therefore
//! covers the steps at some positions, from the start of the first to the end of the last. Marks
//! that nest by ids also nest by positions, and by cycles, exactly. Those that cross each other go
//! to different rows.

use std::cmp::Reverse;
use std::ops::Range;
use tilescope_report::trace::TraceLane;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{MarkFilter, MarkKind, Report, ReportError, TraceMark};

/// Kinds that consist of steps of IPUs, from the widest to the narrowest.
const KINDS: [MarkKind; 6] = [
    MarkKind::Run,
    MarkKind::Iteration,
    MarkKind::Phase,
    MarkKind::Slot,
    MarkKind::Stage,
    MarkKind::Update,
];

/// A mark on one lane.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaneMark {
    pub(crate) mark: TraceMark,
    /// Positions of its steps on the lane.
    pub(crate) positions: Range<u64>,
    /// The cycles from the start of the first to the end of the last of them.
    pub(crate) cycles: CycleRange,
}

/// The marks that begin at `begin` on a lane whose steps at `selected` are written, in the order of
/// their starts, the wider first. `cycles` are those of the steps at `begin`.
pub(crate) fn beginning(
    report: &Report,
    lane: TraceLane<'_>,
    (begin, selected): (&Range<u64>, &Range<u64>),
    cycles: CycleRange,
) -> Result<Vec<LaneMark>, ReportError> {
    let info = lane.info();
    // A window does not overlap a mark of no cycles at its edge.
    let window = CycleRange::new(cycles.start.saturating_sub(Cycles(1)), cycles.end + Cycles(1));
    let mut found = Vec::new();
    for kind in KINDS {
        let filter = MarkFilter {
            kind: Some(kind),
            ipu: Some(info.ipu),
            window: Some(window),
            limit: usize::MAX,
        };
        for mark in report.marks_of_class(info.class, &filter)? {
            let positions = lane.positions_of(&mark.steps)?;
            let positions = positions.start.max(selected.start)..positions.end.min(selected.end);
            if positions.is_empty() || !begin.contains(&positions.start) {
                continue;
            }
            let ends = (lane.step(positions.start)?, lane.step(positions.end - 1)?);
            let (Some(first), Some(last)) = ends else { continue };
            let cycles = CycleRange::new(first.range.start, last.range.end);
            found.push(LaneMark { mark, positions, cycles });
        }
    }
    // A stable sort keeps the order of kinds among marks of the same steps.
    found.sort_by_key(|mark| (mark.positions.start, Reverse(mark.positions.end)));
    Ok(found)
}

/// The open marks of a lane, each within the previous one.
#[derive(Default)]
pub(crate) struct OpenMarks {
    /// The step after which each ends, and the cycle.
    ends: Vec<(u64, Cycles)>,
}

impl OpenMarks {
    /// Closes the narrowest mark if it ends before the step at `position`. Returns its end.
    pub(crate) fn close_at(&mut self, position: u64) -> Option<Cycles> {
        let (_, end) = self.ends.pop_if(|(end, _)| *end <= position)?;
        Some(end)
    }

    /// Opens a mark, unless it would extend beyond an open one.
    pub(crate) fn open(&mut self, mark: &LaneMark) -> bool {
        let fits = self.ends.last().is_none_or(|(end, _)| mark.positions.end <= *end);
        if fits {
            self.ends.push((mark.positions.end, mark.cycles.end));
        }
        fits
    }
}

/// Rows for ranges that are sorted by start and may overlap.
#[derive(Default)]
pub(crate) struct FreeRows {
    ends: Vec<Cycles>,
}

impl FreeRows {
    /// The first free row for a range.
    pub(crate) fn row_of(&mut self, range: CycleRange) -> usize {
        let free = self.ends.iter().position(|end| *end <= range.start);
        let row = free.unwrap_or(self.ends.len());
        match self.ends.get_mut(row) {
            Some(end) => *end = range.end,
            None => self.ends.push(range.end),
        }
        row
    }
}
