//! A product with weights and a bias per column: `MatMul`, `Add`.

use super::pattern::{FusedNode, GraphView};

pub(super) fn find(graph: &GraphView, last: usize) -> Option<FusedNode> {
    if graph.node(last).op != "Add" {
        return None;
    }
    graph.either_way(last).into_iter().find_map(|[product, bias]| {
        let matmul = graph.only_maker(product, "MatMul")?;
        let (x, weights) = (graph.input(matmul, 0)?, graph.input(matmul, 1)?);
        let columns = *graph.value(weights).dims.get(1)?;
        let fits = graph.is_weight(weights, 2)
            && graph.is_weight(bias, 1)
            && graph.value(bias).elements() == columns
            && graph.value(x).dims.len() >= 2;
        fits.then(|| FusedNode {
            op: "Linear",
            inputs: vec![x, weights, bias],
            nodes: vec![matmul, last],
        })
    })
}
