//! Numbers of lanes, which are part of the keys of their pieces.

use crate::limits::{MAX_IPUS, MAX_REPLICAS, MAX_SUB_LANES};
use crate::units::{IpuId, ReplicaClassId, ReplicaIpu};

/// The number of lanes of one class of replicas.
const LANES_OF_CLASS: u32 = MAX_IPUS * MAX_SUB_LANES as u32;

/// Number of a lane in keys: by class of replicas, IPU, then sub-lane, with space for later
/// additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneNumber(u32);

impl LaneNumber {
    /// Key of the first chunk of the other classes of replicas.
    pub(super) const FIRST_OF_OTHERS: i64 = (LANES_OF_CLASS as i64) << 40;

    pub(crate) fn new(class: ReplicaClassId, ipu: IpuId, sub_lane: u8) -> Self {
        debug_assert!(class.0 < MAX_REPLICAS && ipu.0 < MAX_IPUS, "checked by the writer");
        Self(class.0 * LANES_OF_CLASS + ipu.0 * u32::from(MAX_SUB_LANES) + u32::from(sub_lane))
    }

    /// The number as in the file.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The lane with a number in a file; `None` if no lane has it.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        if number / LANES_OF_CLASS < MAX_REPLICAS { Some(Self(number)) } else { None }
    }

    /// The IPU and the replicas of the lane.
    pub(crate) fn at(self) -> ReplicaIpu {
        ReplicaIpu { class: self.class(), ipu: self.ipu() }
    }

    pub(crate) fn class(self) -> ReplicaClassId {
        ReplicaClassId(self.0 / LANES_OF_CLASS)
    }

    pub(crate) fn ipu(self) -> IpuId {
        IpuId(self.0 % LANES_OF_CLASS / u32::from(MAX_SUB_LANES))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a remainder by 8")]
    pub(crate) fn sub_lane(self) -> u8 {
        (self.0 % u32::from(MAX_SUB_LANES)) as u8
    }

    /// Key of a chunk: the lane, then its index on it.
    pub(super) fn chunk_key(self, chunk: u64) -> i64 {
        // Keys sort by lane, then index, so SQLite stores the pieces of a lane together.
        (i64::from(self.0) << 40) | chunk as i64
    }

    /// Key of a block of nodes or of a segment: the lane, the level, then its index on it.
    pub(super) fn block_key(self, level: u32, block: u64) -> i64 {
        (i64::from(self.0) << 40) | (i64::from(level) << 32) | block as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_identifies_its_lane() {
        for class in [0, 1, MAX_REPLICAS - 1] {
            for ipu in [0, 7, MAX_IPUS - 1] {
                for sub_lane in [0, 1, MAX_SUB_LANES - 1] {
                    let (class, ipu) = (ReplicaClassId(class), IpuId(ipu));
                    let lane = LaneNumber::new(class, ipu, sub_lane);
                    assert_eq!((lane.class(), lane.ipu(), lane.sub_lane()), (class, ipu, sub_lane));
                    assert!(lane.chunk_key(0) >= 0, "keys are positive");
                }
            }
        }
    }
}
