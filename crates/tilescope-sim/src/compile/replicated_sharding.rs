//! Replicated tensor sharding: a tensor that is equal on all replicas is split over the replicas of
//! a domain. Each replica keeps a share.
//!
//! A share is a separate tensor, spread evenly over the tiles. Sharded weights are gathered just
//! before the first operation of a pass that reads them, and released after the last. Sharded
//! accumulators take the sum of the gradients of the domain, which is scattered before it is added.

use crate::graph::ModelGraph;
use crate::shape::{TensorId, TensorInfo, TensorRole};
use crate::specification::Spec;
use std::collections::BTreeSet;

/// The tensors that are sharded, and the number of replicas that they are split over.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplicatedSharding {
    tensors: BTreeSet<TensorId>,
    /// The number of replicas that a tensor is split over.
    pub replicas: u64,
    /// The number of domains of `replicas` replicas. Each domain holds a whole tensor.
    pub domains: u64,
}

impl ReplicatedSharding {
    /// Returns the tensors of a graph that a spec shards.
    pub(crate) fn new(spec: &Spec, graph: &ModelGraph) -> Self {
        let options = &spec.options;
        let location = &spec.options.location;
        let mut kinds = location.shardings().into_iter().map(|(_, kind)| kind);
        // The check of a spec refuses different domains, so the first kind has that of all.
        let Some(kind) = kinds.find(|kind| kind.replicated_tensor_sharding) else {
            return Self::default();
        };
        let replicas = options.replicas_of(kind.sharding_domain);
        let mut tensors = BTreeSet::new();
        for (id, tensor) in graph.tensors.iter().enumerate() {
            let kind = match tensor.role {
                TensorRole::Parameter => &location.weights_sharding,
                TensorRole::Accumulator => &location.accumulators_sharding,
                TensorRole::OptimizerState => &location.optimizer_state_sharding,
                TensorRole::Activation
                | TensorRole::Input
                | TensorRole::Resident
                | TensorRole::Mapped => continue,
            };
            if kind.applies_to(tensor.ty.elements()) {
                tensors.insert(TensorId(id));
            }
        }
        Self {
            tensors,
            replicas: replicas.into(),
            domains: u64::from(options.replication_factor / replicas),
        }
    }

    /// True if each replica keeps only its share of a tensor.
    pub(crate) fn splits(&self, tensor: TensorId) -> bool {
        self.tensors.contains(&tensor)
    }

    /// The sharded weights.
    pub(crate) fn weights(&self, graph: &ModelGraph) -> BTreeSet<TensorId> {
        self.tensors
            .iter()
            .copied()
            .filter(|id| graph.tensor(*id).role == TensorRole::Parameter)
            .collect()
    }

    /// The share of a tensor, with the last one padded: `ceil(elements / replicas)` (PopART user
    /// guide, replicated tensor sharding).
    pub(super) fn share(&self, tensor: &TensorInfo) -> TensorInfo {
        let elements = tensor.elements().div_ceil(self.replicas.max(1));
        TensorInfo::new([elements.0], tensor.dtype)
    }
}
