//! Operations of popops: element-wise, reductions, multi-slices, collectives, and the copies
//! between layouts.

pub(crate) mod collective;
pub(crate) mod elementwise;
pub mod embedding;
pub(crate) mod planner_cycles;
pub(crate) mod rearrange;
pub mod reduce;
pub(crate) mod rows;
