//! Sums of the steps of a program by length: one group for each bucket of the distribution of their
//! lengths. A condition on the lengths of steps is decided by groups, unless its limit is between
//! the shortest and the longest step of one.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::log_histogram::{bucket, lengths};
use super::program_totals::ProgramStepTotals;
use crate::codec::{VarintReader, write_varint};
use crate::units::{Bytes, Cycles};

/// Steps of a program whose lengths are in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthGroup {
    /// Length of the shortest of them.
    pub shortest: Cycles,
    /// Length of the longest of them.
    pub longest: Cycles,
    pub steps: u64,
    /// Sum of their lengths.
    pub cycles: Cycles,
    /// Sum of the bytes that they move.
    pub bytes_moved: Bytes,
}

impl LengthGroup {
    /// `times` equal steps.
    pub(super) fn of_equal(length: Cycles, bytes_moved: Bytes, times: u64) -> Self {
        Self {
            shortest: length,
            longest: length,
            steps: times,
            cycles: length.saturating_mul(times),
            bytes_moved: bytes_moved.saturating_mul(times),
        }
    }

    fn add(&mut self, other: &Self) {
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
        self.steps = self.steps.saturating_add(other.steps);
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
    }
}

/// Groups of the steps of a program, from short to long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LengthGroups(Vec<LengthGroup>);

impl LengthGroups {
    /// All groups; none if they were not read.
    pub(super) fn groups(&self) -> &[LengthGroup] {
        &self.0
    }

    /// Adds steps whose lengths are in one bucket.
    pub(super) fn add(&mut self, group: &LengthGroup) {
        let wanted = bucket(group.shortest.0);
        // Steps of a program have few lengths.
        match self.0.binary_search_by_key(&wanted, |known| bucket(known.shortest.0)) {
            Ok(at) => {
                if let Some(known) = self.0.get_mut(at) {
                    known.add(group);
                }
            }
            Err(at) => self.0.insert(at, *group),
        }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * size_of::<LengthGroup>()
    }

    /// Appends the groups to a blob. A reader knows their buckets, with the number of steps in each.
    pub(super) fn write(&self, raw: &mut Vec<u8>) {
        for group in &self.0 {
            let first = *lengths(bucket(group.shortest.0)).start();
            write_varint(raw, group.shortest.0 - first);
            write_varint(raw, (group.longest - group.shortest).0);
            if group.longest > group.shortest {
                let least = group.shortest.saturating_mul(group.steps);
                write_varint(raw, group.cycles.saturating_sub(least).0);
            }
            write_varint(raw, group.bytes_moved.0);
        }
    }

    /// The next groups of a blob, if they are sound and have the sums of `totals`.
    pub(super) fn read(cursor: &mut VarintReader<'_>, totals: &ProgramStepTotals) -> Option<Self> {
        let mut groups = Vec::new();
        for (lengths, steps) in totals.lengths.buckets() {
            let shortest = lengths.start().checked_add(cursor.take()?)?;
            let longest = shortest.checked_add(cursor.take()?)?;
            let least = shortest.checked_mul(steps)?;
            let more = if longest > shortest { cursor.take()? } else { 0 };
            let cycles = least.checked_add(more)?;
            if !lengths.contains(&longest) || cycles > longest.checked_mul(steps)? {
                return None;
            }
            groups.push(LengthGroup {
                shortest: Cycles(shortest),
                longest: Cycles(longest),
                steps,
                cycles: Cycles(cycles),
                bytes_moved: Bytes(cursor.take()?),
            });
        }
        let ends = groups.first()?.shortest.0..=groups.last()?.longest.0;
        let fits = totals.lengths.shortest() == Some(*ends.start())
            && totals.lengths.longest() == Some(*ends.end());
        let mut cycles = Cycles::ZERO;
        let mut bytes = Bytes::ZERO;
        for group in &groups {
            cycles = cycles.saturating_add(group.cycles);
            bytes = bytes.saturating_add(group.bytes_moved);
        }
        if fits && cycles == totals.cycles && bytes == totals.bytes_moved {
            Some(Self(groups))
        } else {
            None
        }
    }
}
