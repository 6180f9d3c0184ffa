//! Laws of layouts: views are free, operands can be swapped, and sources take the layout that their
//! readers prefer.

use super::GraphLowering;
use crate::graph::{GraphBuilder, ModelGraph};
use crate::operators::{
    ActivationOp, AddBiasOp, BinaryOp, ConcatOp, EmbeddingOp, LoweringContext, MatMulOp, NormOp,
    OperationSink, PoolOp, ReduceOp, ReshapeOp, ScaleOp, SliceOp, SoftmaxOp, TakeOp, TransposeOp,
};
use crate::poplin::PlanCache;
use crate::poplin::planner::PoplibsOptions;
use crate::popnn::NonLinearityType;
use crate::popops::reduce::ReduceOperation;
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use crate::targets::{IpuTarget, MK2};
use tilescope_report::units::Cycles;

/// Cycles of each node on all tiles of a Mk2.
fn node_cycles(graph: &ModelGraph) -> Vec<Cycles> {
    let machine = IpuTarget::all_tiles_of(MK2);
    let plans = PlanCache::new();
    let planning = PoplibsOptions::default();
    let mut context = LoweringContext::new(&graph.tensors, machine, false, &planning, &plans);
    let mut lowering = GraphLowering::new(graph, &mut context);
    lowering.plan_ahead();
    let mut cycles = Vec::new();
    for node in &graph.nodes {
        cycles.push(lowering.lower(node).expect("a plan").work.cycles(&MK2));
    }
    cycles
}

/// Cycles of a product with `tokens` rows per batch and its reader, as one matrix or as batches of
/// rows.
fn product_and_reader(
    [batch, tokens, width]: [u64; 3],
    batched: bool,
    reader: impl Fn(&mut GraphBuilder, TensorId, usize),
) -> Cycles {
    let ty = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
    let mut graph = GraphBuilder::new();
    graph.block("layer");
    let x = graph.tensor("x", ty(&[batch * tokens, width]), TensorRole::Input);
    let weights = graph.tensor("weights", ty(&[width, width]), TensorRole::Parameter);
    let mut y = graph.apply("product", MatMulOp::default(), &[x, weights]).expect("fits");
    if batched {
        let shape = vec![batch, tokens, width];
        y = graph.apply("view", ReshapeOp { shape }, &[y]).expect("fits");
    }
    reader(&mut graph, y, if batched { 2 } else { 1 });
    node_cycles(&graph.finish()).into_iter().sum()
}

/// Views are free, and their readers see the memory behind them, regardless of sizes.
#[test]
fn readers_of_a_view_cost_what_readers_of_its_tensor_cost() {
    type Reader = fn(&mut GraphBuilder, TensorId, usize);
    let readers: [(&str, Reader); 6] = [
        ("bias", |graph, y, axis| {
            let bias = parameter(graph, y, axis);
            graph.apply("reader", AddBiasOp { axis }, &[y, bias]).expect("fits");
        }),
        ("vector added", |graph, y, axis| {
            let vector = parameter(graph, y, axis);
            graph.apply("reader", BinaryOp::ADD, &[y, vector]).expect("fits");
        }),
        ("added to a vector", |graph, y, axis| {
            let vector = parameter(graph, y, axis);
            graph.apply("reader", BinaryOp::ADD, &[vector, y]).expect("fits");
        }),
        ("activation", |graph, y, _| {
            let gelu = ActivationOp(NonLinearityType::Gelu);
            graph.apply("reader", gelu, &[y]).expect("fits");
        }),
        ("softmax", |graph, y, axis| {
            graph.apply("reader", SoftmaxOp { axis, log: false }, &[y]).expect("fits");
        }),
        ("sum", |graph, y, axis| {
            let sum = ReduceOp::new(ReduceOperation::Add, vec![axis]);
            graph.apply("reader", sum, &[y]).expect("fits");
        }),
    ];
    for sizes in [[16, 197, 768], [40, 50, 768], [12, 65, 480], [20, 77, 512], [7, 49, 257]] {
        for (name, reader) in readers {
            let [flat, view] =
                [false, true].map(|batched| product_and_reader(sizes, batched, reader));
            assert_eq!(flat, view, "{name} of {sizes:?}");
        }
    }
}

/// Parameter with one value for each element of an axis.
fn parameter(graph: &mut GraphBuilder, of: TensorId, axis: usize) -> TensorId {
    let ty = graph.tensor_type(of);
    let values = TensorInfo::new(vec![ty.shape[axis]], ty.dtype);
    graph.tensor("values", values, TensorRole::Parameter)
}

/// A product of sources takes the same cycles with and without views and elementwise functions in
/// front of its operands, because the operands are created for it. The same holds for the gradient
/// of weights, which is computed at the location of the weights.
#[test]
fn operands_are_created_behind_views() {
    for [batch, tokens, width, wide] in [
        [16, 197, 768, 96],
        [40, 50, 70, 768],
        [12, 65, 480, 333],
        [7, 49, 257, 1001],
        [1, 3, 5, 7],
    ] {
        let ty = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
        let products = |viewed: bool| {
            let rows = batch * tokens;
            let mut graph = GraphBuilder::new();
            graph.block("layer");
            let (mut x, mut weights);
            if viewed {
                x = graph.tensor("x", ty(&[batch, tokens, width]), TensorRole::Input);
                x = graph.apply("scale", ScaleOp::by(0.5), &[x]).expect("fits");
                let shape = vec![rows, width];
                x = graph.apply("rows", ReshapeOp { shape }, &[x]).expect("fits");
                weights = graph.tensor("weights", ty(&[wide, width]), TensorRole::Parameter);
                let permutation = vec![1, 0];
                weights =
                    graph.apply("turned", TransposeOp { permutation }, &[weights]).expect("fits");
            } else {
                x = graph.tensor("x", ty(&[rows, width]), TensorRole::Input);
                weights = graph.tensor("weights", ty(&[width, wide]), TensorRole::Parameter);
            }
            graph.apply("product", MatMulOp::default(), &[x, weights]).expect("fits");
            *node_cycles(&graph.finish()).last().expect("nodes")
        };
        assert_eq!(products(false), products(true), "{batch} x {tokens} x {width} to {wide}");
    }
}

/// A concatenation is a view of its operands: a rotated axis, every second row beside the others,
/// or parts of two tensors. A concatenation that repeats a tensor is a copy.
#[test]
fn joining_tensors_is_free() {
    let ty = TensorInfo::new([3, 56, 35], DType::Half);
    for axis in 0..3 {
        let size = ty.shape[axis];
        for cut in [1, size / 2, size - 1] {
            let mut graph = GraphBuilder::new();
            graph.block("layer");
            let [x, other] =
                ["x", "other"].map(|name| graph.tensor(name, ty.clone(), TensorRole::Input));
            let mut cut_out =
                |of, range| graph.apply("part", SliceOp { axis, range }, &[of]).expect("fits");
            let parts = [cut_out(x, cut..size), cut_out(x, 0..cut)];
            let rest = cut_out(other, 0..cut);
            let [even, odd] = [0, 1].map(|start| {
                let every_second = TakeOp::stepped(axis, start, 2, (size - start).div_ceil(2));
                graph.apply("every second", every_second, &[x]).expect("fits")
            });
            graph.apply("rotated", ConcatOp { axis }, &parts).expect("fits");
            graph.apply("sorted", ConcatOp { axis }, &[even, odd]).expect("fits");
            graph.apply("mixed", ConcatOp { axis }, &[parts[0], rest]).expect("fits");
            graph.apply("repeated", ConcatOp { axis }, &[x, parts[0]]).expect("fits");
            let cycles = node_cycles(&graph.finish().with_joined_views());
            let (copied, views) = cycles.split_last().expect("nodes");
            assert!(views.iter().all(|cycles| cycles.is_zero()), "{axis} {cut}: {views:?}");
            assert!(!copied.is_zero(), "{axis} {cut}");
        }
    }
}

/// The order of the operands of a sum changes neither the layout of the result nor the cycles of
/// the norm that follows.
#[test]
fn operands_of_a_sum_can_be_swapped() {
    let residual = |[rows, width]: [u64; 2], swapped: bool| {
        let ty = |shape: &[u64], dtype| TensorInfo::new(shape, dtype);
        let mut graph = GraphBuilder::new();
        graph.block("layer");
        let table = graph.tensor("table", ty(&[1000, width], DType::Half), TensorRole::Parameter);
        let indices = graph.tensor("indices", ty(&[rows], DType::Int), TensorRole::Input);
        let stream =
            graph.apply("stream", EmbeddingOp::default(), &[table, indices]).expect("fits");
        let weights =
            graph.tensor("weights", ty(&[width, width], DType::Half), TensorRole::Parameter);
        let product =
            graph.apply("product", MatMulOp::default(), &[stream, weights]).expect("fits");
        let operands = if swapped { [product, stream] } else { [stream, product] };
        let sum = graph.apply("sum", BinaryOp::ADD, &operands).expect("fits");
        let [scale, shift] = ["scale", "shift"]
            .map(|name| graph.tensor(name, ty(&[width], DType::Half), TensorRole::Parameter));
        graph.apply_all("norm", NormOp::LAYER, &[sum, scale, shift]).expect("fits");
        node_cycles(&graph.finish())
    };
    for sizes in [[2048, 768], [4620, 512], [3152, 768], [999, 320]] {
        let [one, two] = [false, true].map(|swapped| residual(sizes, swapped));
        assert_eq!(one, two, "{sizes:?}");
    }
}

/// Pooling over the whole field equals a reduction of the field, and its gradient is a copy.
#[test]
fn a_pooling_over_the_whole_field_is_a_reduction() {
    for [channels, height, width] in [[32, 112, 112], [48, 7, 7], [5, 13, 9]] {
        let ty = TensorInfo::new([2, channels, height, width], DType::Half);
        let pool = PoolOp::global_average(height, width);
        let mean = ReduceOp::new(ReduceOperation::Add, vec![2, 3]);
        let mut graph = GraphBuilder::new();
        graph.block("layer");
        let x = graph.tensor("x", ty, TensorRole::Input);
        graph.apply("pool", pool, &[x]).expect("fits");
        graph.apply("mean", mean, &[x]).expect("fits");
        let cycles = node_cycles(&graph.finish());
        let [pooled, reduced] = [cycles[0].as_f64(), cycles[1].as_f64()];
        assert!(pooled < 1.2 * reduced, "{channels}: {pooled} {reduced}");
    }
}

/// The cycles of a norm are at most three times those on a linear input, regardless of the
/// operation that made its input.
#[test]
fn norms_hardly_depend_on_the_layout_of_their_input() {
    for [rows, width] in
        [[2048, 768], [4620, 512], [3152, 768], [999, 320], [197, 768], [77, 512], [50, 257]]
    {
        let ty = |shape: &[u64], dtype| TensorInfo::new(shape, dtype);
        let half = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
        let mut graph = GraphBuilder::new();
        graph.block("layer");
        let linear = graph.tensor("linear", half(&[rows, width]), TensorRole::Input);
        let table = graph.tensor("table", half(&[1000, width]), TensorRole::Parameter);
        let indices = graph.tensor("indices", ty(&[rows], DType::Int), TensorRole::Input);
        let stream =
            graph.apply("stream", EmbeddingOp::default(), &[table, indices]).expect("fits");
        let x = graph.tensor("x", half(&[rows, width]), TensorRole::Input);
        let weights = graph.tensor("weights", half(&[width, width]), TensorRole::Parameter);
        let product = graph.apply("product", MatMulOp::default(), &[x, weights]).expect("fits");
        let norms = [("linear", linear), ("stream", stream), ("product", product)];
        for (name, of) in norms {
            let [scale, shift] = ["scale", "shift"]
                .map(|part| graph.tensor(part, half(&[width]), TensorRole::Parameter));
            graph
                .apply_all(&format!("norm of {name}"), NormOp::LAYER, &[of, scale, shift])
                .expect("fits");
        }
        let cycles = node_cycles(&graph.finish());
        let [linear, stream, product] = [cycles[2], cycles[3], cycles[4]].map(Cycles::as_f64);
        assert!(
            stream < 3.0 * linear && product < 3.0 * linear,
            "{rows} x {width}: {linear} {stream} {product}"
        );
    }
}
