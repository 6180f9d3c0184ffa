//! What padding the tokens of a sequence gains: it is tried.
//!
//! Attention brings rows of scores to tiles as a whole before their softmax, and transposes queries
//! and keys in blocks. Where rows end inside vectors both become copies of single elements
//! (poplibs lib/popops/Rearrange.cpp, regroupIfBeneficial: groups below a grain are not
//! transposed), so that a token more can take fewer cycles.

use super::{block_costs, build_graph};
use crate::graph::ModelGraph;
use crate::poplin::PlanCache;
use crate::popops::elementwise::vector_width;
use crate::specification::Spec;
use tilescope_report::units::Cycles;

/// The size of a model that counts the tokens of a sequence.
const TOKENS: &str = "sequence_length";

/// Gains below a hundredth are not told.
const LEAST_GAIN: f64 = 0.01;

/// A number of tokens with which the same sequences take fewer cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PaddedTokens {
    pub tokens: u64,
    pub padded: u64,
    /// Cycles of all operations for a micro-batch of the sequences as they are.
    pub cycles: Cycles,
    /// The same of padded ones.
    pub padded_cycles: Cycles,
}

impl PaddedTokens {
    /// Share of the cycles that padding saves; negative where it costs some.
    pub(super) fn gain(&self) -> f64 {
        1.0 - self.padded_cycles.as_f64() / self.cycles.as_f64().max(1.0)
    }
}

/// The better of the next multiples of one and of two vectors, where rows of a softmax end inside
/// vectors and that takes at least a hundredth fewer cycles.
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
    let with = |multiple: u64| {
        let padded = tokens.next_multiple_of(multiple);
        let mut spec = spec.clone();
        spec.model.sizes.insert(TOKENS, padded);
        let (graph, _) = build_graph(&spec).ok()?;
        let costs = block_costs(&spec, &graph, plans);
        // What cannot be lowered costs nothing, which is no gain.
        let is_whole =
            costs.iter().zip(&given).all(|(padded, given)| padded.is_zero() == given.is_zero());
        let (cycles, padded_cycles) = (given.iter().sum(), costs.iter().sum());
        is_whole.then_some(PaddedTokens { tokens, padded, cycles, padded_cycles })
    };
    let tried = [vector, 2 * vector].into_iter().filter_map(with);
    tried.min_by_key(|tried| tried.padded_cycles).filter(|best| best.gain() >= LEAST_GAIN)
}

/// Whether a softmax runs along rows of so many elements.
fn has_softmax_over(graph: &ModelGraph, tokens: u64) -> bool {
    let mut softmaxes = graph.nodes.iter().filter(|node| node.operator.kind() == "softmax");
    softmaxes.any(|node| {
        node.inputs
            .first()
            .is_some_and(|scores| graph.tensor(*scores).ty.shape.last() == Some(&tokens))
    })
}
