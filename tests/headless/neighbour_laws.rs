//! The effect of one more token or sample in a layer of BERT-Base: it is small, or the report has
//! advice. `cargo bench --bench neighbours` compares all sizes.

use crate::common::{encoder_operations, encoder_spec, layer_cost, operation_cliffs};
use tilescope_sim::compile;
use tilescope_test_tiers::{slow_tests, up_to};

/// The limit on the ratio of the throughput of neighbours.
const LAYER: f64 = 1.3;

/// Batches and tokens, from 1 to 32 and 64 to 512, that are compared with the next token.
const TOKENS: [[u64; 2]; 10] = [
    [8, 128],
    [8, 127],
    [8, 64],
    [8, 129],
    [8, 255],
    [1, 420],
    [16, 200],
    [12, 415],
    [2, 511],
    [32, 90],
];

/// The same, compared with the next sample. A second sample halves the cost of starting steps per
/// sample, which is no cliff.
const SAMPLES: [[u64; 2]; 5] = [[3, 128], [9, 130], [24, 392], [30, 128], [31, 64]];

/// The number of tokens to pad to, as advised by the report of such layers.
fn advised_tokens([batch, tokens]: [u64; 2]) -> Option<u64> {
    let compiled = compile(&encoder_spec([batch, tokens])).expect("compiles");
    let begins = format!("Rows of {tokens} tokens do not fill whole vectors");
    let note = compiled.compilation.notes.into_iter().find(|note| note.starts_with(&begins))?;
    let (_, behind) = note.split_once("model.sequence_length = ")?;
    behind.split(' ').next()?.parse().ok()
}

/// Tries the advice: it must take fewer cycles for the same sequences.
#[track_caller]
fn assert_is_explained([batch, tokens]: [u64; 2], what: &str) {
    let padded = advised_tokens([batch, tokens]).unwrap_or_else(|| panic!("{what} in silence"));
    let cycles = |tokens| layer_cost(&encoder_operations([batch, tokens])) * tokens as f64;
    let (given, with) = (cycles(tokens), cycles(padded));
    assert!(with < given, "{what}: {padded} tokens take {with} instead of {given}");
}

/// Checks two neighbours. Returns the number of operations that differ much, all of them explained.
fn explained(neighbours: [[u64; 2]; 2]) -> usize {
    let found = neighbours.map(encoder_operations);
    let [one, other] = found.each_ref().map(|operations| layer_cost(operations));
    let factor = one.max(other) / one.min(other);
    assert!(factor < LAYER, "{neighbours:?}: {factor:.2} times");
    let cliffs = operation_cliffs([&found[0], &found[1]]);
    for cliff in &cliffs {
        let what = format!("{} of {neighbours:?}: {:.1} times", cliff.name, cliff.factor);
        // Elsewhere plans of neighbours are alike; the ends of rows make the difference.
        assert!(cliff.name.contains("attention/"), "{what}");
        assert_is_explained(neighbours[cliff.dearer], &what);
    }
    cliffs.len()
}

#[test]
fn a_token_or_a_sample_more_changes_little_or_is_explained() {
    let mut found = 0;
    for [batch, tokens] in TOKENS.into_iter().take(up_to(2)) {
        found += explained([[batch, tokens], [batch, tokens + 1]]);
    }
    for [batch, tokens] in SAMPLES.into_iter().take(up_to(1)) {
        found += explained([[batch, tokens], [batch + 1, tokens]]);
    }
    assert!(found > 0 || !slow_tests(), "softmax of odd tokens is there to be explained");
}

#[test]
fn whole_vectors_need_no_advice() {
    assert_eq!(advised_tokens([8, 128]), None);
    assert!(advised_tokens([2, 257]).is_some_and(|padded| padded.is_multiple_of(4)));
}
