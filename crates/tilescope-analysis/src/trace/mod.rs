//! The execution trace as views show it: what to draw of a window, what a step did, what a window
//! adds up to. All in cycles; pixels enter only as a resolution.

mod arrows;
mod details;
mod host;
mod items;
mod labels;
mod layout;
mod programs;
mod tiles;
mod window;

pub use arrows::{FlowArrow, InterIpuTransfer, InterIpuTransfers, arrows};
pub use details::{StepDetailReport, StepDetailRow, VertexCount, step_view};
pub use host::{HostActivity, host_lane};
pub use items::{LaneItem, LaneItemKind, LaneItemList};
pub use labels::{NameTreeNodeId, ProgramLabel, ProgramLabels};
pub use layout::{MAX_ROWS, TraceLaneStyle, TraceStepGrouping, arrange, lane_items};
pub(super) use programs::scan;
pub use programs::{
    LaneStepLocation, MAX_STEPS, ProgramRunTotals, ProgramRuns, each_step, first_run, moved,
    program_runs,
};
pub use tiles::TileWorkTimes;
pub use window::{IpuTotals, StreamTraffic, WindowSummary, window_summary};
