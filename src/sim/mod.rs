//! The IPU simulator: model + target + options in, report out.

pub mod graph;
pub mod lower;
pub mod planner;
pub mod targets;
