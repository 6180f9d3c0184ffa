//! Nodes that exporters wrote for one operator become that operator again.
//!
//! Each file knows one pattern: what stands around a node, and the node of the standard that takes
//! its place. Every list has a test that runs over all its entries.

mod gelu;
mod linear;
mod norms;
mod pattern;
mod silu;

use pattern::{FusedNode, GraphView};
use tilescope_onnx::{OnnxGraph, OnnxNode};

/// Finds what a pattern makes of the node that ends it.
type Pattern = fn(&GraphView, usize) -> Option<FusedNode>;

/// All patterns; where several fit, the first is taken.
const PATTERNS: &[Pattern] = &[
    norms::find_layer_norm,
    norms::find_rms_norm,
    gelu::find,
    silu::find_clipped,
    silu::find,
    linear::find,
];

/// The graph with all patterns joined.
pub(super) fn fused(file: &OnnxGraph) -> OnnxGraph {
    let view = GraphView::new(file);
    let mut joined: Vec<bool> = vec![false; file.nodes.len()];
    let mut replaced: Vec<Option<OnnxNode>> = vec![None; file.nodes.len()];
    for last in (0..file.nodes.len()).rev() {
        if joined[last] {
            continue;
        }
        let found = PATTERNS.iter().find_map(|pattern| pattern(&view, last));
        let fits = |found: &FusedNode| {
            let free = found.nodes.iter().all(|at| !joined[*at]);
            free && pattern::has_one_stage(file, &found.nodes)
        };
        let Some(found) = found.filter(fits) else { continue };
        found.nodes.iter().for_each(|at| joined[*at] = true);
        replaced[last] = Some(found.node(file, last));
    }
    let mut graph = file.clone();
    let kept = file.nodes.iter().zip(&joined).zip(replaced);
    graph.nodes = kept
        .filter_map(|((node, joined), replaced)| match (replaced, joined) {
            (Some(fused), _) => Some(fused),
            (None, true) => None,
            (None, false) => Some(node.clone()),
        })
        .collect();
    pattern::renumber(&mut graph);
    graph
}
