//! Layer norm and root-mean-square norm over the last axis, as exporters before opset 17 write them.

use super::pattern::{FusedNode, GraphView};
use tilescope_onnx::ValueId;

/// `(x - mean) / sqrt(mean((x - mean)^2) + epsilon) . scale + shift`, without shift, or without
/// both.
pub(super) fn find_layer_norm(graph: &GraphView, last: usize) -> Option<FusedNode> {
    let (norm, affine) = match graph.node(last).op.as_str() {
        "Add" => graph.either_way(last).into_iter().find_map(|[scaled, shift]| {
            let mul = graph.only_maker(scaled, "Mul")?;
            let (mut norm, scale) = scaled_norm(graph, mul)?;
            norm.nodes.push(mul);
            Some((norm, vec![scale, shift]))
        })?,
        "Mul" => scaled_norm(graph, last).map(|(norm, scale)| (norm, vec![scale]))?,
        "Div" => (normalised(graph, last)?, Vec::new()),
        _ => return None,
    };
    if !affine.iter().all(|of| fits_channels(graph, *of, norm.x)) {
        return None;
    }
    let mut nodes = norm.nodes;
    if !nodes.contains(&last) {
        nodes.push(last);
    }
    let inputs = [vec![norm.x], affine].concat();
    Some(FusedNode::new("LayerNormalization", inputs, nodes))
}

/// Values minus their mean, divided by their deviation.
struct Normalised {
    x: ValueId,
    nodes: Vec<usize>,
}

/// The norm that a multiplication scales, and the scale.
fn scaled_norm(graph: &GraphView, mul: usize) -> Option<(Normalised, ValueId)> {
    graph.either_way(mul).into_iter().find_map(|[normal, scale]| {
        let div = graph.only_maker(normal, "Div")?;
        Some((normalised(graph, div)?, scale))
    })
}

fn normalised(graph: &GraphView, div: usize) -> Option<Normalised> {
    let centred = graph.input(div, 0)?;
    let sub = graph.maker(centred, "Sub")?;
    let x = graph.input(sub, 0)?;
    let mean = graph.input(sub, 1)?;
    let of_mean = graph.maker(mean, "ReduceMean")?;
    let mut root = root_of_mean_square(graph, graph.input(div, 1)?)?;
    // The square is of the same difference, which some exporters compute twice.
    let again = graph.maker(root.of, "Sub")?;
    let same = again == sub || graph.node(again).inputs == graph.node(sub).inputs;
    let means_last = is_mean_of_last_axis(graph, mean, x);
    let only_here = graph.readers(centred) <= 2 && graph.readers(mean) <= 2;
    if graph.input(of_mean, 0)? != x || !same || !means_last || !only_here {
        return None;
    }
    root.nodes.extend([div, sub, of_mean]);
    if again != sub {
        root.nodes.push(again);
    }
    Some(Normalised { x, nodes: root.nodes })
}

/// `x / sqrt(mean(x^2) + epsilon) . scale` as one node.
pub(super) fn find_rms_norm(graph: &GraphView, last: usize) -> Option<FusedNode> {
    if graph.node(last).op != "Mul" {
        return None;
    }
    graph.either_way(last).into_iter().find_map(|[normal, scale]| {
        let (x, mut root) = match graph.only_maker(normal, "Div") {
            Some(div) => {
                let mut root = root_of_mean_square(graph, graph.input(div, 1)?)?;
                root.nodes.push(div);
                (graph.input(div, 0)?, root)
            }
            None => {
                let mul = graph.only_maker(normal, "Mul")?;
                graph.either_way(mul).into_iter().find_map(|[x, inverse]| {
                    let (reciprocal, of) = inverted(graph, inverse)?;
                    let mut root = root_of_mean_square(graph, of)?;
                    root.nodes.extend([mul, reciprocal]);
                    Some((x, root))
                })?
            }
        };
        if root.of != x || !fits_channels(graph, scale, x) {
            return None;
        }
        root.nodes.push(last);
        Some(FusedNode::new("RMSNormalization", vec![x, scale], root.nodes))
    })
}

/// The node that inverts a value, and the value: `Reciprocal`, or 1 divided by it.
fn inverted(graph: &GraphView, inverse: ValueId) -> Option<(usize, ValueId)> {
    if let Some(reciprocal) = graph.only_maker(inverse, "Reciprocal") {
        return Some((reciprocal, graph.input(reciprocal, 0)?));
    }
    let div = graph.only_maker(inverse, "Div")?;
    let is_inverse = graph.is_about(graph.input(div, 0)?, 1.0);
    if !is_inverse {
        return None;
    }
    Some((div, graph.input(div, 1)?))
}

/// The root of a mean of squares, and the value that is squared.
struct RootMeanSquare {
    of: ValueId,
    nodes: Vec<usize>,
}

fn root_of_mean_square(graph: &GraphView, root: ValueId) -> Option<RootMeanSquare> {
    let sqrt = graph.only_maker(root, "Sqrt")?;
    let add = graph.only_maker(graph.input(sqrt, 0)?, "Add")?;
    let [mean, _] = graph.either_way(add).into_iter().find(|[_, epsilon]| {
        graph.value(*epsilon).elements() == 1 && graph.is_constant(*epsilon)
    })?;
    let of_mean = graph.only_maker(mean, "ReduceMean")?;
    let square = graph.input(of_mean, 0)?;
    let (of, at) = match graph.only_maker(square, "Pow") {
        Some(pow) => {
            if !graph.is_about(graph.input(pow, 1)?, 2.0) {
                return None;
            }
            (graph.input(pow, 0)?, pow)
        }
        None => {
            let mul = graph.only_maker(square, "Mul")?;
            let of = graph.input(mul, 0)?;
            (graph.input(mul, 1).filter(|other| *other == of)?, mul)
        }
    };
    if !is_mean_of_last_axis(graph, mean, of) {
        return None;
    }
    Some(RootMeanSquare { of, nodes: vec![sqrt, add, of_mean, at] })
}

/// True if the mean has one value for each row of the last axis.
fn is_mean_of_last_axis(graph: &GraphView, mean: ValueId, of: ValueId) -> bool {
    let mean = &graph.value(mean).dims;
    let of = &graph.value(of).dims;
    match (mean.split_last(), of.split_last()) {
        (Some((1, rows)), Some((_, all))) => rows == all,
        _ => false,
    }
}

/// True if a weight has one value for each element of the last axis.
fn fits_channels(graph: &GraphView, weight: ValueId, x: ValueId) -> bool {
    let channels = graph.value(x).dims.last().copied();
    graph.is_weight(weight, 1) && channels == Some(graph.value(weight).elements())
}
