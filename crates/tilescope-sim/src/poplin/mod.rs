//! Matrix products and convolutions of poplin: plans, vertex costs, and lowering.

pub(crate) mod canonical;
pub mod conv;
pub(crate) mod estimate;
pub(crate) mod index_ranges;
pub mod matmul;
pub(crate) mod params;
mod plan_cache;
mod plan_selection;
pub mod planner;

pub use params::{ConvParams, FieldDim, OperandTransform, OutputTransform, PlanError};
pub use plan_cache::PlanCache;
