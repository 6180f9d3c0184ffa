//! Loads from streaming memory for the next phase.

use super::{ProgramRunner, StepSink};
use crate::specification::ExecutionPhaseSchedule;
use std::ops::Range;

impl<S: StepSink> ProgramRunner<'_, S> {
    /// Loads the tensors that the next phase needs and that can be loaded during this one. Both
    /// phases are ranges of slots. Nothing is loaded if a stage continues and still uses its
    /// weights. If all phases are on the same IPUs, only the I/O tiles load, and only if loads are
    /// clustered at the beginning of a phase.
    pub(super) fn prefetch_beside(
        &mut self,
        this: &Range<usize>,
        next: &Range<usize>,
    ) -> Result<(), S::Error> {
        if self.goes_on(this, next) {
            return Ok(());
        }
        let next = &self.compiled.schedule.slots[next.clone()];
        if self.has_one_set() && !self.clusters_loads() {
            return Ok(());
        }
        self.prefetch_by_io_tiles(next)?;
        if self.has_one_set() { Ok(()) } else { self.prefetch_remote_loads(next) }
    }

    /// Starts the loads of the I/O tiles for the next phase behind the work of this one and before
    /// its updates, if all phases are on the same IPUs.
    ///
    /// Except for clustered ones, PopART gives loads a lower priority than the work of a phase
    /// (willow/src/transforms/streamingmemoryopinserter.cpp, setPriority), and a copy of the I/O
    /// tiles overlaps only with what follows it in the schedule (PopXL user guide, "Optimisation:
    /// merging the code load operations").
    pub(super) fn prefetch_before_updates(
        &mut self,
        this: &Range<usize>,
        next: &Range<usize>,
    ) -> Result<(), S::Error> {
        if !self.has_one_set() || self.clusters_loads() || self.goes_on(this, next) {
            return Ok(());
        }
        self.prefetch_by_io_tiles(&self.compiled.schedule.slots[next.clone()])
    }

    /// Loads the remaining tensors that the next phase needs.
    pub(super) fn prefetch_behind(
        &mut self,
        this: &Range<usize>,
        next: &Range<usize>,
    ) -> Result<(), S::Error> {
        let goes_on = self.goes_on(this, next);
        let next = &self.compiled.schedule.slots[next.clone()];
        if goes_on {
            self.prefetch_by_io_tiles(next)?;
        }
        if goes_on || self.has_one_set() { self.prefetch_remote_loads(next) } else { Ok(()) }
    }

    /// True if a stage works in both of two phases, which are ranges of slots.
    fn goes_on(&self, this: &Range<usize>, next: &Range<usize>) -> bool {
        let slots = &self.compiled.schedule.slots;
        let next = &slots[next.clone()];
        slots[this.clone()].iter().any(|slot| next.iter().any(|of| of.shares_stage(slot)))
    }

    /// True if a phase loads everything before its work.
    fn clusters_loads(&self) -> bool {
        let schedule = self.spec.options.execution_phase_settings.schedule;
        schedule == ExecutionPhaseSchedule::BatchClusteredIo
    }

    /// True if all phases are on the same IPUs.
    fn has_one_set(&self) -> bool {
        self.spec.options.execution_phase_settings.stages == 1
    }
}
