//! Sizes beside the nearest that can be cut into parts.

use crate::poplin::{ConvParams, FieldDim};

/// Most channels that a vertex takes at a time: sizes that are multiples of it have serial splits
/// and need no padding on the tiles.
const GRAIN: u64 = 16;

/// The problem with the channels, and the rows of a matrix product, rounded up to whole grains;
/// `None` where they are, or are fewer than one.
pub(crate) fn in_whole_grains(params: &ConvParams) -> Option<ConvParams> {
    let round = |size: u64| if size < GRAIN { size } else { size.next_multiple_of(GRAIN) };
    let product = params.dims.iter().all(|dim| *dim == FieldDim::new(1, 1));
    let whole = ConvParams {
        batch: if product { round(params.batch) } else { params.batch },
        in_channels: round(params.in_channels),
        out_channels: round(params.out_channels),
        ..params.clone()
    };
    (whole != *params).then_some(whole)
}
