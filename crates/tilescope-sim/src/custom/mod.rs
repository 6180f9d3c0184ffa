//! Operations whose vertices a user writes.

pub(crate) mod dot_products;
pub mod stencil;
