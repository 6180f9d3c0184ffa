//! From operations to what tiles do: mapping, exchange, rearrangement, variables, code, memory.

pub mod allocate;
pub mod alone;
pub mod code;
pub mod collective;
pub mod constants;
mod context;
pub mod conv;
mod dither;
pub mod dot_products;
pub mod elementwise;
pub mod embedding;
pub mod exchange;
pub mod layout;
pub mod pool;
pub mod products;
pub mod rearrange;
pub mod recurrent;
pub mod reduce;
pub mod runs;
mod serialise;
pub mod split;
pub mod stencil;
pub mod work;

pub use context::{Lives, LowerError, Lowered, Lowering, PlanningOptions};
pub use serialise::{CutDim, Serialisation};
