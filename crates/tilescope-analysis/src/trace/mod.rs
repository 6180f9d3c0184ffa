//! The execution trace as views show it: what to draw of a window, what a step did, what a window
//! adds up to. All in cycles; pixels enter only as a resolution.

mod flow_arrows;
mod host_lane;
mod lane_items;
mod lane_layout;
mod lane_shares;
mod program_labels;
mod program_runs;
mod step_details;
mod tile_work;
mod window_summary;

pub use flow_arrows::{FlowArrow, InterIpuTransfer, InterIpuTransfers, arrows};
pub use host_lane::{HostActivity, host_lane};
pub use lane_items::{LaneItem, LaneItemKind, LaneItemList};
pub use lane_layout::{MAX_ROWS, TraceLaneStyle, TraceStepGrouping, arrange, lane_items};
pub use lane_shares::{LaneShares, ShareColumn, lane_shares, narrow_step_cycles};
pub use program_labels::{NameTreeNodeId, ProgramLabel, ProgramLabels};
pub use program_runs::{
    LaneStepLocation, ProgramExecutions, ProgramRunTotals, ProgramRuns, first_run, moved,
    program_runs,
};
pub use step_details::{StepDetailReport, StepDetailRow, VertexCount, step_view};
pub use tile_work::TileWorkTimes;
pub use window_summary::{IpuTotals, StreamTraffic, WindowSummary, window_summary};
