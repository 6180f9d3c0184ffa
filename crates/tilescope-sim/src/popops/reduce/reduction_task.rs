//! Reduction on a tile of the partial results of others.

use super::region_reduction::{RegionOperands, RegionReduction};
use crate::poputil::split_regions;
use crate::poputil::split_regions::SplitBounds;
use crate::targets::WORKERS;
use std::ops::Range;
use tilescope_report::units::TileId;

/// Columns that a tile reduces from some source tiles.
pub(crate) struct ReductionTask {
    pub columns: Range<u64>,
    pub sources: Vec<TileId>,
}

impl ReductionTask {
    pub(crate) fn width(&self) -> u64 {
        self.columns.end - self.columns.start
    }
}

/// Number of tiles other than `tile` that send to it. Data that one of them sends for adjacent
/// columns are contiguous and form one message.
pub(crate) fn senders(duties: &[ReductionTask], tile: TileId) -> u64 {
    let mut sources: Vec<TileId> = duties.iter().flat_map(|duty| &duty.sources).copied().collect();
    sources.sort_unstable();
    sources.dedup();
    sources.len() as u64 - u64::from(sources.binary_search(&tile).is_ok())
}

/// Regions of one tile in the last stage. If all tasks are alike, they form one stretch of rows.
pub(crate) fn final_regions(duties: &[ReductionTask], grain: u64) -> Vec<RegionReduction> {
    let ranges: Vec<Range<u64>> = duties.iter().map(|duty| duty.columns.clone()).collect();
    let bounds = SplitBounds { grain, most: WORKERS, least: 1 };
    let mut parts: Vec<(Range<u64>, u64)> = Vec::new();
    for columns in split_regions::split_regions(&ranges, bounds).into_iter().flatten() {
        let at = ranges.partition_point(|range| range.end <= columns.start);
        parts.push((columns, duties[at].sources.len() as u64));
    }
    // Sources can be received side by side, as rows of one stretch, only if they send equal numbers
    // of rows of whole grains.
    let alike = parts.iter().all(|(columns, rows)| {
        *rows == parts[0].1 && (columns.end - columns.start).is_multiple_of(grain)
    });
    let stride = parts.iter().map(|(columns, _)| columns.end - columns.start).sum();
    let mut offset = 0;
    parts
        .into_iter()
        .map(|(columns, rows)| {
            let outputs = columns.end - columns.start;
            let at = offset;
            offset += outputs;
            let region = RegionReduction::of_pieces(columns, rows);
            if alike {
                RegionReduction {
                    operands: RegionOperands::Regular { offset: at, stride },
                    ..region
                }
            } else {
                region
            }
        })
        .collect()
}
