//! What a token or a sample more changes in a layer of BERT-Base: little, or the report says what
//! to do. `cargo bench --bench neighbours` looks at all sizes.

use crate::common::{encoder, encoder_spec, node_cycles};
use tilescope_report::units::Cycles;
use tilescope_sim::compile::compile;

/// The throughput of neighbours differs by less.
const LAYER: f64 = 1.3;

/// Cycles of an operation for each token differ by less...
const OPERATION: f64 = 1.5;

/// ...where they differ by at least this share of the layer.
const MATTERS: f64 = 0.05;

/// Batches and tokens, over 1 to 32 and 64 to 512, that are compared with the next token.
const TOKENS: [[u64; 2]; 10] = [
    [8, 64],
    [8, 127],
    [8, 128],
    [8, 129],
    [8, 255],
    [1, 420],
    [16, 200],
    [12, 415],
    [2, 511],
    [32, 90],
];

/// The same, compared with the next sample. The second sample halves what starting steps costs
/// each, which is no cliff.
const SAMPLES: [[u64; 2]; 5] = [[3, 128], [9, 130], [24, 392], [30, 128], [31, 64]];

/// Cycles of every operation.
fn operations(sizes: [u64; 2]) -> Vec<(String, Cycles)> {
    let graph = encoder(sizes);
    let names = graph.nodes.iter().map(|node| node.name.clone());
    names.zip(node_cycles("mk2", &graph)).collect()
}

fn total(operations: &[(String, Cycles)]) -> Cycles {
    operations.iter().map(|(_, cycles)| *cycles).sum()
}

/// The tokens that the report of such layers says to pad to.
fn advised_tokens([batch, tokens]: [u64; 2]) -> Option<u64> {
    let compiled = compile(&encoder_spec([batch, tokens])).expect("compiles");
    let begins = format!("Rows of {tokens} tokens end inside vectors");
    let note = compiled.compilation.notes.into_iter().find(|note| note.starts_with(&begins))?;
    let (_, behind) = note.split_once("model.sequence_length = ")?;
    behind.split(' ').next()?.parse().ok()
}

/// What is advised is tried: it takes fewer cycles for the same sequences.
#[track_caller]
fn assert_is_explained([batch, tokens]: [u64; 2], what: &str) {
    let padded = advised_tokens([batch, tokens]).unwrap_or_else(|| panic!("{what} in silence"));
    let cycles = [tokens, padded].map(|tokens| total(&operations([batch, tokens])));
    assert!(cycles[1] < cycles[0], "{what}: {padded} tokens take {} of {}", cycles[1], cycles[0]);
}

/// Checks two neighbours; how many operations differ much, all of them explained.
fn explained(neighbours: [[u64; 2]; 2]) -> usize {
    let found = neighbours.map(operations);
    let per_token = |cycles: Cycles, at: usize| {
        let [batch, tokens] = neighbours[at];
        cycles.as_f64() / (batch * tokens) as f64
    };
    let layers = [0, 1].map(|at| per_token(total(&found[at]), at));
    let factor = |[one, other]: [f64; 2]| one.max(other) / one.min(other);
    assert!(factor(layers) < LAYER, "{neighbours:?}: {:.2} times", factor(layers));
    let [one, other] = &found;
    let mut count = 0;
    for ((name, one), (_, other)) in one.iter().zip(other) {
        let costs = [per_token(*one, 0), per_token(*other, 1)];
        let share = (costs[0] - costs[1]).abs() / layers[0].max(layers[1]);
        if share >= MATTERS && factor(costs) >= OPERATION {
            let dearer = neighbours[usize::from(costs[1] > costs[0])];
            let what = format!("{name} of {neighbours:?}: {:.1} times", factor(costs));
            // Elsewhere plans of neighbours are alike; what differs is how rows end.
            assert!(name.contains("attention/"), "{what}");
            assert_is_explained(dearer, &what);
            count += 1;
        }
    }
    count
}

#[test]
fn a_token_or_a_sample_more_changes_little_or_is_explained() {
    let next_token = TOKENS.map(|[batch, tokens]| [[batch, tokens], [batch, tokens + 1]]);
    let next_sample = SAMPLES.map(|[batch, tokens]| [[batch, tokens], [batch + 1, tokens]]);
    let found = next_token.into_iter().chain(next_sample).map(explained).sum::<usize>();
    assert!(found > 0, "softmax of odd tokens is there to be explained");
}

#[test]
fn whole_vectors_need_no_advice() {
    assert_eq!(advised_tokens([8, 128]), None);
    assert!(advised_tokens([8, 129]).is_some_and(|padded| padded.is_multiple_of(4)));
}
