//! Marks compared with the steps of the run. The number of marks is unbounded, so both are walked
//! side by side: only the chunks of marks that overlap a window of steps are in memory.

use super::{Findings, InvariantCheck, Report, ReportOrigin};
use crate::error::ReportError;
use crate::model::MarkKind;
use crate::reader::marks::{MarkRange, MarksFromStep, PackedMarks};
use crate::trace::{LaneEdge, PassWindow, WatchedLane, partition_point_near};
use crate::units::{Cycles, StepId};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The number of marks per window of steps, if marks are packed.
const WINDOW_MARKS: usize = 1 << 12;
/// The maximum number of steps of a window. The critical path is checked window by window, and
/// finds steps of this many in the caches of the processor.
const WINDOW_STEPS: u64 = 1 << 14;

/// A mark that the window has reached.
struct OpenMark {
    mark: MarkRange,
    /// The start of its steps, once the window contains the first of them.
    start: Option<MarkStart>,
}

/// The start of the steps of a mark.
#[derive(Clone, Copy)]
struct MarkStart {
    /// The start of its first step; `None` if no lane has a step of it.
    first: Option<Cycles>,
    /// The end of the last step before it.
    free: Option<Cycles>,
}

/// Checks that marks of the replicas of a class start with the first of their steps and end with
/// the last.
pub(super) struct MarkCycleCheck {
    /// Chunks that no window has reached.
    chunks: VecDeque<MarksFromStep>,
    /// Marks of other chunks that no window has reached; those that start first are at the end.
    waiting: Vec<MarkRange>,
    open: Vec<OpenMark>,
    /// The first step of the next window; `None` after the last one.
    from: Option<StepId>,
    /// Number of steps of the run.
    steps: u64,
    findings: Findings,
}

impl MarkCycleCheck {
    /// A check of all marks of a report; of none in foreign files, whose step numbers differ.
    pub(super) fn new(report: &Report) -> Result<Self, ReportError> {
        let mut check = Self {
            chunks: VecDeque::new(),
            waiting: Vec::new(),
            open: Vec::new(),
            from: Some(StepId(0)),
            steps: 0,
            findings: Findings::default(),
        };
        if report.origin() != ReportOrigin::Tilescope {
            return Ok(check);
        }
        check.steps = report.step_count()?;
        check.chunks = report.mark_chunks_by_step()?.into();
        if check.chunks.is_empty() {
            check.read(report, None)?;
        }
        Ok(check)
    }

    /// Reads the marks of a chunk, or those that are not packed. Returns their number.
    fn read(&mut self, report: &Report, chunk: Option<&PackedMarks>) -> Result<usize, ReportError> {
        let mut marks = 0;
        report.visit_mark_ranges(chunk, |mark| {
            // Marks of the host have steps near them, not inside them.
            if !matches!(mark.kind, MarkKind::Loader | MarkKind::Callback) {
                self.waiting.push(mark);
            }
            marks += 1;
        })?;
        self.waiting.sort_by_key(|mark| Reverse(mark.steps.start));
        Ok(marks)
    }

    /// The steps up to the next chunks of marks, with the starts and ends of marks; `None` after
    /// the last steps.
    pub(super) fn next_window(
        &mut self,
        report: &Report,
    ) -> Result<Option<PassWindow>, ReportError> {
        let Some(from) = self.from else { return Ok(None) };
        let limit = Some(from + WINDOW_STEPS).filter(|limit| limit.0 < self.steps);
        let mut marks = 0;
        while let Some((_, chunk)) = self.chunks.pop_front_if(|(first, _)| {
            let is_inside = marks < WINDOW_MARKS && limit.is_none_or(|limit| *first < limit);
            *first <= from || is_inside
        }) {
            marks += self.read(report, Some(&chunk))?;
        }
        let end = self.chunks.front().map(|(first, _)| *first).into_iter().chain(limit).min();
        self.from = end;
        while let Some(mark) =
            self.waiting.pop_if(|mark| end.is_none_or(|end| mark.steps.start < end))
        {
            self.open.push(OpenMark { mark, start: None });
        }
        let is_inside = |step: &StepId| *step >= from && end.is_none_or(|end| *step < end);
        let mut watched = Vec::new();
        for OpenMark { mark, .. } in &self.open {
            watched.extend([mark.steps.start, mark.steps.end].into_iter().filter(is_inside));
        }
        watched.sort_unstable();
        watched.dedup();
        let watched = watched.into();
        Ok(Some(PassWindow { end, watched }))
    }

    /// Checks the marks of a window against the lanes' steps around their starts and ends.
    pub(super) fn check(&mut self, report: &Report, window: &PassWindow, lanes: &[WatchedLane]) {
        let is_inside = |step: StepId| window.end.is_none_or(|end| step < end);
        let findings = &mut self.findings;
        // Marks are in the order of their starts, so that a search begins where the last one ended.
        let mut near = 0;
        self.open.retain_mut(|OpenMark { mark, start }| {
            let own = lanes.iter().filter(|lane| {
                lane.info.class == mark.class && mark.ipu.is_none_or(|ipu| ipu == lane.info.ipu)
            });
            let mut find_edges = |step: StepId| {
                near = partition_point_near(&window.watched, near, |watched| *watched < step);
                let place = Some(near).filter(|near| window.watched.get(*near) == Some(&step));
                own.clone().filter_map(move |lane| lane.edges.get(place?))
            };
            if start.is_none() {
                *start = Some(MarkStart::of(find_edges(mark.steps.start), mark.steps.end));
            }
            if !is_inside(mark.steps.end) {
                return true;
            }
            let ends = find_edges(mark.steps.end).filter_map(|edge| edge.before);
            let end = ends.filter(|(step, _)| *step >= mark.steps.start).map(|(_, end)| end).max();
            if let (Some(MarkStart { first: Some(first), free }), Some(end)) = (*start, end) {
                check_cycles(report, mark, (first, end), free, findings);
            }
            false
        });
    }

    /// Reports marks that do not start or end with their steps.
    pub(super) fn tell(self, law: &mut InvariantCheck) {
        self.findings.add_to(law);
    }
}

impl MarkStart {
    fn of<'a>(edges: impl Iterator<Item = &'a LaneEdge> + Clone, end: StepId) -> Self {
        let starts = edges.clone().filter_map(|edge| edge.behind);
        let own = starts.filter(|(step, _)| *step < end);
        Self {
            first: own.map(|(_, start)| start).min(),
            free: edges.filter_map(|edge| edge.before).map(|(_, end)| end).max(),
        }
    }
}

/// Checks a mark against the start of its first step and the end of its last one.
fn check_cycles(
    report: &Report,
    mark: &MarkRange,
    (start, end): (Cycles, Cycles),
    free: Option<Cycles>,
    findings: &mut Findings,
) {
    let found = mark.cycles;
    // Consecutive work of several IPUs starts when the last of them is free.
    let follows = matches!(mark.kind, MarkKind::Iteration | MarkKind::Phase | MarkKind::Slot)
        && free == Some(found.start);
    if (found.start == start || follows) && found.end == end {
        return;
    }
    findings.add(|| {
        let label = report.label_of(mark).unwrap_or_else(|| "a mark".to_owned());
        format!(
            "{label} spans {} to {}, but its steps span {} to {}",
            found.start.0, found.end.0, start.0, end.0
        )
    });
}
