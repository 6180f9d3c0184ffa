//! Values of small tensors, against those that numpy computes.

use super::resolved;
use crate::{ConstantData, OnnxGraph};
use tilescope_fixtures::onnx_file::{Message, Node, OnnxFileBuilder, floats, ints};

/// What a node makes of constants.
fn values(node: Node, tensors: &[Message]) -> ConstantData {
    let model = tensors
        .iter()
        .fold(OnnxFileBuilder::new(18).node(node), |model, tensor| model.tensor(tensor.clone()));
    let graph: OnnxGraph = resolved(&model.output("y")).unwrap_or_else(|error| panic!("{error}"));
    assert!(graph.nodes.is_empty(), "nothing is left to compute");
    let output = graph.value(graph.outputs[0]);
    let content = output.content.as_ref().expect("known values");
    assert_eq!(content.dims, output.dims);
    content.data.clone()
}

fn on(op: &str, operands: usize) -> Node {
    let names = ["a", "b", "c", "d", "e"];
    Node::new(op, &names[..operands], &["y"])
}

fn list(name: &str, values: &[i64]) -> Message {
    ints(name, &[i64::try_from(values.len()).unwrap()], values)
}

#[test]
fn whole_numbers() {
    let expect = |node: Node, tensors: &[Message], expected: &[i64]| {
        assert_eq!(values(node, tensors), ConstantData::Ints(expected.to_vec()));
    };
    let (a, b) = (list("a", &[7, -7, 5]), list("b", &[2, 2, -3]));
    expect(on("Add", 2), &[a.clone(), b.clone()], &[9, -5, 2]);
    expect(on("Div", 2), &[a.clone(), b.clone()], &[3, -3, -1]);
    expect(on("Mod", 2), &[a.clone(), b.clone()], &[1, 1, -1]);
    expect(on("Mod", 2).int("fmod", 1), &[a.clone(), b.clone()], &[1, -1, 2]);
    expect(on("Max", 2), &[a.clone(), b.clone()], &[7, 2, 5]);
    expect(on("Neg", 1), std::slice::from_ref(&a), &[-7, 7, -5]);
    expect(on("ReduceProd", 1).int("keepdims", 0), std::slice::from_ref(&a), &[-245]);
    expect(on("CumSum", 2), &[a.clone(), ints("b", &[], &[0])], &[7, 0, 5]);
    expect(on("Concat", 2).int("axis", 0), &[a.clone(), b.clone()], &[7, -7, 5, 2, 2, -3]);
    expect(on("Cast", 1).int("to", 3), &[list("a", &[300, -129])], &[44, 127]);
    let range = [ints("a", &[], &[10]), ints("b", &[], &[0]), ints("c", &[], &[-3])];
    expect(on("Range", 3), &range, &[10, 7, 4, 1]);
}

#[test]
fn tensors() {
    let expect = |node: Node, tensors: &[Message], expected: &[i64]| {
        assert_eq!(values(node, tensors), ConstantData::Ints(expected.to_vec()));
    };
    let matrix = ints("a", &[2, 3], &[0, 1, 2, 3, 4, 5]);
    let with = |tensors: &[Message]| [&[matrix.clone()][..], tensors].concat();
    expect(on("Transpose", 1), &with(&[]), &[0, 3, 1, 4, 2, 5]);
    expect(on("Gather", 2).int("axis", 1), &with(&[list("b", &[-1, 0])]), &[2, 0, 5, 3]);
    let bounds =
        [list("b", &[2, -1]), list("c", &[-9, 0]), list("d", &[1, 0]), list("e", &[-2, -1])];
    expect(on("Slice", 5), &with(&bounds), &[5, 3]);
    expect(on("Tile", 2), &with(&[list("b", &[1, 2])]), &[0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    expect(
        on("Pad", 3),
        &with(&[list("b", &[0, 1, 0, 0]), ints("c", &[], &[9])]),
        &[9, 0, 1, 2, 9, 3, 4, 5],
    );
    expect(on("Expand", 2), &[ints("a", &[2, 1], &[4, 6]), list("b", &[1, 2])], &[4, 4, 6, 6]);
    expect(on("Trilu", 1).int("upper", 0), &with(&[]), &[0, 0, 0, 3, 4, 0]);
    expect(on("ReduceSum", 2).int("keepdims", 0), &with(&[list("b", &[0])]), &[3, 5, 7]);
    expect(on("GatherND", 2), &with(&[ints("b", &[2, 2], &[0, 1, 1, 2])]), &[1, 5]);
    expect(on("GatherElements", 2), &with(&[ints("b", &[1, 3], &[1, 0, 1])]), &[3, 1, 5]);
    expect(
        on("ScatterND", 3),
        &with(&[ints("b", &[1, 1], &[1]), ints("c", &[1, 3], &[7, 8, 9])]),
        &[0, 1, 2, 7, 8, 9],
    );
    expect(on("NonZero", 1), &with(&[]), &[0, 0, 1, 1, 1, 1, 2, 0, 1, 2]);
    let compared = values(on("Less", 2), &with(&[list("b", &[3, 1, 2])]));
    assert_eq!(compared, ConstantData::Bools(vec![true, false, false, false, false, false]));
}

/// Floats are those of 32 bits.
#[test]
fn floats_are_rounded_as_on_the_device() {
    let third = values(on("Div", 2), &[floats("a", &[], &[1.0]), floats("b", &[], &[3.0])]);
    assert_eq!(third, ConstantData::Floats(vec![f64::from(1.0_f32 / 3.0)]));
}

/// Tensors that are too large to be kept are constants all the same; weights never are.
#[test]
fn large_constants_and_weights() {
    let fill = |rows: i64| {
        OnnxFileBuilder::new(18)
            .tensor(list("s", &[rows, 1000]))
            .node(Node::new("ConstantOfShape", &["s"], &["c"]))
            .node(Node::new("Exp", &["c"], &["y"]))
            .output("y")
    };
    let graph = resolved(&fill(1000)).unwrap();
    let output = graph.value(graph.outputs[0]);
    assert!(graph.nodes.is_empty() && output.content.is_none());
    assert_eq!(output.dims, [1000, 1000]);
    let weights = OnnxFileBuilder::new(18)
        .tensor(floats("w", &[2], &[1.0, 2.0]))
        .node(Node::new("Exp", &["w"], &["y"]))
        .output("y");
    assert_eq!(resolved(&weights).unwrap().nodes.len(), 1);
}
