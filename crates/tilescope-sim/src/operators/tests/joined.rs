//! Concatenations as views: blocks that join the results of their layers, as in DenseNet.

use super::check_lowering;
use super::shuffle::trained_as_classes;
use crate::graph::{GraphBuilder, MemoryOwners, ModelGraph};
use crate::operators::{ActivationOp, ConcatOp, ConvOp, OutputAlias};
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use proptest::prelude::*;
use tilescope_test_tiers::cases;

/// Layers that each read the results of all earlier ones, joined.
fn dense_block([batch, channels, growth, side, layers]: [u64; 5]) -> ModelGraph {
    let half = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
    let mut graph = GraphBuilder::new();
    graph.block("dense");
    let x = graph.tensor("x", half(&[batch, channels, side, side]), TensorRole::Input);
    let mut made = vec![x];
    let mut joined = x;
    for layer in 0..layers {
        let weights = half(&[growth, channels + layer * growth, 1, 1]);
        let weights = graph.tensor(&format!("{layer}/weights"), weights, TensorRole::Parameter);
        let conv = ConvOp::square(1, 0);
        let conv = graph.apply(&format!("{layer}/conv"), conv, &[joined, weights]).expect("fits");
        let relu = graph.apply(&format!("{layer}/relu"), ActivationOp::RELU, &[conv]);
        made.push(relu.expect("fits"));
        joined = graph
            .apply(&format!("{layer}/joined"), ConcatOp { axis: 1 }, &made)
            .expect("equal fields");
    }
    trained_as_classes(graph, joined, [batch, (channels + layers * growth) * side * side])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]
    #[test]
    fn joined_channels_keep_their_bytes_and_elements(
        sizes in (1u64..4, 1u64..20, 1u64..12, 1u64..8, 1u64..5).prop_map(<[u64; 5]>::from),
    ) {
        check_lowering(&dense_block(sizes), &format!("{sizes:?}"));
    }
}

#[test]
fn every_concatenation_of_a_dense_block_is_a_view() {
    let graph = dense_block([2, 24, 12, 7, 4]);
    let concatenations: Vec<_> =
        graph.nodes.iter().filter(|node| node.operator.kind() == "concat").collect();
    assert_eq!(concatenations.len(), 4);
    for node in concatenations {
        assert_eq!(node.operator.output_alias(), OutputAlias::ViewOfAll, "{}", node.name);
    }
}

#[test]
fn a_chain_of_concatenations_takes_bounded_memory() {
    let mut graph = GraphBuilder::new();
    graph.block("chain");
    let ty = TensorInfo::new([1, 8], DType::Half);
    let mut joined = graph.tensor("first", ty.clone(), TensorRole::Input);
    for index in 0..300 {
        let next = graph.tensor(&format!("{index}"), ty.clone(), TensorRole::Input);
        joined = graph
            .apply(&format!("{index}/joined"), ConcatOp { axis: 0 }, &[joined, next])
            .expect("equal rows");
    }
    let graph = graph.finish().with_joined_views();
    let copies = graph.nodes.iter().filter(|of| of.operator.output_alias() == OutputAlias::NoAlias);
    // Each copy starts a new tensor to which 127 others are joined.
    assert_eq!(copies.count(), 2);
}

#[test]
fn owners_of_views_of_views_are_the_joined_tensors() {
    let mut owners = MemoryOwners::new(6);
    let [a, b, c, joined, slice, both] = [0, 1, 2, 3, 4, 5].map(TensorId);
    owners.share(joined, &[b, a, b]);
    owners.share(slice, &[joined]);
    owners.share(both, &[slice, c, a]);
    assert_eq!(owners.of(c), [c]);
    assert_eq!(owners.of(slice), [a, b]);
    assert_eq!(owners.of(both), [a, b, c]);
    owners.share(both, &[c, c]);
    assert_eq!(owners.of(both), [c]);
}
