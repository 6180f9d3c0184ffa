//! Slack, waits and lead of each IPU.

use serde::Serialize;
use tilescope_report::units::{Cycles, ReplicaClassId, ReplicaIpu};
use tilescope_report::{Report, ReportError};

/// How much of the critical path an IPU has, and how much later or sooner it could be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IpuSlack {
    /// The IPU, and the replicas where these differ.
    pub ipu: ReplicaIpu,
    /// 0 for compute tiles; higher for other tiles of the IPU.
    pub sub_lane: u8,
    /// Cycles of the critical path that are its own.
    pub path_cycles: Cycles,
    /// The same as a share of the path.
    pub path_share: f64,
    /// Cycles in which it waits for others.
    pub waits: Cycles,
    /// Mean slack of its cycles of work.
    pub slack: f64,
    /// The least slack of its steps.
    pub least_slack: Cycles,
    /// What it alone being faster gains at most.
    pub lead: Cycles,
}

/// `IPU 1`, or `IPU 1, I/O tiles`; of replicas that differ from replica 0
/// `replica class 1, IPU 1`.
pub fn lane_title(at: ReplicaIpu, sub_lane: u8) -> String {
    let ReplicaIpu { class, ipu } = at;
    let tiles = if sub_lane > 0 { ", I/O tiles" } else { "" };
    match class {
        ReplicaClassId(0) => format!("IPU {ipu}{tiles}"),
        class => format!("replica class {class}, IPU {ipu}{tiles}"),
    }
}

impl IpuSlack {
    /// The lane in words.
    pub fn title(&self) -> String {
        lane_title(self.ipu, self.sub_lane)
    }
}

/// All lanes, by IPU; none where nothing was executed, or the critical path is not known.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn ipu_slacks(report: &Report) -> Result<Vec<IpuSlack>, ReportError> {
    let Some(path) = report.known_critical_path()? else { return Ok(Vec::new()) };
    let all = path.range().length().as_f64().max(1.0);
    let lanes = path.lane_infos().iter().zip(path.lanes());
    Ok(lanes
        .map(|(info, of)| IpuSlack {
            ipu: ReplicaIpu { class: info.class, ipu: info.ipu },
            sub_lane: info.sub_lane,
            path_cycles: of.path_cycles,
            path_share: of.path_cycles.as_f64() / all,
            waits: of.waits,
            slack: of.mean_slack(),
            least_slack: of.least_slack.unwrap_or_default(),
            lead: of.lead,
        })
        .collect())
}
