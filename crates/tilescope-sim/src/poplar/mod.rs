//! What Poplar itself does with a program: work of the tiles, exchange, code, memory.

pub(crate) mod allocate;
pub(crate) mod code;
pub mod constants;
pub(crate) mod exchange;
mod lives;
pub(crate) mod runs;
pub mod work;

pub use lives::OperandLiveness;
