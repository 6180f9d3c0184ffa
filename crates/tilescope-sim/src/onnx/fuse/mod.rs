//! Joins nodes that exporters wrote for one operator into that operator again.
//!
//! Each file contains one pattern: the nodes around a node, and the node of the standard that
//! replaces them. Every list has a test that runs over all its entries.

mod gelu;
mod linear;
mod mask;
mod norms;
mod pattern;
mod silu;

use super::annotations::Annotations;
use crate::graph::NodeOptions;
use pattern::{FusedNode, GraphView};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tilescope_onnx::OnnxGraph;

/// Returns the node that replaces the pattern that ends at a node.
type Pattern = fn(&GraphView, usize) -> Option<FusedNode>;

/// All patterns. The first one that fits is used.
const PATTERNS: &[Pattern] = &[
    norms::find_layer_norm,
    norms::find_rms_norm,
    gelu::find,
    silu::find_clipped,
    silu::find,
    mask::find_inverted,
    linear::find,
];

/// The origin of the operations of a node.
#[derive(Clone, Debug)]
pub(super) struct NodeOrigin {
    /// Operator and version of the nodes of the file that the node replaces.
    pub source: Arc<str>,
    /// The options of those nodes.
    pub options: NodeOptions,
}

/// A graph with the origins of its nodes in the file.
pub(super) struct FusedGraph<'a> {
    pub graph: Cow<'a, OnnxGraph>,
    /// The origin of each node.
    pub origins: Vec<NodeOrigin>,
    /// Operators with the number of times that each replaced several nodes.
    pub fused: BTreeMap<String, u64>,
}

/// Returns the graph unchanged.
pub(super) fn unfused<'a>(file: &'a OnnxGraph, annotations: &Annotations) -> FusedGraph<'a> {
    let mut names = SourceNames::default();
    let origins = (0..file.nodes.len())
        .map(|at| NodeOrigin { source: names.of(file, &[at]), options: annotations.node(at) })
        .collect();
    FusedGraph { graph: Cow::Borrowed(file), origins, fused: BTreeMap::new() }
}

/// Returns the graph with all patterns joined whose nodes do not contradict each other.
pub(super) fn fused<'a>(file: &'a OnnxGraph, annotations: &Annotations) -> FusedGraph<'a> {
    let mut fused = BTreeMap::new();
    let graph = match mask::narrowed(file) {
        Some((graph, left_out)) => {
            if left_out > 0 {
                fused.insert("Mask".to_string(), left_out);
            }
            Cow::Owned(graph)
        }
        None => Cow::Borrowed(file),
    };
    let view = GraphView::new(&graph);
    let mut joined: Vec<bool> = vec![false; file.nodes.len()];
    let mut replaced: HashMap<usize, (FusedNode, NodeOptions)> = HashMap::new();
    for last in (0..file.nodes.len()).rev() {
        if joined[last] {
            continue;
        }
        let found = PATTERNS.iter().find_map(|pattern| pattern(&view, last));
        let Some(found) = found else { continue };
        let Some(options) = annotations.joined(&found.nodes, last) else { continue };
        let is_together = pattern::has_one_stage(file, &found.nodes)
            && pattern::has_one_repeat(file, &found.nodes);
        if found.nodes.iter().any(|at| joined[*at]) || !is_together {
            continue;
        }
        for at in &found.nodes {
            joined[*at] = true;
        }
        *fused.entry(found.op.to_string()).or_default() += 1;
        replaced.insert(last, (found, options));
    }
    if replaced.is_empty() {
        return FusedGraph { graph, fused, ..unfused(file, annotations) };
    }
    let mut names = SourceNames::default();
    let mut nodes = Vec::new();
    let mut origins = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some((fused, options)) = replaced.remove(&at) {
            nodes.push(fused.node(&graph, at));
            origins.push(NodeOrigin { source: names.of(file, &fused.nodes), options });
        } else if !joined[at] {
            nodes.push(node.clone());
            let options = annotations.node(at);
            origins.push(NodeOrigin { source: names.of(file, &[at]), options });
        }
    }
    let mut graph = graph.into_owned();
    graph.nodes = nodes;
    pattern::renumber(&mut graph);
    FusedGraph { graph: Cow::Owned(graph), origins, fused }
}

/// Texts of operators and versions, each stored once.
#[derive(Default)]
struct SourceNames {
    known: HashMap<String, Arc<str>>,
}

impl SourceNames {
    /// The text `Conv@11` for one node, `MatMul@13, Add@13` for several: each operator once, in
    /// file order.
    fn of(&mut self, file: &OnnxGraph, nodes: &[usize]) -> Arc<str> {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        let mut words: Vec<String> = Vec::new();
        for at in nodes {
            let node = &file.nodes[at];
            let word = node.source();
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let text = words.join(", ");
        Arc::clone(self.known.entry(text.clone()).or_insert_with(|| Arc::from(text.as_str())))
    }
}
