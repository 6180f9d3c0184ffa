//! The mark that is chosen, or the block of marks.

use serde::{Deserialize, Serialize};
use tilescope_analysis::trace::{MarkBlock, MarkPlace, MarkRowId};
use tilescope_report::units::CycleRange;

/// Some consecutive marks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SelectedMark {
    pub row: MarkRowId,
    /// Place of the first one in the row.
    pub first: u64,
    /// How many they are.
    pub count: u64,
    /// The cycles that they cover.
    pub range: CycleRange,
}

impl SelectedMark {
    pub(crate) fn from_block(row: MarkRowId, block: &MarkBlock) -> Self {
        Self { row, first: block.first, count: block.count, range: block.range }
    }

    pub(crate) fn from_place(row: MarkRowId, place: &MarkPlace) -> Self {
        Self { row, first: place.first, count: 1, range: place.range }
    }
}
