//! Shapes of operators of each family, against those of onnx 1.23's own inference.

use super::{dims_of_output, refusal};
use tilescope_fixtures::onnx_file::{
    FLOAT, Node, OnnxFileBuilder, floats, ints, value_info, weight,
};

/// An operator with attributes: opset, operator, node, shapes of its operands, shape of its output.
type Case<'a> = (i64, &'a str, fn(Node) -> Node, &'a [&'a [i64]], &'a [u64]);

#[test]
fn operators_with_attributes() {
    let cases: &[Case] = &[
        (
            11,
            "Conv",
            |n| n.ints("strides", &[2, 2]).ints("pads", &[3, 3, 3, 3]),
            &[&[1, 3, 224, 224], &[64, 3, 7, 7]],
            &[1, 64, 112, 112],
        ),
        (
            11,
            "Conv",
            |n| n.text("auto_pad", "SAME_UPPER").ints("strides", &[2, 2]),
            &[&[1, 3, 15, 16], &[8, 3, 3, 3]],
            &[1, 8, 8, 8],
        ),
        (
            11,
            "Conv",
            |n| n.int("group", 8).ints("dilations", &[2]),
            &[&[2, 8, 20], &[16, 1, 3]],
            &[2, 16, 16],
        ),
        (
            11,
            "ConvTranspose",
            |n| {
                n.ints("strides", &[2, 2])
                    .ints("pads", &[1, 1, 1, 1])
                    .ints("output_padding", &[1, 1])
            },
            &[&[1, 8, 7, 7], &[8, 4, 3, 3]],
            &[1, 4, 14, 14],
        ),
        (
            11,
            "MaxPool",
            |n| n.ints("kernel_shape", &[3, 3]).ints("strides", &[2, 2]).int("ceil_mode", 1),
            &[&[1, 4, 112, 112]],
            &[1, 4, 56, 56],
        ),
        (
            11,
            "MaxPool",
            |n| n.ints("kernel_shape", &[1]).ints("strides", &[2]).int("ceil_mode", 1),
            &[&[1, 4, 4]],
            &[1, 4, 2],
        ),
        (7, "AveragePool", |n| n.ints("kernel_shape", &[2, 2]), &[&[1, 4, 5, 6]], &[1, 4, 4, 5]),
        (13, "GlobalAveragePool", |n| n, &[&[2, 3, 4, 5]], &[2, 3, 1, 1]),
        (13, "Gemm", |n| n.int("transB", 1), &[&[4, 8], &[10, 8], &[10]], &[4, 10]),
        (13, "MatMul", |n| n, &[&[2, 1, 3, 4], &[5, 4, 6]], &[2, 5, 3, 6]),
        (13, "MatMul", |n| n, &[&[4], &[5, 4, 6]], &[5, 6]),
        (13, "MatMul", |n| n, &[&[3, 4], &[4]], &[3]),
        (
            13,
            "Einsum",
            |n| n.text("equation", "b i h d, b j h d -> b h i j"),
            &[&[2, 3, 4, 5], &[2, 6, 4, 5]],
            &[2, 4, 3, 6],
        ),
        (13, "Einsum", |n| n.text("equation", "...ij,...jk"), &[&[7, 2, 3], &[3, 4]], &[7, 2, 4]),
        (13, "Flatten", |n| n.int("axis", 2), &[&[2, 3, 4, 5]], &[6, 20]),
        (13, "Flatten", |n| n.int("axis", 0), &[&[2, 3]], &[1, 6]),
        (13, "Transpose", |n| n.ints("perm", &[0, 2, 1]), &[&[2, 3, 4]], &[2, 4, 3]),
        (11, "Squeeze", |n| n.ints("axes", &[-1, 0]), &[&[1, 3, 1]], &[3]),
        (13, "Squeeze", |n| n, &[&[1, 3, 1]], &[3]),
        (11, "Unsqueeze", |n| n.ints("axes", &[0, -1]), &[&[3]], &[1, 3, 1]),
        (13, "Concat", |n| n.int("axis", -1), &[&[2, 3], &[2, 4]], &[2, 7]),
        (
            9,
            "Slice",
            |n| n.ints("starts", &[1]).ints("ends", &[-1]).ints("axes", &[1]),
            &[&[2, 9]],
            &[2, 7],
        ),
        (10, "Pad", |n| n.ints("pads", &[0, 1, 0, 2]), &[&[2, 3]], &[2, 6]),
        (11, "ReduceMean", |n| n.ints("axes", &[1]).int("keepdims", 0), &[&[2, 3, 4]], &[2, 4]),
        (18, "ReduceMean", |n| n, &[&[2, 3, 4]], &[1, 1, 1]),
        (18, "ReduceMean", |n| n.int("noop_with_empty_axes", 1), &[&[2, 3]], &[2, 3]),
        (13, "ArgMax", |n| n.int("axis", -1).int("keepdims", 0), &[&[2, 3]], &[2]),
        (9, "TopK", |n| n.int("k", 2), &[&[5, 9]], &[5, 2]),
        (13, "Gather", |n| n.int("axis", 1), &[&[2, 3, 4], &[5, 6]], &[2, 5, 6, 4]),
        (12, "GatherND", |n| n.int("batch_dims", 1), &[&[2, 3, 4], &[2, 1]], &[2, 4]),
        (13, "DepthToSpace", |n| n.int("blocksize", 2), &[&[1, 8, 3, 4]], &[1, 2, 6, 8]),
        (13, "SpaceToDepth", |n| n.int("blocksize", 2), &[&[1, 2, 6, 8]], &[1, 8, 3, 4]),
        (7, "Upsample", |n| n, &[&[1, 2, 3, 4]], &[]),
        (
            14,
            "LSTM",
            |n| n.int("hidden_size", 5),
            &[&[7, 2, 3], &[1, 20, 3], &[1, 20, 5]],
            &[7, 1, 2, 5],
        ),
        (
            14,
            "GRU",
            |n| n.int("hidden_size", 5).text("direction", "bidirectional"),
            &[&[7, 2, 3], &[2, 15, 3], &[2, 15, 5]],
            &[7, 2, 2, 5],
        ),
        (13, "SoftmaxCrossEntropyLoss", |n| n, &[&[4, 10], &[4]], &[]),
        (
            13,
            "NegativeLogLikelihoodLoss",
            |n| n.text("reduction", "none"),
            &[&[4, 10, 3], &[4, 3]],
            &[4, 3],
        ),
        (
            23,
            "Attention",
            |n| n.int("q_num_heads", 4).int("kv_num_heads", 2),
            &[&[2, 6, 32], &[2, 9, 16], &[2, 9, 16]],
            &[2, 6, 32],
        ),
        (23, "RMSNormalization", |n| n, &[&[2, 6, 32], &[32]], &[2, 6, 32]),
        (17, "LayerNormalization", |n| n, &[&[2, 6, 32], &[32]], &[2, 6, 32]),
        (16, "GridSample", |n| n, &[&[1, 3, 8, 8], &[1, 5, 6, 2]], &[1, 3, 5, 6]),
        (13, "Where", |n| n, &[&[2, 1], &[3], &[1]], &[2, 3]),
        (8, "Sum", |n| n, &[&[2, 1], &[3], &[1]], &[2, 3]),
    ];
    for (opset, op, node, shapes, expected) in cases {
        let model = OnnxFileBuilder::of_one(*opset, shapes, 1, node, op);
        if *op == "Upsample" {
            assert!(refusal(&model).contains("scales are missing"));
            continue;
        }
        assert_eq!(dims_of_output(&model, 0), *expected, "{op} {opset}");
    }
}

/// Opset, operator, shape of the first operand, whole numbers of the second, shape of the output.
type NumbersCase<'a> = (i64, &'a str, &'a [i64], &'a [i64], &'a [u64]);

/// A node whose second operand is known whole numbers.
fn with_numbers(opset: i64, shape: &[i64], op: &str, numbers: &[i64]) -> OnnxFileBuilder {
    let count = i64::try_from(numbers.len()).unwrap();
    OnnxFileBuilder::new(opset)
        .input(value_info("x", FLOAT, shape))
        .tensor(ints("n", &[count], numbers))
        .node(Node::new(op, &["x", "n"], &["y"]))
        .output("y")
}

#[test]
fn operators_with_numbers_as_operands() {
    let cases: &[NumbersCase] = &[
        (13, "Reshape", &[2, 3, 4], &[0, -1], &[2, 12]),
        (7, "Reshape", &[2, 3, 4], &[24], &[24]),
        (13, "Reshape", &[1], &[], &[]),
        (13, "Squeeze", &[1, 3, 1], &[2], &[1, 3]),
        (13, "Unsqueeze", &[3], &[1, -1], &[3, 1, 1]),
        (13, "Expand", &[3, 1], &[2, 1, 4], &[2, 3, 4]),
        (13, "Tile", &[2, 3], &[1, 5], &[2, 15]),
        (13, "Pad", &[2, 3], &[1, 0, 0, -1], &[3, 2]),
        (18, "ReduceMax", &[2, 3, 4], &[-1], &[2, 3, 1]),
        (13, "ReduceSum", &[2, 3, 4], &[0, 1], &[1, 1, 4]),
        (11, "TopK", &[2, 9], &[4], &[2, 4]),
        (13, "Split", &[9, 2], &[4, 5], &[4, 2]),
    ];
    for (opset, op, shape, numbers, expected) in cases {
        let model = if *op == "Reshape" && numbers.is_empty() {
            OnnxFileBuilder::new(*opset)
                .input(value_info("x", FLOAT, shape))
                .tensor(ints("n", &[0], &[]))
                .node(Node::new(op, &["x", "n"], &["y"]))
                .output("y")
        } else {
            with_numbers(*opset, shape, op, numbers)
        };
        assert_eq!(dims_of_output(&model, 0), *expected, "{op} {opset}");
    }
    assert!(
        refusal(&with_numbers(13, &[2, 3], "Reshape", &[4, -1])).contains("cannot be reshaped")
    );
    assert!(refusal(&with_numbers(13, &[2, 3], "Squeeze", &[0])).contains("has 2 elements"));
    assert!(refusal(&with_numbers(13, &[2, 3], "Unsqueeze", &[0, 0])).contains("named twice"));
}

#[test]
fn resize_by_scales_and_to_sizes() {
    let model = |node: Node| {
        OnnxFileBuilder::new(13)
            .input(value_info("x", FLOAT, &[1, 2, 3, 5]))
            .tensor(floats("scales", &[4], &[1.0, 1.0, 2.0, 1.5]))
            .tensor(ints("sizes", &[4], &[1, 2, 7, 9]))
            .tensor(floats("none", &[0], &[]))
            .node(node)
            .output("y")
    };
    let by_scales = model(Node::new("Resize", &["x", "", "scales"], &["y"]));
    assert_eq!(dims_of_output(&by_scales, 0), [1, 2, 6, 7]);
    let to_sizes = model(Node::new("Resize", &["x", "none", "none", "sizes"], &["y"]));
    assert_eq!(dims_of_output(&to_sizes, 0), [1, 2, 7, 9]);
}

/// Outputs beside the first.
#[test]
fn second_outputs() {
    let split = OnnxFileBuilder::of_one(18, &[&[7, 2]], 3, |n| n.int("num_outputs", 3), "Split");
    let rows = |at| dims_of_output(&split, at)[0];
    assert_eq!([rows(0), rows(1), rows(2)], [3, 3, 1]);
    let layer = |n: Node| n.int("axis", 1);
    let norm = OnnxFileBuilder::of_one(17, &[&[2, 3, 4], &[3, 4]], 3, layer, "LayerNormalization");
    assert_eq!(dims_of_output(&norm, 1), [2, 1, 1]);
    let lstm =
        OnnxFileBuilder::of_one(14, &[&[7, 2, 3], &[1, 20, 3], &[1, 20, 5]], 3, |n| n, "LSTM");
    assert_eq!(dims_of_output(&lstm, 2), [1, 2, 5]);
    let pool = |n: Node| n.ints("kernel_shape", &[2, 2]);
    let pool = OnnxFileBuilder::of_one(12, &[&[1, 1, 4, 4]], 2, pool, "MaxPool");
    assert_eq!(dims_of_output(&pool, 1), [1, 1, 3, 3]);
}

/// Operators that nothing models have shapes all the same, so that they can be priced.
#[test]
fn operators_that_are_only_priced() {
    let columns = OnnxFileBuilder::new(18)
        .input(value_info("x", FLOAT, &[2, 27, 16]))
        .tensor(ints("image", &[2], &[6, 6]))
        .tensor(ints("block", &[2], &[3, 3]))
        .node(Node::new("Col2Im", &["x", "image", "block"], &["y"]))
        .output("y");
    assert_eq!(dims_of_output(&columns, 0), [2, 3, 6, 6]);
    let dft = |opset: i64, parts: i64, node: fn(Node) -> Node| {
        let inputs = if opset < 20 { &["x", "n"][..] } else { &["x", "n", "axis"] };
        let model = OnnxFileBuilder::new(opset)
            .input(value_info("x", FLOAT, &[2, 9, 5, parts]))
            .tensor(ints("n", &[], &[8]))
            .tensor(ints("axis", &[], &[-3]))
            .node(node(Node::new("DFT", inputs, &["y"])))
            .output("y");
        dims_of_output(&model, 0)
    };
    assert_eq!(dft(17, 1, |node| node), [2, 8, 5, 2]);
    assert_eq!(dft(17, 1, |node| node.int("axis", 2).int("onesided", 1)), [2, 9, 5, 2]);
    assert_eq!(dft(20, 2, |node| node), [2, 8, 5, 2]);
    assert_eq!(dft(20, 2, |node| node.int("onesided", 1).int("inverse", 1)), [2, 8, 5, 1]);
    let frames = OnnxFileBuilder::new(17)
        .input(value_info("x", FLOAT, &[2, 100, 1]))
        .tensor(ints("step", &[], &[10]))
        .tensor(weight("window", &[20]))
        .node(Node::new("STFT", &["x", "step", "window"], &["y"]))
        .output("y");
    assert_eq!(dims_of_output(&frames, 0), [2, 9, 11, 2]);
}

/// How many results there are is known where the values are, or where the file says it.
#[test]
fn shapes_that_depend_on_data() {
    let of = |model: OnnxFileBuilder, name: &str| {
        model.node(Node::new("NonZero", &[name], &["y"]).named("places")).output("y")
    };
    let fed = of(OnnxFileBuilder::new(13).input(value_info("x", FLOAT, &[4, 8])), "x");
    let problem = refusal(&fed);
    assert!(problem.contains("places") && problem.contains("depends on data"), "{problem}");
    let known = of(OnnxFileBuilder::new(13).tensor(ints("k", &[4], &[0, 3, 0, 2])), "k");
    assert_eq!(dims_of_output(&known, 0), [1, 2]);
}
