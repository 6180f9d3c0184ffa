//! SiLU and hard swish: a value times its sigmoid, or times its hard sigmoid.

use super::pattern::{FusedNode, GraphView};

pub(super) fn find(graph: &GraphView, last: usize) -> Option<FusedNode> {
    if graph.node(last).op != "Mul" {
        return None;
    }
    for [x, gate] in graph.either_way(last) {
        for (op, fused) in [("Sigmoid", "Swish"), ("HardSigmoid", "HardSwish")] {
            if let Some(maker) = graph.only_maker(gate, op)
                && graph.input(maker, 0) == Some(x)
            {
                return Some(FusedNode::new(fused, vec![x], vec![maker, last]));
            }
        }
    }
    None
}

/// `x . clip(x + 3, 0, 6) / 6`, as exporters before opset 14 write a hard swish.
pub(super) fn find_clipped(graph: &GraphView, last: usize) -> Option<FusedNode> {
    let node = graph.node(last);
    let product = graph.product_of(last).or_else(|| {
        let is_mean = node.op == "Div" && graph.is_about(graph.input(last, 1)?, 6.0);
        let mut product = graph.product_of(graph.only_maker(graph.input(last, 0)?, "Mul")?)?;
        product.constant /= 6.0;
        product.nodes.push(last);
        if is_mean { Some(product) } else { None }
    })?;
    let [a, b] = product.factors[..] else { return None };
    if (product.constant - 1.0 / 6.0).abs() > 1e-3 {
        return None;
    }
    [[a, b], [b, a]].into_iter().find_map(|[x, gate]| {
        let clip = graph.only_maker(gate, "Clip")?;
        let add = graph.only_maker(graph.input(clip, 0)?, "Add")?;
        let fits = graph
            .either_way(add)
            .into_iter()
            .any(|[of, three]| of == x && graph.is_about(three, 3.0));
        let nodes = [&product.nodes[..], &[clip, add]].concat();
        if fits { Some(FusedNode::new("HardSwish", vec![x], nodes)) } else { None }
    })
}
