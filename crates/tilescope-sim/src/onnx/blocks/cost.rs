//! The amount of work of a node, for dividing a graph before it is built.

use tilescope_onnx::{OnnxGraph, OnnxNode};

/// Multiply-accumulates of a product or convolution, and the elements of its results: precise
/// enough to distinguish large nodes from small ones.
pub(super) fn of_node(file: &OnnxGraph, node: &OnnxNode) -> u64 {
    let results = node.outputs.iter().flatten().map(|output| file.value(*output).elements());
    let results: u64 = results.sum();
    let macs = match node.op.as_str() {
        "Linear" => {
            let operand = node.inputs.first().copied().flatten();
            let depth = operand.and_then(|operand| file.value(operand).dims.last().copied());
            results.saturating_mul(depth.unwrap_or(1))
        }
        _ => file.node_macs(node),
    };
    macs.saturating_add(results).saturating_mul(file.runs(node))
}
