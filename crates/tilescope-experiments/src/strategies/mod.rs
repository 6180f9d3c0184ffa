//! Strategies that choose the changes to try.

pub mod difference;
pub mod explain;
pub mod grid;
pub mod guided;
pub mod levers;
pub mod moves;
pub mod proposals;
