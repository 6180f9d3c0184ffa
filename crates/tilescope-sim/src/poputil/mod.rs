//! How tensors lie on the tiles, as poputil maps them.

pub(crate) mod dither;
pub(crate) mod layout;
pub(crate) mod split;
