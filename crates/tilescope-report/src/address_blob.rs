//! The addresses of the parts of a variable, as one blob.
//!
//! The variables that an allocator places before another one differ from tile to tile. The parts
//! of a variable therefore start at hundreds of addresses, although they have only two or three
//! sizes. As rows, they would make up most of a report. A blob is a list of strided runs in the
//! order of their first tiles. Each run has three or five integers: the tiles since the first tile
//! of the previous run; twice the length, plus one if there are several runs; in that case also the
//! excess of their distance over that length, and their number; and the difference to the previous
//! address.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::codec::{VarintReader, apply_zigzag_difference, difference, write_varint};
use super::strided_tile_runs::{StridedTileRuns, strided_runs_of};
use crate::units::{Bytes, TileId, TileRuns};

/// The blob of the addresses of a variable, with tiles counted from `base`, which is at most the
/// first tile.
pub(super) fn encode(addresses: &TileRuns<Bytes>, base: TileId) -> Vec<u8> {
    let mut out = Vec::new();
    let mut first = base;
    let mut before = Bytes::ZERO;
    for (strided, address) in strided_runs_of(addresses) {
        let several = strided.repeats > 1;
        write_varint(&mut out, u64::from(strided.first - first));
        write_varint(&mut out, u64::from(strided.run_length) << 1 | u64::from(several));
        if several {
            write_varint(&mut out, u64::from(strided.stride - strided.run_length));
            write_varint(&mut out, u64::from(strided.repeats));
        }
        write_varint(&mut out, difference(address.0, before.0));
        (first, before) = (strided.first, address);
    }
    out
}

/// Decodes the strided runs of a blob and their addresses. Yields `None`, as the last item, where
/// the runs do not fit into `tiles` tiles.
pub(super) fn decode(
    blob: &[u8],
    tiles: u32,
) -> impl Iterator<Item = Option<(StridedTileRuns, Bytes)>> {
    let mut cursor = VarintReader::new(blob);
    let mut first = TileId(0);
    let mut before = Bytes::ZERO;
    let mut broken = false;
    std::iter::from_fn(move || {
        if broken || cursor.is_done() {
            return None;
        }
        let found = decode_next_run(&mut cursor, first, before, tiles);
        match found {
            Some((strided, address)) => (first, before) = (strided.first, address),
            None => broken = true,
        }
        Some(found)
    })
}

fn decode_next_run(
    cursor: &mut VarintReader,
    first: TileId,
    before: Bytes,
    tiles: u32,
) -> Option<(StridedTileRuns, Bytes)> {
    let mut take = || u32::try_from(cursor.take()?).ok();
    let first = first.checked_add(take()?)?;
    let packed = take()?;
    let length = packed >> 1;
    let (every, times) = match packed & 1 {
        0 => (length, 1),
        _ => (length.checked_add(take()?)?, take()?),
    };
    let strided = StridedTileRuns::checked(first, first.checked_add(length)?, every, times, tiles)?;
    Some((strided, Bytes(apply_zigzag_difference(cursor.take()?, before.0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn runs(values: &[Option<Bytes>]) -> TileRuns<Bytes> {
        TileRuns::from_tiles(TileId(0), values.iter().copied())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn addresses_round_trip(values in prop::collection::vec(prop::option::of((0u64..5).prop_map(Bytes)), 0..120)) {
            let tiles = values.len() as u32;
            let mut back = vec![None; values.len()];
            for part in decode(&encode(&runs(&values), TileId(0)), tiles) {
                let (strided, address) = part.expect("strided runs");
                for range in strided.ranges() {
                    back[range.indices()].fill(Some(address));
                }
            }
            prop_assert_eq!(back, values);
        }

        #[test]
        fn any_bytes_are_runs_among_the_tiles(blob in prop::collection::vec(any::<u8>(), 0..60)) {
            for (strided, _) in decode(&blob, 1000).flatten() {
                prop_assert!(strided.last_run_end() <= TileId(1000));
            }
        }
    }
}
