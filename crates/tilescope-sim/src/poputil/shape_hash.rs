//! Tiles that depend on a shape: what is small would else begin at tile 0 every time.

/// What a hash of a shape begins as: 2^32 divided by the golden ratio (poplibs
/// lib/poplin/ConvPlan.cpp getStartTile, lib/poputil/Util.cpp createBroadcastOperand).
const SEED: u64 = 0x9e37_79b9;

/// A hash of sizes.
pub(crate) fn hash(sizes: impl IntoIterator<Item = u64>) -> u64 {
    sizes.into_iter().fold(SEED, combined)
}

/// The one of so many places that a hash stands for.
#[expect(clippy::cast_possible_truncation, reason = "a remainder is below its divisor")]
pub(crate) fn place(hash: u64, places: u32) -> u32 {
    (hash % u64::from(places)) as u32
}

/// `boost::hash_combine` of 64 bits: a step of MurmurHash2 (boost/container_hash/hash.hpp).
fn combined(hash: u64, value: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let value = value.wrapping_mul(FACTOR);
    let value = (value ^ value >> 47).wrapping_mul(FACTOR);
    (hash ^ value).wrapping_mul(FACTOR).wrapping_add(0xe654_6b64)
}
