//! Waits of a run: the critical path by operation, program and IPU, the slack of all other steps,
//! the cycles that could be hidden, and the reason that a step waits.
//!
//! The path itself is [`tilescope_report::trace::CriticalPath`]. Removing cycles from steps on the
//! path shortens the run by at most that many: the rest of the path is still a way through the run.
//! Removing cycles outside the path gains nothing.

mod exposure;
mod ipu_slack;
mod mechanism;
mod step_path;
mod totals;
mod why;

pub use exposure::{ActivityExposure, ProgramExposure, activity_exposures, exposure};
pub use ipu_slack::{IpuSlack, ipu_slacks};
pub use mechanism::{MECHANISMS, Mechanism, MechanismOptions};
pub use step_path::{StepOnPath, StepPart, step_on_path, step_parts};
pub use totals::{PathKind, PathRow, PathTotals, path_totals};
pub use why::{WhyChain, WhyLink, WhyPlace, why, why_run};

/// The meaning of *on the path*.
pub const ON_PATH: &str = "cycles of its steps on the critical path, the longest chain of steps \
    that wait for one another. Making them faster shortens the run by at most this much";
/// The meaning of *exposed*.
pub const EXPOSED: &str = "cycles of its steps during which the compute tiles of their IPU do nothing \
    else: all of steps of compute tiles, those beside waits of steps of I/O tiles";
/// The meaning of *hidden*.
pub const HIDDEN: &str = "cycles of its steps on I/O tiles during which the compute tiles of their \
    IPU work; exposed + hidden = cycles";
/// The meaning of the slack of a step.
pub const SLACK: &str = "how much later the step could end without delaying the end of the run";
/// The meaning of the slack of an IPU.
pub const IPU_SLACK: &str = "mean slack of its working cycles: how much later they could end \
    without delaying the end of the run";
/// The meaning of the waits of an IPU.
pub const WAITS: &str = "cycles in which it waits for others";
/// The meaning of the lead of an IPU.
pub const LEAD: &str = "how much later than the next IPU it arrives where the critical path waits \
    for it, summed: the most that making this IPU alone faster can gain";
