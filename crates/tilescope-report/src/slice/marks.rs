//! Marks of a slice: the part of each over steps that are in it.

use super::Slicing;
use super::kept_steps::KeptSteps;
use crate::error::ReportError;
use crate::model::{MarkKind, TraceMark};
use crate::reader::MarkFilter;
use crate::trace::{LaneInfo, TraceLane};
use crate::units::{CycleRange, Cycles, Quantity, ReplicaClassId, ReplicaIpu};
use crate::writer::ReportWriter;
use std::ops::Range;

/// The average number of steps, over all lanes, whose marks are read at a time.
const STEPS_OF_PIECE: u64 = 1 << 16;

/// The part of a mark inside a slice.
struct MarkPart {
    /// The cycles from the first start to the last end of its steps; `None` if it has none.
    steps: Option<CycleRange>,
    /// True if all of its steps are in the slice.
    is_whole: bool,
    /// The latest end, over its lanes, of the step before it, if that is in the slice.
    free: Option<Cycles>,
}

impl Slicing<'_> {
    /// True if the slice contains some but not all steps of a host call.
    pub(super) fn cuts_a_run(&self) -> Result<bool, ReportError> {
        for run in self.report.runs()? {
            let part = self.part_of(ReplicaClassId(0), &run)?;
            if part.steps.is_some() && !part.is_whole {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the marks.
    pub(super) fn marks(
        &mut self,
        writer: &mut ReportWriter,
        kept: &KeptSteps,
    ) -> Result<(), ReportError> {
        let range = self.plan.range;
        let pieces = (self.plan.bars() / STEPS_OF_PIECE + 1).min(range.length().0.max(1));
        for class in self.plan.trace.classes().map(|trace| trace.class()) {
            for kind in MarkKind::ALL {
                let mut start = range.start;
                for piece in 1..=pieces {
                    let end = range.start + range.length().share(piece, pieces);
                    let window = Some(CycleRange::new(start, end));
                    let filter =
                        MarkFilter { kind: Some(kind), ipu: None, window, limit: usize::MAX };
                    for mark in self.report.marks_of_class(class, &filter)? {
                        // A mark that extends into a later piece was handled before.
                        if piece > 1 && mark.cycles.start < start {
                            continue;
                        }
                        if let Some(mark) = self.mark(class, mark, kept)? {
                            writer.mark_of_class(class, &mark)?;
                        }
                    }
                    start = end;
                    self.go_on()?;
                }
            }
        }
        Ok(())
    }

    /// The mark as it appears in the slice, if it does.
    fn mark(
        &self,
        class: ReplicaClassId,
        mark: TraceMark,
        kept: &KeptSteps,
    ) -> Result<Option<TraceMark>, ReportError> {
        let steps = kept.before(mark.steps.start)..kept.before(mark.steps.end);
        let cycles = if matches!(mark.kind, MarkKind::Loader | MarkKind::Callback) {
            // Marks of the host are beside steps and have no steps.
            let range = self.plan.range;
            if range.overlaps(mark.cycles) { Some(mark.cycles.intersection(range)) } else { None }
        } else {
            let part = self.part_of(class, &mark)?;
            part.steps.filter(|_| !steps.is_empty()).map(|own| {
                // Consecutive work of several IPUs begins when the last of them is free.
                let follows = part.is_whole && part.free == Some(mark.cycles.start);
                let start = if follows { mark.cycles.start } else { own.start };
                CycleRange::new(start, own.end)
            })
        };
        let origin = self.plan.origin;
        let move_cycle = |cycle: Cycles| cycle.saturating_sub(origin);
        Ok(cycles.map(|cycles| {
            let cycles = CycleRange::new(move_cycle(cycles.start), move_cycle(cycles.end));
            TraceMark { steps, cycles, ..mark }
        }))
    }

    fn part_of(&self, class: ReplicaClassId, mark: &TraceMark) -> Result<MarkPart, ReportError> {
        let mut part = MarkPart { steps: None, is_whole: true, free: None };
        for (info, selected) in self.plan.lanes.iter().filter(|(info, _)| info.class == class) {
            if mark.ipu.is_some_and(|ipu| ipu != info.ipu) {
                continue;
            }
            let Some(lane) = self.lane(info) else { continue };
            let own = lane.positions_of(&mark.steps)?;
            let within = own.start.max(selected.start)..own.end.min(selected.end);
            part.is_whole &= own.is_empty() || within == own;
            let before = own.start.checked_sub(1).filter(|before| selected.contains(before));
            let before = before.map(|before| lane.step(before)).transpose()?.flatten();
            part.free = part.free.max(before.map(|step| step.range.end));
            part.steps = [part.steps, self.range_of(lane, &within)?]
                .into_iter()
                .flatten()
                .reduce(CycleRange::union);
        }
        Ok(part)
    }

    pub(super) fn lane(&self, info: &LaneInfo) -> Option<TraceLane<'_>> {
        self.plan.trace.lane_at(ReplicaIpu { class: info.class, ipu: info.ipu }, info.sub_lane)
    }

    fn range_of(
        &self,
        lane: TraceLane<'_>,
        positions: &Range<u64>,
    ) -> Result<Option<CycleRange>, ReportError> {
        if positions.is_empty() {
            return Ok(None);
        }
        let first = lane.step(positions.start)?;
        let last = lane.step(positions.end - 1)?;
        Ok(first.zip(last).map(|(first, last)| CycleRange::new(first.range.start, last.range.end)))
    }
}
