//! `options.serialize_matmul_layers`: the layers that are computed in parts, if not all are.

use super::lowering;
use crate::graph::{GraphNode, ModelGraph};
use crate::poplin::PlanCache;
use crate::poplin::matmul::MatMulSerializationMode;
use crate::poplin::planner::PoplibsOptions;
use crate::schedule::is_named;
use crate::specification::{Spec, SpecError};

/// The key that names the layers.
const LAYERS: &str = "options.serialize_matmul_layers";

/// Marks the linear layers that the spec names to be computed in parts, and all others to be
/// computed whole. Nodes of a file with their own serialization attributes keep them.
///
/// # Errors
/// Returns an error if a name matches no linear layer, or only layers that cannot be cut this way.
pub(super) fn serialize_named_layers(
    spec: &Spec,
    graph: &mut ModelGraph,
    plans: &PlanCache,
) -> Result<(), SpecError> {
    let named = &spec.options.serialize_matmul_layers;
    if named.is_empty() {
        return Ok(());
    }
    let PoplibsOptions { serialize_matmul: mode, serialize_matmul_factor: parts, .. } =
        spec.options.library;
    // The option applies to every layer, so unnamed layers must state that they are whole.
    let whole = (MatMulSerializationMode::None, parts);
    for index in 0..graph.nodes.len() {
        let is_cut = graph.nodes[index].operator.is_linear_layer()
            && named.iter().any(|name| is_named(graph, &graph.nodes[index], name));
        let serialization = &mut graph.nodes[index].options.planning.serialization;
        if is_cut {
            *serialization = Some((mode, parts));
        } else {
            serialization.get_or_insert(whole);
        }
    }
    let graph: &ModelGraph = graph;
    let context = lowering(spec, graph, plans);
    for name in named {
        let mut layers =
            linear_layers(graph).filter(|layer| is_named(graph, layer, name)).peekable();
        let Some(first) = layers.peek().copied() else {
            return Err(unknown_layer(spec, graph, name));
        };
        // A name can match layers of several sizes. It is wrong only if it cuts none of them.
        if layers.all(|layer| layer.operator.serial_parts(&context, &layer.operands()) == 1) {
            return Err(uneven_layer(spec, graph, first, name));
        }
    }
    Ok(())
}

fn linear_layers(graph: &ModelGraph) -> impl Iterator<Item = &GraphNode> {
    graph.nodes.iter().filter(|node| node.operator.is_linear_layer())
}

fn unknown_layer(spec: &Spec, graph: &ModelGraph, name: &str) -> SpecError {
    let names: Vec<&str> = linear_layers(graph).map(|layer| layer.name.as_str()).collect();
    spec.refuse(LAYERS, format!("the model has no linear layer {name:?}")).nearest(name, &names)
}

/// The error for a name that matches only layers that cannot be cut. `layer` is the first of them.
fn uneven_layer(spec: &Spec, graph: &ModelGraph, layer: &GraphNode, name: &str) -> SpecError {
    let PoplibsOptions { serialize_matmul: mode, serialize_matmul_factor: parts, .. } =
        spec.options.library;
    let [input, result] =
        [layer.inputs[0], layer.outputs[0]].map(|tensor| &graph.tensor(tensor).ty.shape);
    let size = match mode {
        MatMulSerializationMode::None => None,
        MatMulSerializationMode::InputChannels => result.iter().nth_back(1),
        MatMulSerializationMode::ReducingDim => input.last(),
        MatMulSerializationMode::OutputChannels => result.last(),
    };
    let others = if layer.name == name { "" } else { " or of other layers with this name" };
    let problem = format!(
        "options.serialize_matmul_factor = {parts} does not divide the {} {} of layer \
         {:?}{others}; choose a divisor",
        size.copied().unwrap_or_default(),
        mode.dimension(),
        layer.name
    );
    spec.refuse(LAYERS, problem)
}
