//! The tensors that own the memory of views and of results in place.

use crate::shape::TensorId;
use std::collections::BTreeMap;

/// The maximum number of tensors that one view joins. A concatenation of more is a copy, so that
/// long chains of concatenations take memory in proportion to their length.
const MOST_JOINED_TENSORS: usize = 128;

/// The tensors that own the memory of each tensor: itself, the operand that it is a view of, or the
/// operands that it joins.
#[derive(Clone, Debug)]
pub(crate) struct MemoryOwners {
    owner: Vec<TensorId>,
    /// The owners of views of several tensors, by the first view of them.
    joined: BTreeMap<TensorId, Vec<TensorId>>,
}

impl MemoryOwners {
    /// Each of `count` tensors with its own memory.
    pub(crate) fn new(count: usize) -> Self {
        Self { owner: (0..count).map(TensorId).collect(), joined: BTreeMap::new() }
    }

    /// The tensors that own the memory of `tensor`, in ascending order if there are several.
    pub(crate) fn of(&self, tensor: TensorId) -> &[TensorId] {
        let owner = &self.owner[tensor.0];
        self.joined.get(owner).map_or(std::slice::from_ref(owner), Vec::as_slice)
    }

    /// Lets `view` use the memory of all `parts`.
    pub(crate) fn share(&mut self, view: TensorId, parts: &[TensorId]) {
        if let [part] = parts {
            self.owner[view.0] = self.owner[part.0];
            return;
        }
        match self.of_all(parts)[..] {
            [one] => self.owner[view.0] = one,
            ref several => {
                self.joined.insert(view, several.to_vec());
            }
        }
    }

    /// The tensors that own the memory of `parts`, without repetitions, in ascending order.
    fn of_all(&self, parts: &[TensorId]) -> Vec<TensorId> {
        let mut owners: Vec<TensorId> =
            parts.iter().flat_map(|part| self.of(*part)).copied().collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The owners of a view of `parts`, or `None` if they are too many for a view.
    pub(crate) fn joinable(&self, parts: &[TensorId]) -> Option<Vec<TensorId>> {
        let owners = self.of_all(parts);
        (owners.len() <= MOST_JOINED_TENSORS).then_some(owners)
    }
}
