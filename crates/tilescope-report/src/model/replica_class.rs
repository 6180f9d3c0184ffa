//! Replicas that differ: all of them run the same program, but not all wait for the same.

use crate::units::{ProgramId, ReplicaClassId};
use std::collections::BTreeSet;

/// Replicas that do the same at the same cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaClass {
    /// Their numbers over all instances, in order.
    pub replicas: Vec<u32>,
    /// What sets them apart from the others: `host 2.5 times slower`.
    pub why: String,
}

/// The classes of the replicas of a run, where these differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaClasses {
    /// [`ReplicaClassId`] counts into this; replica 0 is in the first. Empty where all replicas are
    /// alike, and where nothing is known of it.
    pub classes: Vec<ReplicaClass>,
    /// Programs whose steps end on all replicas at once: where these wait for each other.
    pub joins: BTreeSet<ProgramId>,
}

impl ReplicaClasses {
    /// Whether there are replicas that differ.
    pub fn differ(&self) -> bool {
        self.classes.len() > 1
    }

    /// The class of a replica; the first where all are alike.
    pub fn class_of(&self, replica: u32) -> ReplicaClassId {
        let place = self.classes.iter().position(|class| class.replicas.contains(&replica));
        place.map_or(ReplicaClassId(0), ReplicaClassId::from_index)
    }
}
