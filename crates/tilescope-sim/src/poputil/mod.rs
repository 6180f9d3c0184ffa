//! Layouts of tensors on tiles, as poputil maps them.

pub(crate) mod axis_pieces;
pub(crate) mod element_order;
mod index_counts;
pub(crate) mod rearranged_blocks;
pub(crate) mod shape_hash;
mod shaped_memory;
pub(crate) mod split_regions;
pub(crate) mod tensor_layout;

/// Converts a count to the length of a list. Counts beyond the address range exceed the length of
/// every list.
pub(crate) fn list_length(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
