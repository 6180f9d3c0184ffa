//! The distribution of step lengths in few numbers: counts by length, finer for short lengths.
//!
//! Lengths below 16 cycles have a bucket each, and every power of two above is divided into eight
//! equal ones, so that a quantile read from a bucket is at most an eighth too long. The shortest
//! and the longest length are exact.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::codec::{VarintReader, write_varint};
use crate::limits::MAX_CYCLES;
use std::ops::RangeInclusive;

/// Number of bits below the highest one of a length that select the bucket.
const SUB_BUCKET_BITS: u32 = 3;
/// Lengths below this have a bucket each.
const EXACT_BELOW: u64 = 2 << SUB_BUCKET_BITS;

/// Lengths of steps in cycles, counted in buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHistogram {
    /// Buckets that are not empty, in order, with the number of lengths in each.
    buckets: Vec<(u16, u64)>,
    min: u64,
    max: u64,
}

impl LogHistogram {
    /// Counts a length.
    pub fn count(&mut self, length: u64) {
        self.count_times(length, 1);
    }

    /// Counts a length `times` times.
    pub fn count_times(&mut self, length: u64, times: u64) {
        if times > 0 {
            self.widen(length, length);
            self.add_to_bucket(bucket(length), times);
        }
    }

    /// Number of lengths counted.
    pub fn total(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds the lengths of other steps.
    pub fn add(&mut self, other: &Self) {
        if !other.buckets.is_empty() {
            self.widen(other.min, other.max);
        }
        for (bucket, count) in &other.buckets {
            self.add_to_bucket(*bucket, *count);
        }
    }

    /// The shortest length; `None` if there are none.
    pub fn shortest(&self) -> Option<u64> {
        if self.buckets.is_empty() { None } else { Some(self.min) }
    }

    /// The longest length; `None` if there are none.
    pub fn longest(&self) -> Option<u64> {
        if self.buckets.is_empty() { None } else { Some(self.max) }
    }

    /// Lengths of each bucket that is not empty, and their number, from short to long.
    pub fn iter(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        self.buckets().map(|(lengths, count)| {
            ((*lengths.start()).max(self.min)..=(*lengths.end()).min(self.max), count)
        })
    }

    /// The limits of each bucket that is not empty, and the number of lengths in it.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        self.buckets.iter().map(|(bucket, count)| (lengths(*bucket), *count))
    }

    /// A length that this percentage of all lengths does not exceed, less than an eighth above the
    /// smallest such length.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let all: u128 = self.buckets.iter().map(|(_, count)| u128::from(*count)).sum();
        let rank = (all * u128::from(percent)).div_ceil(100).max(1);
        let mut before = 0u128;
        self.iter().find_map(|(lengths, count)| {
            before += u128::from(count);
            if before >= rank { Some(*lengths.end()) } else { None }
        })
    }

    fn widen(&mut self, shortest: u64, longest: u64) {
        let empty = self.buckets.is_empty();
        self.min = if empty { shortest } else { self.min.min(shortest) };
        self.max = self.max.max(longest);
    }

    fn add_to_bucket(&mut self, bucket: u16, count: u64) {
        // Steps of a program have few lengths: a list of two or three is searched faster than any
        // other structure.
        match self.buckets.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(at) => {
                if let Some((_, sum)) = self.buckets.get_mut(at) {
                    *sum = sum.saturating_add(count);
                }
            }
            Err(at) => self.buckets.insert(at, (bucket, count)),
        }
    }

    /// Appends the histogram to a blob.
    pub(super) fn write(&self, raw: &mut Vec<u8>) {
        write_varint(raw, self.buckets.len() as u64);
        write_varint(raw, self.min);
        write_varint(raw, self.max - self.min);
        let mut before = 0;
        for (bucket, count) in &self.buckets {
            write_varint(raw, u64::from(bucket - before));
            write_varint(raw, *count);
            before = *bucket;
        }
    }

    /// The next histogram of a blob, if it is sound and counts `steps` lengths.
    pub(super) fn read(cursor: &mut VarintReader<'_>, steps: u64) -> Option<Self> {
        let count = cursor.take()?;
        let min = cursor.take()?;
        let max = min.checked_add(cursor.take()?)?;
        let most = u64::from(bucket(MAX_CYCLES.0)) + 1;
        if count == 0 || count > most || max > MAX_CYCLES.0 {
            return None;
        }
        let mut read = Self { buckets: Vec::new(), min, max };
        let mut at = 0u64;
        let mut counted = 0u64;
        for _ in 0..count {
            at = at.checked_add(cursor.take()?)?;
            let next = u16::try_from(at).ok().filter(|_| at < most)?;
            let ascends = read.buckets.last().is_none_or(|(last, _)| *last < next);
            let lengths = cursor.take()?;
            counted = counted.checked_add(lengths)?;
            if !ascends || lengths == 0 {
                return None;
            }
            read.buckets.push((next, lengths));
        }
        let ends = read.buckets.first().zip(read.buckets.last());
        let fits =
            ends.is_some_and(|(first, last)| first.0 == bucket(min) && last.0 == bucket(max));
        if fits && counted == steps { Some(read) } else { None }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<(u16, u64)>()
    }
}

/// The bucket of a length.
#[expect(clippy::cast_possible_truncation, reason = "64 powers of two with eight buckets each")]
pub(super) fn bucket(length: u64) -> u16 {
    if length < EXACT_BELOW {
        return length as u16;
    }
    let power = length.ilog2();
    let sub = (length >> (power - SUB_BUCKET_BITS)) & ((1 << SUB_BUCKET_BITS) - 1);
    // The first divided power begins after the buckets of single lengths.
    (EXACT_BELOW as u32 + ((power - SUB_BUCKET_BITS - 1) << SUB_BUCKET_BITS) + sub as u32) as u16
}

/// The range of lengths of a bucket.
pub(super) fn lengths(bucket: u16) -> RangeInclusive<u64> {
    let bucket = u64::from(bucket);
    let Some(above) = bucket.checked_sub(EXACT_BELOW) else { return bucket..=bucket };
    let shift = (above >> SUB_BUCKET_BITS) + 1;
    let sub = above & ((1 << SUB_BUCKET_BITS) - 1);
    let first = ((1 << SUB_BUCKET_BITS) + sub) << shift;
    first..=first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn histogram(values: &[u64]) -> LogHistogram {
        let mut counted = LogHistogram::default();
        values.iter().for_each(|value| counted.count(*value));
        counted
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let mut next = 0;
        for bucket in 0..super::bucket(MAX_CYCLES.0) {
            let lengths = lengths(bucket);
            assert_eq!(*lengths.start(), next, "bucket {bucket}");
            assert_eq!(super::bucket(*lengths.start()), bucket);
            assert_eq!(super::bucket(*lengths.end()), bucket);
            next = lengths.end() + 1;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn percentiles_are_an_eighth_too_long_at_most(
            mut values in prop::collection::vec(0u64..1 << 40, 1..200),
            percent in 1u64..=100,
        ) {
            let counted = histogram(&values);
            values.sort_unstable();
            let exact = values[(values.len() * percent as usize).div_ceil(100) - 1];
            let found = counted.percentile(percent).expect("there are some");
            prop_assert!(exact <= found && found <= exact + exact / 8, "{found} for {exact}");
            prop_assert_eq!(counted.shortest(), values.first().copied());
            prop_assert_eq!(counted.longest(), values.last().copied());
        }

        #[test]
        fn parts_add_up_and_round_trip(
            first in prop::collection::vec(0u64..1 << 40, 0..50),
            second in prop::collection::vec(0u64..1 << 20, 1..50),
        ) {
            let mut sum = histogram(&first);
            sum.add(&histogram(&second));
            let all: Vec<u64> = first.iter().chain(&second).copied().collect();
            prop_assert_eq!(&sum, &histogram(&all));
            let mut raw = Vec::new();
            sum.write(&mut raw);
            let mut cursor = VarintReader::new(&raw);
            prop_assert_eq!(LogHistogram::read(&mut cursor, all.len() as u64), Some(sum));
            prop_assert!(cursor.is_done());
        }

        #[test]
        fn any_bytes_are_a_histogram_or_nothing(raw in prop::collection::vec(any::<u8>(), 0..60)) {
            let steps = raw.len() as u64;
            if let Some(read) = LogHistogram::read(&mut VarintReader::new(&raw), steps) {
                prop_assert!(read.percentile(50) <= read.longest());
            }
        }
    }
}
