//! Channels that are shuffled between convolutions, as in ShuffleNet: split into groups,
//! transposed, joined, then split in two and joined with the channels that were not convolved.

use super::check_lowering;
use crate::graph::{GraphBuilder, ModelGraph, TrainingConfig};
use crate::operators::{
    ConcatOp, ConvOp, CrossEntropyOp, Optimizer, ReshapeOp, SplitOp, TransposeOp,
};
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use proptest::prelude::*;
use tilescope_test_tiers::cases;

/// Two convolutions of half of the channels each, each followed by a shuffle.
fn shuffled([batch, groups, of_group, side]: [u64; 4]) -> ModelGraph {
    let half = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
    let channels = 2 * groups * of_group;
    let mut graph = GraphBuilder::new();
    graph.block("unit");
    let mut x = graph.tensor("x", half(&[batch, channels, side, side]), TensorRole::Input);
    for unit in ["one", "two"] {
        let sizes = SplitOp::even(1, 2, channels / 2);
        let parts = graph.apply_all(&format!("{unit}/split"), sizes, &[x]).expect("fits");
        let weights = half(&[channels / 2, channels / 2, 1, 1]);
        let weights = graph.tensor(&format!("{unit}/weights"), weights, TensorRole::Parameter);
        let conv = ConvOp::square(1, 0);
        let made = graph.apply(&format!("{unit}/conv"), conv, &[parts[1], weights]).expect("fits");
        x = graph
            .apply(&format!("{unit}/joined"), ConcatOp { axis: 1 }, &[parts[0], made])
            .expect("fits");
        let cut = vec![batch, groups, 2 * of_group, side, side];
        x = reshaped(&mut graph, &format!("{unit}/cut"), cut, x);
        let turned = TransposeOp { permutation: vec![0, 2, 1, 3, 4] };
        x = graph.apply(&format!("{unit}/turned"), turned, &[x]).expect("fits");
        let whole = vec![batch, channels, side, side];
        x = reshaped(&mut graph, &format!("{unit}/shuffled"), whole, x);
    }
    trained_as_classes(graph, x, [batch, channels * side * side])
}

/// The graph in training, with the values of each sample in a field as those of its classes.
pub(super) fn trained_as_classes(
    mut graph: GraphBuilder,
    field: TensorId,
    [batch, classes]: [u64; 2],
) -> ModelGraph {
    let rows = reshaped(&mut graph, "rows", vec![batch, classes], field);
    let labels = TensorInfo::new([batch], DType::Int);
    let labels = graph.tensor("labels", labels, TensorRole::Input);
    let loss = graph.apply("loss", CrossEntropyOp, &[rows, labels]).expect("labels fit");
    graph.loss(loss);
    let training = TrainingConfig {
        optimizer: Optimizer::Sgd,
        shares_rate: false,
        accumulate: false,
        loss_scaling: 1.0,
    };
    graph.finish().train(training).expect("has gradients").with_joined_views()
}

fn reshaped(graph: &mut GraphBuilder, name: &str, shape: Vec<u64>, of: TensorId) -> TensorId {
    graph.apply(name, ReshapeOp { shape }, &[of]).expect("as many elements")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]
    #[test]
    fn shuffled_channels_keep_their_bytes_and_elements(
        sizes in (1u64..5, 1u64..10, 1u64..12, 1u64..9).prop_map(<[u64; 4]>::from),
    ) {
        check_lowering(&shuffled(sizes), &format!("{sizes:?}"));
    }
}
