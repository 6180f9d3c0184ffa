//! Helpers of tests and benchmarks that need the simulator: reports that are simulated once, and
//! single operations.

pub mod operations;
pub mod reports;
