//! From operations to what tiles do: mapping, exchange, rearrangement, variables, code.

pub mod constants;
pub mod conv;
pub mod work;
