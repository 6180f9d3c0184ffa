//! Blocks from module lists: `encoder/layer.N`, `layerM.N`, `features.N`.

use super::{MOST_BLOCKS, NodeBlocks, cost, in_data_order};
use std::collections::BTreeMap;
use tilescope_onnx::{OnnxGraph, OnnxNode};

/// The smallest share of the work that the modules of a list perform, in tenths.
const LEAST_SHARE: u64 = 6;

/// Names of modules without their numbers, `layer#` and `#`, which the modules of a list share.
type ListPattern = Vec<String>;

/// Makes a block for each numbered module of the deepest list that performs most of the work. Nodes
/// before and after the list join the first and the last module.
pub(super) fn find(file: &OnnxGraph) -> Option<NodeBlocks> {
    let paths: Vec<Vec<String>> = file.nodes.iter().map(path).collect();
    let costs: Vec<u64> = file.nodes.iter().map(|node| cost::of_node(file, node)).collect();
    let depth = deepest_list(&paths, &costs)?;
    let own: Vec<Option<String>> = paths
        .iter()
        .map(|path| {
            let inside = path.get(..depth.len())?;
            if pattern(inside) == depth { Some(inside.join(".")) } else { None }
        })
        .collect();
    let blocks = in_data_order(file, &own);
    if (2..=MOST_BLOCKS).contains(&blocks.names.len()) { Some(blocks) } else { None }
}

/// The modules around a node, from the outside: `layer.3` is module 3 of the list `layer`.
/// Exporters repeat the outer modules in the names of inner ones.
fn path(node: &OnnxNode) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    for scope in node.scope.iter().flatten() {
        let parts: Vec<String> = scope.split('.').map(str::to_string).collect();
        // A scope may begin with a repetition of the end of the path. The longest such repetition
        // is skipped.
        let most = path.len().min(parts.len());
        let said = (0..=most).rev().find(|said| path.ends_with(&parts[..*said])).unwrap_or(0);
        path.extend(parts.into_iter().skip(said));
    }
    path
}

fn pattern(path: &[String]) -> ListPattern {
    path.iter()
        .map(|part| {
            let stem = part.trim_end_matches(|letter: char| letter.is_ascii_digit());
            if stem.len() < part.len() { format!("{stem}#") } else { part.clone() }
        })
        .collect()
}

/// The deepest list that performs most of the work. If no module name is a plain number, the
/// outermost list of numbered names.
fn deepest_list(paths: &[Vec<String>], costs: &[u64]) -> Option<ListPattern> {
    let mut shares: BTreeMap<ListPattern, u64> = BTreeMap::new();
    for (path, cost) in paths.iter().zip(costs) {
        let pattern = pattern(path);
        for depth in (1..=pattern.len()).filter(|depth| pattern[depth - 1].ends_with('#')) {
            *shares.entry(pattern[..depth].to_vec()).or_default() += cost;
        }
    }
    let total: u64 = costs.iter().sum();
    shares.retain(|_, share| share.saturating_mul(10) >= total.saturating_mul(LEAST_SHARE));
    let numbered = shares.keys().filter(|list| list.last().is_some_and(|part| part == "#"));
    let deepest = numbered.max_by_key(|list| list.len());
    deepest.or_else(|| shares.keys().min_by_key(|list| list.len())).cloned()
}
