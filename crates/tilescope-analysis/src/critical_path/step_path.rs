//! What the critical path says of one step.

use tilescope_report::trace::LaneWait;
use tilescope_report::units::{Cycles, ReplicaIpu, StepId};
use tilescope_report::{Report, ReportError};

/// A step beside the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepOnPath {
    /// Whether it is on the path.
    pub is_on_path: bool,
    /// How much later it could end without the run ending later.
    pub slack: Option<Cycles>,
    /// Whom it waits for.
    pub wait: Option<LaneWait>,
}

/// Looks a step of a lane up; none where the critical path is not known, or the lane has no such step.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn step_on_path(
    report: &Report,
    step: StepId,
    at: ReplicaIpu,
    sub_lane: u8,
) -> Result<Option<StepOnPath>, ReportError> {
    let Some(path) = report.known_critical_path()? else { return Ok(None) };
    let Some(lane) = path.position_of(at, sub_lane) else { return Ok(None) };
    let Some(found) = path.lane_at(lane).map(|lane| lane.find(step)).transpose()?.flatten() else {
        return Ok(None);
    };
    Ok(Some(StepOnPath {
        is_on_path: path.stretch_of(lane, &found)?.is_some(),
        slack: path.slack(lane, found.position)?,
        wait: path.wait_of(lane, &found)?,
    }))
}
