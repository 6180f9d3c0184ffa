//! How tensors lie on the tiles, as poputil maps them.

pub(crate) mod element_order;
mod index_counts;
pub(crate) mod shape_hash;
mod shaped_memory;
pub(crate) mod split_regions;
pub(crate) mod tensor_layout;

/// So many things as the length of a list; what no address reaches is longer than any list.
pub(crate) fn list_length(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
