//! Strategies that choose the changes to try.

pub mod difference;
pub mod explain;
mod fit_levers;
pub mod grid;
pub mod guided;
pub mod levers;
pub mod moves;
pub mod proposals;
pub mod smallest_fit;
