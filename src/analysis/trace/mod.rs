//! The execution trace as views show it: what to draw of a window, what a step did, what a window
//! adds up to. All in cycles; pixels enter only as a resolution.

mod details;
mod labels;
mod layout;
mod programs;
mod tiles;
mod window;

pub use details::{Detail, StepView, VertexCount, step_view};
pub use labels::{Label, Labels, NodeId};
pub use layout::{Grouping, Item, Kind, LaneItems, MAX_ROWS, Style, arrange, lane_items};
pub use programs::{
    Found, MAX_STEPS, ProgramRuns, Runs, each_step, first_run, moved, program_runs,
};
pub use tiles::TileTimes;
pub use window::{IpuTotals, StreamTraffic, WindowSummary, window_summary};
