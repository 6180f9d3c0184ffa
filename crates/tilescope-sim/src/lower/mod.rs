//! From operations to what tiles do: mapping, exchange, rearrangement, variables, code, memory.

pub(crate) mod allocate;
pub mod alone;
pub(crate) mod code;
pub(crate) mod collective;
pub mod constants;
mod context;
pub mod conv;
mod dither;
pub(crate) mod dot_products;
pub(crate) mod elementwise;
pub mod embedding;
pub(crate) mod exchange;
pub(crate) mod layout;
pub mod pool;
pub(crate) mod products;
pub(crate) mod rearrange;
pub(crate) mod recurrent;
pub mod reduce;
pub(crate) mod runs;
mod serialise;
pub(crate) mod split;
pub mod stencil;
pub mod work;

pub use context::{Lives, LowerError, Lowered, Lowering};
