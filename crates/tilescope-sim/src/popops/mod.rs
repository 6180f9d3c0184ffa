//! Operations of popops: elementwise, reductions, multi-slices, collectives, and the copies between
//! layouts.

mod broadcast;
pub(crate) mod collective;
pub(crate) mod elementwise;
pub mod multi_slice;
pub(crate) mod one_hot;
pub(crate) mod planner_cycles;
pub(crate) mod rearrange;
pub mod reduce;
pub(crate) mod relayout;
pub(crate) mod rows;
pub(crate) mod top_k;
pub(crate) mod transpose;
