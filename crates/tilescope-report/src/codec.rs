//! Bytes of blobs: variable-length integers, and a checked, compressed envelope for many of them.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use miniz_oxide::deflate::compress_to_vec_zlib;
use zlib_rs::{Inflate, InflateFlush, Status};

/// A fast level, and within a tenth of the best: the columns are already near their entropy.
const COMPRESSION_LEVEL: u8 = 4;
/// The largest window of the format. It can read every blob.
const WINDOW_BITS: u8 = 15;
/// The initial size of the output buffer in compressed sizes, and its growth factor afterwards.
const GROWTH: usize = 4;
/// The smallest initial size of the output buffer, in bytes.
const LEAST_ROOM: usize = 64;

/// Appends `value` as LEB128: seven bits per byte, low ones first.
pub(super) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// The difference `value - base`, zigzag encoded: small for either sign.
pub(super) fn difference(value: u64, base: u64) -> u64 {
    let signed = value.wrapping_sub(base) as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The value that lies `difference` away from `base`.
pub(super) fn apply_zigzag_difference(difference: u64, base: u64) -> u64 {
    let signed = (difference >> 1) as i64 ^ -((difference & 1) as i64);
    base.wrapping_add(signed as u64)
}

/// Reads integers one after the other; gives `None` if the bytes end or are malformed.
#[derive(Clone, Copy)]
pub(super) struct VarintReader<'a>(&'a [u8]);

impl<'a> VarintReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<u64> {
        match self.0.split_first()? {
            // The usual case needs no loop.
            (&byte, rest) if byte < 0x80 => {
                self.0 = rest;
                Some(u64::from(byte))
            }
            _ => self.take_long(),
        }
    }

    /// The next integer, of several bytes.
    fn take_long(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut bytes = self.0.iter();
        // Ten bytes of seven bits: the longest encoding of 64 bits.
        for shift in (0..70u32).step_by(7) {
            let &byte = bytes.next()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                self.0 = bytes.as_slice();
                return Some(value);
            }
        }
        None
    }

    /// Skips `count` integers.
    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        let Some(before_last) = count.checked_sub(1) else { return Some(()) };
        let mut last_bytes = self.0.iter().enumerate().filter(|(_, byte)| **byte < 0x80);
        let (end, _) = last_bytes.nth(before_last)?;
        self.bytes(end + 1).map(|_| ())
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    /// The number of unread bytes.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }

    /// True if all bytes are read.
    pub(super) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

/// Compresses `raw` and adds a checksum.
pub(super) fn pack(raw: &[u8]) -> Vec<u8> {
    compress_to_vec_zlib(raw, COMPRESSION_LEVEL)
}

/// The bytes given to [`pack`]. Gives `None` if the packed bytes were changed since, or unpack to
/// more than `limit` bytes.
pub(super) fn unpack(packed: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut inflate = Inflate::new(true, WINDOW_BITS);
    let mut raw = Vec::new();
    let mut read = 0;
    let mut written = 0;
    loop {
        let room = raw.len().max(packed.len()).max(LEAST_ROOM).saturating_mul(GROWTH).min(limit);
        raw.resize(room, 0);
        let rest = packed.get(read..)?;
        let free = raw.get_mut(written..)?;
        let status = inflate.decompress(rest, free, InflateFlush::Finish).ok()?;
        read = usize::try_from(inflate.total_in()).ok()?;
        written = usize::try_from(inflate.total_out()).ok()?;
        if status == Status::StreamEnd {
            raw.truncate(written);
            return Some(raw);
        }
        // A stream that does not end must at least have filled the buffer; a truncated one has not.
        if written != room || room >= limit {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_trip() {
        let values = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        values.iter().for_each(|&value| write_varint(&mut bytes, value));
        let mut cursor = VarintReader::new(&bytes);
        for (passed, &value) in values.iter().enumerate() {
            let mut behind = VarintReader::new(&bytes);
            assert_eq!(behind.skip(passed), Some(()));
            assert_eq!((cursor.take(), behind.take()), (Some(value), Some(value)));
        }
        assert!(cursor.is_done() && cursor.take().is_none() && cursor.skip(1).is_none());
    }

    #[test]
    fn differences_are_small_and_round_trip() {
        for (value, base) in [(5, 3), (3, 5), (0, u64::MAX), (u64::MAX, 0), (1 << 63, 0)] {
            assert_eq!(apply_zigzag_difference(difference(value, base), base), value);
        }
        assert_eq!((difference(5, 5), difference(4, 5), difference(6, 5)), (0, 1, 2));
    }

    #[test]
    fn unfinished_integers_are_refused() {
        assert_eq!(VarintReader::new(&[0x80; 12]).take(), None);
        assert_eq!(VarintReader::new(&[0xff]).take(), None);
    }

    #[test]
    fn changed_bytes_are_noticed() {
        let mut packed = pack(&[7; 1000]);
        assert_eq!(unpack(&packed, 1000), Some(vec![7; 1000]));
        assert_eq!(unpack(&packed, 999), None);
        let middle = packed.len() / 2;
        packed[middle] ^= 4;
        assert_ne!(unpack(&packed, 1000), Some(vec![7; 1000]));
    }
}
