//! Slack, waits and lead of each IPU.

use crate::replica_classes::ipu_words;
use serde::Serialize;
use tilescope_report::trace::{LaneInfo, LaneSlack};
use tilescope_report::units::{Cycles, ReplicaIpu};
use tilescope_report::{ReplicaClasses, Report, ReportError};

/// The part of the critical path on an IPU, and the slack of its steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IpuSlack {
    /// The title of the lane.
    #[serde(skip)]
    pub title: String,
    /// The IPU, and the class of replicas if these differ.
    pub ipu: ReplicaIpu,
    /// 0 for compute tiles; higher for other tiles of the IPU.
    pub sub_lane: u8,
    /// Cycles of the critical path on the lane.
    pub path_cycles: Cycles,
    /// The same as a share of the path.
    pub path_share: f64,
    /// Cycles in which it waits for others.
    pub waits: Cycles,
    /// Mean slack of its cycles of work.
    pub slack: f64,
    /// The smallest slack of its steps.
    pub least_slack: Cycles,
    /// Upper bound of the gain if only this lane were faster.
    pub lead: Cycles,
}

/// `IPU 1`, or `IPU 1, I/O tiles`, with the class of replicas if these differ.
pub(crate) fn lane_title(classes: &ReplicaClasses, at: ReplicaIpu, sub_lane: u8) -> String {
    let tiles = if sub_lane > 0 { ", I/O tiles" } else { "" };
    format!("{}{tiles}", ipu_words(classes, at))
}

/// All lanes, by IPU; empty if nothing was executed, or if the critical path is not known.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn ipu_slacks(report: &Report) -> Result<Vec<IpuSlack>, ReportError> {
    let Some(path) = report.known_critical_path()? else { return Ok(Vec::new()) };
    let all = path.range().length().as_f64().max(1.0);
    let lanes = path.lane_infos().iter().zip(path.lanes());
    let classes = report.replica_classes()?;
    let slack = |(info, of): (&LaneInfo, &LaneSlack)| {
        let ipu = ReplicaIpu { class: info.class, ipu: info.ipu };
        IpuSlack {
            title: lane_title(&classes, ipu, info.sub_lane),
            ipu,
            sub_lane: info.sub_lane,
            path_cycles: of.path_cycles,
            path_share: of.path_cycles.as_f64() / all,
            waits: of.waits,
            slack: of.mean_slack(),
            least_slack: of.least_slack.unwrap_or_default(),
            lead: of.lead,
        }
    };
    Ok(lanes.map(slack).collect())
}
