//! Operations with vertices that a user writes.

pub(crate) mod custom_mat_vec;
pub mod stencil;
