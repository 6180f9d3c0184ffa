//! How tensors lie on the tiles, as poputil maps them.

pub(crate) mod shape_hash;
pub(crate) mod split_regions;
pub(crate) mod tensor_layout;
