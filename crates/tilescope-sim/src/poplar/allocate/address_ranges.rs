//! Sets of addresses in use on a tile.

use tilescope_report::units::Bytes;

/// Alignment of variables: the width of a load.
pub(super) const ALIGNMENT: Bytes = Bytes(8);

/// Addresses of variables, as ranges that neither overlap nor touch, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressRanges(Vec<AddressRange>);

#[derive(Clone, Copy, Debug)]
struct AddressRange {
    start: Bytes,
    end: Bytes,
}

impl AddressRanges {
    /// Adds the addresses of a variable, up to the next one at which another may begin.
    pub(super) fn insert(&mut self, start: Bytes, size: Bytes) {
        let mut range = AddressRange { start, end: (start + size).next_multiple_of(ALIGNMENT) };
        let first = self.0.partition_point(|other| other.end < range.start);
        let behind = self.0.partition_point(|other| other.start <= range.end);
        if let [joined, ..] = &self.0[first..behind] {
            range.start = range.start.min(joined.start);
        }
        if let [.., joined] = &self.0[first..behind] {
            range.end = range.end.max(joined.end);
        }
        self.0.splice(first..behind, [range]);
    }

    /// First address from `lowest` on at which `size` bytes are free. `lowest` is aligned.
    fn first_gap(&self, lowest: Bytes, size: Bytes) -> Bytes {
        let mut offset = lowest;
        let first = self.0.partition_point(|range| range.end <= lowest);
        for range in &self.0[first..] {
            if offset + size <= range.start {
                break;
            }
            offset = range.end;
        }
        offset
    }
}

/// First address from `lowest` on at which `size` bytes are free in all `sets`. `lowest` is
/// aligned.
pub(super) fn first_common_gap(sets: &[&AddressRanges], lowest: Bytes, size: Bytes) -> Bytes {
    let mut offset = lowest;
    // The number of sets in a row that leave the address free.
    let mut agreed = 0;
    for set in sets.iter().cycle() {
        let gap = set.first_gap(offset, size);
        agreed = if gap == offset { agreed + 1 } else { 1 };
        offset = gap;
        if agreed == sets.len() {
            break;
        }
    }
    offset
}
