//! How much work a node is, for dividing a graph before it is built.

use tilescope_onnx::{OnnxGraph, OnnxNode};

/// Multiply-accumulates of a product or convolution, and the elements of its results: enough to
/// tell large nodes from small ones.
pub(super) fn of_node(file: &OnnxGraph, node: &OnnxNode) -> u64 {
    let elements = |value: Option<&Option<tilescope_onnx::ValueId>>| {
        value.copied().flatten().map_or(0, |value| file.value(value).elements())
    };
    let dims = |input: usize| {
        let value = node.inputs.get(input).copied().flatten();
        value.map(|value| file.value(value).dims.as_slice()).unwrap_or_default()
    };
    let results: u64 = node.outputs.iter().map(|output| elements(Some(output))).sum();
    let depth = match node.op.as_str() {
        "MatMul" | "Linear" => dims(0).last().copied().unwrap_or(1),
        "Gemm" => dims(0).iter().product::<u64>() / results_rows(dims(0), results).max(1),
        "Conv" => elements(node.inputs.get(1)) / dims(1).first().copied().unwrap_or(1).max(1),
        "ConvTranspose" => dims(1).get(1..).unwrap_or_default().iter().product(),
        "LSTM" | "GRU" | "RNN" => elements(node.inputs.get(1)).isqrt(),
        _ => 0,
    };
    results.saturating_mul(depth.saturating_add(1))
}

/// Rows of the first operand of a `Gemm`.
fn results_rows(dims: &[u64], results: u64) -> u64 {
    dims.iter().copied().find(|size| results.is_multiple_of((*size).max(1))).unwrap_or(1)
}
