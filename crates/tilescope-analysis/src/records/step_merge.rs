//! The steps of several lanes, merged by id.

use super::{RecordError, RecordReader};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;
use tilescope_report::StepOnIpu;
use tilescope_report::trace::{LaneInfo, LaneStep, Trace};
use tilescope_report::units::{ProgramId, StepId};

/// The number of steps that all lanes together buffer during the merge.
const MAX_HELD_STEPS: usize = 1 << 17;

/// The number of steps that each of some lanes buffers.
pub(super) fn batch_of(lanes: usize) -> u64 {
    (MAX_HELD_STEPS / lanes.max(1)).clamp(16, 4096) as u64
}

/// A step on a lane, with its data from rows of the file.
pub(super) type MergedStep = (LaneStep, Option<StepOnIpu>);

/// The index of a lane in the trace, and positions on it.
pub(super) type WantedLane = (usize, Range<u64>);

/// The requested steps and lanes.
pub(super) struct WantedSteps {
    pub(super) trace: Trace,
    /// Lanes that are merged, part after part.
    pub(super) parts: Vec<Vec<WantedLane>>,
    /// Only steps of this program.
    pub(super) program: Option<ProgramId>,
    /// True if columns are requested that only rows of the file have.
    pub(super) as_rows: bool,
}

/// A lane with its buffered steps.
struct MergedLane {
    lane: usize,
    left: Range<u64>,
    held: Vec<MergedStep>,
    at: usize,
}

/// Steps sorted by id, then IPU and sub-lane, within each part.
pub(super) struct StepMerge {
    run: Arc<RecordReader>,
    wanted: WantedSteps,
    /// Lanes of the current part.
    lanes: Vec<MergedLane>,
    /// The next step of each lane with remaining steps.
    next: BinaryHeap<Reverse<(StepId, usize)>>,
    /// The lane of the current step.
    current: Option<usize>,
    /// The number of steps that a lane buffers.
    batch: u64,
}

impl StepMerge {
    pub(super) fn new(
        run: Arc<RecordReader>,
        mut wanted: WantedSteps,
    ) -> Result<Self, RecordError> {
        // Parts are taken from the end.
        wanted.parts.reverse();
        let (lanes, next) = (Vec::new(), BinaryHeap::new());
        let mut merge = Self { run, wanted, lanes, next, current: None, batch: 0 };
        merge.begin_part()?;
        Ok(merge)
    }

    /// The merge of steps that are read already, with their lanes.
    pub(super) fn of_found(
        run: Arc<RecordReader>,
        trace: Trace,
        found: Vec<(usize, MergedStep)>,
    ) -> Self {
        let mut next = BinaryHeap::with_capacity(found.len());
        let mut lanes = Vec::with_capacity(found.len());
        for (at, (lane, step)) in found.into_iter().enumerate() {
            next.push(Reverse((step.0.step, at)));
            lanes.push(MergedLane { lane, left: 0..0, held: vec![step], at: 0 });
        }
        let wanted = WantedSteps { trace, parts: Vec::new(), program: None, as_rows: false };
        Self { run, wanted, lanes, next, current: None, batch: 0 }
    }

    /// Begins the next parts until one has a requested step.
    fn begin_part(&mut self) -> Result<(), RecordError> {
        while self.next.is_empty()
            && let Some(part) = self.wanted.parts.pop()
        {
            self.batch = batch_of(part.len());
            self.lanes.clear();
            for (lane, left) in part {
                self.lanes.push(MergedLane { lane, left, held: Vec::new(), at: 0 });
            }
            (0..self.lanes.len()).try_for_each(|lane| self.refill(lane))?;
        }
        Ok(())
    }

    /// Advances to the next step; returns `false` after the last.
    pub(super) fn advance(&mut self) -> Result<bool, RecordError> {
        if let Some(current) = self.current.take()
            && let Some(lane) = self.lanes.get_mut(current)
        {
            lane.at += 1;
            match lane.held.get(lane.at) {
                Some((step, _)) => self.next.push(Reverse((step.step, current))),
                None => self.refill(current)?,
            }
        }
        self.begin_part()?;
        self.current = self.next.pop().map(|Reverse((_, lane))| lane);
        Ok(self.current.is_some())
    }

    /// The current step.
    pub(super) fn step(&self) -> Option<&MergedStep> {
        let lane = self.lanes.get(self.current?)?;
        lane.held.get(lane.at)
    }

    /// The lane of the current step.
    pub(super) fn lane(&self) -> Option<LaneInfo> {
        let lane = self.lanes.get(self.current?)?;
        self.wanted.trace.lanes().get(lane.lane).copied()
    }

    /// Skips the remaining steps with an id.
    pub(super) fn skip_rest_of(&mut self, id: StepId) -> Result<(), RecordError> {
        while self.next.peek().is_some_and(|Reverse((next, _))| *next == id) {
            self.advance()?;
        }
        Ok(())
    }

    /// Reads the next batches of a lane until one contains a requested step.
    fn refill(&mut self, at: usize) -> Result<(), RecordError> {
        let Some(merged) = self.lanes.get_mut(at) else { return Ok(()) };
        merged.at = 0;
        merged.held.clear();
        let Some(lane) = self.wanted.trace.lane(merged.lane) else { return Ok(()) };
        while merged.held.is_empty() && !merged.left.is_empty() {
            let stop = merged.left.start.saturating_add(self.batch).min(merged.left.end);
            let positions = merged.left.start..stop;
            self.run.check_time(usize::try_from(self.batch).unwrap_or(0))?;
            merged.held = if self.wanted.as_rows {
                lane.rows_at(positions)?
            } else {
                lane.steps_at(positions)?.into_iter().map(|step| (step, None)).collect()
            };
            if let Some(program) = self.wanted.program {
                merged.held.retain(|(step, _)| step.program == Some(program));
            }
            merged.left.start = stop;
        }
        if let Some((step, _)) = merged.held.first() {
            self.next.push(Reverse((step.step, at)));
        }
        Ok(())
    }
}
