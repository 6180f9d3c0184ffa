//! The IPUs that wait for each other at each sync.
//!
//! Hardware has two sync groups. Copies between IPUs use GS1, which contains all IPUs. Copies from
//! and to the host or streaming memory use GS2, which the sync pattern divides (PopART user guide,
//! sync configuration). Copies between replicas join the IPUs of all replicas. Poplar's
//! configurations have no further group for that, so these copies use the group that joins the IPUs
//! that copy (PopART, willow/src/popx/devicexmanager.cpp: `ipuAndAll` of a single pipeline has one
//! group for each IPU and one for all, `intraReplicaAndLadder` one for a replica and one for a side
//! of the ladder).

use crate::specification::SyncPattern;
use tilescope_report::SyncGroupMembers;
use tilescope_report::units::IpuId;

/// The sync groups of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncGroups {
    pattern: SyncPattern,
    gs1: Vec<IpuId>,
    /// The members of the parts of GS2.
    gs2: Vec<Vec<IpuId>>,
}

impl SyncGroups {
    /// Returns the groups of a replica of `ipus` IPUs.
    pub(crate) fn new(pattern: SyncPattern, ipus: u32) -> Self {
        let gs1: Vec<IpuId> = (0..ipus).map(IpuId).collect();
        let gs2 = match pattern {
            SyncPattern::Full => vec![gs1.clone()],
            SyncPattern::SinglePipeline => gs1.iter().map(|ipu| vec![*ipu]).collect(),
            SyncPattern::ReplicaAndLadder => {
                let (even, odd) = gs1.iter().partition(|ipu| ipu.0.is_multiple_of(2));
                let mut sides: Vec<Vec<IpuId>> = vec![even, odd];
                sides.retain(|side| !side.is_empty());
                sides
            }
        };
        debug_assert_eq!(
            gs2.iter().map(Vec::len).sum::<usize>(),
            ipus as usize,
            "every IPU is in one part of GS2"
        );
        Self { pattern, gs1, gs2 }
    }

    /// The IPUs that wait when one of them copies from or to the host.
    pub fn host_sync_group(&self, ipu: IpuId) -> &[IpuId] {
        self.gs2.iter().find(|part| part.contains(&ipu)).map_or(&[], Vec::as_slice)
    }

    /// The IPUs that wait when some of them exchange data with each other or with their
    /// counterparts in other replicas: their side of the ladder if it contains all of them,
    /// otherwise GS1.
    pub fn copy_sync_group(&self, members: &[IpuId]) -> &[IpuId] {
        match self.pattern {
            SyncPattern::ReplicaAndLadder => self
                .gs2
                .iter()
                .find(|part| members.iter().all(|ipu| part.contains(ipu)))
                .unwrap_or(&self.gs1),
            SyncPattern::Full | SyncPattern::SinglePipeline => &self.gs1,
        }
    }

    /// The members of each group.
    pub(crate) fn members(&self) -> SyncGroupMembers {
        SyncGroupMembers { gs1: self.gs1.clone(), gs2: self.gs2.clone() }
    }

    /// The groups as text: `GS1 {0,1,2,3}; GS2 {0,2}, {1,3}`.
    pub(crate) fn describe(&self) -> String {
        let parts: Vec<String> = self.gs2.iter().map(|part| describe_set(part)).collect();
        format!("GS1 {}; GS2 {}", describe_set(&self.gs1), parts.join(", "))
    }
}

fn describe_set(ipus: &[IpuId]) -> String {
    let ipus: Vec<String> = ipus.iter().map(IpuId::to_string).collect();
    format!("{{{}}}", ipus.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_guide() {
        let groups = |pattern| SyncGroups::new(pattern, 4).describe();
        assert_eq!(groups(SyncPattern::Full), "GS1 {0,1,2,3}; GS2 {0,1,2,3}");
        assert_eq!(groups(SyncPattern::SinglePipeline), "GS1 {0,1,2,3}; GS2 {0}, {1}, {2}, {3}");
        assert_eq!(groups(SyncPattern::ReplicaAndLadder), "GS1 {0,1,2,3}; GS2 {0,2}, {1,3}");
    }

    #[test]
    fn every_ipu_is_in_one_part() {
        use SyncPattern::{Full, ReplicaAndLadder, SinglePipeline};
        for pattern in [Full, SinglePipeline, ReplicaAndLadder] {
            for ipus in [1, 2, 4, 8, 16] {
                let groups = SyncGroups::new(pattern, ipus);
                for ipu in (0..ipus).map(IpuId) {
                    assert!(groups.host_sync_group(ipu).contains(&ipu));
                }
                assert_eq!(groups.gs2.iter().flatten().count() as u32, ipus);
            }
        }
    }
}
