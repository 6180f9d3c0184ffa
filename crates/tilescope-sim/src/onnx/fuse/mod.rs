//! Nodes that exporters wrote for one operator become that operator again.
//!
//! Each file knows one pattern: what stands around a node, and the node of the standard that takes
//! its place. Every list has a test that runs over all its entries.

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

/// Finds what a pattern makes of the node that ends it.
type Pattern = fn(&GraphView, usize) -> Option<FusedNode>;

/// All patterns; where several fit, the first is taken.
const PATTERNS: &[Pattern] = &[
    norms::find_layer_norm,
    norms::find_rms_norm,
    gelu::find,
    silu::find_clipped,
    silu::find,
    mask::find_inverted,
    linear::find,
];

/// What the operations of a node were made for.
#[derive(Clone, Debug)]
pub(super) struct NodeOrigin {
    /// Operator and version of the nodes of the file that it stands for.
    pub source: Arc<str>,
    /// What those say of themselves.
    pub options: NodeOptions,
}

/// A graph with what its nodes were in the file.
pub(super) struct FusedGraph<'a> {
    pub graph: Cow<'a, OnnxGraph>,
    /// Of each node.
    pub origins: Vec<NodeOrigin>,
    /// Operator -> how often it took the place of several nodes.
    pub fused: BTreeMap<String, u64>,
}

/// The graph as it is.
pub(super) fn unfused<'a>(file: &'a OnnxGraph, annotations: &Annotations) -> FusedGraph<'a> {
    let mut names = SourceNames::default();
    let origin = |at| NodeOrigin { source: names.of(file, &[at]), options: annotations.node(at) };
    let origins = (0..file.nodes.len()).map(origin).collect();
    FusedGraph { graph: Cow::Borrowed(file), origins, fused: BTreeMap::new() }
}

/// The graph with all patterns joined whose nodes do not contradict each other.
pub(super) fn fused<'a>(file: &'a OnnxGraph, annotations: &Annotations) -> FusedGraph<'a> {
    let mut fused = BTreeMap::new();
    let graph = match mask::narrowed(file) {
        Some((graph, left_out)) => {
            fused.extend((left_out > 0).then(|| ("Mask".to_string(), left_out)));
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
        let fits = |found: FusedNode| {
            let free = found.nodes.iter().all(|at| !joined[*at]);
            let options = annotations.joined(&found.nodes, last)?;
            (free && pattern::has_one_stage(file, &found.nodes)).then_some((found, options))
        };
        let Some((found, options)) = found.and_then(fits) else { continue };
        found.nodes.iter().for_each(|at| joined[*at] = true);
        *fused.entry(found.op.to_string()).or_default() += 1;
        replaced.insert(last, (found, options));
    }
    if replaced.is_empty() {
        return FusedGraph { graph, fused, ..unfused(file, annotations) };
    }
    let mut names = SourceNames::default();
    let (mut nodes, mut origins) = (Vec::new(), Vec::new());
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

/// Operators and versions in words, each text once.
#[derive(Default)]
struct SourceNames {
    known: HashMap<String, Arc<str>>,
}

impl SourceNames {
    /// `Conv@11` of one node, `MatMul@13, Add@13` of several: each operator once, in the order of
    /// the file.
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
        let shared = || Arc::from(text.as_str());
        Arc::clone(self.known.entry(text.clone()).or_insert_with(shared))
    }
}
