//! Shapes, names and gradients of composed operations.

use super::*;
use crate::graph::{GraphBuilder, ModelGraph, TrainingConfig};
use crate::operators::tests::check_lowering;
use crate::operators::{CrossEntropyOp, Optimizer, PoolWindow, ScatterUpdate};
use crate::shape::{DType, TensorRole};

/// Makes a graph of operands of these shapes, with numbers as weights, and the operation composed
/// of them.
fn graph(
    operands: &[(&[u64], DType)],
    compose: impl Fn(&mut GraphBuilder, &[TensorId]) -> Result<TensorId, GraphError>,
) -> Result<(ModelGraph, TensorInfo), GraphError> {
    let mut builder = GraphBuilder::new();
    builder.block("block");
    let tensors: Vec<TensorId> = operands
        .iter()
        .enumerate()
        .map(|(number, (shape, dtype))| {
            let role = if *dtype == DType::Int { TensorRole::Input } else { TensorRole::Parameter };
            builder.tensor(&format!("operand{number}"), TensorInfo::new(*shape, *dtype), role)
        })
        .collect();
    let made = compose(&mut builder, &tensors)?;
    let ty = OperationSink::tensor_type(&builder, made).clone();
    if ty.dtype != DType::Int {
        let count = ty.elements().0;
        let rows = builder.apply("rows", ReshapeOp { shape: vec![count, 1] }, &[made])?;
        let labels =
            builder.tensor("labels", TensorInfo::new([count], DType::Int), TensorRole::Input);
        let loss = builder.apply("loss", CrossEntropyOp, &[rows, labels])?;
        builder.loss(loss);
    }
    Ok((builder.finish(), ty))
}

/// The shape of the composed result. The result has the name of the operation and can be trained.
fn shape(
    operands: &[(&[u64], DType)],
    compose: impl Fn(&mut GraphBuilder, &[TensorId]) -> Result<TensorId, GraphError>,
) -> Vec<u64> {
    let (graph, ty) = graph(operands, compose).expect("operands fit");
    let named = graph.nodes.iter().filter(|node| node.name == "op").count();
    assert_eq!(named, 1, "one node has the name of the operation");
    if ty.dtype != DType::Int {
        let optimizer = Optimizer::Sgd;
        let training =
            TrainingConfig { optimizer, shares_rate: false, accumulate: false, loss_scaling: 1.0 };
        check_lowering(&graph.train(training).expect("has gradients"), "trained");
    } else {
        check_lowering(&graph, "inference");
    }
    ty.shape
}

const HALF: DType = DType::Half;
const INT: DType = DType::Int;

#[test]
fn gathers_have_the_shape_of_their_indices() {
    for axis in 0..3 {
        let found = shape(&[(&[4, 5, 6], HALF), (&[3, 5, 2], INT)], |graph, of| {
            gather_elements(graph, "op", [of[0], of[1]], axis)
        });
        assert_eq!(found, [3, 5, 2]);
        let operands = [(&[4, 5, 6][..], HALF), (&[2, 5, 6][..], INT), (&[2, 5, 6][..], HALF)];
        let made = shape(&operands, |graph, of| {
            scatter_elements(graph, "op", [of[0], of[1], of[2]], (axis, ScatterUpdate::Replace))
        });
        assert_eq!(made, [4, 5, 6]);
    }
    let slices = |indices: &[u64], batch| {
        shape(&[(&[4, 5, 6], HALF), (indices, INT)], |graph, of| {
            gather_nd(graph, "op", [of[0], of[1]], batch)
        })
    };
    assert_eq!(slices(&[7, 2], 0), [7, 6]);
    assert_eq!(slices(&[7, 3], 0), [7]);
    assert_eq!(slices(&[4, 9, 1], 1), [4, 9, 6]);
    let operands = [(&[4, 5, 6][..], HALF), (&[7, 2][..], INT), (&[7, 6][..], HALF)];
    let made = shape(&operands, |graph, of| {
        scatter_nd(graph, "op", [of[0], of[1], of[2]], ScatterUpdate::Add)
    });
    assert_eq!(made, [4, 5, 6]);
}

#[test]
fn gathers_reject_indices_that_do_not_fit() {
    let operands = [(&[4, 5][..], HALF), (&[4, 5, 1][..], INT)];
    let refused = graph(&operands, |graph, of| gather_elements(graph, "op", [of[0], of[1]], 0));
    assert!(refused.is_err());
    let refused = graph(&operands, |graph, of| gather_nd(graph, "op", [of[0], of[1]], 3));
    assert!(refused.is_err());
}

#[test]
fn running_sums_keep_shape_and_type() {
    for (dtype, axis) in [(HALF, 0), (HALF, 1), (HALF, 2), (INT, 0), (INT, 2)] {
        let made =
            shape(&[(&[3, 4, 5], dtype)], |graph, of| cumulative_sum(graph, "op", of[0], axis));
        assert_eq!(made, [3, 4, 5], "{dtype:?} along {axis}");
    }
}

#[test]
fn products_repeat_leading_dimensions() {
    let product = |a: &[u64], b: &[u64]| {
        shape(&[(a, HALF), (b, HALF)], |graph, of| matmul(graph, "op", [of[0], of[1]]))
    };
    assert_eq!(product(&[3, 4], &[4, 5]), [3, 5]);
    assert_eq!(product(&[4], &[4, 5]), [5]);
    assert_eq!(product(&[3, 4], &[4]), [3]);
    assert_eq!(product(&[4], &[4]), [] as [u64; 0]);
    assert_eq!(product(&[2, 7, 3, 4], &[4, 5]), [2, 7, 3, 5]);
    assert_eq!(product(&[2, 1, 3, 4], &[7, 4, 5]), [2, 7, 3, 5]);
}

#[test]
fn sums_of_products_follow_the_names_of_axes() {
    let sum = |equation: &str, operands: &[&[u64]]| {
        let operands: Vec<_> = operands.iter().map(|shape| (*shape, HALF)).collect();
        shape(&operands, |graph, of| einsum(graph, "op", equation, of))
    };
    assert_eq!(sum("ij,jk->ik", &[&[3, 4], &[4, 5]]), [3, 5]);
    assert_eq!(sum("bhqd,bhkd->bhqk", &[&[2, 3, 4, 8], &[2, 3, 5, 8]]), [2, 3, 4, 5]);
    assert_eq!(sum("ij, kj", &[&[3, 4], &[5, 4]]), [3, 5]);
    assert_eq!(sum("ij->ji", &[&[3, 4]]), [4, 3]);
    assert_eq!(sum("ij->", &[&[3, 4]]), [] as [u64; 0]);
    assert_eq!(sum("i,j,k->kji", &[&[2], &[3], &[4]]), [4, 3, 2]);
    let refused = graph(&[(&[3, 3], HALF)], |graph, of| einsum(graph, "op", "ii->i", of));
    assert!(refused.is_err());
}

#[test]
fn averages_may_count_padding() {
    let window = PoolWindow { kernel: 3, stride: 2, before: 1, behind: 1 };
    let made = shape(&[(&[2, 4, 9, 7], HALF)], |graph, of| {
        padded_average_pool(graph, "op", of[0], vec![window; 2])
    });
    assert_eq!(made, [2, 4, 5, 4]);
}

#[test]
fn simple_recurrent_layers_are_unrolled() {
    let operands =
        [(&[5, 2, 6][..], HALF), (&[6, 8][..], HALF), (&[8, 8][..], HALF), (&[8][..], HALF)];
    let made = shape(&operands, |graph, of| {
        let layer = SimpleRnn {
            sequence: of[0],
            input_weights: of[1],
            recurrent_weights: of[2],
            bias: Some(of[3]),
            initial: None,
            relu: false,
        };
        simple_rnn(graph, "op", layer)
    });
    assert_eq!(made, [5, 2, 8]);
}
