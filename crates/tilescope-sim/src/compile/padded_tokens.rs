//! The gain from padding the tokens of a sequence, found by trying it.
//!
//! Attention moves whole rows of scores to tiles before their softmax, and transposes queries and
//! keys in blocks. If rows end inside vectors, both become copies of single elements (poplibs
//! lib/popops/Rearrange.cpp, regroupIfBeneficial: groups below a grain are not transposed). An
//! additional token can therefore save cycles.

use super::{block_costs, build_graph};
use crate::graph::ModelGraph;
use crate::poplin::PlanCache;
use crate::popops::elementwise::vector_width;
use crate::specification::Spec;
use tilescope_report::units::Cycles;

/// The model size that counts the tokens of a sequence.
const TOKENS: &str = "sequence_length";

/// The smallest gain that is reported: a hundredth.
const LEAST_GAIN: f64 = 0.01;

/// A number of tokens with which the same sequences take fewer cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PaddedTokens {
    pub tokens: u64,
    pub padded: u64,
    /// Cycles of all operations for a micro-batch of the unpadded sequences.
    pub cycles: Cycles,
    /// Cycles of all operations for a micro-batch of the padded sequences.
    pub padded_cycles: Cycles,
}

impl PaddedTokens {
    /// The share of the cycles that padding saves. Negative if padding costs cycles.
    pub(super) fn gain(&self) -> f64 {
        1.0 - self.padded_cycles.as_f64() / self.cycles.as_f64().max(1.0)
    }
}

/// Tries the next multiples of one and of two vectors if rows of a softmax end inside vectors.
/// Returns the better one if it saves at least a hundredth of the cycles.
pub(super) fn worth_padding_tokens(
    spec: &Spec,
    graph: &ModelGraph,
    plans: &PlanCache,
) -> Option<PaddedTokens> {
    let tokens = *spec.model.sizes.get(TOKENS)?;
    let vector = vector_width(spec.model.precision);
    if tokens.is_multiple_of(vector) || !has_softmax_over(graph, tokens) {
        return None;
    }
    let given = block_costs(spec, graph, plans);
    let tried = [vector, 2 * vector].into_iter().filter_map(|multiple| {
        let padded = tokens.next_multiple_of(multiple);
        let mut spec = spec.clone();
        spec.model.sizes.insert(TOKENS, padded);
        let (graph, _) = build_graph(&spec).ok()?;
        let costs = block_costs(&spec, &graph, plans);
        // Operations that cannot be lowered cost nothing, which is not a gain.
        let is_whole =
            costs.iter().zip(&given).all(|(padded, given)| padded.is_zero() == given.is_zero());
        let cycles = given.iter().sum();
        let padded_cycles = costs.iter().sum();
        if is_whole { Some(PaddedTokens { tokens, padded, cycles, padded_cycles }) } else { None }
    });
    tried.min_by_key(|tried| tried.padded_cycles).filter(|best| best.gain() >= LEAST_GAIN)
}

/// Returns true if a softmax runs along rows of `tokens` elements.
fn has_softmax_over(graph: &ModelGraph, tokens: u64) -> bool {
    let mut softmaxes = graph.nodes.iter().filter(|node| node.operator.kind() == "softmax");
    softmaxes.any(|node| {
        node.inputs
            .first()
            .is_some_and(|scores| graph.tensor(*scores).ty.shape.last() == Some(&tokens))
    })
}
