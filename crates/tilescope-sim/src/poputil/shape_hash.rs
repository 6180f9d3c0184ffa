//! Tiles chosen by a hash of a shape. Without it, every small tensor would begin at tile 0.

/// Initial value of the hash of a shape: 2^32 divided by the golden ratio (poplibs
/// lib/poplin/ConvPlan.cpp getStartTile, lib/poputil/Util.cpp createBroadcastOperand).
const SEED: u64 = 0x9e37_79b9;

/// Returns a hash of sizes.
pub(crate) fn hash(sizes: impl IntoIterator<Item = u64>) -> u64 {
    sizes.into_iter().fold(SEED, combined)
}

/// Maps a hash to one of `places` positions.
#[expect(clippy::cast_possible_truncation, reason = "a remainder is below its divisor")]
pub(crate) fn place(hash: u64, places: u32) -> u32 {
    (hash % u64::from(places)) as u32
}

/// Combines two 64-bit hashes like `boost::hash_combine`, with a step of MurmurHash2
/// (boost/container_hash/hash.hpp).
fn combined(hash: u64, value: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let value = value.wrapping_mul(FACTOR);
    let value = (value ^ value >> 47).wrapping_mul(FACTOR);
    (hash ^ value).wrapping_mul(FACTOR).wrapping_add(0xe654_6b64)
}
