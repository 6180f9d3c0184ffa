//! Marks of long runs in counted blocks, so that a row of them is shown at any zoom without reading
//! every mark.
//!
//! A fine block counts up to 64 marks of a row, a coarse one up to 64 fine ones. The coarse blocks of
//! a row lie in one piece, which a reader loads; the fine ones of a coarse block are read where that
//! is looked at closely, and marks where a fine block is.

mod block;
mod block_list;
mod row_blocks;

pub use block::{MarkBlock, MarkRowId, PassCycles};
pub(crate) use block_list::decode;
pub(crate) use row_blocks::{FinePiece, MarkRowBlocks};
