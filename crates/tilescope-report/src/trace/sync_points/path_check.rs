//! Checks sync points and the critical path against the steps of a run, while these are walked.

// Points and steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::StepTotals;
use super::super::step_record::StepRecord;
use super::super::store::TraceStore;
use super::critical_path::CriticalPath;
use super::path_index::BlockDetails;
use super::point::{SyncPoint, SyncPointKind};
use super::program_cycles::{ProgramCycleCounter, are_same_sums};
use super::recorder::SyncPrograms;
use super::replay::SyncPointComparison;
use super::walk::FoundStretch;
use crate::error::ReportError;
use crate::schema::PATH_INDEX;
use crate::units::Cycles;
use std::sync::Arc;

/// The maximum number of descriptions that are kept: all steps of a path may be wrong.
const MAX_DESCRIPTIONS: usize = 100;

/// Checks of the sync points and of the path. An error in reading ends them, and is the result.
pub(crate) struct PathCheck(Result<PathChecks, ReportError>);

struct PathChecks {
    points: SyncPointComparison,
    path: Option<PathWalk>,
}

impl PathCheck {
    pub(crate) fn new(store: &Arc<TraceStore>, syncs: SyncPrograms) -> Self {
        Self(PathChecks::new(store, syncs))
    }

    /// Passes the next steps of a lane, in the order of the program.
    pub(crate) fn steps(&mut self, lane: usize, records: &[StepRecord]) {
        self.go_on(|checks| checks.points.steps(lane, records));
    }

    /// Checks the stretches of the path up to a cycle.
    pub(crate) fn advance(&mut self, to: Cycles) {
        self.go_on(|checks| checks.path.as_mut().map_or(Ok(()), |path| path.advance(to)));
    }

    /// Describes the problems after all steps. With wrong sync points, the path is not checked.
    pub(crate) fn finish(self) -> Result<Vec<String>, ReportError> {
        let PathChecks { points, path } = self.0?;
        if let Some(text) = points.finish()? {
            return Ok(vec![text]);
        }
        path.map_or(Ok(Vec::new()), PathWalk::finish)
    }

    fn go_on(&mut self, check: impl FnOnce(&mut PathChecks) -> Result<(), ReportError>) {
        if let Ok(checks) = &mut self.0
            && let Err(error) = check(checks)
        {
            self.0 = Err(error);
        }
    }
}

impl PathChecks {
    fn new(store: &Arc<TraceStore>, syncs: SyncPrograms) -> Result<Self, ReportError> {
        // A file records either all hand-overs or none.
        let mut is_recorded = false;
        let is_hand_over =
            |point: &SyncPoint| matches!(&point.kind, SyncPointKind::Awaited(a) if a.is_recorded);
        let walked = store.walk_points(|points| {
            is_recorded = is_recorded || points.iter().any(is_hand_over);
        });
        let points = SyncPointComparison::new(store.clone(), syncs, is_recorded)?;
        let path = store.path_index()?.map(|index| {
            let is_walked = walked.map(|walked| walked == *index);
            PathWalk::new(CriticalPath::new(store.clone(), index), is_walked)
        });
        Ok(Self { points, path })
    }
}

/// Walks along the path: it must go through the run without a gap, its sums must be those of its
/// steps, and none of these may have slack.
struct PathWalk {
    path: CriticalPath,
    /// True if the sync points give the same path.
    is_walked: Result<bool, ReportError>,
    /// The block of the current stretch, and the index of the stretch in it. The first stretch of
    /// the path is in no block.
    block: Arc<BlockDetails>,
    next: usize,
    /// Number of blocks read.
    blocks: usize,
    end: Cycles,
    sums: StepTotals,
    programs: ProgramCycleCounter,
    wrong: Vec<String>,
}

impl PathWalk {
    fn new(path: CriticalPath, is_walked: Result<bool, ReportError>) -> Self {
        Self {
            is_walked,
            end: path.range().start,
            block: Arc::new(BlockDetails::of(path.index.first)),
            next: 0,
            blocks: 0,
            path,
            sums: StepTotals::default(),
            programs: ProgramCycleCounter::default(),
            wrong: Vec::new(),
        }
    }

    /// Walks over the stretches that end before a cycle, or with it.
    fn advance(&mut self, to: Cycles) -> Result<(), ReportError> {
        while let Some(stretch) = self.stretch()?.filter(|stretch| stretch.range.end <= to) {
            self.next += 1;
            if stretch.range.overlaps(self.path.range()) {
                self.check(&stretch)?;
            }
        }
        Ok(())
    }

    /// The next stretch.
    fn stretch(&mut self) -> Result<Option<FoundStretch>, ReportError> {
        loop {
            if let Some(stretch) = self.block.stretches.get(self.next) {
                return Ok(Some(*stretch));
            }
            if self.blocks == self.path.block_count() {
                return Ok(None);
            }
            self.block = self.path.details(self.blocks)?;
            self.blocks += 1;
            self.next = 0;
        }
    }

    fn check(&mut self, stretch: &FoundStretch) -> Result<(), ReportError> {
        let FoundStretch { lane, range, totals, .. } = *stretch;
        let at = range.start.0;
        if range.start != self.end {
            self.tell(format!("the path is at {} but continues at {at}", self.end.0));
        }
        self.end = range.end;
        self.sums.add(&totals);
        let counted = self.programs.add(lane, self.path.lane(lane)?, range)?;
        if counted.cycles != totals.cycles {
            self.tell(format!("sums of the path from {at} on are not those of its steps"));
        }
        let slack = counted.last.map(|last| self.slack(lane, last)).transpose()?.flatten();
        if slack.is_none_or(|slack| !slack.is_zero()) {
            self.tell(format!("steps of the path from {at} on have slack"));
        }
        Ok(())
    }

    /// The slack of a step, mostly found in the block at hand.
    fn slack(&self, lane: usize, position: u64) -> Result<Option<Cycles>, ReportError> {
        let here = self.blocks.checked_sub(1);
        match here.filter(|here| self.path.is_in_block(*here, lane, position)) {
            Some(_) => Ok(self.block.slack(lane, position)),
            None => self.path.slack(lane, position),
        }
    }

    fn tell(&mut self, text: String) {
        if self.wrong.len() < MAX_DESCRIPTIONS {
            self.wrong.push(text);
        }
    }

    fn finish(mut self) -> Result<Vec<String>, ReportError> {
        self.advance(Cycles::MAX)?;
        let Self { path, is_walked, end, sums, programs, mut wrong, .. } = self;
        if end != path.range().end {
            wrong.push(format!(
                "the path ends at {}, but the run ends at {}",
                end.0,
                path.range().end.0
            ));
        }
        if sums.cycles != path.totals().cycles {
            wrong.push("the path is not the sum of its stretches".to_owned());
        }
        if !is_walked? {
            let problem = format!("{PATH_INDEX} does not match the path of the sync points");
            wrong.push(problem);
        }
        let stored = path.store.stored_path_programs()?;
        if !stored.is_empty() && !are_same_sums(&stored, &programs.finish()) {
            let problem = "trace_path_programs does not match the programs of the path";
            wrong.push(problem.to_owned());
        }
        Ok(wrong)
    }
}
