//! Nearby sizes that can be split into more parts.

use crate::poplin::{ConvParams, FieldDim};

/// Maximum number of channels that a vertex processes at a time. Sizes that are multiples of it
/// have serial splits and need no padding on the tiles.
const GRAIN: u64 = 16;

/// Returns the problem with the channels, and the rows of a matrix product, rounded up to whole
/// grains. `None` if they are whole, or are smaller than one grain.
pub(crate) fn in_whole_grains(params: &ConvParams) -> Option<ConvParams> {
    let product = params.dims.iter().all(|dim| *dim == FieldDim::new(1, 1));
    let whole = ConvParams {
        batch: if product { rounded(params.batch) } else { params.batch },
        in_channels: rounded(params.in_channels),
        out_channels: rounded(params.out_channels),
        ..params.clone()
    };
    if whole == *params { None } else { Some(whole) }
}

/// Rounds a size up to whole grains, unless it is smaller than one.
fn rounded(size: u64) -> u64 {
    if size < GRAIN { size } else { size.next_multiple_of(GRAIN) }
}
