//! Checks before a graph is used: its version, its names, its order.

use crate::error::OnnxError;
use crate::proto::{GraphProto, ModelProto, NodeProto};
use std::collections::{HashMap, VecDeque};

/// Supported versions of the standard operator set.
const OPSETS: std::ops::RangeInclusive<i64> = 7..=28;

/// Maps both names of the standard domain to one.
pub(crate) fn standard_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// Version of the standard operator set.
pub(crate) fn opset(model: &ModelProto) -> Result<u32, OnnxError> {
    let version = model
        .opset_imports
        .iter()
        .find(|import| {
            let (domain, _): &(std::sync::Arc<str>, _) = import;
            standard_domain(domain).is_empty()
        })
        .map(|(_, version)| *version);
    let version = match version {
        Some(version) => version,
        None if model.graph.is_none() => {
            return Err(OnnxError::File(
                "the file has no graph, so it is not an ONNX file".to_owned(),
            ));
        }
        None => {
            return Err(OnnxError::File("the file does not state its opset".to_owned()));
        }
    };
    match u32::try_from(version) {
        Ok(opset) if OPSETS.contains(&version) => Ok(opset),
        _ => {
            let first = OPSETS.start();
            let last = OPSETS.end();
            Err(OnnxError::File(format!(
                "opset {version} is not supported: export the model with an opset from {first} to \
                 {last}"
            )))
        }
    }
}

/// The graph, if there is a readable one.
pub(crate) fn graph(model: &ModelProto) -> Result<&GraphProto, OnnxError> {
    let Some(graph) = &model.graph else {
        return Err(OnnxError::File("the file has no graph, so it is not an ONNX file".to_owned()));
    };
    if graph.has_sparse_initializers {
        return Err(OnnxError::File("sparse initialisers are not supported".to_owned()));
    }
    if graph.outputs.is_empty() {
        return Err(OnnxError::File("the graph has no output".to_owned()));
    }
    Ok(graph)
}

/// The name of a node in messages.
pub(crate) fn place(name: &str, op: &str) -> String {
    format!("node {name:?} ({op})")
}

fn node_place(node: &NodeProto) -> String {
    let name = if node.name.is_empty() { node.outputs.first() } else { Some(&node.name) };
    place(name.map_or("", |name| name), &node.op)
}

/// Nodes in an order in which each reads only earlier results: the order of the file if possible;
/// otherwise, always the first node that can come next.
///
/// # Errors
/// If a name is given twice, or nodes depend on each other in a cycle.
pub(crate) fn order(graph: &GraphProto) -> Result<Vec<usize>, OnnxError> {
    let writers = writers(graph)?;
    let nodes = &graph.nodes;
    let mut waiting = vec![0_u32; nodes.len()];
    let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut is_sorted = true;
    for (at, node) in nodes.iter().enumerate() {
        for input in &node.inputs {
            if let Some(writer) = writers.get(&**input) {
                is_sorted &= *writer < at;
            }
        }
    }
    if is_sorted {
        return Ok((0..nodes.len()).collect());
    }
    for (at, node) in nodes.iter().enumerate() {
        for writer in node.inputs.iter().filter_map(|input| writers.get(&**input)) {
            readers.entry(*writer).or_default().push(at);
            waiting[at] += 1;
        }
    }
    let mut ready: VecDeque<usize> = (0..nodes.len()).filter(|at| waiting[*at] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(at) = ready.pop_front() {
        order.push(at);
        for reader in readers.get(&at).into_iter().flatten() {
            waiting[*reader] -= 1;
            if waiting[*reader] == 0 {
                ready.push_back(*reader);
            }
        }
    }
    match waiting.iter().position(|left| *left > 0) {
        None => Ok(order),
        Some(at) => Err(OnnxError::Graph {
            place: node_place(&nodes[at]),
            problem: "it depends on its own result: the graph has a cycle".to_owned(),
        }),
    }
}

/// Maps each value to the node that computes it. No value has two sources.
fn writers(graph: &GraphProto) -> Result<HashMap<&str, usize>, OnnxError> {
    let mut writers: HashMap<&str, usize> = HashMap::new();
    let mut given: HashMap<&str, &str> = HashMap::new();
    let refuse = |name: &str, place: String| {
        let problem = format!("the name {name:?} is defined twice");
        Err(OnnxError::Graph { place, problem })
    };
    for tensor in &graph.initializers {
        if given.insert(&tensor.name, "initialiser").is_some() {
            return refuse(&tensor.name, format!("initialiser {:?}", tensor.name));
        }
    }
    for input in &graph.inputs {
        // An initialiser may also be an input: it is its default.
        if given.insert(&input.name, "input") == Some("input") {
            return refuse(&input.name, format!("input {:?}", input.name));
        }
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        for output in node.outputs.iter().filter(|output| !output.is_empty()) {
            if given.contains_key(&**output) || writers.insert(output, at).is_some() {
                return refuse(output, node_place(node));
            }
        }
    }
    Ok(writers)
}
