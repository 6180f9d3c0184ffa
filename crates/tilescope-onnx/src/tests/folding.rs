//! Compares values of small tensors with those of numpy.

use super::resolved;
use tilescope_fixtures::onnx_text;

#[test]
fn nodes_of_constants_have_the_values_of_numpy() {
    for line in include_str!("folding.txt").lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.split_once(" -> ").expect("a node and its values");
        let model = onnx_text::model(&format!("opset 18; {text}"));
        let graph = resolved(&model).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(graph.nodes.is_empty(), "{text}: nothing is left to compute");
        let output = graph.value(graph.outputs[0]);
        let content = output.content.as_ref().expect("known values");
        assert_eq!(content.dims, output.dims, "{text}");
        assert_eq!(format!("{:?}", content.data), expected, "{text}");
    }
}

/// Tensors that are too large to keep are constants nevertheless; weights never are.
#[test]
fn large_constants_and_weights() {
    let fill = onnx_text::model("opset 18; c = ConstantOfShape i64:2=1000,1000; Exp c");
    let graph = resolved(&fill).unwrap();
    let output = graph.value(graph.outputs[0]);
    assert!(graph.nodes.is_empty() && output.content.is_none());
    assert_eq!(output.dims, [1000, 1000]);
    let weights = onnx_text::model("opset 18; Exp f32:2=1,2");
    assert_eq!(resolved(&weights).unwrap().nodes.len(), 1);
}
