//! `available_memory_proportion`, where there is one for each IPU.

use crate::graph::ModelGraph;
use crate::schedule::StagePlacement;
use crate::shape::BlockId;
use crate::specification::{Proportion, Spec};

/// The proportion of each block, where the IPUs have their own: that of its IPU. Of several IPUs that
/// run a block side by side the smallest, for they run it alike.
pub(super) fn of_blocks(
    spec: &Spec,
    graph: &ModelGraph,
    placement: &StagePlacement,
) -> Vec<Proportion> {
    let of_ipus = &spec.memory_proportions;
    if of_ipus.is_empty() {
        return Vec::new();
    }
    let mut proportions = Vec::with_capacity(graph.blocks.len());
    for block in 0..graph.blocks.len() {
        let stages = &placement.stages[placement.stages_of(BlockId(block))];
        let shares = stages.iter().map(|stage| of_ipus[stage.ipu.index()]);
        proportions.push(Proportion::new(shares.fold(1.0, f64::min)));
    }
    proportions
}
