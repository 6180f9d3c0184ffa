//! Slack, waits and lead of each IPU.

use serde::Serialize;
use tilescope_report::units::{Cycles, IpuId};
use tilescope_report::{Report, ReportError};

/// How much of the critical path an IPU has, and how much later or sooner it could be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IpuSlack {
    pub ipu: IpuId,
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

impl IpuSlack {
    /// `IPU 1`, or `IPU 1, I/O tiles`
    pub fn title(&self) -> String {
        let tiles = if self.sub_lane > 0 { ", I/O tiles" } else { "" };
        format!("IPU {}{tiles}", self.ipu)
    }
}

/// All lanes, by IPU; none where nothing was executed, or the critical path is not known.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn ipu_slacks(report: &Report) -> Result<Vec<IpuSlack>, ReportError> {
    let (Some(trace), Some(path)) = (report.trace()?, report.known_critical_path()?) else {
        return Ok(Vec::new());
    };
    let all = path.range().length().as_f64().max(1.0);
    let lanes = trace.lanes().iter().zip(path.lanes());
    Ok(lanes
        .map(|(info, of)| IpuSlack {
            ipu: info.ipu,
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
