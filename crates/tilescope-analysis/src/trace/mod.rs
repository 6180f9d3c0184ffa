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

pub use arrows::{Arrow, Link, Links, arrows};
pub use details::{Detail, StepView, VertexCount, step_view};
pub use host::{HostWork, host_lane};
pub use items::{Item, Kind, LaneItems};
pub use labels::{Label, Labels, NodeId};
pub use layout::{Grouping, MAX_ROWS, Style, arrange, lane_items};
pub(super) use programs::scan;
pub use programs::{
    Found, MAX_STEPS, ProgramRuns, Runs, each_step, first_run, moved, program_runs,
};
pub use tiles::TileTimes;
pub use window::{IpuTotals, StreamTraffic, WindowSummary, window_summary};
