//! GELU by the error function or by the hyperbolic tangent, as exporters before opset 20 write it:
//! x . 0.5 . (1 + erf(x / sqrt 2)), x . 0.5 . (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).

use super::pattern::{FusedNode, GraphView, Product};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};
use tilescope_onnx::ValueId;

/// The factor sqrt(2 / pi) of the hyperbolic tangent.
const TANH_SCALE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
const CUBE_SCALE: f64 = 0.044_715;

pub(super) fn find(graph: &GraphView, last: usize) -> Option<FusedNode> {
    let product = graph.product_of(last)?;
    let [a, b] = product.factors[..] else { return None };
    if (product.constant - 0.5).abs() > 1e-3 {
        return None;
    }
    [[a, b], [b, a]].into_iter().find_map(|[x, gate]| {
        let mut nodes = product.nodes.clone();
        let add = graph.only_maker(gate, "Add")?;
        nodes.push(add);
        let of_add = graph.either_way(add).into_iter().find(|[_, one]| graph.is_about(*one, 1.0));
        let [function, _] = of_add?;
        let (op, argument) = match graph.only_maker(function, "Erf") {
            Some(erf) => {
                nodes.push(erf);
                ("Gelu", by_erf(graph, graph.input(erf, 0)?, x))
            }
            None => {
                let tanh = graph.only_maker(function, "Tanh")?;
                nodes.push(tanh);
                ("FastGelu", by_tanh(graph, graph.input(tanh, 0)?, x))
            }
        };
        nodes.extend(argument?);
        Some(FusedNode::new(op, vec![x], nodes))
    })
}

/// The nodes of `x / sqrt 2`.
fn by_erf(graph: &GraphView, argument: ValueId, x: ValueId) -> Option<Vec<usize>> {
    if let Some(div) = graph.only_maker(argument, "Div") {
        let fits = graph.input(div, 0)? == x && graph.is_about(graph.input(div, 1)?, SQRT_2);
        return if fits { Some(vec![div]) } else { None };
    }
    let product = scaled(graph, argument, FRAC_1_SQRT_2)?;
    if product.factors == [x] { Some(product.nodes) } else { None }
}

/// The product with this constant, if nothing else reads it.
fn scaled(graph: &GraphView, value: ValueId, constant: f64) -> Option<Product> {
    let product = graph.product_of(graph.only_maker(value, "Mul")?)?;
    if (product.constant - constant).abs() <= 1e-3 * constant { Some(product) } else { None }
}

/// The nodes of `sqrt(2/pi) (x + 0.044715 x^3)`.
fn by_tanh(graph: &GraphView, argument: ValueId, x: ValueId) -> Option<Vec<usize>> {
    let outer = scaled(graph, argument, TANH_SCALE)?;
    let [sum] = outer.factors[..] else { return None };
    let add = graph.only_maker(sum, "Add")?;
    let mut nodes = outer.nodes;
    nodes.push(add);
    let [_, cubed] = graph.either_way(add).into_iter().find(|[first, _]| *first == x)?;
    let cubed = scaled(graph, cubed, CUBE_SCALE)?;
    nodes.extend(&cubed.nodes);
    match cubed.factors[..] {
        [a, b, c] if [a, b, c] == [x; 3] => Some(nodes),
        [power] => {
            let pow = graph.only_maker(power, "Pow")?;
            nodes.push(pow);
            let fits = graph.input(pow, 0)? == x && graph.is_about(graph.input(pow, 1)?, 3.0);
            if fits { Some(nodes) } else { None }
        }
        _ => None,
    }
}
