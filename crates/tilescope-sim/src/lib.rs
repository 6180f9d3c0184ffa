//! The IPU simulator: model + target + options in, report out.

pub mod compile;
mod emit;
pub mod graph;
pub mod graph_lowering;
pub mod lower;
pub mod model;
pub mod ops;
pub mod planner;
pub mod run;
pub(crate) mod schedule;
pub mod shape;
pub mod spec;
pub mod targets;
pub mod validate;

pub use emit::{SimulateError, simulate};
