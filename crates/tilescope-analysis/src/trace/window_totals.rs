//! Totals of a lane together with their window.

use super::run_share::{Share, ShareWindow};
use tilescope_report::trace::{StepTotals, Trace, TraceLane};
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{ReportError, StepActivity};

/// A window of a lane, or all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LaneWindow(CycleRange);

impl ShareWindow for LaneWindow {
    fn cycles(self) -> Cycles {
        self.0.length()
    }
}

/// The sums of the steps of a lane in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowTotals {
    window: LaneWindow,
    pub(crate) totals: StepTotals,
}

impl WindowTotals {
    /// Reads the totals of a window.
    pub(crate) fn read(lane: TraceLane<'_>, window: CycleRange) -> Result<Self, ReportError> {
        Ok(Self { window: LaneWindow(window), totals: lane.totals(window)? })
    }

    /// Reads the totals of the whole run that the lane is a part of.
    pub(crate) fn read_all(lane: TraceLane<'_>, trace: &Trace) -> Result<Self, ReportError> {
        Ok(Self { window: LaneWindow(trace.range()), totals: lane.all_totals()? })
    }

    /// The totals of a window without steps of the lane.
    pub(crate) fn empty(window: CycleRange) -> Self {
        Self { window: LaneWindow(window), totals: StepTotals::default() }
    }

    /// The share of the window with an activity.
    pub(crate) fn share(&self, activity: StepActivity) -> Share<LaneWindow> {
        Share::new(self.totals.cycles[activity].as_f64(), self.window)
    }

    /// The share of the window without a step.
    pub(crate) fn idle(&self) -> Share<LaneWindow> {
        Share::new(self.totals.cycles.total().as_f64(), self.window).rest().clamped()
    }
}
