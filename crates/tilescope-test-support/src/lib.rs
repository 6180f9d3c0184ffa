//! Helpers for tests and benchmarks that need the simulator: cached reports of simulations, and
//! single operations.

pub mod operations;
pub mod reports;
