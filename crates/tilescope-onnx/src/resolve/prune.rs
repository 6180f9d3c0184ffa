//! Removes everything that no output needs.

use crate::graph::{OnnxGraph, OnnxNode, OnnxValue, RepeatPart, ValueId, ValueSource};

/// The graph without nodes, constants and initialisers that no output needs. Inputs stay.
pub(super) fn used(graph: OnnxGraph) -> OnnxGraph {
    let (needed, nodes) = needed(&graph);
    let mut numbers: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    let mut values = Vec::new();
    let mut new_nodes: Vec<Option<usize>> = vec![None; graph.nodes.len()];
    for (new, old) in
        nodes.iter().enumerate().filter_map(|(old, kept)| kept.then_some(old)).enumerate()
    {
        new_nodes[old] = Some(new);
    }
    for (old, mut value) in graph.values.into_iter().enumerate() {
        if !needed[old] {
            continue;
        }
        if let ValueSource::Node(node) = value.source {
            let Some(node) = new_nodes[node] else { continue };
            value.source = ValueSource::Node(node);
        }
        numbers[old] = u32::try_from(values.len()).ok().map(ValueId);
        values.push(value);
    }
    let renumber_all =
        |ids: Vec<ValueId>| ids.into_iter().filter_map(|id| numbers[id.index()]).collect();
    let renumber = |ids: Vec<Option<ValueId>>| {
        let mut ids: Vec<Option<ValueId>> =
            ids.into_iter().map(|id| id.and_then(|id| numbers[id.index()])).collect();
        // Trailing absent operands are dropped.
        while ids.last().is_some_and(Option::is_none) {
            ids.pop();
        }
        ids
    };
    let renumber_node = |node: OnnxNode| OnnxNode {
        inputs: renumber(node.inputs),
        outputs: renumber(node.outputs),
        ..node
    };
    let kept = graph.nodes.into_iter().zip(&nodes).filter(|(_, kept)| **kept);
    OnnxGraph {
        values,
        nodes: kept.map(|(node, _)| renumber_node(node)).collect(),
        inputs: renumber_all(graph.inputs),
        outputs: renumber_all(graph.outputs),
        opset: graph.opset,
        folded: graph.folded,
        composed: graph.composed,
        repeats: graph.repeats,
        metadata: graph.metadata,
    }
}

/// Flags for the values that kept nodes read, and for the kept nodes.
fn needed(graph: &OnnxGraph) -> (Vec<bool>, Vec<bool>) {
    let mut values: Vec<bool> =
        graph.values.iter().map(|value: &OnnxValue| value.source == ValueSource::Input).collect();
    let mut nodes = vec![false; graph.nodes.len()];
    for output in &graph.outputs {
        values[output.index()] = true;
    }
    let mut is_found = true;
    while is_found {
        is_found = false;
        // Nodes are in order, so the readers of each come before it in this reverse pass. Only the
        // update of a state also serves readers that precede it, in the next iteration.
        for (at, node) in graph.nodes.iter().enumerate().rev() {
            if nodes[at] {
                continue;
            }
            let state = match node.repeat_part {
                Some(RepeatPart::Update) => node.inputs.get(1).copied().flatten(),
                _ => None,
            };
            let mut served = node.outputs.iter().copied().flatten().chain(state);
            if !served.any(|value| values[value.index()]) {
                continue;
            }
            nodes[at] = true;
            is_found = !graph.repeats.is_empty();
            for input in node.inputs.iter().flatten() {
                values[input.index()] = true;
            }
        }
    }
    (values, nodes)
}
