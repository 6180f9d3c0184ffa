//! One step beside the critical path.

use tilescope_report::trace::{LaneStep, LaneWait};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu, StepId};
use tilescope_report::{Report, ReportError};

/// A step beside the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepOnPath {
    /// True if it is on the path.
    pub is_on_path: bool,
    /// Cycles by which it could end later without a later end of the run.
    pub slack: Option<Cycles>,
    /// The lane that it waits for.
    pub wait: Option<LaneWait>,
}

/// The part of one lane in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPart {
    pub at: ReplicaIpu,
    /// 0 for compute tiles; higher for other tiles of the IPU.
    pub sub_lane: u8,
    pub range: CycleRange,
}

/// The parts of a step on all lanes, of every class of replicas; empty if nothing was executed.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn step_parts(report: &Report, step: StepId) -> Result<Vec<StepPart>, ReportError> {
    let Some(path) = report.critical_path()? else { return Ok(Vec::new()) };
    let mut parts = Vec::new();
    for (lane, info) in path.lane_infos().iter().enumerate() {
        let found = path.lane_at(lane).map(|lane| lane.find(step)).transpose()?.flatten();
        let at = ReplicaIpu { class: info.class, ipu: info.ipu };
        let part = |found: LaneStep| StepPart { at, sub_lane: info.sub_lane, range: found.range };
        parts.extend(found.map(part));
    }
    Ok(parts)
}

/// Looks up a step of a lane; `None` if the critical path is not known, or the lane has no such
/// step.
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
