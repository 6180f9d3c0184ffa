//! Replicas that differ: all of them run the same program, but their waits differ.

use crate::units::{ProgramId, ReplicaClassId};
use std::collections::BTreeSet;

/// Replicas that execute the same steps at the same cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaClass {
    /// Their numbers over all instances, in order.
    pub replicas: Vec<u32>,
    /// Their difference from the others: `host 2.5 times slower`.
    pub why: String,
}

/// The classes of the replicas of a run, if they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaClasses {
    /// The classes, indexed by [`ReplicaClassId`]; replica 0 is in the first. Empty if all replicas
    /// are alike or their differences are not known.
    pub classes: Vec<ReplicaClass>,
    /// Programs whose steps end on all replicas at once, because the replicas wait for each other.
    pub joins: BTreeSet<ProgramId>,
}

impl ReplicaClasses {
    /// True if some replicas differ.
    pub fn differ(&self) -> bool {
        self.classes.len() > 1
    }

    /// The class of a replica; the first one if all are alike.
    pub fn class_of(&self, replica: u32) -> ReplicaClassId {
        let place = self.classes.iter().position(|class| class.replicas.contains(&replica));
        place.map_or(ReplicaClassId(0), ReplicaClassId::from_index)
    }
}
