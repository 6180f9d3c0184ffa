//! A product with weights and a bias per column: `MatMul`, `Add`. Exporters write the weights in
//! the layout of the module, a row for each output, and transpose them first: `Transpose`,
//! `MatMul`, with or without a bias.

use super::pattern::{FusedNode, GraphView};
use tilescope_onnx::ValueId;

pub(super) fn find(graph: &GraphView, last: usize) -> Option<FusedNode> {
    match graph.node(last).op.as_str() {
        "Add" => graph.either_way(last).into_iter().find_map(|[product, bias]| {
            let mut linear = product_with_weights(graph, graph.only_maker(product, "MatMul")?)?;
            let fits = graph.is_weight(bias, 1) && graph.value(bias).elements() == linear.columns;
            linear.node.inputs.push(bias);
            linear.node.nodes.push(last);
            if fits { Some(linear.node) } else { None }
        }),
        "MatMul" => {
            let linear = product_with_weights(graph, last)?;
            // A product without bias and transposition is not a fused node.
            if linear.node.nodes.len() > 1 { Some(linear.node) } else { None }
        }
        _ => None,
    }
}

/// A product, and the number of its columns.
struct LinearProduct {
    node: FusedNode,
    columns: u64,
}

/// The product of rows with weights, transposed or not.
fn product_with_weights(graph: &GraphView, matmul: usize) -> Option<LinearProduct> {
    let x = graph.input(matmul, 0)?;
    let of_product = graph.input(matmul, 1)?;
    let (weights, transpose) = match turned_around(graph, of_product) {
        Some((weights, transpose)) => (weights, Some(transpose)),
        None => (of_product, None),
    };
    let columns = *graph.value(of_product).dims.get(1)?;
    let fits = graph.is_weight(weights, 2) && graph.value(x).dims.len() >= 2;
    let nodes = transpose.into_iter().chain([matmul]).collect();
    let node = FusedNode {
        attribute: transpose.map(|_| ("transB", 1)),
        ..FusedNode::new("Linear", vec![x, weights], nodes)
    };
    if !fits {
        return None;
    }
    Some(LinearProduct { node, columns })
}

/// The matrix whose axes a node swaps for this product alone, and that node.
fn turned_around(graph: &GraphView, value: ValueId) -> Option<(ValueId, usize)> {
    let transpose = graph.only_maker(value, "Transpose")?;
    let order = graph.node(transpose).attributes.ints("perm").ok()?;
    if order.is_some_and(|order| order != [1, 0]) {
        return None;
    }
    Some((graph.input(transpose, 0)?, transpose))
}
