//! The execution trace for views: the visible items of a window, the details of a step, and the
//! totals of a window. All figures are in cycles; pixels are only a resolution.

mod flow_arrows;
mod host_lane;
mod lane_items;
mod lane_layout;
mod lane_shares;
mod link_traffic;
mod located_step;
mod mark_blocks;
mod mark_details;
mod mark_pages;
mod mark_rows;
mod marked_window;
mod micro_batch;
mod program_labels;
mod program_runs;
mod repeated_marks;
mod replica_waits;
mod run_share;
mod step_details;
mod tile_work;
mod tiles_at_cycle;
mod window_summary;
mod window_totals;

pub use flow_arrows::{FlowArrow, InterIpuTransfer, InterIpuTransfers, arrows, first_consumer};
pub use host_lane::{HostActivity, host_lane};
pub use lane_items::{LaneItem, LaneItemKind, LaneItemList, StepGroupTotals};
pub use lane_layout::{MAX_ROWS, TraceLaneStyle, TraceStepGrouping, arrange, lane_items};
pub use lane_shares::{LaneShares, ShareColumn, lane_shares, narrow_step_cycles};
pub use link_traffic::{LinkColumn, LinkTraffic, link_traffic};
pub use located_step::{LocatedStep, located_step};
pub use mark_blocks::MarkRow;
pub use mark_details::{MarkDetailReport, mark_details, signed_percent};
pub use mark_rows::{COMMON_MARKS, MarkRows, singular};
pub use marked_window::FirstPeriods;
pub(crate) use marked_window::{MOST_MARKS, MarkedPart, RunMarks, WindowMark, marks};
pub use micro_batch::{
    MicroBatchPath, MicroBatchTurn, micro_batch_path, short_turn, stage_at, stage_name,
};
pub use program_labels::{NameTreeNodeId, ProgramLabel, ProgramLabels};
pub use program_runs::{
    LaneStepLocation, ProgramExecutions, ProgramRunTotals, ProgramRuns, first_run, moved,
    program_runs,
};
pub(crate) use program_runs::{ProgramShare, program_runs_of};
pub use repeated_marks::{MarkPeriod, MarkPlace, RepeatedMarks};
pub use replica_waits::{ReplicaWaitRank, ReplicaWaits};
pub use run_share::{PathWindow, RunShare, Share, ShareWindow, WholeRun};
pub use step_details::{StepDetailReport, StepDetailRow, VertexCount, step_view};
pub use tile_work::{TileWorkTimes, rows_of_tile};
pub use tiles_at_cycle::{StepAtCycle, TileFigure, TileSources, TilesAtCycle};
pub use tilescope_report::{MarkBlock, MarkRowId, PassCycles};
pub use window_summary::{IpuTotals, StreamTraffic, WindowSummary, run_summary, window_summary};
pub(crate) use window_totals::WindowTotals;
