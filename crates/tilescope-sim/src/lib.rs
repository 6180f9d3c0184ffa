//! The IPU simulator: model + target + options in, report out.

// A silently truncated figure is a wrong figure. Tests only count small things.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod balance;
pub mod compile;
pub mod cost_constants;
pub mod custom;
mod enough_ipus;
pub mod error_bands;
pub mod graph;
pub mod graph_lowering;
mod memory_proportion;
pub mod model;
pub mod onnx;
pub mod operators;
pub mod poplar;
pub mod poplin;
pub mod popnn;
pub mod popops;
pub(crate) mod poputil;
pub mod run;
pub(crate) mod schedule;
pub mod sensitivity;
pub mod shape;
mod simulation;
pub(crate) mod spec_keys;
pub mod specification;
pub mod targets;
pub mod validate;

pub use balance::{BalancedSplit, BalancedStage, balance};
pub use enough_ipus::{MoreIpus, changes_for_ipus, enough_ipus};
pub use simulation::{
    LaneCycleSums, MOST_RECORDS, ProgramFigures, RunForecast, SimulateError, Simulation, compile,
    simulate,
};
