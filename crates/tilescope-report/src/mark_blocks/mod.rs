//! Marks of long runs in counted blocks, so that a row of them can be shown at any zoom without
//! reading every mark.
//!
//! A fine block counts up to 64 marks of a row, a coarse one up to 64 fine ones. The coarse blocks
//! of a row are stored in one piece, which a reader loads. The fine blocks of a coarse one are read
//! when the view zooms in on it, and the marks when it zooms in on a fine block.

mod block;
mod block_list;
mod full_slots;
mod row_blocks;

pub use block::{MarkBlock, MarkRowId, PassCycles};
pub(crate) use block_list::decode;
pub(crate) use full_slots::decode as decode_full_slots;
pub use full_slots::{CountedMarks, PhaseRanges, is_ramp};
pub(crate) use row_blocks::{FinePiece, MarkRowBlocks};
