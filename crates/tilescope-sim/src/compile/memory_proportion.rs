//! `available_memory_proportion` when each IPU has its own.

use crate::graph::ModelGraph;
use crate::schedule::StagePlacement;
use crate::shape::BlockId;
use crate::specification::{Proportion, Spec};

/// Returns the proportion of each block, which is that of its IPU. If several IPUs run a block side
/// by side, the smallest of their proportions applies, because they all run the same plan.
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
