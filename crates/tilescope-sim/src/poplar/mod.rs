//! Parts of a program that Poplar itself determines: work of the tiles, exchange, code, memory.

pub(crate) mod allocate;
pub(crate) mod code_bytes;
pub(crate) mod exchange;
mod operand_liveness;
pub(crate) mod routes;
pub(crate) mod tile_runs;
pub mod work;

pub use operand_liveness::OperandLiveness;
